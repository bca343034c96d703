"""Rules for customers not seen yet: `Policy`, a response model with a price, and `BanditNet`, a policy network.

`explore` draws levels around a plan so that the next log tells most for what that costs; `Policy.explore` is how users call it.
A policy leaves Python as SQL or ONNX (`export`), or as a `ScoreCard`: a tree of a few conditions.
"""

from largesse.policy.aimed import Aimed as Aimed
from largesse.policy.banditnet import BanditNet as BanditNet
from largesse.policy.exploring import Expected as Expected
from largesse.policy.exploring import Exploring as Exploring
from largesse.policy.exploring import explore as explore
from largesse.policy.exploring import explore_by_rule as explore_by_rule
from largesse.policy.export.dialects import DIALECTS as DIALECTS
from largesse.policy.mlflow import save_mlflow as save_mlflow
from largesse.policy.movers import judge_shuffled as judge_shuffled
from largesse.policy.policy import Outlook as Outlook
from largesse.policy.policy import Policy as Policy
from largesse.policy.score_card import ScoreCard as ScoreCard
