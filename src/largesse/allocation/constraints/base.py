"""What a kind of constraint is: one final class that says what it limits, and how that reads.

A plan gives customer i the level y_i. A `Rule` may forbid choices (`allowed`) or ask for a least return (`floor`). A
`Limit` is a linear rule,

    Σ_i u_i(y_i) · 1[segment of i and level y_i are covered]  ≤ limit, or ≥ limit,

where u_i(y) is 1 (it counts customers) or the cost c_i(y) (it adds up money). Multipliers, repair, the mixed-integer
programme and the explanation of impossible rules work on this form alone, so a further kind is one further class:

    @dataclass(frozen=True, eq=False)
    class LevelBudget(Limit):
        level: int
        money_limit: float
        money = True

        def covers(self, levels):
            return np.arange(levels) == self.level

        ...

    allocate(curves, costs, 1.7, constraints=Constraints(further=[LevelBudget(2, 500.0)]))
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from largesse.errors import Problem
from largesse.records import Array


@dataclass(frozen=True, eq=False)
class Segments:
    """The segment of each customer (n,), whatever names it."""

    values: Any

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values: (n,) if they make sense."""
        return np.shape(self.values)

    @property
    def names(self) -> tuple[Any, ...]:
        """The different segments (S,), sorted."""
        return self._coded[0]

    @property
    def codes(self) -> Array:
        """Each customer's place (n,) among the names."""
        return self._coded[1]

    @cached_property
    def places(self) -> dict[Any, int]:
        """Each name's place among the names."""
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _coded(self) -> tuple[tuple[Any, ...], Array]:
        values = np.asarray(self.values)
        if np.issubdtype(values.dtype, np.integer) and len(values) and values.min() >= 0 and values.max() < len(values):
            seen = np.bincount(values) > 0  # small whole numbers need no sort
            return tuple(np.flatnonzero(seen).tolist()), (np.cumsum(seen) - 1)[values].astype(np.int64)
        if values.dtype == object:  # names of several types have no order of their own
            names = sorted(set(values.tolist()), key=lambda name: (type(name).__name__, str(name)))
            place = {name: at for at, name in enumerate(names)}
            return tuple(place), np.array([place[name] for name in values.tolist()], dtype=np.int64)
        found, codes = np.unique(values, return_inverse=True)
        return tuple(found.tolist()), codes.astype(np.int64)


@dataclass(frozen=True)
class Setting:
    """How `Constraints` and the [plan] section of a campaign file name a kind of rule, and what they say of it."""

    word: str
    per: str  # "level" or "segment": a table of numbers; "customer": one column per level; "plan": one number
    meaning: str  # of a number
    most: float = math.inf  # that a number may be


class Rule(ABC):
    """One thing a plan must keep besides its budget."""

    @abstractmethod
    def check(self, n: int, levels: int, /) -> list[Problem]:
        """Return what is wrong with the rule itself, given n customers and a number of levels."""

    def allowed(self, _n: int, _levels: int, /) -> Array | None:
        """Return which levels customers may get (n, K), or None when the rule forbids nothing."""
        return None

    @property
    def floor(self) -> float:
        """The response that a unit of cost must bring at least."""
        return 0.0


class Limit(Rule):
    """A rule on a sum over the customers of some segments at some levels: their number, or what they cost."""

    money: ClassVar[bool] = False  # the sum is of costs, not of customers
    at_least: ClassVar[bool] = False
    segments: Segments | None = None  # the segments it tells apart; None when it is about all customers
    segment: Any = None  # the name of the one it is about

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it: "the cap of level 2"."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What `plan.shadow` calls it."""

    @abstractmethod
    def limit(self, n: int, /) -> float:
        """Return the number of customers, or the money, for n customers."""

    def covers(self, levels: int, /) -> Array:
        """Return the levels (K,) that count."""
        return np.ones(levels, dtype=bool)

    # ------------------------------------------------------------------------------------------------- words

    def amount(self, value: float) -> str:
        """Write a value of the sum so that it is enough: rounded up, or down where the limit is a least one."""
        return round_to_digits(value, down=self.at_least) if self.money else f"{value:,.0f}"

    def changed(self, limit: float, _n: int, /) -> str:
        """Say what the limit must become."""
        return f"{'lower' if self.at_least else 'raise'} {self.name} to {self.amount(limit)}"

    def out_of_reach(self, nearest: float, n: int, /) -> Problem:
        """Say that no plan keeps the limit, as the sum can be no nearer to it than this."""
        side = "at most" if self.at_least else "at least"
        got = f"{self.name} is {self.amount(self.limit(n))}, but every plan comes to {side} {self.amount(nearest)}"
        return Problem(got, f"{'lower' if self.at_least else 'raise'} it to {self.amount(nearest)}")

    def not_met(self, by: float, _n: int, /) -> Problem:
        """Say that no plan was found that keeps the limit, and by how much the best try missed it."""
        what = f"no plan was found that keeps {self.name}"
        return Problem(what, f"{'lower' if self.at_least else 'raise'} it by {by:g}")

    @classmethod
    def clashes(cls, _rules: Sequence[Any], _shape: tuple[int, int], _allowed: Array, /) -> list[Problem]:
        """Return what a count shows to be impossible about several rules of this class together.

        `shape` is (n, K); `allowed` is (n, K), or (0, K) when everybody may get everything.
        """
        return []


def round_to_digits(value: float, down: bool = False) -> str:
    """Write a number in six digits that is no less than the value, so that it is enough; or no more than it."""
    written = Decimal(repr(float(value)))
    digits = Context(prec=6, rounding=ROUND_FLOOR if down else ROUND_CEILING)
    return f"{float(digits.create_decimal(written)):.10g}"
