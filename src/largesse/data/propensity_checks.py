"""Checks of given propensities against the frequencies of the logged levels.

If propensities are right, the sum of 1 / propensity over the rows of a level is about the number of all rows, or less if some
customers could not get the level, but never clearly more. And where a level was nearly certain, the other levels must have been
drawn about as often as the remaining probability implies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.errors import Problem, join_some
from largesse.records import Array
from largesse.stats import t_estimate

# Propensities are refused if they are wrong by more than this number of standard errors and by more than this factor.
REFUSED_ERRORS, REFUSED_FACTOR = 5.0, 1.5
REFUSED_SHARE_ERROR = 0.25  # difference between a share of rows and a propensity, relative to the propensity
DOUBTED_ERRORS, DOUBTED_DIFFERENCE = 4.0, 0.1  # standard errors, and distance of a sum from one
CERTAIN_PROPENSITY = 0.999
MIN_ROWS_FOR_DOUBT = 200
PROPENSITY_HINT = (
    "it is the probability with which the row's own level was chosen; leave the column out to have it estimated"
)


@dataclass(frozen=True, eq=False)
class GivenPropensities:
    """Logged levels, and the propensities that the log states for them."""

    level: Array  # (n,) in 0..K−1
    propensity: Array  # (n,) in (0, 1]
    labels: Sequence[str]
    weight: Array | None = None  # (n,)
    cluster: Array | None = None  # (n,)


@dataclass(frozen=True)
class InversePropensitySum:
    """Sum of 1 / propensity over one level's rows, divided by the number of all rows.

    It is about one if propensities are correct.
    """

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


def sum_inverse_propensities(propensities: GivenPropensities, *, weighted: bool = True) -> list[InversePropensitySum]:
    """Return the sum of 1 / propensity over each level's rows, relative to the number of all rows."""
    weight = propensities.weight if weighted else None
    sums = []
    for k, label in enumerate(propensities.labels):
        has_level = propensities.level == k
        if has_level.any():
            estimate = t_estimate(np.where(has_level, 1 / propensities.propensity, 0.0), weight, propensities.cluster)
            se = np.fmax(estimate.se, _compute_expected_se(propensities, has_level, weight))
            sums.append(
                InversePropensitySum(
                    label,
                    float(has_level.mean()),
                    float(propensities.propensity[has_level].mean()),
                    estimate.estimate,
                    float(se),
                )
            )
    return sums


def _compute_expected_se(propensities: GivenPropensities, has_level: Array, weight: Array | None) -> float:
    """Return the standard error of an inverse-propensity sum, given correct propensities.

    The drawn rows may vary less by chance.
    """
    p = np.where(has_level, propensities.propensity, 1.0)
    spread = np.sqrt(1 - p) / p * (1.0 if weight is None else weight)
    whole = len(p) if weight is None else float(weight.sum())
    return _compute_sum_deviation(spread, propensities.cluster) / whole


def _compute_sum_deviation(spread: Array, cluster: Array | None) -> float:
    """Return the standard deviation of a sum over rows (or clusters) from the rows' standard deviations."""
    if cluster is not None:
        _, cluster_code = np.unique(cluster, return_inverse=True)
        spread = np.bincount(cluster_code, weights=spread)
    return float(np.sqrt(spread @ spread))


def find_propensity_problems(propensities: GivenPropensities, name: str) -> list[Problem]:
    """Return a problem for propensities that contradict the logged levels beyond chance."""
    sums = sum_inverse_propensities(propensities)
    if len(sums) > 1 and (propensities.propensity >= CERTAIN_PROPENSITY).mean() >= CERTAIN_PROPENSITY:
        got = f"{name} is 1 in every row, but the log has {len(sums)} levels"
        return [Problem(f"{got}: {join_some([s.label for s in sums])}", PROPENSITY_HINT)]
    plain = sums if propensities.weight is None else sum_inverse_propensities(propensities, weighted=False)
    # Weights may correct for rows that were left out, or distort: propensities are wrong only if wrong with and without them.
    high = [
        level_sum
        for level_sum, other in zip(sums, plain, strict=True)
        if _is_clearly_above_one(level_sum) and _is_clearly_above_one(other)
    ]
    if high:
        what = f"{name} is too small: the sum of 1/propensity over a level's rows must be about the number of all rows"
        return [Problem(f"{what}. {join_some([str(s) for s in high], 3)}", PROPENSITY_HINT)]
    missing, se, seen = _count_unlikely_assignments(propensities)
    if missing - seen > REFUSED_ERRORS * se and missing > REFUSED_FACTOR * seen:
        what = f"{name} is too large: by it, {missing:,.0f} rows should have got another level than the likeliest"
        return [Problem(f"{what}, and {seen:,.0f} have a propensity below one half", PROPENSITY_HINT)]
    return []


def find_implausible_levels(propensities: GivenPropensities) -> list[InversePropensitySum]:
    """Return the levels whose inverse-propensity sums differ from one by more than chance.

    A sum clearly above one is implausible, and one clearly below it if all rows of a level have one propensity.

    If propensities vary, a sum below one means little: rows with small propensities may not have been drawn.
    """
    sums = sum_inverse_propensities(propensities)
    high = [
        level_sum for level_sum in sums if level_sum.sum - 1 > max(DOUBTED_ERRORS * level_sum.se, DOUBTED_DIFFERENCE)
    ]
    constant = len(propensities.level) >= MIN_ROWS_FOR_DOUBT and all(
        np.ptp(propensities.propensity[propensities.level == k]) < 1e-9 for k in np.unique(propensities.level)
    )
    if not constant:
        return high
    weight = np.ones(len(propensities.level)) if propensities.weight is None else propensities.weight
    unit = _compute_sum_deviation(weight, propensities.cluster) / float(weight.sum())
    # One propensity for all rows determines the variance of the sum, however few rows were drawn.
    return high + [
        level_sum
        for level_sum in sums
        if 1 - level_sum.sum > max(DOUBTED_ERRORS * unit * np.sqrt(1 / level_sum.mean - 1), DOUBTED_DIFFERENCE)
    ]


def _is_clearly_above_one(level_sum: InversePropensitySum) -> bool:
    return level_sum.sum > REFUSED_FACTOR and level_sum.sum - 1 > REFUSED_ERRORS * level_sum.se


def _count_unlikely_assignments(propensities: GivenPropensities) -> tuple[float, float, float]:
    """Count rows whose logged level was not the most probable one: expected count, standard error and actual count.

    Returns the expected number, its standard error and the actual number.
    """
    p = propensities.propensity
    likely = p > 0.5
    missing = np.where(likely, (1 - p) / p, 0.0)
    spread = np.where(likely, np.sqrt(1 - p) / p, 0.0)
    return float(missing.sum()), _compute_sum_deviation(spread, propensities.cluster), float((~likely).sum())


def compute_stratum_propensities(stratum: Array, level: Array, levels: int) -> Array:
    """Return the propensity (n,) of every row: the frequency of its level within its stratum."""
    cell = stratum * levels + np.maximum(level, 0)
    _, cell_code, times = np.unique(cell, return_inverse=True, return_counts=True)
    sizes = np.bincount(stratum)
    return np.asarray(times[cell_code] / sizes[stratum], dtype=np.float64)


def find_share_mismatches(shares: Sequence[float], propensities: GivenPropensities) -> list[Problem]:
    """Return a problem if given propensities of the levels differ from the levels' frequencies."""
    weight = np.ones(len(propensities.level)) if propensities.weight is None else propensities.weight
    unit = _compute_sum_deviation(weight, propensities.cluster) / float(weight.sum())
    off = []
    for label, p, k in zip(propensities.labels, shares, range(len(shares)), strict=True):
        share = float(weight[propensities.level == k].sum() / weight.sum())
        if abs(share - p) > max(REFUSED_ERRORS * unit * np.sqrt(p * (1 - p)), REFUSED_SHARE_ERROR * p):
            off.append(f"{label!r}: {share:.3g} of the rows, given {p:.3g}")
    hint = "give the probabilities with which levels were drawn, in the order of the levels, or leave them out"
    return [Problem(f"the propensities of the levels are not their shares: {join_some(off)}", hint)] if off else []


def find_invalid_level_propensities(shares: Sequence[Any], levels: int) -> list[Problem]:
    """Return a problem if the list of one propensity per level is invalid."""
    hint = f"give {levels} probabilities, one for each level, that add up to 1: propensities = [0.2, 0.2, 0.6]"
    numbers = all(isinstance(p, int | float | np.number) and 0 < p <= 1 for p in shares)
    if not numbers or len(shares) != levels:
        return [Problem(f"the propensities of the levels are {join_some(list(shares))}", hint)]
    if abs(sum(shares) - 1) > 0.005:  # thirds may be written as 0.33
        return [Problem(f"the propensities of the levels add up to {sum(shares):g}: {join_some(list(shares))}", hint)]
    return []
