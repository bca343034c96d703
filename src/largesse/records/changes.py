"""What a plan changes in comparison with what was done: what each of its levels adds, and who moves from where to where."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.records.evaluation import Estimate


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
