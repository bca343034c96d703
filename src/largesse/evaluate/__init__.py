"""What a policy will bring and cost, from the log alone, and whether the log can say.

`evaluate` is the verb, `compare` its pair. Beneath them: `folds` cuts the log so that no row judges itself,
`propensities` finds with which probability each level was given, `crossfit` turns log and model into `Scores`, and
everything else is an average of scores: `policy_value`, `difference`, `per_spend`, `frontier_band`, `qini`,
`references`. `estimators` has the seven ways to judge (doubly robust is the default: choose another to see whether the
answer hangs on it), `kernel` the one for continuous doses, `bootstrap` intervals by resampling. `doctor` examines a log
before anything is fitted; `overlap`, `dependence`, `leaks` are its instruments, and `findings` what an evaluation says
about its own log. `outcome` is the plain regression used when no model is at hand.
"""

from largesse.evaluate.band import frontier_band as frontier_band
from largesse.evaluate.bootstrap import bootstrap as bootstrap
from largesse.evaluate.dependence import dependence as dependence
from largesse.evaluate.doctor import doctor as doctor
from largesse.evaluate.estimate import mean_estimate as mean_estimate
from largesse.evaluate.estimators import ESTIMATORS as ESTIMATORS
from largesse.evaluate.estimators import estimates as estimates
from largesse.evaluate.estimators import judged as judged
from largesse.evaluate.evaluate import compare as compare
from largesse.evaluate.evaluate import evaluate as evaluate
from largesse.evaluate.evaluate import evaluate_scores as evaluate_scores
from largesse.evaluate.findings import findings as findings
from largesse.evaluate.folds import folds as folds
from largesse.evaluate.kernel import evaluate_doses as evaluate_doses
from largesse.evaluate.leaks import leaks as leaks
from largesse.evaluate.outcome import StepFit as StepFit
from largesse.evaluate.outcome import fit_steps as fit_steps
from largesse.evaluate.overlap import overlap as overlap
from largesse.evaluate.propensity import propensities as propensities
from largesse.evaluate.qini import qini as qini
from largesse.evaluate.scores import crossfit as crossfit
from largesse.evaluate.value import difference as difference
from largesse.evaluate.value import learnt_levels as learnt_levels
from largesse.evaluate.value import per_spend as per_spend
from largesse.evaluate.value import policy_value as policy_value
from largesse.evaluate.value import references as references
from largesse.evaluate.value import uniform_references as uniform_references
from largesse.evaluate.value import uniform_values as uniform_values
