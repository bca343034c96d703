"""Gains of a plan over the logged policy by level, and transitions between levels."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.records.evaluation import Estimate


@dataclass(frozen=True)
class ValueSpend:
    """Value and spend per customer."""

    value: Estimate
    spend: Estimate


@dataclass(frozen=True)
class LevelGain:
    """Gain of the plan over the logged policy among customers with one planned level, per customer of the whole log."""

    level: int
    share: float  # of all customers
    value: Estimate
    spend: Estimate


@dataclass(frozen=True)
class LevelTransition:
    """Customers with one logged level and one planned level, and the change that the model expects."""

    before: int
    after: int
    rows: int
    share: float  # of all customers
    value: float  # extra value per customer of the group
    spend: float  # extra cost per customer of the group


@dataclass(frozen=True)
class LoggedPolicyChanges:
    """Decomposition of the change from the logged policy to a plan; all levels together give the plan's value less `before`."""

    before: ValueSpend  # of what was done
    after: ValueSpend  # of the plan
    levels: tuple[LevelGain, ...]  # those that the plan gives
    moves: tuple[LevelTransition, ...]
