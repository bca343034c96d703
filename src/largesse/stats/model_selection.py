"""Choice of one model among candidates by their held-out losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from largesse.records import Array, CandidateLoss, Estimate
from largesse.stats.t_intervals import t_estimate


def choose_by_one_standard_error(
    names: Sequence[str], losses: Array, weight: Array | None = None, cluster: Array | None = None, *, of: str = ""
) -> tuple[CandidateLoss, ...]:
    """Choose the first (simplest) candidate within one standard error of the lowest held-out loss.

    List the candidates in order of preference, the simplest first; losses are (candidates, n). `of` names the setting that is chosen.

    >>> losses = np.array([[1.0, 2.0, 1.0, 2.0], [1.1, 1.8, 1.1, 1.9]])
    >>> [choice.chosen for choice in choose_by_one_standard_error(["simple", "rich"], losses)]
    [True, False]
    """
    best, differences = _compare_to_best(losses, weight, cluster)
    chosen = next(i for i, e in enumerate(differences) if e.estimate <= e.se or i == best)
    return _make_choices(names, np.average(losses, axis=1, weights=weight), differences, chosen, of)


def choose_lowest_loss(
    names: Sequence[str], losses: Array, weight: Array | None = None, cluster: Array | None = None, *, of: str = ""
) -> tuple[CandidateLoss, ...]:
    """Choose the candidate with the lowest mean held-out loss; `losses` are (candidates, n)."""
    best, differences = _compare_to_best(losses, weight, cluster)
    return _make_choices(names, np.average(losses, axis=1, weights=weight), differences, best, of)


def find_chosen_index(choices: Sequence[CandidateLoss]) -> int:
    """Return the index of the chosen candidate in a list of candidates with losses."""
    return next(i for i, choice in enumerate(choices) if choice.chosen)


def _compare_to_best(losses: Array, weight: Array | None, cluster: Array | None) -> tuple[int, list[Estimate]]:
    """Return the index of the candidate with the lowest loss, and each candidate's mean difference from it."""
    best = int(np.argmin(np.average(losses, axis=1, weights=weight)))
    return best, [t_estimate(row - losses[best], weight, cluster) for row in losses]


def _make_choices(
    names: Sequence[str], means: Array, differences: Sequence[Estimate], chosen: int, of: str
) -> tuple[CandidateLoss, ...]:
    return tuple(
        CandidateLoss(name, float(mean), e.estimate, e.se, i == chosen, of)
        for i, (name, mean, e) in enumerate(zip(names, means, differences, strict=True))
    )
