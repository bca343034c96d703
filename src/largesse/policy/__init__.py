"""Policies: rules for new customers, made of a response model and a budget's shadow price.

`Policy.explore` draws levels around a plan (package `exploration`). A policy is exported as SQL or ONNX (`export`), or as a
`PolicyTree` of a few conditions.
"""

from largesse.policy.export.sql import DIALECTS as DIALECTS
from largesse.policy.policy import AllowedLevels as AllowedLevels
from largesse.policy.policy import ExpectedOutcomes as ExpectedOutcomes
from largesse.policy.policy import Policy as Policy
from largesse.policy.policy_tree import PolicyTree as PolicyTree
from largesse.policy.policy_tree import describe_planned_groups as describe_planned_groups
