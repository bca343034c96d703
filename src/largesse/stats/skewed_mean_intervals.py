"""95 % confidence intervals of means with a long tail of large terms, such as purchases.

A t interval holds when terms are many and of similar size. Where few terms are large, a log that missed the largest customers has a
small mean *and* a small standard error, so the truth lies above the interval far more often than in one log of forty. How
many standard errors an end must reach follows from the terms themselves: logs are drawn from the log (as in a studentised
bootstrap), each large term times a random factor with mean one, so that larger terms than any seen can be drawn. The factor
is as wide as the logarithms of the large terms are spread, and narrows as they become many. Ends only move outwards, and
only as far as the large terms differ. Yes/no answers of single rows have no tail: their ends follow from counts (`answers`).

Draws have a fixed seed, and only the largest terms are drawn: the others are a normal error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from largesse.records import Array, Estimate
from largesse.stats.binomial_intervals import COVERAGE, BinaryOutcomes, binomial_half_widths
from largesse.stats.t_intervals import jackknife_mean, t_half_width, t_interval

MIN_TAIL_ROWS = 10  # fewer large terms do not show the length of the tail
MIN_SIDE_SHARE = 0.05  # of all large terms: a sign with fewer of them needs no minimum number of rows
ROW_TAIL_SPREADS = (0.4, 0.8)  # spread of logarithms: up to the first, no tail; from the second, a tail
CLUSTER_TAIL_SPREADS = (0.2, 0.5)  # sums over clusters of any size are seldom similar
MAX_SHARE_FOR_T_INTERVAL = 1e-3  # share of the squares: where the largest term has less, the t interval holds
MIN_POSITIVE_FLOAT = float(np.finfo(np.float64).tiny)
KERNEL_BANDWIDTH = 1.06  # the usual bandwidth of a normal kernel, in spreads
N_LOG_DRAWS, MAX_TAIL_TERMS = 1000, 400


@dataclass(frozen=True, eq=False)
class _TailSide:
    """Large positive terms, or large negative terms, of a mean, with the spread of their logarithms."""

    terms: Array  # (at most MAX_TAIL_TERMS,) the largest
    spread: float  # standard deviation of the logarithms of all of them
    count: int

    def tail_degree(self, similar: tuple[float, float]) -> float:
        """Return a number from 0 (similar terms) to 1 (a long tail) for the spread of the terms.

        It is 0 up to the first of the spreads `similar`, and 1 from the second on.
        """
        return min(max((self.spread - similar[0]) / (similar[1] - similar[0]), 0.0), 1.0)


def estimate_skewed_mean(
    values: Array,
    weight: Array | None = None,
    cluster: Array | None = None,
    tail: Array | None = None,
    answers: BinaryOutcomes | None = None,
) -> Estimate:
    """Return the weighted mean of values (n,) with an interval that allows for a long tail.

    `tail` (n,) is the part of the values that few rows have, such as weighted purchases, and zero in all other rows. With
    fewer than `MIN_TAIL_ROWS` such rows there is no interval: its ends are NaN. Without `tail`, values far from the mean are large,
    unless they come from yes/no `answers` of single rows. With both, as where amounts paid count against answers, the interval
    allows for both.

    >>> estimate_skewed_mean(np.r_[np.zeros(900), np.full(100, 2.0)]).estimate
    0.2
    >>> estimate_skewed_mean(np.arange(1000.0), tail=np.r_[np.zeros(995), np.arange(5.0) + 1]).interval
    (nan, nan)
    """
    mean, influences = jackknife_mean(values, weight, cluster)
    estimate = t_interval(mean, influences)
    if tail is not None and count_tail_rows_if_few(tail) is not None:
        return replace(estimate, low=float("nan"), high=float("nan"))
    if answers is not None and cluster is None:
        estimate = _widen_interval(estimate, *binomial_half_widths(answers, weight, estimate.se))
        if tail is None:
            return estimate
    if not estimate.se > 0:
        return estimate
    if tail is not None:
        influences = jackknife_mean(tail, weight, cluster)[1]
    tails = None if tail is None else _sum_tail_by_unit(tail, weight, cluster)
    below, above = _tail_half_widths(influences, tails, ROW_TAIL_SPREADS if cluster is None else CLUSTER_TAIL_SPREADS)
    return replace(estimate, low=estimate.low - below, high=estimate.high + above)


def _widen_interval(estimate: Estimate, below: float, above: float) -> Estimate:
    low, high = min(estimate.low, estimate.estimate - below), max(estimate.high, estimate.estimate + above)
    return replace(estimate, low=low, high=high)


def count_tail_rows_if_few(tail: Array) -> int | None:
    """Return the number of rows in the long tail if they are too few for an interval, else None."""
    above, below = int(np.count_nonzero(tail > 0)), int(np.count_nonzero(tail < 0))
    needed = [side for side in (above, below) if side > MIN_SIDE_SHARE * (above + below)]
    least = min(needed, default=0)
    return least if least < MIN_TAIL_ROWS else None


def is_sparse_amount(outcome: Array) -> bool:
    """Test if outcomes (n,) are amounts, not binary, and zero in at least a fifth of the rows."""
    some = outcome != 0
    if np.count_nonzero(some) > 0.8 * len(outcome):
        return False
    amounts = outcome[some]
    return len(amounts) > 0 and bool(amounts.min() < amounts.max())


def _sum_tail_by_unit(tail: Array, weight: Array | None, cluster: Array | None) -> tuple[Array, Array]:
    """Sum the positive and the negative tail values of each row or cluster, and return both sums (units,)."""
    weighted = tail if weight is None else weight * tail
    sides = (np.maximum(weighted, 0.0), np.maximum(-weighted, 0.0))
    if cluster is None:
        return sides
    _, unit = np.unique(cluster, return_inverse=True)
    return np.bincount(unit, weights=sides[0]), np.bincount(unit, weights=sides[1])


def _tail_half_widths(
    influences: Array, tails: tuple[Array, Array] | None, similar: tuple[float, float]
) -> tuple[float, float]:
    """Return the distances by which a long tail lengthens a t interval below and above the mean."""
    squares = influences * influences
    whole = float(squares.sum())
    if not float(squares.max()) > MAX_SHARE_FOR_T_INTERVAL * whole:  # or if `whole` is not finite
        return 0.0, 0.0
    up, down = (
        _split_large_influences(influences)
        if tails is None
        else (_select_tail(influences, tails[0]), _select_tail(-influences, tails[1]))
    )
    above, below = up.tail_degree(similar), down.tail_degree(similar)
    if above == below == 0:
        return 0.0, 0.0
    drawn = _draw_t_statistics(up, down, whole, len(influences))
    low, high = np.quantile(drawn, [0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2])
    usual, se = t_half_width(squares), float(np.sqrt((len(influences) - 1) / len(influences) * whole))
    return below * max(float(high) - usual, 0.0) * se, above * max(-float(low) - usual, 0.0) * se


def _split_large_influences(influences: Array) -> tuple[_TailSide, _TailSide]:
    """Return the positive and the negative influences that exceed the mean absolute influence."""
    least = float(np.abs(influences).mean())
    sides = (influences[influences > least], -influences[influences < -least])
    return _make_tail_side(sides[0], sides[0]), _make_tail_side(sides[1], sides[1])


def _select_tail(influences: Array, tail: Array) -> _TailSide:
    """Select the positive influences of rows or clusters with a value in the tail."""
    in_tail = tail > 0
    moved = influences[in_tail]
    return _make_tail_side(moved[moved > 0], tail[in_tail])


def _make_tail_side(terms: Array, sizes: Array) -> _TailSide:
    spread = float(np.log(sizes).std(ddof=1)) if len(sizes) > 1 else 0.0
    if len(terms) > MAX_TAIL_TERMS:
        terms = np.partition(terms, len(terms) - MAX_TAIL_TERMS)[-MAX_TAIL_TERMS:]
    return _TailSide(np.sort(terms)[::-1], spread, len(sizes))


def _draw_t_statistics(up: _TailSide, down: _TailSide, whole: float, units: int) -> Array:
    """Return the t statistics (N_LOG_DRAWS,) of the means of resampled logs."""
    times, normal, rest = _draw_resampling_numbers()
    total, squares, left = np.zeros(N_LOG_DRAWS), np.zeros(N_LOG_DRAWS), whole
    for side, sign, first in ((up, 1.0, 0), (down, -1.0, MAX_TAIL_TERMS)):
        place = slice(first, first + len(side.terms))
        width = KERNEL_BANDWIDTH * side.spread * max(side.count, 1) ** -0.2
        drawn = side.terms * np.exp(width * normal[:, place] - width**2 / 2)
        counted = times[:, place] * drawn
        total += sign * (counted.sum(axis=1) - side.terms.sum())
        squares += (counted * drawn).sum(axis=1)
        left -= float(side.terms @ side.terms)
    left = max(left, 0.0)
    total += np.sqrt(left) * rest
    squares += left
    return total / np.sqrt(np.maximum(squares - total**2 / units, max(1e-12 * whole, MIN_POSITIVE_FLOAT)))


@lru_cache(maxsize=1)
def _draw_resampling_numbers() -> tuple[Array, Array, Array]:
    """Draw the random numbers of all resampled logs, with a fixed seed.

    They are counts and normal factors of the large terms, (N_LOG_DRAWS, 2 MAX_TAIL_TERMS) each, and the normal error of
    the other terms (N_LOG_DRAWS,).
    """
    rng = np.random.default_rng(0)
    shape = (N_LOG_DRAWS, 2 * MAX_TAIL_TERMS)
    return rng.poisson(1.0, shape).astype(np.float64), rng.standard_normal(shape), rng.standard_normal(N_LOG_DRAWS)
