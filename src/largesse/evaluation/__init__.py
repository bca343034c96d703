"""What a policy will bring and cost, from the log alone, and whether the log can say.

`evaluate` judges one policy, `compare` the difference of two, `make_study` a model at every budget: all that a run needs,
computed once. `crossfit` turns a log and a model into `Scores`, and everything else is a mean of scores: `estimate_value`,
`trace_frontier`, `trace_cost_curve`. `ESTIMATORS` lists the off-policy estimators (doubly robust is the default: try another
to see whether the answer depends on it). `doctor` checks a log before anything is fitted, with one list of checks that
evaluations repeat as warnings. `weigh_options` puts a policy beside a simple rule (`learn_rules`) and says what either gains at
least over the best uniform mix. `estimate_profit` says what is left after costs where a response has a value, and
`trace_profit` which budget leaves most. `measure_spending` says what plans really cost where that depends on what customers do.
`measure_changes` says what a plan changes in comparison with what was done.
"""

from largesse.evaluation.checks import doctor as doctor
from largesse.evaluation.cost_calibration import FoldSpending as FoldSpending
from largesse.evaluation.cost_calibration import measure_spending as measure_spending
from largesse.evaluation.crossfitting import crossfit as crossfit
from largesse.evaluation.crossfitting import hold_out_rows as hold_out_rows
from largesse.evaluation.crossfitting import score_rows as score_rows
from largesse.evaluation.crossfitting import what_was_paid as what_was_paid
from largesse.evaluation.decisions import measure_importance as measure_importance
from largesse.evaluation.estimates import estimate_difference as estimate_difference
from largesse.evaluation.estimates import estimate_gain as estimate_gain
from largesse.evaluation.estimates import estimate_per_spend as estimate_per_spend
from largesse.evaluation.estimates import estimate_uniform as estimate_uniform
from largesse.evaluation.estimates import estimate_value as estimate_value
from largesse.evaluation.estimates import find_best_mix as find_best_mix
from largesse.evaluation.estimates import score_log as score_log
from largesse.evaluation.estimates import score_policy as score_policy
from largesse.evaluation.estimates import take_scores as take_scores
from largesse.evaluation.estimators import ESTIMATORS as ESTIMATORS
from largesse.evaluation.frontier_estimate import plan_budgets as plan_budgets
from largesse.evaluation.frontier_estimate import plan_held_out as plan_held_out
from largesse.evaluation.frontier_estimate import spread_budgets as spread_budgets
from largesse.evaluation.frontier_estimate import trace_cost_curve as trace_cost_curve
from largesse.evaluation.frontier_estimate import trace_frontier as trace_frontier
from largesse.evaluation.group_curves import trace_groups as trace_groups
from largesse.evaluation.joint_summary import summarise_jointly as summarise_jointly
from largesse.evaluation.leaks import measure_explained as measure_explained
from largesse.evaluation.lower_bounds import weigh_options as weigh_options
from largesse.evaluation.policy_value import as_policy as as_policy
from largesse.evaluation.policy_value import compare as compare
from largesse.evaluation.policy_value import evaluate as evaluate
from largesse.evaluation.policy_value import examine_held_out as examine_held_out
from largesse.evaluation.policy_value import settle as settle
from largesse.evaluation.profit import estimate_profit as estimate_profit
from largesse.evaluation.profit import trace_profit as trace_profit
from largesse.evaluation.simple_rule import RULE_GROUPS as RULE_GROUPS
from largesse.evaluation.simple_rule import SimpleRule as SimpleRule
from largesse.evaluation.simple_rule import learn_rules as learn_rules
from largesse.evaluation.study import make_study as make_study
from largesse.evaluation.study import study_scores as study_scores
from largesse.evaluation.study import summarise_study as summarise_study
from largesse.evaluation.targeting import SAMPLE as SAMPLE
from largesse.evaluation.targeting import GroupedFeature as GroupedFeature
from largesse.evaluation.targeting import PlanCounts as PlanCounts
from largesse.evaluation.targeting import PlanTotals as PlanTotals
from largesse.evaluation.targeting import choose_features as choose_features
from largesse.evaluation.targeting import count_plan as count_plan
from largesse.evaluation.targeting import measure_separation as measure_separation
from largesse.evaluation.targeting import number_groups as number_groups
from largesse.evaluation.targeting import summarise_plan as summarise_plan
