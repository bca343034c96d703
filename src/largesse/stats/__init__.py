"""Statistics of rows, weights, clusters and folds, without features and costs.

`links` converts scores to responses and computes losses; `newton` minimises smooth convex objectives; `model_selection`
picks candidates by held-out losses; `t_intervals` gives a mean its standard error and interval; `skewed_mean_intervals` does so
where a few terms are large; `binomial` handles means of rare yes/no outcomes; `lower_bound` bounds a mean from below without
approximation; `folds` assigns rows to folds; `sampling` draws rows and levels; `feature_matrices` multiplies rows with
coefficients and rotates features; `thread_pools` runs and limits threads; `tree_arrays` holds boosted trees as arrays.
"""

from largesse.stats.binomial import COVERAGE as COVERAGE
from largesse.stats.binomial import BinaryOutcomes as BinaryOutcomes
from largesse.stats.binomial import binary_mask as binary_mask
from largesse.stats.feature_matrices import PrincipalAxes as PrincipalAxes
from largesse.stats.feature_matrices import dot_rows as dot_rows
from largesse.stats.feature_matrices import principal_axes as principal_axes
from largesse.stats.feature_matrices import standardise as standardise
from largesse.stats.folds import assign_folds as assign_folds
from largesse.stats.folds import count_folds as count_folds
from largesse.stats.folds import hold_out as hold_out
from largesse.stats.links import PROBABILITY_MARGIN as PROBABILITY_MARGIN
from largesse.stats.links import logit as logit
from largesse.stats.links import score_curvature as score_curvature
from largesse.stats.links import score_loss as score_loss
from largesse.stats.links import score_slope as score_slope
from largesse.stats.links import sigmoid as sigmoid
from largesse.stats.links import softmax as softmax
from largesse.stats.lower_bound import bound_mean as bound_mean
from largesse.stats.model_selection import choose_by_one_standard_error as choose_by_one_standard_error
from largesse.stats.model_selection import choose_lowest_loss as choose_lowest_loss
from largesse.stats.model_selection import chosen_index as chosen_index
from largesse.stats.newton import minimise as minimise
from largesse.stats.sampling import draw_clusters as draw_clusters
from largesse.stats.sampling import draw_levels as draw_levels
from largesse.stats.sampling import draw_levels_of_rows as draw_levels_of_rows
from largesse.stats.sampling import draw_rows_by_level as draw_rows_by_level
from largesse.stats.sampling import sample_rows as sample_rows
from largesse.stats.sampling import shuffle_rows as shuffle_rows
from largesse.stats.skewed_mean_intervals import count_if_too_few as count_if_too_few
from largesse.stats.skewed_mean_intervals import estimate_skewed_mean as estimate_skewed_mean
from largesse.stats.skewed_mean_intervals import is_sparse_amount as is_sparse_amount
from largesse.stats.t_intervals import effective_sample_size as effective_sample_size
from largesse.stats.t_intervals import t_estimate as t_estimate
from largesse.stats.t_intervals import t_quantile as t_quantile
from largesse.stats.thread_pools import count_cores as count_cores
from largesse.stats.thread_pools import map_in_threads as map_in_threads
from largesse.stats.thread_pools import one_thread as one_thread
from largesse.stats.thread_pools import prefetch as prefetch
from largesse.stats.thread_pools import run_in_threads as run_in_threads
from largesse.stats.thread_pools import write_in_background as write_in_background
from largesse.stats.tree_arrays import BoostedTrees as BoostedTrees
from largesse.stats.tree_arrays import Trees as Trees
from largesse.stats.tree_arrays import collect_trees as collect_trees
from largesse.stats.tree_arrays import extract_boosted_trees as extract_boosted_trees
from largesse.stats.tree_arrays import row_blocks as row_blocks
