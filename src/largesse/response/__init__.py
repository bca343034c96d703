"""Estimators of E[response | features, level].

All share one contract: a constructor that only stores, `fit(log)` or `fit(X, level, response)`, `predict(customers)` →
curves (n, K), learnt names that end in an underscore. `Linear`: features shift the whole curve, levels add common
steps; hard to beat with little data. `Boosting`: trees, monotone in the level; for interactions and many rows.
`Choose`, the default, takes the simplest candidate that the best one does not clearly beat on held-out rows.
"""

from largesse.response.base import ResponseModel as ResponseModel
from largesse.response.boosting import Boosting as Boosting
from largesse.response.choose import Choose as Choose
from largesse.response.linear import Linear as Linear
