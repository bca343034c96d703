"""Propensities of the logged levels, doubly robust scores, and customers without support for a level.

`estimate_propensities` takes propensities from the log or estimates them: cross-fitted and calibrated, then corrected until the
weighted feature means of each level equal those of all rows (`covariate_balancing`). `estimate_single_index_propensities` is a
quick estimate for response models. `encode_propensity_features` encodes the features once for all models of levels.
`compute_doubly_robust_scores` corrects curves by propensities. `find_unsupported_cells` finds groups of customers who never got
a level.
"""

from largesse.propensity.positivity_violations import find_supported_levels as find_supported_levels
from largesse.propensity.positivity_violations import find_unsupported_cells as find_unsupported_cells
from largesse.propensity.positivity_violations import mark_supported_levels as mark_supported_levels
from largesse.propensity.propensity_estimation import PropensityFeatures as PropensityFeatures
from largesse.propensity.propensity_estimation import choose_inverse_penalty as choose_inverse_penalty
from largesse.propensity.propensity_estimation import compute_doubly_robust_scores as compute_doubly_robust_scores
from largesse.propensity.propensity_estimation import encode_propensity_features as encode_propensity_features
from largesse.propensity.propensity_estimation import estimate_propensities as estimate_propensities
from largesse.propensity.single_index_propensity import (
    estimate_single_index_propensities as estimate_single_index_propensities,
)
