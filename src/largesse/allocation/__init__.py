"""Curves + costs + budget → plan.

`allocate` gives every customer one level so that the sum of responses is as large as the budget allows; `frontier` does
it for every budget at once. `price/` finds the price of budget: a sample brackets it, one pass decides nearly everybody,
and it is selected among the steps up the hulls of the others; the plan is then rounded to whole levels and never costs
more than the budget. `constraints` holds what else a campaign must keep, one class per kind; `rules/` gives each limit
a multiplier, repairs the plan, and names an impossible set with the smallest change that helps. `exact/` proves the best
whole plan, with and without constraints. `costs` says what a level is expected to cost a customer, however it is paid;
`spending` corrects costs that are expected, not known, so that a plan really costs its budget; `doses` chooses amounts on a
continuous scale; `explore` gives a share of customers a level at random. `scored` plans
customers who are never all in one place, by a few passes over batches of them (`passes/`): the plan is the same whatever the batches.
"""

from largesse.allocation.constraints import CONSTRAINT_SETTINGS as CONSTRAINT_SETTINGS
from largesse.allocation.constraints import Constraints as Constraints
from largesse.allocation.costs import expected_costs as expected_costs
from largesse.allocation.explore import Mixture as Mixture
from largesse.allocation.explore import calibrate_mixture as calibrate_mixture
from largesse.allocation.explore import exploring_budget as exploring_budget
from largesse.allocation.explore import find_mixture as find_mixture
from largesse.allocation.explore import mix_levels as mix_levels
from largesse.allocation.mix import mix_two_levels as mix_two_levels
from largesse.allocation.passes.gather import Gather as Gather
from largesse.allocation.passes.gather import Gathered as Gathered
from largesse.allocation.passes.look import Look as Look
from largesse.allocation.passes.look import Tally as Tally
from largesse.allocation.passes.packing import pack_answer as pack_answer
from largesse.allocation.passes.packing import unpack_answer as unpack_answer
from largesse.allocation.passes.questions import Sums as Sums
from largesse.allocation.passes.questions import add_by_group as add_by_group
from largesse.allocation.passes.questions import add_counted as add_counted
from largesse.allocation.passes.questions import add_sums as add_sums
from largesse.allocation.passes.questions import total_of as total_of
from largesse.allocation.plan import TIE as TIE
from largesse.allocation.plan import allocate as allocate
from largesse.allocation.plan import decide_at_price as decide_at_price
from largesse.allocation.plan import frontier as frontier
from largesse.allocation.rules.rule import Limit as Limit
from largesse.allocation.rules.rule import Rule as Rule
from largesse.allocation.rules.rule import Segments as Segments
from largesse.allocation.rules.rule import Setting as Setting
from largesse.allocation.scored import PricedPlan as PricedPlan
from largesse.allocation.scored import Question as Question
from largesse.allocation.scored import Scored as Scored
from largesse.allocation.scored import ScoredBatches as ScoredBatches
from largesse.allocation.scored import check_batch as check_batch
from largesse.allocation.scored import correct_scored as correct_scored
from largesse.allocation.scored import hold_scores as hold_scores
from largesse.allocation.scored import price_plan as price_plan
from largesse.allocation.spending import EVEN as EVEN
from largesse.allocation.spending import Correction as Correction
from largesse.allocation.spending import correct_costs as correct_costs
from largesse.allocation.stops import Stop as Stop
from largesse.allocation.stops import choose_unit as choose_unit
from largesse.allocation.stops import count_levels as count_levels
from largesse.allocation.stops import count_stops as count_stops
from largesse.allocation.stops import find_stops as find_stops
