"""Rules for customers not seen yet: `Policy`, a response model with a price.

`Policy.explore` draws levels around a plan (package `exploration`).
A policy leaves Python as SQL or ONNX (`export`), or as a `ScoreCard`: a tree of a few conditions.
"""

from largesse.policy.export.dialects import DIALECTS as DIALECTS
from largesse.policy.mlflow import save_mlflow as save_mlflow
from largesse.policy.policy import Expected as Expected
from largesse.policy.policy import Policy as Policy
from largesse.policy.score_card import ScoreCard as ScoreCard
