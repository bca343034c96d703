"""Influence function values of all rows: the basis of intervals, paired differences, ratios and confidence bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from largesse.evaluation.estimators import ESTIMATORS, PolicyRows, measure_influence, weighted_mean
from largesse.records import Array, Estimate
from largesse.stats import BinaryOutcomes, estimate_skewed_mean, is_sparse_amount, mark_binary_successes


@dataclass(frozen=True, eq=False)
class NonzeroResponses:
    """Mask of rows with a nonzero response, used where an estimate may rest on few such rows."""

    is_nonzero: Array  # (n,) bool
    sizes: Array | None = None  # (n,) what a yes adds to the outcome of any row; None: amounts of any size

    def pay(self, face: Array | None) -> NonzeroResponses:
        """Return the rows with nonzero costs, which are paid on redemption, given the cost (n,) of each row's level."""
        return self if self.sizes is None or face is None else replace(self, sizes=np.maximum(self.sizes, 0.0) * face)


@dataclass(frozen=True, eq=False)
class Influence:
    """Scores of rows whose weighted mean is an estimate, and the parts that its interval must allow for.

    Estimates that are sums, differences and multiples of others have the same sums of influences.
    """

    values: Array  # (n,)
    tail: Array | None = None  # (n,) what weighted outcomes add to the values, where only some rows have an outcome
    unbiased: Influence | None = None  # of the same quantity by `dr`, where the estimator itself may be biased
    answers: BinaryOutcomes | None = None  # what each yes adds to the values, where responses are yes or no

    def __add__(self, other: Influence) -> Influence:
        unbiased, answers = None, self.answers or other.answers
        if self.unbiased is not None or other.unbiased is not None:
            unbiased = (self.unbiased or self) + (other.unbiased or other)
        if self.answers is not None and other.answers is not None:
            answers = replace(self.answers, stakes=_add(self.answers.stakes, other.answers.stakes))
        tail = other.tail if self.tail is None else self.tail if other.tail is None else _add(self.tail, other.tail)
        return Influence(self.values + other.values, tail, unbiased, answers)

    def __sub__(self, other: Influence) -> Influence:
        if np.array_equal(self.values, other.values):  # a policy against itself: the difference is known
            return Influence(np.zeros(len(self.values)))
        return self + other * -1.0

    def __mul__(self, factor: float | Array) -> Influence:
        return self._map(lambda part: part * factor)

    def shift(self, constant: float) -> Influence:
        """Return the influence on the estimate plus a constant."""
        return replace(self, values=self.values + constant)

    def within(self, rows: Array) -> Influence:
        """Return the influence of a mask of rows (n,) on the estimate, with zeros for all other rows."""
        return self._map(lambda part: part * rows)

    def among(self, rows: Array) -> Influence:
        """Return the influence on the estimate for some rows alone, given by their indices or a mask."""
        part = self._map(lambda part: part[rows])
        return (
            part if part.answers is None else replace(part, answers=replace(part.answers, yes=part.answers.yes[rows]))
        )

    def _map(self, change: Callable[[Array], Array]) -> Influence:
        return Influence(
            change(self.values),
            None if self.tail is None else change(self.tail),
            None if self.unbiased is None else self.unbiased._map(change),
            None if self.answers is None else replace(self.answers, stakes=change(self.answers.stakes)),
        )

    def estimate(self, weight: Array | None = None, cluster: Array | None = None) -> Estimate:
        """Return the estimate with its interval; the interval of a biased estimator includes the interval of `dr`."""
        estimate = estimate_skewed_mean(self.values, weight, cluster, self.tail, self.answers)
        return estimate if self.unbiased is None else join_intervals(estimate, self.unbiased.estimate(weight, cluster))


class PolicyInfluence(NamedTuple):
    """Influence of each row on the value and the spend of a policy, or on a difference of two policies."""

    value: Influence
    spend: Influence

    def minus(self, other: PolicyInfluence) -> PolicyInfluence:
        """Return the influence on the differences from another policy."""
        return PolicyInfluence(self.value - other.value, self.spend - other.spend)

    def profit(self, response_value: float) -> Influence:
        """Return the influence on the profit, where one unit of response has a value."""
        return self.value * response_value - self.spend


def measure_estimator_influence(
    rows: PolicyRows, estimator_name: str, nonzero_responses: NonzeroResponses | None = None
) -> Influence:
    """Return the influence of rows on the estimate of one estimator; see `find_nonzero_responses`."""
    estimator = ESTIMATORS[estimator_name]
    terms = estimator.terms(rows)
    values = measure_influence(terms, rows.weight)
    if estimator.biased:
        return Influence(values, None, measure_estimator_influence(rows, "dr", nonzero_responses))
    return make_influence(values, rows, nonzero_responses, terms.bottom)


def make_influence(
    values: Array, rows: PolicyRows, nonzero: NonzeroResponses | None, bottom: Array | None = None
) -> Influence:
    """Return the influence of values (n,), with the parts of its nonzero rows, in the unit of the estimate."""
    if nonzero is None or nonzero.sizes is None:
        return Influence(values, weigh_nonzero_outcomes(rows, nonzero, bottom))
    scale = 1.0 if bottom is None else weighted_mean(bottom, rows.weight)
    stakes = rows.ratio * nonzero.sizes / scale if scale != 0 else np.zeros(len(values))
    return Influence(values, answers=BinaryOutcomes(stakes, nonzero.is_nonzero))


def find_nonzero_responses(response: Array) -> NonzeroResponses | None:
    """Return the rows with a response, where responses are yes or no, or amounts that many rows do not have."""
    yes = mark_binary_successes(response)
    if yes is not None:
        return NonzeroResponses(yes, np.broadcast_to(response[yes][0], response.shape))
    return NonzeroResponses(response != 0) if is_sparse_amount(response) else None


def weigh_nonzero_outcomes(
    rows: PolicyRows, nonzero: NonzeroResponses | None, denominator: Array | None = None
) -> Array | None:
    """Return the weighted outcomes (n,) of nonzero rows, in the unit of the estimate; None for yes/no outcomes."""
    scale = 1.0 if denominator is None else weighted_mean(denominator, rows.weight)
    if nonzero is None or nonzero.sizes is not None or scale == 0:
        return None
    return nonzero.is_nonzero * rows.ratio * rows.outcome / scale


def estimate_all(rows: PolicyRows, cluster: Array | None = None) -> dict[str, Estimate]:
    """Return the estimate of every estimator with its interval, by name."""
    nonzero = find_nonzero_responses(rows.outcome)
    return {
        name: measure_estimator_influence(rows, name, nonzero).estimate(rows.weight, cluster) for name in ESTIMATORS
    }


def join_intervals(estimate: Estimate, other: Estimate) -> Estimate:
    """Widen an interval until it includes another one; the result has no ends if the other has none."""
    if not (np.isfinite(other.low) and np.isfinite(other.high)):
        return replace(estimate, low=float("nan"), high=float("nan"))
    return replace(estimate, low=min(estimate.low, other.low), high=max(estimate.high, other.high))


def widen_interval(estimate: Estimate, times: float) -> Estimate:
    """Move both ends of an interval to a multiple of their distance from the estimate."""
    low, high = (estimate.estimate + times * (end - estimate.estimate) for end in estimate.interval)
    return replace(estimate, low=low, high=high)


def _add(left: Array, right: Array) -> Array:
    total: Array = left + right
    total[np.abs(total) <= 1e-12 * np.abs(left)] = 0.0  # what both have in common cancels
    return total
