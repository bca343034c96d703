"""Exploration: randomised levels around a plan, so that the next log is informative for a given cost.

`epsilon_greedy_price_rule` gives a share of customers any level at random. `exploration_design` finds better probabilities for
the customers of a plan, `exploration_rule` does so for other customers, and `exploration_plan` draws the levels and predicts
the precision of the next log. `budget_constrained_draw` repeats a draw until it keeps the budget. `response_variance` estimates
the variance of responses around their expectation.
"""

from largesse.exploration.budget_constrained_draw import RESERVE as RESERVE
from largesse.exploration.budget_constrained_draw import (
    compute_cost_standard_deviation as compute_cost_standard_deviation,
)
from largesse.exploration.budget_constrained_draw import draw_levels_within_budget as draw_levels_within_budget
from largesse.exploration.budget_constrained_draw import find_seed_within_budget as find_seed_within_budget
from largesse.exploration.epsilon_greedy_price_rule import EpsilonGreedyPriceRule as EpsilonGreedyPriceRule
from largesse.exploration.epsilon_greedy_price_rule import compute_remaining_budget as compute_remaining_budget
from largesse.exploration.epsilon_greedy_price_rule import fit_rule_at_price as fit_rule_at_price
from largesse.exploration.epsilon_greedy_price_rule import fit_rule_to_budget as fit_rule_to_budget
from largesse.exploration.epsilon_greedy_price_rule import make_rule_from_tie_costs as make_rule_from_tie_costs
from largesse.exploration.epsilon_greedy_price_rule import mix_in_uniform_levels as mix_in_uniform_levels
from largesse.exploration.exploration_design import GOALS as GOALS
from largesse.exploration.exploration_design import design_exploration as design_exploration
from largesse.exploration.exploration_design import make_exploration_task as make_exploration_task
from largesse.exploration.exploration_plan import AT_RANDOM as AT_RANDOM
from largesse.exploration.exploration_plan import DEFAULT_RATE as DEFAULT_RATE
from largesse.exploration.exploration_plan import check_exploration as check_exploration
from largesse.exploration.exploration_plan import convert_policy_probabilities as convert_policy_probabilities
from largesse.exploration.exploration_plan import find_confirmatory_exploration as find_confirmatory_exploration
from largesse.exploration.exploration_plan import plan_exploration as plan_exploration
from largesse.exploration.exploration_rule import ExplorationRule as ExplorationRule
from largesse.exploration.exploration_rule import find_exploration_rule as find_exploration_rule
from largesse.exploration.exploration_rule import load_exploration_kernel as load_exploration_kernel
from largesse.exploration.response_variance import ResponseVariance as ResponseVariance
from largesse.exploration.response_variance import estimate_response_variance as estimate_response_variance
from largesse.exploration.response_variance import measure_response_variance as measure_response_variance
