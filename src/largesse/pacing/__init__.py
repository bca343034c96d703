"""Keep to a budget while customers come one by one: a ledger that is never overspent, and a price that follows a plan."""

from largesse.pacing.ledger import DAY as DAY
from largesse.pacing.ledger import ENTRY as ENTRY
from largesse.pacing.ledger import SECOND as SECOND
from largesse.pacing.ledger import Audit as Audit
from largesse.pacing.ledger import Choice as Choice
from largesse.pacing.ledger import Chooser as Chooser
from largesse.pacing.ledger import Decided as Decided
from largesse.pacing.ledger import Ledger as Ledger
from largesse.pacing.ledger import Offers as Offers
from largesse.pacing.ledger import Reason as Reason
from largesse.pacing.ledger import Redemption as Redemption
from largesse.pacing.ledger import Standing as Standing
from largesse.pacing.ledger import Terms as Terms
from largesse.pacing.ledger import agree as agree
from largesse.pacing.ledger import now_micros as now_micros
from largesse.pacing.ledger import open_ledger as open_ledger
from largesse.pacing.ledger import show_time as show_time
from largesse.pacing.money import MICROS as MICROS
from largesse.pacing.money import as_units as as_units
from largesse.pacing.money import count_micros as count_micros
from largesse.pacing.money import read_money as read_money
from largesse.pacing.money import show_money as show_money
