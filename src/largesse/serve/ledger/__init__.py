"""A budget that is never overspent: decisions, promises and redemptions in SQLite or PostgreSQL.

`agree` and `open_ledger` open a ledger by its address. `Ledger.decide` gives levels that fit, `redeem` counts what was paid,
`standing` says what is left, and `audit` adds all decisions up again.
"""
