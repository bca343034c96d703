"""Estimators of E[response | features, level].

All share one contract: a constructor that only stores, `fit(log)` or `fit(X, level, response)`, `predict(customers)` →
curves (n, K), learnt names that end in an underscore. `Linear`: features shift the whole curve, levels add common
steps; hard to beat with little data. `Additive`: each feature's own bent line instead of a straight one.
`Thresholds`: where each customer begins to respond, every level with lines of its own; for many correlated features.
`Boosting`: trees, monotone in the level; for interactions and many rows.
`SIRE` and `IRE`: networks balanced by HSIC; for curves that differ between customers.
`DoseSIRE`: the same for amounts on a continuous scale, asked at any dose.
`CFRNet` (balanced representation, a head for each level), `GANITE` (counterfactuals filled in by an adversarial network) and
`BART` (Bayesian sums of trees; strong on rough surfaces, with intervals) are what the paper compares with.
`TLearner` fits one model for each level; `Pava` makes any model's curves non-falling.
`Shrunk` holds any model's increments to common ones as strongly as held-out rows advise; `Stack`, the default, takes the
best member's base (or all of them, where that is clearly better) and shrinks increments in the same way.
`Choose` takes the simplest candidate that the best one does not clearly beat on held-out rows.
"""

from largesse.response.additive import Additive as Additive
from largesse.response.bart import BART as BART
from largesse.response.base import ResponseModel as ResponseModel
from largesse.response.boosting import Boosting as Boosting
from largesse.response.cfrnet import CFRNet as CFRNet
from largesse.response.choose import Choose as Choose
from largesse.response.dose import DoseSIRE as DoseSIRE
from largesse.response.ganite import GANITE as GANITE
from largesse.response.linear import Linear as Linear
from largesse.response.pava import Pava as Pava
from largesse.response.shrunk import Shrunk as Shrunk
from largesse.response.sire import IRE as IRE
from largesse.response.sire import SIRE as SIRE
from largesse.response.stack import Stack as Stack
from largesse.response.thresholds import Thresholds as Thresholds
from largesse.response.tlearner import TLearner as TLearner
