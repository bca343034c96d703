"""Exploration: levels drawn around a plan, so that the next log is most informative for a given cost.

`mixture` gives a share of customers any level at random. `exploration_design` finds better probabilities for the customers of
a plan, `exploration_rule` does so for other customers, and `exploration_plan` draws the levels and predicts the precision of the
next log. `budget_constrained_draw` repeats a draw until it keeps the budget. `response_variance` estimates the variance of responses around
their expectation.
"""

from largesse.exploration.budget_constrained_draw import RESERVE as RESERVE
from largesse.exploration.budget_constrained_draw import draw_within as draw_within
from largesse.exploration.budget_constrained_draw import find_seed as find_seed
from largesse.exploration.budget_constrained_draw import measure_deviation as measure_deviation
from largesse.exploration.exploration_design import GOALS as GOALS
from largesse.exploration.exploration_design import design_log as design_log
from largesse.exploration.exploration_design import make_task as make_task
from largesse.exploration.exploration_plan import AT_RANDOM as AT_RANDOM
from largesse.exploration.exploration_plan import DEFAULT_RATE as DEFAULT_RATE
from largesse.exploration.exploration_plan import check_exploration as check_exploration
from largesse.exploration.exploration_plan import convert_policy_probabilities as convert_policy_probabilities
from largesse.exploration.exploration_plan import plan_exploration as plan_exploration
from largesse.exploration.exploration_plan import plan_next_log as plan_next_log
from largesse.exploration.exploration_rule import ExplorationRule as ExplorationRule
from largesse.exploration.exploration_rule import find_rule as find_rule
from largesse.exploration.exploration_rule import load_spread as load_spread
from largesse.exploration.mixture import Mixture as Mixture
from largesse.exploration.mixture import calibrate_mixture as calibrate_mixture
from largesse.exploration.mixture import find_mixture as find_mixture
from largesse.exploration.mixture import make_tie_mixture as make_tie_mixture
from largesse.exploration.mixture import mix_levels as mix_levels
from largesse.exploration.mixture import remaining_budget as remaining_budget
from largesse.exploration.response_variance import ResponseVariance as ResponseVariance
from largesse.exploration.response_variance import learn_variance as learn_variance
from largesse.exploration.response_variance import measure_variance as measure_variance
