"""Adapters that fit methods of other packages to a log and return response curves.

Each class has `fit(log)` and `predict(customers)`. All get the same encoded features; missing values are filled in and marked where a
package refuses them. `pip install -e 'lab[peers]'` installs the packages.
"""

from largesse_lab.peers.boosting_learners import BoostingLearner as BoostingLearner
from largesse_lab.peers.causalml_forest import UpliftForest as UpliftForest
from largesse_lab.peers.causalml_learners import CausalMLLearner as CausalMLLearner
from largesse_lab.peers.decision_focused_learning import DecisionFocused as DecisionFocused
from largesse_lab.peers.econml_learners import EconMLLearner as EconMLLearner
from largesse_lab.peers.econml_policies import EconMLPolicy as EconMLPolicy
from largesse_lab.peers.funnel_product import FunnelProduct as FunnelProduct
from largesse_lab.peers.peer_model import PeerModel as PeerModel
from largesse_lab.peers.stochtree_forests import CausalForestBCF as CausalForestBCF
from largesse_lab.peers.tabpfn_learner import TabPFNLearner as TabPFNLearner
