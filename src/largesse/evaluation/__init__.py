"""What a policy will bring and cost, from the log alone, and whether the log can say.

`evaluate` is the verb, `compare` its pair. Beneath them: `folds` cuts the log so that no row judges itself,
`propensities` finds with which probability each level was given, `crossfit` turns log and model into `Scores`, and
everything else is an average of scores: `policy_value`, `difference`, `per_spend`, `trace_frontier`,
`trace_cost_curve`,
`references`. `estimators` has the seven ways to judge (doubly robust is the default: choose another to see whether the
answer hangs on it), `kernel` the one for continuous doses, `bootstrap` intervals by resampling. `doctor` examines a log
before anything is fitted; `overlap`, `dependence`, `leaks` are its instruments, and `findings` what an evaluation says
about its own log. `outcome` is the plain regression used when no model is at hand.
"""

from largesse.evaluation.bootstrap import bootstrap_interval as bootstrap_interval
from largesse.evaluation.budgets import plan_budgets as plan_budgets
from largesse.evaluation.budgets import plan_held_out as plan_held_out
from largesse.evaluation.budgets import spread_budgets as spread_budgets
from largesse.evaluation.budgets import trace_cost_curve as trace_cost_curve
from largesse.evaluation.budgets import trace_frontier as trace_frontier
from largesse.evaluation.crossfitting import crossfit as crossfit
from largesse.evaluation.crossfitting import score_rows as score_rows
from largesse.evaluation.crossfitting import used_propensities as used_propensities
from largesse.evaluation.doctor import doctor as doctor
from largesse.evaluation.doses import evaluate_doses as evaluate_doses
from largesse.evaluation.estimators import ESTIMATORS as ESTIMATORS
from largesse.evaluation.estimators import estimate_all as estimate_all
from largesse.evaluation.estimators import judge_response as judge_response
from largesse.evaluation.estimators import judge_rows as judge_rows
from largesse.evaluation.findings import findings as findings
from largesse.evaluation.findings import level_verdict as level_verdict
from largesse.evaluation.judge import compare as compare
from largesse.evaluation.judge import evaluate as evaluate
from largesse.evaluation.judge import evaluate_scores as evaluate_scores
from largesse.evaluation.leaks import find_leaks as find_leaks
from largesse.evaluation.overlap import measure_overlap as measure_overlap
from largesse.evaluation.randomisation import measure_dependence as measure_dependence
from largesse.evaluation.study import make_study as make_study
from largesse.evaluation.value import compare_references as compare_references
from largesse.evaluation.value import compare_uniform as compare_uniform
from largesse.evaluation.value import estimate_difference as estimate_difference
from largesse.evaluation.value import estimate_per_spend as estimate_per_spend
from largesse.evaluation.value import estimate_uniform as estimate_uniform
from largesse.evaluation.value import estimate_value as estimate_value
