"""Numbers about numbers: knows rows, weights, clusters and folds, but no features and no costs.

`link` turns scores into responses and gives the losses of rows; `newton` minimises what is smooth and convex; `choice`
picks among candidates by held-out losses; `mean` gives a mean its standard error and interval; `tails` allows for few large
terms, `answers` for few that say yes or no; `least` bounds a mean from below without approximation; `folds` decides which
rows are held out together; `sample` draws rows and levels, `strata` rows of every level or whole clusters; `axes` turns features onto
principal axes; `products` multiplies rows and coefficients; `threads` keeps small work on one thread.
"""

from largesse.stats.answers import Answers as Answers
from largesse.stats.answers import find_yes as find_yes
from largesse.stats.axes import Axes as Axes
from largesse.stats.axes import principal_axes as principal_axes
from largesse.stats.choice import chosen as chosen
from largesse.stats.choice import least_loss as least_loss
from largesse.stats.choice import one_standard_error as one_standard_error
from largesse.stats.folds import assign_folds as assign_folds
from largesse.stats.folds import count_folds as count_folds
from largesse.stats.folds import hold_out as hold_out
from largesse.stats.least import bound_mean as bound_mean
from largesse.stats.link import INSIDE as INSIDE
from largesse.stats.link import logit as logit
from largesse.stats.link import response_loss as response_loss
from largesse.stats.link import score_curvature as score_curvature
from largesse.stats.link import score_loss as score_loss
from largesse.stats.link import score_slope as score_slope
from largesse.stats.link import sigmoid as sigmoid
from largesse.stats.link import softmax as softmax
from largesse.stats.mean import COVERAGE as COVERAGE
from largesse.stats.mean import mean_estimate as mean_estimate
from largesse.stats.mean import t_quantile as t_quantile
from largesse.stats.newton import minimise as minimise
from largesse.stats.products import dot_rows as dot_rows
from largesse.stats.sample import draw_levels as draw_levels
from largesse.stats.sample import draw_rows_levels as draw_rows_levels
from largesse.stats.sample import sample_rows as sample_rows
from largesse.stats.sample import shuffle_rows as shuffle_rows
from largesse.stats.sample import standardise as standardise
from largesse.stats.strata import draw_clusters as draw_clusters
from largesse.stats.strata import draw_rows as draw_rows
from largesse.stats.tails import count_few as count_few
from largesse.stats.tails import estimate_mean as estimate_mean
from largesse.stats.tails import is_rare as is_rare
from largesse.stats.threads import cores as cores
from largesse.stats.threads import one_thread as one_thread
from largesse.stats.threads import side_by_side as side_by_side
