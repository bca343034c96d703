"""Influence-function values of a log's rows, from which the intervals of all estimates are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from largesse.evaluation.estimators import ESTIMATORS, EstimatorRows, compute_weighted_mean, measure_influence
from largesse.records import Array, Estimate
from largesse.stats import BinaryOutcomes, estimate_skewed_mean, is_sparse_amount, mark_binary_successes


@dataclass(frozen=True, eq=False)
class NonzeroResponses:
    """Mask of the rows with a nonzero response, for intervals of estimates with few such rows."""

    is_nonzero: Array  # (n,) bool
    sizes: Array | None = None  # (n,) what a yes adds to the outcome of any row; None: amounts of any size

    def convert_to_costs(self, face: Array | None) -> NonzeroResponses:
        """Convert the nonzero responses to costs that are paid on redemption: response × listed cost."""
        return self if self.sizes is None or face is None else replace(self, sizes=np.maximum(self.sizes, 0.0) * face)


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence values (n,) of a log's rows on one estimate; their weighted mean is the estimate.

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
            answers = replace(
                self.answers, stakes=_add_without_rounding_noise(self.answers.stakes, other.answers.stakes)
            )
        tail = (
            other.tail
            if self.tail is None
            else self.tail
            if other.tail is None
            else _add_without_rounding_noise(self.tail, other.tail)
        )
        return Influence(self.values + other.values, tail, unbiased, answers)

    def __sub__(self, other: Influence) -> Influence:
        if np.array_equal(self.values, other.values):  # a policy against itself: the difference is known
            return Influence(np.zeros(len(self.values)))
        return self + other * -1.0

    def __mul__(self, factor: float | Array) -> Influence:
        return self._map_arrays(lambda part: part * factor)

    def shift(self, constant: float) -> Influence:
        """Return the influence on an estimate that is larger by a constant."""
        return replace(self, values=self.values + constant)

    def mask_other_rows(self, rows: Array) -> Influence:
        """Return the influence with zeros outside a mask of rows (n,)."""
        return self._map_arrays(lambda part: part * rows)

    def select_rows(self, rows: Array) -> Influence:
        """Return the influence restricted to rows, given by indices or by a mask."""
        part = self._map_arrays(lambda part: part[rows])
        return (
            part if part.answers is None else replace(part, answers=replace(part.answers, yes=part.answers.yes[rows]))
        )

    def _map_arrays(self, change: Callable[[Array], Array]) -> Influence:
        return Influence(
            change(self.values),
            None if self.tail is None else change(self.tail),
            None if self.unbiased is None else self.unbiased._map_arrays(change),
            None if self.answers is None else replace(self.answers, stakes=change(self.answers.stakes)),
        )

    def estimate(self, weight: Array | None = None, cluster: Array | None = None) -> Estimate:
        """Return the estimate with its confidence interval."""
        estimate = estimate_skewed_mean(self.values, weight, cluster, self.tail, self.answers)
        return estimate if self.unbiased is None else join_intervals(estimate, self.unbiased.estimate(weight, cluster))


class PolicyInfluence(NamedTuple):
    """Influence values of a log's rows on a policy's value and spend."""

    value: Influence
    spend: Influence

    def minus(self, other: PolicyInfluence) -> PolicyInfluence:
        """Return the influence on the differences in value and spend from another policy."""
        return PolicyInfluence(self.value - other.value, self.spend - other.spend)

    def measure_profit_influence(self, response_value: float) -> Influence:
        """Return the influence on the profit: response value × value − spend."""
        return self.value * response_value - self.spend


def measure_estimator_influence(
    rows: EstimatorRows, estimator_name: str, nonzero_responses: NonzeroResponses | None = None
) -> Influence:
    """Return the rows' influence on the estimate of a named estimator."""
    estimator = ESTIMATORS[estimator_name]
    terms = estimator.terms(rows)
    values = measure_influence(terms, rows.weight)
    if estimator.biased:
        return Influence(values, None, measure_estimator_influence(rows, "dr", nonzero_responses))
    return make_estimator_influence(values, rows, nonzero_responses, terms.bottom)


def make_estimator_influence(
    values: Array, rows: EstimatorRows, nonzero: NonzeroResponses | None, bottom: Array | None = None
) -> Influence:
    """Build the influence record from influence values (n,), with the contributions of nonzero responses."""
    if nonzero is None or nonzero.sizes is None:
        return Influence(values, weigh_nonzero_outcomes(rows, nonzero, bottom))
    scale = 1.0 if bottom is None else compute_weighted_mean(bottom, rows.weight)
    stakes = rows.ratio * nonzero.sizes / scale if scale != 0 else np.zeros(len(values))
    return Influence(values, answers=BinaryOutcomes(stakes, nonzero.is_nonzero))


def find_nonzero_responses(response: Array) -> NonzeroResponses | None:
    """Return the rows with a nonzero response if many responses are zero; otherwise None."""
    yes = mark_binary_successes(response)
    if yes is not None:
        return NonzeroResponses(yes, np.broadcast_to(response[yes][0], response.shape))
    return NonzeroResponses(response != 0) if is_sparse_amount(response) else None


def weigh_nonzero_outcomes(
    rows: EstimatorRows, nonzero: NonzeroResponses | None, denominator: Array | None = None
) -> Array | None:
    """Return the weighted nonzero outcomes (n,), in the unit of the estimate; None for yes/no outcomes."""
    scale = 1.0 if denominator is None else compute_weighted_mean(denominator, rows.weight)
    if nonzero is None or nonzero.sizes is not None or scale == 0:
        return None
    return nonzero.is_nonzero * rows.ratio * rows.outcome / scale


def estimate_with_every_estimator(rows: EstimatorRows, cluster: Array | None = None) -> dict[str, Estimate]:
    """Return the estimate of every off-policy estimator, by name, with its interval."""
    nonzero = find_nonzero_responses(rows.outcome)
    return {
        name: measure_estimator_influence(rows, name, nonzero).estimate(rows.weight, cluster) for name in ESTIMATORS
    }


def join_intervals(estimate: Estimate, other: Estimate) -> Estimate:
    """Widen an estimate's interval until it contains another estimate's interval."""
    if not (np.isfinite(other.low) and np.isfinite(other.high)):
        return replace(estimate, low=float("nan"), high=float("nan"))
    return replace(estimate, low=min(estimate.low, other.low), high=max(estimate.high, other.high))


def widen_interval(estimate: Estimate, times: float) -> Estimate:
    """Multiply the distance of both interval ends from the estimate by a factor."""
    low, high = (estimate.estimate + times * (end - estimate.estimate) for end in estimate.interval)
    return replace(estimate, low=low, high=high)


def _add_without_rounding_noise(left: Array, right: Array) -> Array:
    total: Array = left + right
    total[np.abs(total) <= 1e-12 * np.abs(left)] = 0.0  # what both have in common cancels
    return total
