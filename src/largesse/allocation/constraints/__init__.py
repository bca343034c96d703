"""Constraints of a plan besides its budget: caps, shares, budgets of segments, eligibility, least return.

`base` defines the form of a constraint, `kinds` one class per kind, `problem` the instance that the solvers read. `solve` gives each
limit a multiplier (`dual`), makes a plan from them (`repair`), and names an impossible set with the smallest change that helps
(`infeasible`).
"""
