"""Gains of a plan over the logged policy by level, and the transitions between levels."""

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
    """What those whom a plan gives one level bring and cost more than what was done to them; per customer of all."""

    level: int
    share: float  # of all customers
    value: Estimate
    spend: Estimate


@dataclass(frozen=True)
class LevelTransition:
    """Customers who had one level and would get another, or the same; what the model expects of each of them."""

    before: int
    after: int
    rows: int
    share: float  # of all customers
    value: float  # how much more one of them brings
    spend: float  # how much more one of them costs


@dataclass(frozen=True)
class LoggedPolicyChanges:
    """From what was done to a plan, on the rows of a log. The changes of all levels add up to the plan's value less `before`."""

    before: ValueSpend  # of what was done
    after: ValueSpend  # of the plan
    levels: tuple[LevelGain, ...]  # those that the plan gives
    moves: tuple[LevelTransition, ...]
