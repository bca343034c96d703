"""Plausibility checks of given propensities: their implications compared with the log.

Where a level is drawn with the probability that the log says, the sum of 1 / propensity over the level's rows is about the
number of all rows (`sums` are near one), or less where some customers could not get the level, but never clearly more. And
where a level was nearly certain, others must have been drawn about as often as the rest of its probability says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.errors import Problem, join_some
from largesse.records import Array
from largesse.stats import mean_estimate

SURE = 5.0  # standard errors beyond which propensities are refused, if they are off by much
FACTOR = 1.5  # off by much
DOUBTFUL, APART = 4.0, 0.1  # standard errors, and how far a sum must be from one, for a doubt
CERTAIN = 0.999
QUARTER = 0.25  # of a propensity: how far a share of rows must be from it to refuse it
FEW_ROWS = 200
LEAVE_OUT = "it is the probability with which the row's own level was chosen; leave the column out to have it estimated"


@dataclass(frozen=True, eq=False)
class GivenPropensities:
    """Levels and given propensities of a log."""

    level: Array  # (n,) in 0..K−1
    propensity: Array  # (n,) in (0, 1]
    labels: Sequence[str]
    weight: Array | None = None  # (n,)
    cluster: Array | None = None  # (n,)


@dataclass(frozen=True)
class LevelSum:
    """The mean over all rows of 1 / propensity where the row has the level: about one, if propensities are right."""

    label: str
    share: float  # of the rows
    mean: float  # mean propensity of the level's rows
    sum: float
    se: float

    def __str__(self) -> str:
        return (
            f"{self.label!r}: {self.share:.3g} of the rows, mean propensity {self.mean:.3g}, "
            f"sum of 1/propensity {self.sum:.3g} ± {1.96 * self.se:.2g} times the rows"
        )


def sum_levels(given: GivenPropensities, *, weighted: bool = True) -> list[LevelSum]:
    """Return the sum of every level that has rows."""
    weight = given.weight if weighted else None
    found = []
    for k, label in enumerate(given.labels):
        own = given.level == k
        if own.any():
            sums = mean_estimate(np.where(own, 1 / given.propensity, 0.0), weight, given.cluster)
            se = np.fmax(sums.se, _expected_se(given, own, weight))
            found.append(
                LevelSum(label, float(own.mean()), float(given.propensity[own].mean()), sums.estimate, float(se))
            )
    return found


def _expected_se(given: GivenPropensities, own: Array, weight: Array | None) -> float:
    """Return the standard error that the propensities imply: draws may by chance vary less than that."""
    p = np.where(own, given.propensity, 1.0)
    spread = np.sqrt(1 - p) / p * (1.0 if weight is None else weight)
    whole = len(p) if weight is None else float(weight.sum())
    return _add_up(spread, given.cluster) / whole


def _add_up(spread: Array, cluster: Array | None) -> float:
    """Return the standard deviation of a sum: rows of a cluster, which may have got one level together, vary together."""
    if cluster is not None:
        _, own = np.unique(cluster, return_inverse=True)
        spread = np.bincount(own, weights=spread)
    return float(np.sqrt(spread @ spread))


def propensity_problems(given: GivenPropensities, name: str) -> list[Problem]:
    """Return why propensities cannot be right, if they cannot: beyond chance, and by much."""
    sums = sum_levels(given)
    if len(sums) > 1 and (given.propensity >= CERTAIN).mean() >= CERTAIN:
        what = f"{name} is 1 in every row, but the log has {len(sums)} levels"
        return [Problem(f"{what}: {join_some([s.label for s in sums])}", LEAVE_OUT)]
    plain = sums if given.weight is None else sum_levels(given, weighted=False)
    # Weights may restore what was left out, or be what was changed: propensities are wrong only if they are wrong with both.
    high = [one for one, other in zip(sums, plain, strict=True) if _is_far_above(one) and _is_far_above(other)]
    if high:
        what = f"{name} is too small: the sum of 1/propensity over a level's rows must be about the number of all rows"
        return [Problem(f"{what}. {join_some([str(s) for s in high], 3)}", LEAVE_OUT)]
    missing, se, seen = _count_others(given)
    if missing - seen > SURE * se and missing > FACTOR * seen:
        what = f"{name} is too large: by it, {missing:,.0f} rows should have got another level than the likeliest"
        return [Problem(f"{what}, and {seen:,.0f} have a propensity below one half", LEAVE_OUT)]
    return []


def find_doubtful_levels(given: GivenPropensities) -> list[LevelSum]:
    """Return the levels whose sum is clearly above one, or clearly below it with one propensity for all rows of a level.

    Where propensities vary, a sum below one says little: the small ones that would fill it up may not have been drawn.
    """
    found = sum_levels(given)
    high = [one for one in found if one.sum - 1 > max(DOUBTFUL * one.se, APART)]
    constant = len(given.level) >= FEW_ROWS and all(
        np.ptp(given.propensity[given.level == k]) < 1e-9 for k in np.unique(given.level)
    )
    if not constant:
        return high
    weight = np.ones(len(given.level)) if given.weight is None else given.weight
    unit = _add_up(weight, given.cluster) / float(weight.sum())
    # One propensity for all: it alone says how far the sum may vary, however few rows were drawn.
    return high + [one for one in found if 1 - one.sum > max(DOUBTFUL * unit * np.sqrt(1 / one.mean - 1), APART)]


def _is_far_above(one: LevelSum) -> bool:
    return one.sum > FACTOR and one.sum - 1 > SURE * one.se


def _count_others(given: GivenPropensities) -> tuple[float, float, float]:
    """Return how many rows should have missed their likeliest level, the standard error of that, and how many did."""
    p = given.propensity
    likely = p > 0.5
    missing = np.where(likely, (1 - p) / p, 0.0)
    spread = np.where(likely, np.sqrt(1 - p) / p, 0.0)
    return float(missing.sum()), _add_up(spread, given.cluster), float((~likely).sum())


def propensities_by_level(shares: Sequence[float], level: Array) -> Array:
    """Return the propensity (n,) of every row where each level had one probability for all customers."""
    return np.asarray(shares, dtype=np.float64)[np.maximum(level, 0)]


def propensities_by_stratum(stratum: Array, level: Array, levels: int) -> Array:
    """Return the propensity (n,) of every row where levels were drawn within strata: the level's share in its stratum."""
    cell = stratum * levels + np.maximum(level, 0)
    _, own, times = np.unique(cell, return_inverse=True, return_counts=True)
    sizes = np.bincount(stratum)
    return np.asarray(times[own] / sizes[stratum], dtype=np.float64)


def share_mismatches(shares: Sequence[float], given: GivenPropensities) -> list[Problem]:
    """Return why one propensity for each level cannot be right, if it cannot: then shares of rows are near them."""
    weight = np.ones(len(given.level)) if given.weight is None else given.weight
    unit = _add_up(weight, given.cluster) / float(weight.sum())
    off = []
    for label, p, k in zip(given.labels, shares, range(len(shares)), strict=True):
        share = float(weight[given.level == k].sum() / weight.sum())
        if abs(share - p) > max(SURE * unit * np.sqrt(p * (1 - p)), QUARTER * p):
            off.append(f"{label!r}: {share:.3g} of the rows, given {p:.3g}")
    hint = "give the probabilities with which levels were drawn, in the order of the levels, or leave them out"
    return [Problem(f"the propensities of the levels are not their shares: {join_some(off)}", hint)] if off else []


def share_problems(shares: Sequence[Any], levels: int) -> list[Problem]:
    """Return the problems of propensities given by level."""
    hint = f"give {levels} probabilities, one for each level, that add up to 1: propensities = [0.2, 0.2, 0.6]"
    numbers = all(isinstance(p, int | float | np.number) and 0 < p <= 1 for p in shares)
    if not numbers or len(shares) != levels:
        return [Problem(f"the propensities of the levels are {join_some(list(shares))}", hint)]
    if abs(sum(shares) - 1) > 0.005:  # thirds may be written as 0.33
        return [Problem(f"the propensities of the levels add up to {sum(shares):g}: {join_some(list(shares))}", hint)]
    return []
