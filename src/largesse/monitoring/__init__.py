"""Monitoring of campaigns: predicted against realised results, drift, and sizes of randomised tests.

`predict_plan_for_log` and `match_decisions` give the prediction of a plan for the rows of a new log, `check_campaign` compares it
with the outcome, and `power` says how many customers a test of a plan needs.
"""

from largesse.monitoring.campaign_check import TrainingLogResiduals as TrainingLogResiduals
from largesse.monitoring.campaign_check import check_campaign as check_campaign
from largesse.monitoring.new_log_predictions import CUSTOMER as CUSTOMER
from largesse.monitoring.new_log_predictions import PROPENSITY as PROPENSITY
from largesse.monitoring.new_log_predictions import REQUEST as REQUEST
from largesse.monitoring.new_log_predictions import PlanPrediction as PlanPrediction
from largesse.monitoring.new_log_predictions import add_prediction_errors as add_prediction_errors
from largesse.monitoring.new_log_predictions import find_budget_price as find_budget_price
from largesse.monitoring.new_log_predictions import has_unique_ids as has_unique_ids
from largesse.monitoring.new_log_predictions import make_text_ids as make_text_ids
from largesse.monitoring.new_log_predictions import match_decisions as match_decisions
from largesse.monitoring.new_log_predictions import predict_plan_for_log as predict_plan_for_log
from largesse.monitoring.power_analysis import PowerSettings as PowerSettings
from largesse.monitoring.power_analysis import broadcast_probabilities as broadcast_probabilities
from largesse.monitoring.power_analysis import check_incumbent as check_incumbent
from largesse.monitoring.power_analysis import compute_test_sizes as compute_test_sizes
from largesse.monitoring.power_analysis import make_test_arms as make_test_arms
from largesse.monitoring.power_analysis import power as power
