"""Model selection by held-out losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from largesse.records import Array, Choice, Estimate
from largesse.stats.intervals import t_estimate


def choose_by_one_standard_error(
    names: Sequence[str], losses: Array, weight: Array | None = None, cluster: Array | None = None, *, of: str = ""
) -> tuple[Choice, ...]:
    """Choose the first candidate within one paired standard error of the best.

    List the candidates in order of preference, the simplest first; losses are (candidates, n). `of` says what is chosen.

    >>> losses = np.array([[1.0, 2.0, 1.0, 2.0], [1.1, 1.8, 1.1, 1.9]])
    >>> [choice.chosen for choice in choose_by_one_standard_error(["simple", "rich"], losses)]
    [True, False]
    """
    best, behind = _behind_best(losses, weight, cluster)
    kept = next(i for i, e in enumerate(behind) if e.estimate <= e.se or i == best)
    return _choices(names, np.average(losses, axis=1, weights=weight), behind, kept, of)


def choose_lowest_loss(
    names: Sequence[str], losses: Array, weight: Array | None = None, cluster: Array | None = None, *, of: str = ""
) -> tuple[Choice, ...]:
    """Choose the candidate with the lowest mean of losses (candidates, n)."""
    best, behind = _behind_best(losses, weight, cluster)
    return _choices(names, np.average(losses, axis=1, weights=weight), behind, best, of)


def chosen_index(choices: Sequence[Choice]) -> int:
    """Return the index of the chosen candidate."""
    return next(i for i, choice in enumerate(choices) if choice.chosen)


def _behind_best(losses: Array, weight: Array | None, cluster: Array | None) -> tuple[int, list[Estimate]]:
    """Return the index of the lowest mean loss, and the paired difference of each candidate to it."""
    best = int(np.argmin(np.average(losses, axis=1, weights=weight)))
    return best, [t_estimate(row - losses[best], weight, cluster) for row in losses]


def _choices(names: Sequence[str], means: Array, behind: Sequence[Estimate], kept: int, of: str) -> tuple[Choice, ...]:
    return tuple(
        Choice(name, float(mean), e.estimate, e.se, i == kept, of)
        for i, (name, mean, e) in enumerate(zip(names, means, behind, strict=True))
    )
