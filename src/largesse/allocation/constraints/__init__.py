"""Constraints of a plan besides its budget: caps, shares, budgets of segments, eligibility, minimum return.

`constraint_types` defines the form of a constraint and one class per kind, `problem` the instance that the solvers read. `solver`
gives each limit a multiplier (`dual`), repairs the plan that follows, and names an impossible set with the smallest change that
helps (`infeasible`).
"""
