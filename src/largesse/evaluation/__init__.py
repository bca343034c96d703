"""What a policy will bring and cost, from the log alone, and whether the log can say.

`evaluate` is the verb, `compare` its pair. Beneath them: `folds` cuts the log so that no row judges itself,
`propensities` finds with which probability each level was given, `crossfit` turns log and model into `Scores`, and
everything else is an average of scores: `policy_value`, `difference`, `per_spend`, `frontier_band`, `qini`,
`references`. `estimators` has the seven ways to judge (doubly robust is the default: choose another to see whether the
answer hangs on it), `kernel` the one for continuous doses, `bootstrap` intervals by resampling. `doctor` examines a log
before anything is fitted; `overlap`, `dependence`, `leaks` are its instruments, and `findings` what an evaluation says
about its own log. `outcome` is the plain regression used when no model is at hand.
"""

from largesse.evaluation.band import frontier_band as frontier_band
from largesse.evaluation.band import usual_budgets as usual_budgets
from largesse.evaluation.bootstrap import bootstrap as bootstrap
from largesse.evaluation.crossfitting import crossfit as crossfit
from largesse.evaluation.crossfitting import scores as scores
from largesse.evaluation.crossfitting import used_propensities as used_propensities
from largesse.evaluation.doctor import doctor as doctor
from largesse.evaluation.doses import evaluate_doses as evaluate_doses
from largesse.evaluation.estimators import ESTIMATORS as ESTIMATORS
from largesse.evaluation.estimators import estimates as estimates
from largesse.evaluation.estimators import judged as judged
from largesse.evaluation.estimators import judged_value as judged_value
from largesse.evaluation.findings import findings as findings
from largesse.evaluation.findings import level_verdict as level_verdict
from largesse.evaluation.judge import compare as compare
from largesse.evaluation.judge import evaluate as evaluate
from largesse.evaluation.judge import evaluate_scores as evaluate_scores
from largesse.evaluation.leaks import leaks as leaks
from largesse.evaluation.overlap import overlap as overlap
from largesse.evaluation.qini import qini as qini
from largesse.evaluation.randomisation import dependence as dependence
from largesse.evaluation.value import difference as difference
from largesse.evaluation.value import learnt_levels as learnt_levels
from largesse.evaluation.value import learnt_plan as learnt_plan
from largesse.evaluation.value import per_spend as per_spend
from largesse.evaluation.value import policy_value as policy_value
from largesse.evaluation.value import references as references
from largesse.evaluation.value import uniform_references as uniform_references
from largesse.evaluation.value import uniform_values as uniform_values
