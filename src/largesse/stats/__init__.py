"""Statistics of rows, weights, clusters and folds, without features and costs.

`link_functions` converts scores to responses and computes losses; `bounded_newton_method` minimises smooth convex functions;
`model_selection` chooses a candidate by held-out losses; `t_intervals` gives a mean its standard error and interval;
`skewed_mean_intervals` does so where a few terms are large; `binomial_intervals` handles means of rare yes/no outcomes;
`lower_confidence_bound` bounds a mean from below without approximation; `folds` assigns rows to folds; `sampling` draws rows and
levels; `linear_algebra` multiplies rows with coefficients and rotates features; `parallel_threads` runs and limits threads;
`tree_arrays` holds boosted trees as arrays.
"""

from largesse.stats.binomial_intervals import COVERAGE as COVERAGE
from largesse.stats.binomial_intervals import BinaryOutcomes as BinaryOutcomes
from largesse.stats.binomial_intervals import mark_binary_successes as mark_binary_successes
from largesse.stats.bounded_newton_method import minimise as minimise
from largesse.stats.folds import assign_folds as assign_folds
from largesse.stats.folds import choose_fold_count as choose_fold_count
from largesse.stats.folds import mark_held_out_rows as mark_held_out_rows
from largesse.stats.linear_algebra import PrincipalAxes as PrincipalAxes
from largesse.stats.linear_algebra import dot_rows as dot_rows
from largesse.stats.linear_algebra import principal_axes as principal_axes
from largesse.stats.linear_algebra import standardise as standardise
from largesse.stats.link_functions import PROBABILITY_MARGIN as PROBABILITY_MARGIN
from largesse.stats.link_functions import compute_loss as compute_loss
from largesse.stats.link_functions import compute_loss_curvature as compute_loss_curvature
from largesse.stats.link_functions import compute_loss_slope as compute_loss_slope
from largesse.stats.link_functions import logit as logit
from largesse.stats.link_functions import sigmoid as sigmoid
from largesse.stats.link_functions import softmax as softmax
from largesse.stats.lower_confidence_bound import bound_mean_from_below as bound_mean_from_below
from largesse.stats.model_selection import choose_by_one_standard_error as choose_by_one_standard_error
from largesse.stats.model_selection import choose_lowest_loss as choose_lowest_loss
from largesse.stats.model_selection import find_chosen_index as find_chosen_index
from largesse.stats.parallel_threads import count_cores as count_cores
from largesse.stats.parallel_threads import limit_to_one_thread as limit_to_one_thread
from largesse.stats.parallel_threads import map_in_threads as map_in_threads
from largesse.stats.parallel_threads import prefetch as prefetch
from largesse.stats.parallel_threads import run_in_threads as run_in_threads
from largesse.stats.parallel_threads import write_in_background as write_in_background
from largesse.stats.sampling import draw_clusters as draw_clusters
from largesse.stats.sampling import draw_levels as draw_levels
from largesse.stats.sampling import draw_levels_for_rows as draw_levels_for_rows
from largesse.stats.sampling import draw_rows_by_level as draw_rows_by_level
from largesse.stats.sampling import sample_rows as sample_rows
from largesse.stats.sampling import shuffle_rows as shuffle_rows
from largesse.stats.skewed_mean_intervals import count_tail_rows_if_few as count_tail_rows_if_few
from largesse.stats.skewed_mean_intervals import estimate_skewed_mean as estimate_skewed_mean
from largesse.stats.skewed_mean_intervals import is_sparse_amount as is_sparse_amount
from largesse.stats.t_intervals import effective_sample_size as effective_sample_size
from largesse.stats.t_intervals import t_estimate as t_estimate
from largesse.stats.t_intervals import t_quantile as t_quantile
from largesse.stats.tree_arrays import BoostedTrees as BoostedTrees
from largesse.stats.tree_arrays import Trees as Trees
from largesse.stats.tree_arrays import extract_boosted_trees as extract_boosted_trees
from largesse.stats.tree_arrays import extract_trees as extract_trees
from largesse.stats.tree_arrays import split_row_blocks as split_row_blocks
