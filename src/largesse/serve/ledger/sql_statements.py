"""SQL statements of a ledger that are valid in SQLite and PostgreSQL.

All money is whole millionths, all times are microseconds since 1970. One row of `ledger` holds the terms, the sums and the
state of the price. CHECK constraints refuse a sum above the total: spent, and promised if promises are kept.
"""

from __future__ import annotations

import numpy as np

TABLES_VERSION = 3
TERMS = ("total", "starts", "ends", "valid", "late", "promises")
SUMS = (  # over all decisions
    *("spent", "promised", "at_once", "settled_expected", "settled_paid", "open_expected", "late_face"),
    *("requests", "decisions", "redemptions", "expired", "settled_wait"),
)
COUNTS = (*SUMS, "reserved")  # the last is an estimate: it is not added up again
_COUNT_COLUMNS = ",\n  ".join(f"{name} BIGINT NOT NULL DEFAULT 0 CHECK ({name} >= 0)" for name in COUNTS)
CREATE = (
    f"""CREATE TABLE IF NOT EXISTS ledger (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  format BIGINT NOT NULL,
  total BIGINT NOT NULL,
  starts BIGINT NOT NULL,
  ends BIGINT NOT NULL,
  valid BIGINT,
  late TEXT NOT NULL,
  promises TEXT NOT NULL DEFAULT 'kept',
  {_COUNT_COLUMNS},
  state TEXT NOT NULL DEFAULT '[]',
  plan TEXT NOT NULL DEFAULT '{{}}',
  CHECK (spent <= total AND (promises <> 'kept' OR spent + promised <= total))
)""",
    """CREATE TABLE IF NOT EXISTS request (
  number BIGINT PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL,
  policy TEXT NOT NULL,
  decided_at BIGINT NOT NULL,
  expires_at BIGINT,
  closed BIGINT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS request_open ON request (expires_at) WHERE closed = 0",
    """CREATE TABLE IF NOT EXISTS decision (
  number BIGINT NOT NULL,
  customer TEXT NOT NULL,
  place BIGINT NOT NULL,
  level BIGINT NOT NULL,
  at_once BIGINT NOT NULL,
  face BIGINT NOT NULL,
  expected BIGINT NOT NULL,
  propensity DOUBLE PRECISION NOT NULL,
  response DOUBLE PRECISION NOT NULL,
  price DOUBLE PRECISION NOT NULL,
  reason BIGINT NOT NULL,
  paid BIGINT,
  redeemed_at BIGINT,
  PRIMARY KEY (number, customer)
)""",
)
READ_LEDGER = f"SELECT {', '.join((*TERMS, *COUNTS))}, state, plan FROM ledger"  # noqa: S608  names of our own
WRITE_LEDGER = f"UPDATE ledger SET {', '.join(f'{name} = ?' for name in COUNTS)}, state = ?"  # noqa: S608
FIND_REQUESTS = "SELECT id, number, digest, policy, decided_at, expires_at FROM request WHERE id IN"
READ_DECISIONS = """SELECT customer, level, propensity, response, price, reason, at_once, face, expected
FROM decision WHERE number = ? ORDER BY place"""
DECISION_TYPES = (np.int64, *(np.float64,) * 3, *(np.int64,) * 4)  # of these columns, after the customer
DECISION_ARRAYS = {  # column → array of `LedgerDecisions`
    "level": "levels",
    "at_once": "at_once",
    "face": "face",
    "expected": "expected",
    "propensity": "propensity",
    "response": "responses",
    "price": "price",
    "reason": "reason",
}
FIND_DECISION = """SELECT r.number, r.expires_at, r.closed, d.face, d.paid, d.redeemed_at
FROM request r JOIN decision d ON d.number = r.number WHERE r.id = ? AND d.customer = ?"""
PAY = "UPDATE decision SET paid = ?, redeemed_at = ? WHERE number = ? AND customer = ?"
# The amount redeemed in time, times the share of a promise's time that it took, in whole thousandths.
_WAITED = """CASE WHEN d.redeemed_at > r.decided_at AND d.redeemed_at < r.expires_at
  THEN d.paid / 1000 * ((d.redeemed_at - r.decided_at) * 1000 / (r.expires_at - r.decided_at)) ELSE 0 END"""
# Requests whose time is over, oldest first.
_EXPIRED_REQUESTS = (
    "SELECT number FROM request WHERE closed = 0 AND expires_at <= ? ORDER BY expires_at, number LIMIT ?"
)
COUNT_EXPIRED = f"""SELECT CASE WHEN r.expires_at <= ? THEN 1 ELSE 0 END AS early,
  SUM(CASE WHEN d.paid IS NULL THEN d.face ELSE 0 END), SUM(CASE WHEN d.face > 0 THEN d.expected ELSE 0 END),
  SUM(COALESCE(d.paid, 0)), SUM(COALESCE(d.paid, d.face)), SUM(CASE WHEN d.paid IS NULL AND d.face > 0 THEN 1 ELSE 0 END),
  SUM({_WAITED})
FROM decision d JOIN request r ON r.number = d.number WHERE d.number IN ({_EXPIRED_REQUESTS}) GROUP BY 1"""  # noqa: S608
CLOSE_EXPIRED = f"UPDATE request SET closed = 1 WHERE number IN ({_EXPIRED_REQUESTS})"  # noqa: S608
# The sums over the decisions. Promises that are kept and outlast the period count with their face value until they are paid.
_ACCEPTS_LATE = "(l.promises = 'kept' AND (r.expires_at IS NULL OR r.expires_at > l.ends))"
SUM_DECISIONS = f"""SELECT
  COALESCE(SUM(d.at_once + COALESCE(d.paid, 0)), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND d.paid IS NULL THEN d.face ELSE 0 END), 0),
  COALESCE(SUM(d.at_once), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND d.face > 0 AND NOT {_ACCEPTS_LATE} THEN d.expected ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 THEN COALESCE(d.paid, 0) ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND d.face > 0 AND NOT {_ACCEPTS_LATE} THEN d.expected ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND {_ACCEPTS_LATE} THEN COALESCE(d.paid, d.face) ELSE 0 END), 0),
  (SELECT COUNT(*) FROM request),
  COUNT(*),
  COALESCE(SUM(CASE WHEN d.paid IS NULL THEN 0 ELSE 1 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND d.face > 0 AND (d.paid IS NULL OR d.redeemed_at >= r.expires_at)
    THEN 1 ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND l.promises <> 'kept' THEN {_WAITED} ELSE 0 END), 0)
FROM decision d JOIN request r ON r.number = d.number CROSS JOIN ledger l"""  # noqa: S608
DECISION_COLUMNS = (
    *("request", "customer", "level", "propensity", "response", "price", "reason", "at_once", "face", "expected"),
    *("paid", "policy", "decided_at", "expires_at", "redeemed_at", "closed"),
)
ALL_DECISIONS = """SELECT r.id, d.customer, d.level, d.propensity, d.response, d.price, d.reason, d.at_once, d.face,
  d.expected, d.paid, r.policy, r.decided_at, r.expires_at, d.redeemed_at, r.closed
FROM request r JOIN decision d ON d.number = r.number WHERE r.number > ? AND r.number <= ? ORDER BY r.number, d.place"""
