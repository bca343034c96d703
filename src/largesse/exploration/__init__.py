"""Exploration: levels drawn around a plan, so that the next log is most informative for a given cost.

`mixture` gives a share of customers any level at random. `design` finds better probabilities for the customers of a plan, `rule`
the same for customers who are not seen yet, and `plan` draws the levels and predicts the precision of the next log. `variance`
estimates the variance of responses around their expectation.
"""

from largesse.exploration.design import GOALS as GOALS
from largesse.exploration.design import design_log as design_log
from largesse.exploration.design import make_task as make_task
from largesse.exploration.mixture import Mixture as Mixture
from largesse.exploration.mixture import calibrate_mixture as calibrate_mixture
from largesse.exploration.mixture import find_mixture as find_mixture
from largesse.exploration.mixture import mix_levels as mix_levels
from largesse.exploration.mixture import remaining_budget as remaining_budget
from largesse.exploration.mixture import split_ties as split_ties
from largesse.exploration.plan import AT_RANDOM as AT_RANDOM
from largesse.exploration.plan import DEFAULT_RATE as DEFAULT_RATE
from largesse.exploration.plan import as_probabilities as as_probabilities
from largesse.exploration.plan import check_exploration as check_exploration
from largesse.exploration.plan import plan_exploration as plan_exploration
from largesse.exploration.rule import ExplorationRule as ExplorationRule
from largesse.exploration.rule import find_rule as find_rule
from largesse.exploration.rule import load_spread as load_spread
from largesse.exploration.variance import ResponseVariance as ResponseVariance
from largesse.exploration.variance import learn_variance as learn_variance
from largesse.exploration.variance import measure_variance as measure_variance
