"""Allocation under constraints besides the budget: caps, shares, segment budgets, eligibility, minimum return.

`constraint_types` defines the form of a constraint and one class per kind, `constrained_problem` the arrays that the solvers
read. `constrained_solver` gives each limit a multiplier (`lagrange_multipliers`), repairs the plan that follows, and names an
impossible set with the smallest change that helps (`infeasibility`).
"""
