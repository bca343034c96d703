"""Curves + costs + budget → plan.

`allocate` gives every customer one level so that the sum of responses is as large as the budget allows; `frontier` does
it for every budget at once. A sample brackets the price of budget, one pass decides nearly everybody, and the price is
selected among the steps up the hulls of the others (`search`); the plan is made whole and never costs more than the
budget (`whole`), and with `exact=True` proven the best (`exact`). `Constraints` hold what else a campaign must keep:
they get prices and tolls of their own (`constrained`), the best plan under them is proven by what is left after these (`proven`,
`model`), and an impossible set is named with the smallest change that helps (`infeasible`). `expected_costs`
says what a level is expected to cost a customer, whichever way it is paid; `best_doses` chooses amounts on a continuous
scale; `explore_plan` leaves a share of customers to chance. `textbook` has the plain methods of the paper, to check the fast ones against.
"""

from largesse.allocation.constraints import CONSTRAINT_SETTINGS as CONSTRAINT_SETTINGS
from largesse.allocation.constraints import Constraints as Constraints
from largesse.allocation.costs import expected_costs as expected_costs
from largesse.allocation.doses import best_doses as best_doses
from largesse.allocation.explore import Mixture as Mixture
from largesse.allocation.explore import calibrate_mixture as calibrate_mixture
from largesse.allocation.explore import explore_plan as explore_plan
from largesse.allocation.explore import find_mixture as find_mixture
from largesse.allocation.plan import allocate as allocate
from largesse.allocation.plan import decide_at_price as decide_at_price
from largesse.allocation.plan import frontier as frontier
from largesse.allocation.rules.rule import Limit as Limit
from largesse.allocation.rules.rule import Rule as Rule
from largesse.allocation.rules.rule import Segments as Segments
from largesse.allocation.rules.rule import Setting as Setting
