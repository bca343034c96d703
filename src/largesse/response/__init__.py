"""Response models: estimators of the expected response of a customer at each level.

All models share one contract: a constructor that only stores, `fit(log)` or `fit(X, level, response)`, `predict(customers)` →
curves (n, K), learnt names that end in an underscore. `response_model` holds the contract
and `model_catalogue` lists all models. `Linear`: features shift the whole curve, levels add common increments; hard to beat with
little data. `Additive`: a bent line per feature instead of a straight one. `Thresholds`: where each customer begins to
respond, every level with lines of its own; for many correlated features. `Boosting`: trees, monotone in the level; for
interactions and many rows. `Hurdle`: the probability of a response times the mean amount of those who respond; on logs with
many zeros and a long tail (`suits_hurdle_model`), `Linear`, `Additive`, `SIRE` and `IRE` do so, too. `SIRE` and `IRE`: networks
balanced by HSIC; for curves that differ between customers. `Stack`, the default, gives a weighted sum of several models'
bases a common ladder (`level_effect_estimation`) and as much of their deviations as held-out rows support. `WithCosts` adds a model of
observed costs to any response model, by default `Proportional`.
"""

from largesse.response.additive import Additive as Additive
from largesse.response.boosting import Boosting as Boosting
from largesse.response.curve_posterior import CurvePosterior as CurvePosterior
from largesse.response.curve_posterior import fit_curve_posterior as fit_curve_posterior
from largesse.response.fold_ensemble import ModelScorer as ModelScorer
from largesse.response.fold_ensemble import predict_held_out as predict_held_out
from largesse.response.hurdle import Hurdle as Hurdle
from largesse.response.level_effect_estimation import make_monotone as make_monotone
from largesse.response.linear import Linear as Linear
from largesse.response.model_catalogue import check_model_name as check_model_name
from largesse.response.model_catalogue import describe_model as describe_model
from largesse.response.model_catalogue import list_model_classes as list_model_classes
from largesse.response.model_catalogue import list_models as list_models
from largesse.response.model_catalogue import make_model as make_model
from largesse.response.networks.network_settings import CONCAVE_EDGE as CONCAVE_EDGE
from largesse.response.networks.network_settings import Balance as Balance
from largesse.response.networks.network_settings import Network as Network
from largesse.response.networks.network_settings import Training as Training
from largesse.response.networks.sire import IRE as IRE
from largesse.response.networks.sire import SIRE as SIRE
from largesse.response.observed_cost_model import Proportional as Proportional
from largesse.response.observed_cost_model import WithCosts as WithCosts
from largesse.response.observed_cost_model import fit_out_of_fold as fit_out_of_fold
from largesse.response.observed_cost_model import get_customer_costs as get_customer_costs
from largesse.response.observed_cost_model import predict_curves_and_costs as predict_curves_and_costs
from largesse.response.responder_amounts import suits_hurdle_model as suits_hurdle_model
from largesse.response.response_model import Configurable as Configurable
from largesse.response.response_model import Learner as Learner
from largesse.response.response_model import ResponseModel as ResponseModel
from largesse.response.response_model import check_auto_setting as check_auto_setting
from largesse.response.response_model import copy_unfitted as copy_unfitted
from largesse.response.response_model import encode_customers as encode_customers
from largesse.response.response_model import fit_copy as fit_copy
from largesse.response.stacking import TILT_REACH as TILT_REACH
from largesse.response.stacking import Stack as Stack
from largesse.response.threshold_model import TINY_PROBABILITY as TINY_PROBABILITY
from largesse.response.threshold_model import Thresholds as Thresholds
