"""Propensities of the logged levels, and doubly robust scores made with them.

`estimate_propensities` takes them from the log or estimates them: cross-fitted and calibrated (`estimate`), then tilted until the
weighted rows of each level look like all rows (`balance`). `encode_for_levels` encodes the features once for all questions
about levels. `correct_curves` turns curves into doubly robust scores.
"""

from largesse.propensity.estimate import LevelFeatures as LevelFeatures
from largesse.propensity.estimate import choose_strength as choose_strength
from largesse.propensity.estimate import correct_curves as correct_curves
from largesse.propensity.estimate import encode_for_levels as encode_for_levels
from largesse.propensity.estimate import estimate_propensities as estimate_propensities
