"""The influence of every row on an estimate: what intervals, paired differences, ratios and bands are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from largesse.evaluation.estimators import ESTIMATORS, Judged, measure_influence, weighted_mean
from largesse.records import Array, Estimate
from largesse.stats import Answers, estimate_mean, find_yes, is_rare


@dataclass(frozen=True, eq=False)
class Carriers:
    """Rows whose response is not zero, where few of them may carry an estimate."""

    own: Array  # (n,) bool
    sizes: Array | None = None  # (n,) what a yes adds to the outcome of any row; None: amounts of any size

    def pay(self, face: Array | None) -> Carriers:
        """Return the carriers of what is paid on redemption, by the cost (n,) of each row's level."""
        return self if self.sizes is None or face is None else replace(self, sizes=np.maximum(self.sizes, 0.0) * face)


@dataclass(frozen=True, eq=False)
class Influence:
    """Scores of rows whose weighted mean is an estimate, and what its interval must allow for.

    Estimates that are sums, differences and multiples of others have the same sums of influences.
    """

    values: Array  # (n,)
    tail: Array | None = None  # (n,) what weighted outcomes add to the values, where only some rows have an outcome
    unbiased: Influence | None = None  # of the same quantity by `dr`, where the estimator itself may be biased
    answers: Answers | None = None  # what each yes adds to the values, where responses are yes or no

    def __add__(self, other: Influence) -> Influence:
        return Influence(
            self.values + other.values,
            _add(self.tail, other.tail),
            _add_unbiased(self, other, self.unbiased),
            _add_answers(self.answers, other.answers),
        )

    def __sub__(self, other: Influence) -> Influence:
        if np.array_equal(self.values, other.values):  # a policy against itself: the difference is known
            return Influence(np.zeros(len(self.values)))
        return self + other * -1.0

    def __mul__(self, factor: float) -> Influence:
        tail = None if self.tail is None else self.tail * factor
        unbiased = None if self.unbiased is None else self.unbiased * factor
        return Influence(self.values * factor, tail, unbiased, None if self.answers is None else self.answers * factor)

    def shift(self, constant: float) -> Influence:
        """Return the influence on the estimate plus a constant."""
        return replace(self, values=self.values + constant)

    def within(self, rows: Array) -> Influence:
        """Return the influence on the part of the estimate that some rows (n,) add: that of the others is zero."""
        tail = None if self.tail is None else self.tail * rows
        unbiased = None if self.unbiased is None else self.unbiased.within(rows)
        answers = None if self.answers is None else replace(self.answers, stakes=self.answers.stakes * rows)
        return Influence(self.values * rows, tail, unbiased, answers)

    def among(self, rows: Array) -> Influence:
        """Return the influence of some rows alone, given by their places or by a mask: on the estimate for these rows."""
        tail = None if self.tail is None else self.tail[rows]
        unbiased = None if self.unbiased is None else self.unbiased.among(rows)
        answers = None if self.answers is None else Answers(self.answers.stakes[rows], self.answers.yes[rows])
        return Influence(self.values[rows], tail, unbiased, answers)

    def estimate(self, weight: Array | None = None, cluster: Array | None = None) -> Estimate:
        """Return the estimate with its interval: that of an estimator that may be biased includes that of `dr`."""
        found = estimate_mean(self.values, weight, cluster, self.tail, self.answers)
        return found if self.unbiased is None else join_intervals(found, self.unbiased.estimate(weight, cluster))


def measure_rows(rows: Judged, name: str, carriers: Carriers | None = None) -> Influence:
    """Return the influence of rows on one estimator's estimate; see `find_carriers`."""
    estimator = ESTIMATORS[name]
    terms = estimator.terms(rows)
    values = measure_influence(terms, rows.weight)
    if estimator.biased:
        return Influence(values, None, measure_rows(rows, "dr", carriers))
    return carry(values, rows, carriers, terms.bottom)


def carry(values: Array, rows: Judged, carriers: Carriers | None, bottom: Array | None = None) -> Influence:
    """Return an influence of values (n,) with what carriers add to it, in the unit of the estimate."""
    tail = find_tail(rows, carriers, bottom)
    if carriers is None or carriers.sizes is None:
        return Influence(values, tail)
    under = 1.0 if bottom is None else weighted_mean(bottom, rows.weight)
    stakes = rows.ratio * carriers.sizes / under if under != 0 else np.zeros(len(values))
    return Influence(values, answers=Answers(stakes, carriers.own))


def find_carriers(response: Array) -> Carriers | None:
    """Return the rows that have a response at all, where responses are yes or no, or amounts that many rows do not have."""
    yes = find_yes(response)
    if yes is not None:
        return Carriers(yes, np.broadcast_to(response[yes][0], response.shape))
    return Carriers(response != 0) if is_rare(response) else None


def find_tail(rows: Judged, carriers: Carriers | None, bottom: Array | None = None) -> Array | None:
    """Return the weighted outcomes (n,) of carriers with amounts of any size, in the unit of the estimate."""
    under = 1.0 if bottom is None else weighted_mean(bottom, rows.weight)
    if carriers is None or carriers.sizes is not None or under == 0:
        return None
    return carriers.own * rows.ratio * rows.outcome / under


def estimate_all(rows: Judged, cluster: Array | None = None) -> dict[str, Estimate]:
    """Return the estimate of every estimator with its interval, by name."""
    carriers = find_carriers(rows.outcome)
    return {name: measure_rows(rows, name, carriers).estimate(rows.weight, cluster) for name in ESTIMATORS}


def join_intervals(found: Estimate, other: Estimate) -> Estimate:
    """Return an estimate whose interval includes another's; it has none if the other has none."""
    if not (np.isfinite(other.low) and np.isfinite(other.high)):
        return replace(found, low=float("nan"), high=float("nan"))
    return replace(found, low=min(found.low, other.low), high=max(found.high, other.high))


def _add(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return one if other is None else other
    total: Array = one + other
    total[np.abs(total) <= 1e-12 * np.abs(one)] = 0.0  # what both have in common cancels
    return total


def _add_answers(one: Answers | None, other: Answers | None) -> Answers | None:
    if one is None or other is None:
        return one if other is None else other
    stakes = _add(one.stakes, other.stakes)
    assert stakes is not None
    return Answers(stakes, one.yes)


def _add_unbiased(one: Influence, other: Influence, own: Influence | None) -> Influence | None:
    if own is None and other.unbiased is None:
        return None
    return (own or one) + (other.unbiased or other)
