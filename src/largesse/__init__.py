"""Decide who gets which incentive, under a budget, from the logs you already have.

The way through: `read_log` → `Stack().fit` → `predict` → `allocate` → `evaluate` → report. Each step is one call and
hands over plain arrays or a frozen record.
"""

from largesse.allocate import Constraints as Constraints
from largesse.allocate import allocate as allocate
from largesse.allocate import best_doses as best_doses
from largesse.allocate import explore_plan as explore_plan
from largesse.allocate import frontier as frontier
from largesse.banditnet import BanditNet as BanditNet
from largesse.data import read_customers as read_customers
from largesse.data import read_log as read_log
from largesse.data import simulate as simulate
from largesse.evaluate import compare as compare
from largesse.evaluate import doctor as doctor
from largesse.evaluate import evaluate as evaluate
from largesse.evaluate import evaluate_doses as evaluate_doses
from largesse.policy import Policy as Policy
from largesse.records import Levels as Levels
from largesse.response import BART as BART
from largesse.response import GANITE as GANITE
from largesse.response import IRE as IRE
from largesse.response import SIRE as SIRE
from largesse.response import Additive as Additive
from largesse.response import Boosting as Boosting
from largesse.response import CFRNet as CFRNet
from largesse.response import Choose as Choose
from largesse.response import DoseSIRE as DoseSIRE
from largesse.response import Linear as Linear
from largesse.response import Pava as Pava
from largesse.response import Shrunk as Shrunk
from largesse.response import Stack as Stack
from largesse.response import Thresholds as Thresholds
from largesse.response import TLearner as TLearner

__version__ = "0.1.0"
