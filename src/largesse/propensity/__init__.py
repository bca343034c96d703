"""How the log chose: the probability of each row's own level, and doubly robust scores made with it.

`estimate_propensities` takes them from the log or estimates them (`estimate`: cross-fitted and calibrated; `balance`: tilted
until the weighted rows of each level look like all rows). `encode_for_levels` makes the features numbers, once for all
questions about levels. `correct_curves` turns curves into doubly robust scores by the log's own outcomes.
"""

from largesse.propensity.encoding import LevelFeatures as LevelFeatures
from largesse.propensity.encoding import encode_for_levels as encode_for_levels
from largesse.propensity.estimate import choose_strength as choose_strength
from largesse.propensity.estimate import estimate_propensities as estimate_propensities
from largesse.propensity.scores import correct_curves as correct_curves
