"""A budget that is never overspent: decisions, promises and redemptions in SQLite or PostgreSQL.

`agree` makes the terms, `open_ledger` opens a ledger by its address. `Ledger.decide` gives levels that fit, `redeem` counts
what was paid, `standing` says what is left, and `audit` adds everything up again.

`book` holds the ledger: each of its methods is one transaction. `rows` reads and writes within it, by the SQL of `tables`, in a
`store`: `sqlite` or `postgres`. `entries` and `terms` are the records.
"""

from largesse.pacing.ledger.book import Ledger as Ledger
from largesse.pacing.ledger.entries import LONGEST_ID as LONGEST_ID
from largesse.pacing.ledger.entries import Ask as Ask
from largesse.pacing.ledger.entries import Audit as Audit
from largesse.pacing.ledger.entries import Choice as Choice
from largesse.pacing.ledger.entries import Chooser as Chooser
from largesse.pacing.ledger.entries import Decided as Decided
from largesse.pacing.ledger.entries import Offers as Offers
from largesse.pacing.ledger.entries import Reason as Reason
from largesse.pacing.ledger.entries import Redemption as Redemption
from largesse.pacing.ledger.entries import Standing as Standing
from largesse.pacing.ledger.entries import is_id as is_id
from largesse.pacing.ledger.opening import open_ledger as open_ledger
from largesse.pacing.ledger.tables import ENTRY as ENTRY
from largesse.pacing.ledger.terms import DAY as DAY
from largesse.pacing.ledger.terms import KEPT as KEPT
from largesse.pacing.ledger.terms import PROMISES as PROMISES
from largesse.pacing.ledger.terms import Terms as Terms
from largesse.pacing.ledger.terms import agree as agree
from largesse.pacing.ledger.terms import count_time as count_time
from largesse.pacing.ledger.terms import now_micros as now_micros
from largesse.pacing.ledger.terms import show_time as show_time
