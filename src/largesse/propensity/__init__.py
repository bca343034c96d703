"""Propensities of the logged levels, and doubly robust scores computed from propensities and curves.

`estimate_propensities` takes them from the log or estimates them: cross-fitted and calibrated (`estimate`), then corrected
until the weighted feature means of each level equal those of all rows (`covariate_balancing`). `estimate_by_index` is a quick
estimate for response models. `encode_for_levels` encodes the features once for all models of levels. `correct_curves` turns
curves into doubly robust scores. `find_unsupported` finds kinds of customers who never got a level.
"""

from largesse.propensity.estimate import LevelFeatures as LevelFeatures
from largesse.propensity.estimate import choose_inverse_penalty as choose_inverse_penalty
from largesse.propensity.estimate import correct_curves as correct_curves
from largesse.propensity.estimate import encode_for_levels as encode_for_levels
from largesse.propensity.estimate import estimate_propensities as estimate_propensities
from largesse.propensity.level_index import estimate_by_index as estimate_by_index
from largesse.propensity.positivity_violations import find_supported as find_supported
from largesse.propensity.positivity_violations import find_unsupported as find_unsupported
from largesse.propensity.positivity_violations import mark_supported as mark_supported
