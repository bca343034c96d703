"""Statistics of rows, weights, clusters and folds, without features and costs.

`links` turns scores into responses and gives the losses of rows; `newton` minimises smooth convex objectives; `selection` picks
candidates by held-out losses; `intervals` gives a mean its standard error and interval, also where a few terms are large;
`binomial` handles means of rare yes/no answers; `lower_bound` bounds a mean from below without approximation; `folds` assigns rows to
folds; `sampling` draws rows and levels; `linalg` multiplies rows and finds principal axes; `threads` runs small work on one thread; `trees`
holds boosted trees as arrays.
"""

from largesse.stats.binomial import Answers as Answers
from largesse.stats.binomial import find_yes as find_yes
from largesse.stats.folds import assign_folds as assign_folds
from largesse.stats.folds import count_folds as count_folds
from largesse.stats.folds import hold_out as hold_out
from largesse.stats.intervals import COVERAGE as COVERAGE
from largesse.stats.intervals import count_few as count_few
from largesse.stats.intervals import estimate_mean as estimate_mean
from largesse.stats.intervals import is_rare as is_rare
from largesse.stats.intervals import mean_estimate as mean_estimate
from largesse.stats.intervals import t_quantile as t_quantile
from largesse.stats.linalg import Axes as Axes
from largesse.stats.linalg import dot_rows as dot_rows
from largesse.stats.linalg import principal_axes as principal_axes
from largesse.stats.links import INSIDE as INSIDE
from largesse.stats.links import logit as logit
from largesse.stats.links import response_loss as response_loss
from largesse.stats.links import score_curvature as score_curvature
from largesse.stats.links import score_loss as score_loss
from largesse.stats.links import score_slope as score_slope
from largesse.stats.links import sigmoid as sigmoid
from largesse.stats.links import softmax as softmax
from largesse.stats.lower_bound import bound_mean as bound_mean
from largesse.stats.newton import minimise as minimise
from largesse.stats.sampling import draw_clusters as draw_clusters
from largesse.stats.sampling import draw_levels as draw_levels
from largesse.stats.sampling import draw_rows as draw_rows
from largesse.stats.sampling import draw_rows_levels as draw_rows_levels
from largesse.stats.sampling import sample_rows as sample_rows
from largesse.stats.sampling import shuffle_rows as shuffle_rows
from largesse.stats.sampling import standardise as standardise
from largesse.stats.selection import chosen as chosen
from largesse.stats.selection import least_loss as least_loss
from largesse.stats.selection import one_standard_error as one_standard_error
from largesse.stats.threads import cores as cores
from largesse.stats.threads import map_ahead as map_ahead
from largesse.stats.threads import one_thread as one_thread
from largesse.stats.threads import read_ahead as read_ahead
from largesse.stats.threads import side_by_side as side_by_side
from largesse.stats.threads import write_behind as write_behind
from largesse.stats.trees import BoostedTrees as BoostedTrees
from largesse.stats.trees import Trees as Trees
from largesse.stats.trees import boosted_trees as boosted_trees
from largesse.stats.trees import collect_trees as collect_trees
from largesse.stats.trees import row_blocks as row_blocks
