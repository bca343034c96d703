"""Decide who gets which incentive, under a budget, from the logs you already have.

The way through: `read_log` → `Linear().fit` → `predict` → `allocate` → `evaluate` → report. Each step is one call and
hands over plain arrays or a frozen record.
"""

from largesse.allocate import allocate as allocate
from largesse.allocate import frontier as frontier
from largesse.data import read_customers as read_customers
from largesse.data import read_log as read_log
from largesse.data import simulate as simulate
from largesse.evaluate import compare as compare
from largesse.evaluate import doctor as doctor
from largesse.evaluate import evaluate as evaluate
from largesse.evaluate import evaluate_doses as evaluate_doses
from largesse.policy import Policy as Policy
from largesse.records import Levels as Levels
from largesse.response import IRE as IRE
from largesse.response import SIRE as SIRE
from largesse.response import Boosting as Boosting
from largesse.response import Choose as Choose
from largesse.response import DoseSIRE as DoseSIRE
from largesse.response import Linear as Linear
from largesse.response import Shrunk as Shrunk
from largesse.response import Stack as Stack

__version__ = "0.1.0"
