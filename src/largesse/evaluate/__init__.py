"""What a policy will bring and cost, from the log alone.

`evaluate` is the verb. Beneath it: `folds` cuts the log so that no row judges itself, `propensities` finds with which
probability each level was given, `crossfit` turns log and model into doubly robust `Scores`, and everything else is an
average of scores: `policy_value`, `difference`, `frontier_band`, `references`. `overlap` and `findings` say whether the
log can carry the answer. `outcome` is the plain regression used when no model is at hand.
"""

from largesse.evaluate.band import frontier_band as frontier_band
from largesse.evaluate.estimate import mean_estimate as mean_estimate
from largesse.evaluate.evaluate import evaluate as evaluate
from largesse.evaluate.evaluate import evaluate_scores as evaluate_scores
from largesse.evaluate.findings import findings as findings
from largesse.evaluate.folds import folds as folds
from largesse.evaluate.outcome import StepFit as StepFit
from largesse.evaluate.outcome import fit_steps as fit_steps
from largesse.evaluate.overlap import overlap as overlap
from largesse.evaluate.propensity import propensities as propensities
from largesse.evaluate.scores import crossfit as crossfit
from largesse.evaluate.value import learnt_levels as learnt_levels
from largesse.evaluate.value import policy_value as policy_value
from largesse.evaluate.value import references as references
from largesse.evaluate.value import uniform_values as uniform_values
