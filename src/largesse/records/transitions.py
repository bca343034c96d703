"""What groups of customers bring: at each level, and by what a plan changes in comparison with what was done."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.records.evaluation import Estimate

FEW_ROWS = 30  # a level with fewer rows, or fewer effective rows, cannot be judged


@dataclass(frozen=True)
class LevelChange:
    """What those whom a plan gives one level bring and cost more than what was done to them; per customer of all."""

    level: int
    share: float  # of all customers
    value: Estimate
    spend: Estimate


@dataclass(frozen=True)
class Move:
    """Customers who had one level and would get another, or the same; what the model expects of each of them."""

    before: int
    after: int
    rows: int
    share: float  # of all customers
    value: float  # how much more one of them brings
    spend: float  # how much more one of them costs


@dataclass(frozen=True)
class Changes:
    """From what was done to a plan, on the rows of a log. The changes of all levels add up to the plan's value less `before`."""

    before: tuple[Estimate, Estimate]  # value and spend of what was done
    after: tuple[Estimate, Estimate]  # of the plan
    levels: tuple[LevelChange, ...]  # those that the plan gives
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class GroupPoint:
    """The mean response of a group of customers at one level, and how many rows of the log speak for it."""

    model: float  # the mean of the model's curves
    value: Estimate  # doubly robust
    rows: int
    effective: float  # effective sample size after weighting by 1 / propensity

    @property
    def few(self) -> bool:
        """Whether too few rows had the level for the log to say what it brings."""
        return self.rows < FEW_ROWS or self.effective < FEW_ROWS
