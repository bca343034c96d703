"""Decide who gets which incentive, under a budget, from the logs you already have.

The way through: `read_log` → `Stack().fit` → `predict` → `allocate` → `evaluate` → report. Each step is one call and
hands over plain arrays or a frozen record.
"""

from largesse.allocation.constraints import Constraints as Constraints
from largesse.allocation.doses import best_doses as best_doses
from largesse.allocation.explore import explore_plan as explore_plan
from largesse.allocation.plan import allocate as allocate
from largesse.allocation.plan import frontier as frontier
from largesse.campaign.file import Campaign as Campaign
from largesse.campaign.file import read_campaign as read_campaign
from largesse.data.log import log_from_arrays as log_from_arrays
from largesse.data.log import read_customers as read_customers
from largesse.data.log import read_log as read_log
from largesse.evaluation.checks import doctor as doctor
from largesse.evaluation.doses import DoseLog as DoseLog
from largesse.evaluation.doses import evaluate_doses as evaluate_doses
from largesse.evaluation.policy_value import compare as compare
from largesse.evaluation.policy_value import evaluate as evaluate
from largesse.levels import Levels as Levels
from largesse.monitoring.power_analysis import power as power
from largesse.pipeline.notebook import run as run
from largesse.pipeline.notebook import show_report as show_report
from largesse.policy.banditnet import BanditNet as BanditNet
from largesse.policy.policy import Policy as Policy
from largesse.records import Customers as Customers
from largesse.records import Estimate as Estimate
from largesse.records import Evaluation as Evaluation
from largesse.records import Explanation as Explanation
from largesse.records import Frontier as Frontier
from largesse.records import Log as Log
from largesse.records import Plan as Plan
from largesse.report.live import show_progress as show_progress
from largesse.response.additive import Additive as Additive
from largesse.response.baselines.bart import BART as BART
from largesse.response.baselines.cfrnet import CFRNet as CFRNet
from largesse.response.baselines.ganite import GANITE as GANITE
from largesse.response.baselines.tlearner import TLearner as TLearner
from largesse.response.boosting import Boosting as Boosting
from largesse.response.choose import Choose as Choose
from largesse.response.linear import Linear as Linear
from largesse.response.monotone import Pava as Pava
from largesse.response.networks.dose import DoseSIRE as DoseSIRE
from largesse.response.networks.settings import Balance as Balance
from largesse.response.networks.settings import Network as Network
from largesse.response.networks.settings import Training as Training
from largesse.response.networks.sire import IRE as IRE
from largesse.response.networks.sire import SIRE as SIRE
from largesse.response.proportional import Proportional as Proportional
from largesse.response.stack import Shrunk as Shrunk
from largesse.response.stack import Stack as Stack
from largesse.response.thresholds import Thresholds as Thresholds
from largesse.response.two_part import TwoPart as TwoPart
from largesse.response.with_costs import WithCosts as WithCosts
from largesse.version import __version__ as __version__
from largesse.worlds.simulation import simulate as simulate
