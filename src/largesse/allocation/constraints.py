"""The rules a campaign has beyond its budget, and what they come to for a set of customers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from largesse.errors import Problem, nearest, refuse
from largesse.records import Array


@dataclass(frozen=True, eq=False)
class Constraints:
    """What a plan must keep besides its budget.

    Parameters
    ----------
    eligible
        (n, K) whether a customer may get a level; everybody may get everything when it is not given.
    caps
        Level → the most customers who may get it.
    shares
        Level → the smallest share of customers who must get it.
    segment
        (n,) the segment of each customer, whatever names it.
    segment_budgets
        Segment → the total it may cost; segments that are not named are held by the overall budget alone.
    least_return
        Nothing is spent that brings less response per unit of cost than this.

    >>> Constraints(caps={2: 10_000}, least_return=0.1).caps
    {2: 10000}
    """

    eligible: Array | None = None
    caps: Mapping[int, float] = field(default_factory=dict)
    shares: Mapping[int, float] = field(default_factory=dict)
    segment: Any = None
    segment_budgets: Mapping[Any, float] = field(default_factory=dict)
    least_return: float = 0.0


@dataclass(frozen=True, eq=False)
class Rules:
    """Constraints for n customers, K levels and S segments, as the solver reads them."""

    eligible: Array  # (n, K) bool, or (0, K)
    most: Array  # (K,) customers, infinite where there is no cap
    least: Array  # (K,) customers
    segment: Array  # (n,) int64
    names: tuple[Any, ...]  # (S,)
    limits: Array  # (S,) totals, infinite where there is none
    limit: float  # of all together
    least_return: float

    @property
    def ruled(self) -> Array:
        """The levels that have a cap or a share of their own."""
        return np.flatnonzero((self.most < math.inf) | (self.least > 0))


def rules(given: Constraints, n: int, K: int, limit: float) -> Rules:
    """Check constraints and return what they come to, or refuse them and name everything that is wrong."""
    problems: list[Problem] = []
    eligible = np.zeros((0, K), dtype=bool)
    if given.eligible is not None:
        eligible = np.ascontiguousarray(np.asarray(given.eligible).astype(bool))
        if eligible.shape != (n, K):
            problems.append(Problem(f"eligible has shape {eligible.shape}", f"give one row per customer: ({n}, {K})"))
            eligible = np.zeros((0, K), dtype=bool)
    most, least = np.full(K, math.inf), np.zeros(K)
    for word, table, target in (("caps", given.caps, most), ("shares", given.shares, least)):
        for level, value in table.items():
            if not (isinstance(level, int | np.integer) and 0 <= level < K):
                problems.append(Problem(f"{word} names level {level!r}", f"levels are numbered 0 to {K - 1}"))
            elif not 0 <= value < math.inf or (word == "shares" and value > 1):
                rule = "a cap is a number of customers" if word == "caps" else "a share lies between 0 and 1"
                problems.append(Problem(f"{word}[{level}] is {value}", rule))
            else:
                target[level] = math.floor(value) if word == "caps" else math.ceil(value * n - 1e-9)
    codes, names, limits = _segments(given, n, problems)
    if not 0 <= given.least_return < math.inf:
        problems.append(
            Problem(f"least_return is {given.least_return}", "give response per unit of cost, zero or more")
        )
    refuse("constraints", problems)
    return Rules(eligible, most, least, codes, names, limits, limit, float(given.least_return))


def _segments(given: Constraints, n: int, problems: list[Problem]) -> tuple[Array, tuple[Any, ...], Array]:
    if given.segment is None:
        if given.segment_budgets:
            problems.append(Problem("segment_budgets without segment", "say which segment each customer is in"))
        return np.zeros(n, dtype=np.int64), ("all",), np.array([math.inf])
    values = np.asarray(given.segment)
    if values.shape != (n,):
        problems.append(Problem(f"segment has shape {values.shape}", f"name one segment per customer: ({n},)"))
        return np.zeros(n, dtype=np.int64), ("all",), np.array([math.inf])
    found, codes = _coded(values)
    names = tuple(found.tolist())
    limits = np.full(len(names), math.inf)
    for name, value in given.segment_budgets.items():
        if name not in names:
            hint = nearest(str(name), [str(known) for known in names])
            problems.append(Problem(f"segment_budgets names {name!r}, which no customer is in", hint))
        elif not value >= 0:
            problems.append(Problem(f"the budget of segment {name!r} is {value}", "a budget is zero or more"))
        else:
            limits[names.index(name)] = value
    return codes.astype(np.int64), names, limits


def _coded(values: Array) -> tuple[Array, Array]:
    """Return the different values, sorted, and each one's place among them; small whole numbers without a sort."""
    if np.issubdtype(values.dtype, np.integer) and len(values) and values.min() >= 0 and values.max() < len(values):
        seen = np.bincount(values) > 0
        return np.flatnonzero(seen), (np.cumsum(seen) - 1)[values]
    found, codes = np.unique(values, return_inverse=True)
    return found, codes
