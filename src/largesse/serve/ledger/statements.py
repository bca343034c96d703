"""The tables of a ledger, in SQL that SQLite and PostgreSQL both read.

All money is whole millionths, all times are microseconds since 1970. One row of `ledger` holds the terms, the sums and the
state of the price; whoever changes anything holds that row. The database itself refuses a sum above the total: what is
spent, and what is promised where promises are kept.
"""

from __future__ import annotations

FORMAT = 2  # of these tables

COUNTED = (
    *("spent", "promised", "at_once", "settled_expected", "settled_paid", "open_expected", "late_face"),
    *("requests", "decisions", "redemptions", "expired", "settled_wait"),
)
TERMS = ("total", "starts", "ends", "valid", "late", "promises")
DECISION = (
    *("number", "customer", "place", "level", "at_once", "face", "expected"),
    *("propensity", "response", "price", "reason"),
)
REQUEST = ("number", "id", "digest", "policy", "decided_at", "expires_at", "closed")

_SUMS = ",\n  ".join(f"{name} BIGINT NOT NULL DEFAULT 0 CHECK ({name} >= 0)" for name in COUNTED)
_RULE = "promises TEXT NOT NULL DEFAULT 'kept'"
_RESERVED = "reserved BIGINT NOT NULL DEFAULT 0 CHECK (reserved >= 0)"  # an estimate: it is not added up again
_WAIT = "settled_wait BIGINT NOT NULL DEFAULT 0 CHECK (settled_wait >= 0)"
# A ledger of the first format keeps all its promises; what it lacks is added.
UPGRADE = (
    *(f"ALTER TABLE ledger ADD COLUMN {column}" for column in (_RULE, _RESERVED, _WAIT)),
    "UPDATE ledger SET format = 2",
)

CREATE = (
    f"""CREATE TABLE IF NOT EXISTS ledger (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  format BIGINT NOT NULL,
  total BIGINT NOT NULL,
  starts BIGINT NOT NULL,
  ends BIGINT NOT NULL,
  valid BIGINT,
  late TEXT NOT NULL,
  {_RULE},
  {_SUMS},
  {_RESERVED},
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

READ_LEDGER = f"SELECT {', '.join((*TERMS, *COUNTED))}, reserved, state, plan FROM ledger"  # noqa: S608  names of our own
FIND_REQUEST = "SELECT number, digest, policy, decided_at, expires_at FROM request WHERE id = ?"
READ_DECISIONS = """SELECT customer, level, propensity, response, price, reason, at_once, face, expected
FROM decision WHERE number = ? ORDER BY place"""
FIND_DECISION = """SELECT r.number, r.expires_at, r.closed, d.face, d.paid, d.redeemed_at
FROM request r JOIN decision d ON d.number = r.number WHERE r.id = ? AND d.customer = ?"""
PAY = "UPDATE decision SET paid = ?, redeemed_at = ? WHERE number = ? AND customer = ?"

# What was redeemed in time, times the share of a promise's time that it took, in whole thousandths.
_WAITED = """CASE WHEN d.redeemed_at > r.decided_at AND d.redeemed_at < r.expires_at
  THEN d.paid / 1000 * ((d.redeemed_at - r.decided_at) * 1000 / (r.expires_at - r.decided_at)) ELSE 0 END"""

# Requests whose time is over, oldest first; a few at a time, so that nobody waits for long.
_OVER = "SELECT number FROM request WHERE closed = 0 AND expires_at <= ? ORDER BY expires_at, number LIMIT 100"
COUNT_OVER = f"""SELECT CASE WHEN r.expires_at <= ? THEN 1 ELSE 0 END AS early,
  SUM(CASE WHEN d.paid IS NULL THEN d.face ELSE 0 END), SUM(CASE WHEN d.face > 0 THEN d.expected ELSE 0 END),
  SUM(COALESCE(d.paid, 0)), SUM(COALESCE(d.paid, d.face)), SUM(CASE WHEN d.paid IS NULL AND d.face > 0 THEN 1 ELSE 0 END),
  SUM({_WAITED})
FROM decision d JOIN request r ON r.number = d.number WHERE d.number IN ({_OVER}) GROUP BY 1"""  # noqa: S608
CLOSE_OVER = f"UPDATE request SET closed = 1 WHERE number IN ({_OVER})"  # noqa: S608

# What the counted sums should be. Promises that are kept and outlast the period count by their faces until they are paid.
_LATE = "(l.promises = 'kept' AND (r.expires_at IS NULL OR r.expires_at > l.ends))"
ADD_UP = f"""SELECT
  COALESCE(SUM(d.at_once + COALESCE(d.paid, 0)), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND d.paid IS NULL THEN d.face ELSE 0 END), 0),
  COALESCE(SUM(d.at_once), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND d.face > 0 AND NOT {_LATE} THEN d.expected ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 THEN COALESCE(d.paid, 0) ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND d.face > 0 AND NOT {_LATE} THEN d.expected ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 0 AND {_LATE} THEN COALESCE(d.paid, d.face) ELSE 0 END), 0),
  (SELECT COUNT(*) FROM request),
  COUNT(*),
  COALESCE(SUM(CASE WHEN d.paid IS NULL THEN 0 ELSE 1 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND d.face > 0 AND (d.paid IS NULL OR d.redeemed_at >= r.expires_at)
    THEN 1 ELSE 0 END), 0),
  COALESCE(SUM(CASE WHEN r.closed = 1 AND l.promises <> 'kept' THEN {_WAITED} ELSE 0 END), 0)
FROM decision d JOIN request r ON r.number = d.number CROSS JOIN ledger l"""  # noqa: S608
ENTRY = (
    *("request", "customer", "level", "propensity", "response", "price", "reason", "at_once", "face", "expected"),
    *("paid", "policy", "decided_at", "expires_at", "redeemed_at", "closed"),
)
ALL_DECISIONS = """SELECT r.id, d.customer, d.level, d.propensity, d.response, d.price, d.reason, d.at_once, d.face,
  d.expected, d.paid, r.policy, r.decided_at, r.expires_at, d.redeemed_at, r.closed
FROM request r JOIN decision d ON d.number = r.number WHERE r.number > ? AND r.number <= ? ORDER BY r.number, d.place"""
