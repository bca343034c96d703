"""The frozen records that pass between rooms.

Shapes: n rows or customers, K levels. Levels are numbered 0..K−1, cheapest first. Value and spend are averages per
customer unless a name says total. Records hold arrays and numbers; they know nothing about how they were made.
"""

from largesse.records.array import Array as Array
from largesse.records.display import Card as Card
from largesse.records.display import Picture as Picture
from largesse.records.display import Shown as Shown
from largesse.records.display import write_cell as write_cell
from largesse.records.display import write_names as write_names
from largesse.records.evaluation import BestBudget as BestBudget
from largesse.records.evaluation import Choice as Choice
from largesse.records.evaluation import Comparison as Comparison
from largesse.records.evaluation import Estimate as Estimate
from largesse.records.evaluation import Evaluation as Evaluation
from largesse.records.evaluation import Finding as Finding
from largesse.records.evaluation import FrontierPoint as FrontierPoint
from largesse.records.evaluation import HeldOut as HeldOut
from largesse.records.evaluation import HeldOutPlan as HeldOutPlan
from largesse.records.evaluation import Option as Option
from largesse.records.evaluation import Profit as Profit
from largesse.records.evaluation import Progress as Progress
from largesse.records.evaluation import Propensities as Propensities
from largesse.records.evaluation import Qini as Qini
from largesse.records.evaluation import QiniPoint as QiniPoint
from largesse.records.evaluation import Reference as Reference
from largesse.records.evaluation import Safety as Safety
from largesse.records.evaluation import Scores as Scores
from largesse.records.evaluation import Shuffled as Shuffled
from largesse.records.explanation import Explanation as Explanation
from largesse.records.explanation import Mover as Mover
from largesse.records.explanation import find_changes as find_changes
from largesse.records.exploration import Exploration as Exploration
from largesse.records.exploration import Precision as Precision
from largesse.records.log import ROLES as ROLES
from largesse.records.log import Customers as Customers
from largesse.records.log import Log as Log
from largesse.records.log import Roles as Roles
from largesse.records.log import Sample as Sample
from largesse.records.monitoring import CampaignCheck as CampaignCheck
from largesse.records.monitoring import Drift as Drift
from largesse.records.monitoring import LevelUptake as LevelUptake
from largesse.records.monitoring import PowerAnalysis as PowerAnalysis
from largesse.records.monitoring import Realised as Realised
from largesse.records.monitoring import RealisedTenth as RealisedTenth
from largesse.records.monitoring import TestCase as TestCase
from largesse.records.monitoring import TestSize as TestSize
from largesse.records.monitoring import write_size as write_size
from largesse.records.plan import Decisions as Decisions
from largesse.records.plan import Frontier as Frontier
from largesse.records.plan import Plan as Plan
from largesse.records.plan import Spending as Spending
from largesse.records.study import NOT_BY_CHANCE as NOT_BY_CHANCE
from largesse.records.study import Checkup as Checkup
from largesse.records.study import Dependence as Dependence
from largesse.records.study import HeavyRow as HeavyRow
from largesse.records.study import Leak as Leak
from largesse.records.study import Overlap as Overlap
from largesse.records.study import Study as Study
from largesse.records.transitions import FEW_ROWS as FEW_ROWS
from largesse.records.transitions import Changes as Changes
from largesse.records.transitions import GroupPoint as GroupPoint
from largesse.records.transitions import LevelChange as LevelChange
from largesse.records.transitions import Move as Move
