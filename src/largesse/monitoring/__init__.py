"""Monitoring of a campaign: prediction against result, drift, and the power of a test.

`predict_for_log` and `match_decisions` give the prediction of a plan for the rows of a new log, `check_campaign` compares it
with the outcome, and `power` says how many customers a test of a plan needs.
"""

from largesse.monitoring.campaign_check import OldLog as OldLog
from largesse.monitoring.campaign_check import check_campaign as check_campaign
from largesse.monitoring.plan_prediction import CUSTOMER as CUSTOMER
from largesse.monitoring.plan_prediction import PROPENSITY as PROPENSITY
from largesse.monitoring.plan_prediction import REQUEST as REQUEST
from largesse.monitoring.plan_prediction import Prediction as Prediction
from largesse.monitoring.plan_prediction import add_errors as add_errors
from largesse.monitoring.plan_prediction import find_budget_price as find_budget_price
from largesse.monitoring.plan_prediction import has_unique_ids as has_unique_ids
from largesse.monitoring.plan_prediction import join_ids as join_ids
from largesse.monitoring.plan_prediction import match_decisions as match_decisions
from largesse.monitoring.plan_prediction import predict_for_log as predict_for_log
from largesse.monitoring.power_analysis import PowerSpec as PowerSpec
from largesse.monitoring.power_analysis import broadcast_probabilities as broadcast_probabilities
from largesse.monitoring.power_analysis import check_incumbent as check_incumbent
from largesse.monitoring.power_analysis import find_arms as find_arms
from largesse.monitoring.power_analysis import power as power
from largesse.monitoring.power_analysis import size_test as size_test
