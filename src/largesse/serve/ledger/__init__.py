"""Budget ledger that is never overspent: decisions, reserved promises and redemptions in SQLite or PostgreSQL.

`make_terms` and `open_ledger` open a ledger by its address. `Ledger.decide` gives levels that fit, `redeem` counts payments,
`standing` returns the remaining budget, and `audit` adds all decisions up again.
"""
