"""Estimates of the value and spend of policies from a log, and checks of the log.

`evaluate` evaluates one policy, `compare` the difference of two, `make_study` a model at every budget: all numbers of a run,
computed once. `crossfit_scores` turns a log and a model into `Scores`, and every estimate is a mean of scores:
`estimate_policy_value_and_spend`, `estimate_frontier`, `estimate_qini_curve`. `ESTIMATORS` lists the off-policy estimators; doubly
robust is the default. `doctor` checks a log before any model is fitted. `bound_policy_gains` compares a policy with a simple rule
(`learn_one_column_rules`) and bounds the gain of either over the best uniform mix. `estimate_profit_by_budget` finds the most
profitable budget. `measure_spend_by_price` estimates the real cost of plans where costs depend on customers' responses.
`summarise_plan`, `summarise_study` and `estimate_at_slider_budgets` make the records of a run. `give_verdict` combines the evidence of
model and log on a plan into a probability and a recommendation.
"""

from largesse.evaluation.column_drift import measure_column_drifts as measure_column_drifts
from largesse.evaluation.covariate_shift import MAX_UNKNOWN_SHARE as MAX_UNKNOWN_SHARE
from largesse.evaluation.covariate_shift import CustomerSample as CustomerSample
from largesse.evaluation.covariate_shift import check_customer_shift as check_customer_shift
from largesse.evaluation.covariate_shift import compare_customers as compare_customers
from largesse.evaluation.covariate_shift import weight_log_to_customers as weight_log_to_customers
from largesse.evaluation.crossfitted_scores import compute_paid_costs as compute_paid_costs
from largesse.evaluation.crossfitted_scores import compute_scores as compute_scores
from largesse.evaluation.crossfitted_scores import crossfit_scores as crossfit_scores
from largesse.evaluation.crossfitted_scores import predict_out_of_fold as predict_out_of_fold
from largesse.evaluation.crossfitted_scores import restrict_scores_to_support as restrict_scores_to_support
from largesse.evaluation.estimators import ESTIMATORS as ESTIMATORS
from largesse.evaluation.frontier_estimate import ConstrainedFoldPlanner as ConstrainedFoldPlanner
from largesse.evaluation.frontier_estimate import FoldPlan as FoldPlan
from largesse.evaluation.frontier_estimate import FoldPlanner as FoldPlanner
from largesse.evaluation.frontier_estimate import estimate_frontier as estimate_frontier
from largesse.evaluation.frontier_estimate import make_budget_grid as make_budget_grid
from largesse.evaluation.frontier_estimate import plan_at_budgets as plan_at_budgets
from largesse.evaluation.frontier_estimate import plan_each_fold as plan_each_fold
from largesse.evaluation.influence_functions import join_intervals as join_intervals
from largesse.evaluation.log_checks import doctor as doctor
from largesse.evaluation.log_checks import find_overlap_warnings as find_overlap_warnings
from largesse.evaluation.log_checks import measure_explained_share as measure_explained_share
from largesse.evaluation.one_column_rule import RULE_GROUPS as RULE_GROUPS
from largesse.evaluation.one_column_rule import OneColumnRule as OneColumnRule
from largesse.evaluation.one_column_rule import learn_one_column_rules as learn_one_column_rules
from largesse.evaluation.partial_identification import find_value_bounds as find_value_bounds
from largesse.evaluation.plan_explanation import measure_decision_importance as measure_decision_importance
from largesse.evaluation.plan_summary import MAX_SUMMARY_ROWS as MAX_SUMMARY_ROWS
from largesse.evaluation.plan_summary import GroupedFeature as GroupedFeature
from largesse.evaluation.plan_summary import PlanAverages as PlanAverages
from largesse.evaluation.plan_summary import PlanCounts as PlanCounts
from largesse.evaluation.plan_summary import choose_explaining_features as choose_explaining_features
from largesse.evaluation.plan_summary import count_planned_levels as count_planned_levels
from largesse.evaluation.plan_summary import index_feature_groups as index_feature_groups
from largesse.evaluation.plan_summary import summarise_plan as summarise_plan
from largesse.evaluation.policy_estimates import bootstrap_value_and_spend as bootstrap_value_and_spend
from largesse.evaluation.policy_estimates import estimate_each_level as estimate_each_level
from largesse.evaluation.policy_estimates import estimate_gain_over_mix as estimate_gain_over_mix
from largesse.evaluation.policy_estimates import estimate_policy_difference as estimate_policy_difference
from largesse.evaluation.policy_estimates import estimate_policy_value_and_spend as estimate_policy_value_and_spend
from largesse.evaluation.policy_estimates import estimate_ratio as estimate_ratio
from largesse.evaluation.policy_estimates import find_best_mixes as find_best_mixes
from largesse.evaluation.policy_estimates import measure_level_influence as measure_level_influence
from largesse.evaluation.policy_estimates import measure_logged_influence as measure_logged_influence
from largesse.evaluation.policy_estimates import measure_policy_influence as measure_policy_influence
from largesse.evaluation.policy_estimates import predict_mean_response as predict_mean_response
from largesse.evaluation.policy_estimates import select_score_rows as select_score_rows
from largesse.evaluation.policy_evaluation import compare as compare
from largesse.evaluation.policy_evaluation import evaluate as evaluate
from largesse.evaluation.policy_evaluation import learn_policy_at_budget as learn_policy_at_budget
from largesse.evaluation.policy_evaluation import recognise_policy as recognise_policy
from largesse.evaluation.policy_evaluation import score_and_check_log as score_and_check_log
from largesse.evaluation.policy_gain_bounds import bound_policy_gains as bound_policy_gains
from largesse.evaluation.profit_estimate import estimate_profit as estimate_profit
from largesse.evaluation.profit_estimate import estimate_profit_by_budget as estimate_profit_by_budget
from largesse.evaluation.spend_by_price import measure_spend_by_price as measure_spend_by_price
from largesse.evaluation.study_estimation import estimate_at_slider_budgets as estimate_at_slider_budgets
from largesse.evaluation.study_estimation import interpolate_at_budget as interpolate_at_budget
from largesse.evaluation.study_estimation import make_study as make_study
from largesse.evaluation.study_estimation import make_study_from_scores as make_study_from_scores
from largesse.evaluation.study_estimation import summarise_study as summarise_study
from largesse.evaluation.verdict import give_verdict as give_verdict
