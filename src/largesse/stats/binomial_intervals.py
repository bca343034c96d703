"""Confidence limits of weighted means of binary outcomes with few successes or few failures.

A t interval needs some of both. Three buyers could as well have been eight: their mean *and* its standard error are small, and
the truth lies above the interval. The term that a yes would add is known for each row, however, so the ends follow from counts: the upper
one is that of a beta distribution with one more yes of average size than was seen, the lower one that with one more no. Where all
rows add the same this is the exact interval of Clopper and Pearson; where a yes is rare, nearly that of Fay and Feuer (1997) for
weighted sums of counts, with the average in place of the largest (Tiwari, Clegg and Zou 2006). Ends only move outwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array

COVERAGE = 0.95  # of every interval


@dataclass(frozen=True, eq=False)
class BinaryOutcomes:
    """Binary outcomes of rows, and the amount that a success adds to each row's value."""

    stakes: Array  # (n,) what a yes adds to a row's value; below zero where it takes away
    yes: Array  # (n,) bool

    def __mul__(self, factor: float) -> BinaryOutcomes:
        return BinaryOutcomes(self.stakes * factor, self.yes)


def mark_binary_successes(outcome: Array) -> Array | None:
    """Return the mask (n,) of successes if all non-zero outcomes (n,) are equal, else None.

    >>> mark_binary_successes(np.array([0.0, 1.0, 1.0]))
    array([False,  True,  True])
    >>> mark_binary_successes(np.array([0.0, 1.0, 2.0])) is None
    True
    """
    yes: Array = outcome != 0
    successes = outcome[yes]
    return yes if 0 < len(successes) < len(outcome) and successes.min() == successes.max() else None


def binomial_half_widths(answers: BinaryOutcomes, weight: Array | None, se: float) -> tuple[float, float]:
    """Return the minimum half-widths, below and above the mean, to which an interval must be widened.

    They are those of binomial confidence limits for binary outcomes.
    """
    whole = float(len(answers.yes)) if weight is None else float(weight.sum())
    stakes = (answers.stakes if weight is None else weight * answers.stakes) / whole
    ends, squares = [], 0.0
    for sign in (1.0, -1.0):
        of_sign = sign * stakes > 0
        sizes, yes = np.abs(stakes[of_sign]), answers.yes[of_sign]
        if len(sizes):
            share = float(sizes[yes].sum() / sizes.sum())
            squares += float((sizes**2) @ (yes - share) ** 2)
            ends.append((sign, _measure_upper_half_width(sizes, ~yes), _measure_upper_half_width(sizes, yes)))
    below = float(np.hypot.reduce([down if sign > 0 else up for sign, down, up in ends]))
    above = float(np.hypot.reduce([up if sign > 0 else down for sign, down, up in ends]))
    # Curves explain a part of the outcomes: the standard error allows for it, counts do not.
    unexplained = min(se / np.sqrt(squares), 1.0) if squares > 0 else 1.0
    return unexplained * below, unexplained * above


def _measure_upper_half_width(sizes: Array, success: Array) -> float:
    """Return the distance from an observed sum of successes to its upper confidence limit.

    `sizes` (m,) are the terms that rows add by a success, `success` (m,) marks the rows that did.
    """
    from scipy.special import betaincinv

    seen, whole = float(sizes[success].sum()), float(sizes.sum())
    if seen == whole:
        return 0.0
    squares = sizes**2
    known = float(squares[success].sum())
    # `known` lacks large rows that failed by chance: take at least the mean of it and the expectation over all rows.
    known = max(known, (known + seen / whole * float(squares.sum())) / 2)
    more = seen + whole / len(sizes)
    unit = (known + float(squares.mean())) / more
    highest = float(betaincinv(more / unit, (whole - seen) / unit, 0.5 + COVERAGE / 2))
    return max(whole * highest - seen, 0.0)
