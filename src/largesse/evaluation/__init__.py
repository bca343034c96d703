"""Estimates of the value and spend of policies from a log, and checks of the log.

`evaluate` evaluates one policy, `compare` the difference of two, `make_study` a model at every budget: all numbers of a run,
computed once. `crossfit` turns a log and a model into `Scores`, and every estimate is a mean of scores: `estimate_value`,
`trace_frontier`, `trace_cost_curve`. `ESTIMATORS` lists the off-policy estimators; doubly robust is the default. `doctor` checks a
log before any model is fitted. `bound_policy_gains` compares a policy with a simple rule (`learn_rules`) and bounds the gain of either
over the best uniform mix. `trace_profit` finds the most profitable budget. `measure_spending` estimates the real cost of plans where
costs depend on customers' responses. `summarise_plan`, `summarise_study` and `summarise_jointly` make the records of a run.
`give_verdict` combines the evidence of model and log on a plan into a probability and a recommendation.
"""

from largesse.evaluation.budget_study import estimate_at as estimate_at
from largesse.evaluation.budget_study import make_study as make_study
from largesse.evaluation.budget_study import study_scores as study_scores
from largesse.evaluation.budget_study import summarise_jointly as summarise_jointly
from largesse.evaluation.budget_study import summarise_study as summarise_study
from largesse.evaluation.column_drift import measure_drift as measure_drift
from largesse.evaluation.covariate_shift import CustomerSample as CustomerSample
from largesse.evaluation.covariate_shift import check_shift as check_shift
from largesse.evaluation.covariate_shift import compare_customers as compare_customers
from largesse.evaluation.covariate_shift import match_customers as match_customers
from largesse.evaluation.crossfitted_scores import compute_paid_costs as compute_paid_costs
from largesse.evaluation.crossfitted_scores import compute_scores as compute_scores
from largesse.evaluation.crossfitted_scores import crossfit as crossfit
from largesse.evaluation.crossfitted_scores import hold_out_rows as hold_out_rows
from largesse.evaluation.crossfitted_scores import restrict_scores as restrict_scores
from largesse.evaluation.estimators import ESTIMATORS as ESTIMATORS
from largesse.evaluation.frontier_estimate import ConstrainedPlanner as ConstrainedPlanner
from largesse.evaluation.frontier_estimate import FoldPlan as FoldPlan
from largesse.evaluation.frontier_estimate import FoldPlanner as FoldPlanner
from largesse.evaluation.frontier_estimate import plan_at_budgets as plan_at_budgets
from largesse.evaluation.frontier_estimate import plan_each_fold as plan_each_fold
from largesse.evaluation.frontier_estimate import spread_budgets as spread_budgets
from largesse.evaluation.frontier_estimate import trace_frontier as trace_frontier
from largesse.evaluation.influence_functions import join_intervals as join_intervals
from largesse.evaluation.log_checks import doctor as doctor
from largesse.evaluation.log_checks import measure_explained_share as measure_explained_share
from largesse.evaluation.log_checks import warn_of_overlap as warn_of_overlap
from largesse.evaluation.one_column_rule import RULE_GROUPS as RULE_GROUPS
from largesse.evaluation.one_column_rule import SimpleRule as SimpleRule
from largesse.evaluation.one_column_rule import learn_rules as learn_rules
from largesse.evaluation.partial_identification import find_bounds as find_bounds
from largesse.evaluation.plan_explanation import measure_importance as measure_importance
from largesse.evaluation.plan_summary import MAX_SUMMARY_ROWS as MAX_SUMMARY_ROWS
from largesse.evaluation.plan_summary import GroupedFeature as GroupedFeature
from largesse.evaluation.plan_summary import PlanCounts as PlanCounts
from largesse.evaluation.plan_summary import PlanTotals as PlanTotals
from largesse.evaluation.plan_summary import choose_features as choose_features
from largesse.evaluation.plan_summary import count_plan as count_plan
from largesse.evaluation.plan_summary import number_groups as number_groups
from largesse.evaluation.plan_summary import summarise_plan as summarise_plan
from largesse.evaluation.policy_estimates import bootstrap_values as bootstrap_values
from largesse.evaluation.policy_estimates import estimate_difference as estimate_difference
from largesse.evaluation.policy_estimates import estimate_gain as estimate_gain
from largesse.evaluation.policy_estimates import estimate_ratio as estimate_ratio
from largesse.evaluation.policy_estimates import estimate_uniform as estimate_uniform
from largesse.evaluation.policy_estimates import estimate_value as estimate_value
from largesse.evaluation.policy_estimates import find_best_mixes as find_best_mixes
from largesse.evaluation.policy_estimates import measure_level_influence as measure_level_influence
from largesse.evaluation.policy_estimates import measure_logged_influence as measure_logged_influence
from largesse.evaluation.policy_estimates import measure_policy_influence as measure_policy_influence
from largesse.evaluation.policy_estimates import predict_value as predict_value
from largesse.evaluation.policy_estimates import select_scores as select_scores
from largesse.evaluation.policy_evaluation import compare as compare
from largesse.evaluation.policy_evaluation import evaluate as evaluate
from largesse.evaluation.policy_evaluation import examine_held_out as examine_held_out
from largesse.evaluation.policy_evaluation import learn_policy as learn_policy
from largesse.evaluation.policy_evaluation import recognise_policy as recognise_policy
from largesse.evaluation.policy_gain_bounds import bound_policy_gains as bound_policy_gains
from largesse.evaluation.profit_estimate import estimate_profit as estimate_profit
from largesse.evaluation.profit_estimate import trace_profit as trace_profit
from largesse.evaluation.spend_by_price import measure_spending as measure_spending
from largesse.evaluation.verdict import give_verdict as give_verdict
