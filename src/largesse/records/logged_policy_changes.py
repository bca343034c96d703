"""Changes of a plan against the logged policy: gains by level, and customers' transitions between levels."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.records.evaluation import Estimate


@dataclass(frozen=True)
class ValueAndSpend:
    """Estimates of value and spend per customer."""

    value: Estimate
    spend: Estimate


@dataclass(frozen=True)
class LevelGain:
    """Estimated gain of the plan over the logged policy among customers with one planned level.

    Value and spend are divided by all customers of the log.
    """

    level: int
    share: float  # of all customers
    value: Estimate
    spend: Estimate


@dataclass(frozen=True)
class LevelTransition:
    """Customers who move from one logged level to one planned level, with their expected gain and cost."""

    before: int
    after: int
    rows: int
    share: float  # of all customers
    value: float  # extra value per customer of the group
    spend: float  # extra cost per customer of the group


@dataclass(frozen=True)
class LoggedPolicyChanges:
    """Change from the logged policy to a plan, decomposed by level.

    All levels together give the plan's value less `before`.
    """

    before: ValueAndSpend  # of the logged policy
    after: ValueAndSpend  # of the plan
    levels: tuple[LevelGain, ...]  # levels that the plan gives to any customer
    moves: tuple[LevelTransition, ...]
