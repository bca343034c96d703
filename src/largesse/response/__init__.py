"""Estimators of E[response | features, level].

All share one contract: a constructor that only stores, `fit(log)` or `fit(X, level, response)`, `predict(customers)` →
curves (n, K), learnt names that end in an underscore. `base` holds the contract, `archive` saves any fitted model, and
`catalogue` lists all models. `Linear`: features shift the whole curve, levels add common increments; hard to beat with
little data. `Additive`: a bent line per feature instead of a straight one.
`Thresholds`: where each customer begins to respond, every level with lines of its own; for many correlated features.
`Boosting`: trees, monotone in the level; for interactions and many rows.
`TwoPart`: whether and how much, for zeros and amounts with a long tail; `looks_two_part` tells them, and on such logs
`Linear`, `Additive`, `SIRE` and `IRE` model whether and are multiplied by how much.
`SIRE` and `IRE`: networks balanced by HSIC; for curves that differ between customers.
`DoseSIRE`: the same for amounts on a continuous scale; it predicts at any dose.
`CFRNet` (balanced representation, a head for each level), `GANITE` (counterfactuals filled in by an adversarial network) and
`BART` (Bayesian sums of trees; strong on rough surfaces, with intervals) are what the paper compares with.
`TLearner` fits one model for each level; `Pava` makes any model's curves non-falling.
`Shrunk` gives any model a common ladder and as much of its deviations as held-out rows support; `Stack`, the default,
does so with a weighted sum of several models' bases. Ladders are averaged over the shapes that they may have (`ladder`),
and fitted to rows in `common`; `blend` puts base, ladder, tilt and deviations together on the scale of `links`.
`Choose` takes the simplest candidate that the best one does not clearly beat on held-out rows.
`WithCosts` adds a model of costs that are observed to any response model; `Proportional` is the one it takes by default.
"""

from largesse.response.additive import Additive as Additive
from largesse.response.amounts import looks_two_part as looks_two_part
from largesse.response.archive import Reader as Reader
from largesse.response.archive import pack as pack
from largesse.response.base import Learner as Learner
from largesse.response.base import ResponseModel as ResponseModel
from largesse.response.base import fresh as fresh
from largesse.response.baselines.bart import BART as BART
from largesse.response.baselines.cfrnet import ALPHAS as ALPHAS
from largesse.response.baselines.cfrnet import CFRNet as CFRNet
from largesse.response.baselines.ganite import GANITE as GANITE
from largesse.response.baselines.ganite import STRENGTHS as STRENGTHS
from largesse.response.baselines.tlearner import TLearner as TLearner
from largesse.response.blend import TILT_REACH as TILT_REACH
from largesse.response.boosting import Boosting as Boosting
from largesse.response.catalogue import check_model_name as check_model_name
from largesse.response.catalogue import describe_model as describe_model
from largesse.response.catalogue import describe_models as describe_models
from largesse.response.catalogue import list_models as list_models
from largesse.response.catalogue import make_model as make_model
from largesse.response.catalogue import model_classes as model_classes
from largesse.response.choose import Choose as Choose
from largesse.response.fold_ensemble import predict_held_out as predict_held_out
from largesse.response.linear import Linear as Linear
from largesse.response.monotone import Pava as Pava
from largesse.response.monotone import isotonic as isotonic
from largesse.response.networks.dose import DoseSIRE as DoseSIRE
from largesse.response.networks.jobs import TrainedNetworks as TrainedNetworks
from largesse.response.networks.jobs import TrainingJob as TrainingJob
from largesse.response.networks.policy_network import PolicyNetworks as PolicyNetworks
from largesse.response.networks.policy_network import PolicyRows as PolicyRows
from largesse.response.networks.policy_network import policy_network_problems as policy_network_problems
from largesse.response.networks.policy_network import train_policy_networks as train_policy_networks
from largesse.response.networks.runner import run_job as run_job
from largesse.response.networks.runner import use_runner as use_runner
from largesse.response.networks.settings import CONCAVE_EDGE as CONCAVE_EDGE
from largesse.response.networks.settings import Balance as Balance
from largesse.response.networks.settings import Network as Network
from largesse.response.networks.settings import Training as Training
from largesse.response.networks.settings import option_problems as option_problems
from largesse.response.networks.settings import share_problems as share_problems
from largesse.response.networks.sire import IRE as IRE
from largesse.response.networks.sire import SIRE as SIRE
from largesse.response.proportional import Proportional as Proportional
from largesse.response.stack import Shrunk as Shrunk
from largesse.response.stack import Stack as Stack
from largesse.response.thresholds import Thresholds as Thresholds
from largesse.response.two_part import TwoPart as TwoPart
from largesse.response.with_costs import WithCosts as WithCosts
from largesse.response.with_costs import expect_in_blocks as expect_in_blocks
from largesse.response.with_costs import learn_held_out as learn_held_out
from largesse.response.with_costs import own_costs as own_costs
