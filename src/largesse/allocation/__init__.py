"""Allocation of levels to customers within a budget, from response curves and costs.

`allocate` gives every customer one level so that the sum of responses is as large as the budget allows; `frontier` does it for
every budget. `price/` finds the price of the budget: a sample brackets it, one pass decides nearly all customers, and the price is
selected among the hull steps of the others. The plan is then rounded to whole levels and never costs more than the budget.
`constraints/` adds further constraints, and `mixed_integer_solver` proves the best plan. `cost_estimates` computes the expected cost of a
level; `cost_calibration` corrects expected costs so that the plan really costs its budget. `plans_by_budget` plans at many budgets at once;
`distributed_allocation` plans for customers in batches on several machines.
"""

from largesse.allocation.constraints.constraint_types import CONSTRAINT_SETTINGS as CONSTRAINT_SETTINGS
from largesse.allocation.constraints.constraint_types import Constraint as Constraint
from largesse.allocation.constraints.constraint_types import Constraints as Constraints
from largesse.allocation.constraints.constraint_types import ConstraintSetting as ConstraintSetting
from largesse.allocation.constraints.constraint_types import Limit as Limit
from largesse.allocation.constraints.constraint_types import Segments as Segments
from largesse.allocation.cost_calibration import BUDGET_CONFIDENCE as BUDGET_CONFIDENCE
from largesse.allocation.cost_calibration import CostCorrection as CostCorrection
from largesse.allocation.cost_calibration import correct_expected_costs as correct_expected_costs
from largesse.allocation.cost_calibration import find_cost_correction as find_cost_correction
from largesse.allocation.cost_estimates import expected_costs as expected_costs
from largesse.allocation.distributed_allocation import BatchPlan as BatchPlan
from largesse.allocation.distributed_allocation import allocate_batches as allocate_batches
from largesse.allocation.input_checks import check_curves_and_costs as check_curves_and_costs
from largesse.allocation.plan_and_frontier import TIE as TIE
from largesse.allocation.plan_and_frontier import allocate as allocate
from largesse.allocation.plan_and_frontier import decide_at_price as decide_at_price
from largesse.allocation.plan_and_frontier import frontier as frontier
from largesse.allocation.plan_and_frontier import split_ties_at_price as split_ties_at_price
from largesse.allocation.plans_by_budget import BudgetPoint as BudgetPoint
from largesse.allocation.plans_by_budget import PriceSums as PriceSums
from largesse.allocation.plans_by_budget import count_levels_at_budgets as count_levels_at_budgets
from largesse.allocation.plans_by_budget import count_levels_of_plans as count_levels_of_plans
from largesse.allocation.plans_by_budget import find_budget_points as find_budget_points
from largesse.allocation.plans_by_budget import mix_two_levels as mix_two_levels
from largesse.allocation.plans_by_budget import sum_plans_at_prices as sum_plans_at_prices
from largesse.allocation.price.upper_hulls import convert_to_kernel_arrays as convert_to_kernel_arrays
from largesse.allocation.unsupported_level_replacement import add_cheapest_level as add_cheapest_level
from largesse.allocation.unsupported_level_replacement import copy_supported_values as copy_supported_values
from largesse.allocation.unsupported_level_replacement import map_to_supported_levels as map_to_supported_levels
from largesse.allocation.unsupported_level_replacement import penalise_unsupported_levels as penalise_unsupported_levels
from largesse.allocation.unsupported_level_replacement import replace_unsupported_levels as replace_unsupported_levels
from largesse.allocation.unsupported_level_replacement import (
    replace_unsupported_probabilities as replace_unsupported_probabilities,
)
