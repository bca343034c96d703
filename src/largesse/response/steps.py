"""Curves taken apart and put together again: a base, steps common to all customers, and deviations from them.

On the logit scale for 0/1 responses, on their own scale for amounts: s(x, k) = base(x) + θ_k + deviation(x, k). Plans are
made of the increments between levels, and of these the deviations are the least sure part. So the base is that of the
best member, or of all weighted together where that is clearly better; θ is fitted anew to held-out rows; and the
deviations of one member are multiplied by a share between 0 and 1: the smallest that is not clearly worse on held-out
rows than the best. In the end the base is stretched, since a mean of fold models is tamer than each (see `tilt`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from largesse.records import Array, Choice, Log
from largesse.response.archive import Shaped
from largesse.response.choose import ROWS
from largesse.response.ladder import Rows, fit_ladder
from largesse.response.tilt import MOST
from largesse.stats import chosen, mean_estimate, one_standard_error, sample_rows, sigmoid

STIFFNESSES = (10.0, 0.1, 0.0)  # equal steps, in between, free: as in `Linear`
INSIDE = 1e-6  # probabilities are held this far from 0 and 1, so that their logits stay finite
SAME = 1e-6  # deviations smaller than this (of a logit, or of the spread of amounts) are rounding


def linked(curves: Array, binary: bool) -> Array:
    """Return curves on the scale on which they are taken apart: logits of probabilities, amounts as they are."""
    if not binary:
        return curves
    inside = np.clip(curves, INSIDE, 1.0 - INSIDE)
    return np.log(inside) - np.log1p(-inside)


def unlinked(scores: Array, binary: bool) -> Array:
    """Return what `linked` was given, never falling in the level."""
    rising = isotonic(scores)
    return sigmoid(rising) if binary else rising


def isotonic(scores: Array) -> Array:
    """Return the non-falling curves (n, K) nearest to the given ones in squared distance; rising ones as they are.

    >>> isotonic(np.array([[0.0, 3.0, 1.0], [0.0, 1.0, 2.0]]))
    array([[0., 2., 2.],
           [0., 1., 2.]])
    """
    falls = (np.diff(scores, axis=1) < 0).any(axis=1)
    if not falls.any():
        return scores
    out, part = scores.copy(), scores[falls]
    K = part.shape[1]
    sums = np.concatenate([np.zeros((len(part), 1)), np.cumsum(part, axis=1)], axis=1)
    best = np.full(part.shape, -np.inf)
    # max over first ≤ k of min over last ≥ k of the mean from first to last: K²/2 passes, each over all customers.
    for first in range(K):
        means = (sums[:, first + 1 :] - sums[:, [first]]) / np.arange(1, K - first + 1)
        lowest = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        best[:, first:] = np.maximum(best[:, first:], lowest)
    out[falls] = np.maximum.accumulate(best, axis=1)  # equal values may differ by rounding
    return out


# -- what is fitted --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Blend:
    """How members' scores become one: all on the linked scale; M members."""

    weights: Annotated[Array, Shaped("M")]  # of the members' bases: none negative
    ladder: Annotated[Array, Shaped("K")]  # common to all customers, never falling
    leader: int  # the member whose deviations are used
    share: float  # what they are multiplied by; 0 leaves the ladder alone
    centre: Annotated[Array, Shaped("K")]  # the leader's own mean ladder: its deviations are deviations from it

    @property
    def used(self) -> list[int]:
        """The members whose scores count: of the others, zeros will do."""
        return [m for m, weight in enumerate(self.weights) if weight > 0 or (m == self.leader and self.share > 0)]

    def check(self, members: int) -> None:
        """Refuse a blend of another number of members."""
        if len(self.weights) != members or not 0 <= self.leader < members:
            raise ValueError(f"a blend of {len(self.weights)} members led by {self.leader}, of {members}")

    def scores(self, members: Array) -> Array:
        """Return scores (n, K) from the members' scores (M, n, K)."""
        bases = members.mean(axis=2)
        # A sum over members, not a matrix product: a row's score must not depend on which rows come with it.
        base = sum((w * row for w, row in zip(self.weights, bases, strict=True)), np.zeros(bases.shape[1]))
        out = base[:, None] + self.ladder
        if self.share > 0:
            out = out + self.share * (members[self.leader] - bases[self.leader][:, None] - self.centre)
        return out


def blend(
    members: Array,
    together: Array,
    names: Sequence[str],
    log: Log,
    fold: Array,
    shares: Sequence[Sequence[float]],
    seed: int = 0,
) -> tuple[Blend, tuple[Choice, ...]]:
    """Choose how members become one; return it and what was tried.

    Parameters
    ----------
    members
        Held-out scores (M, n, K), the simplest member first.
    together
        Bases (M, n) of the same rows from the mean of each member's fold models.
    names, log, fold
        Of members and rows.
    shares
        For each member, the shares of its deviations that are tried.
    """
    scale = 1.0 if log.binary else float(np.std(log.response)) or 1.0
    members, together = members / scale, together / scale
    whole = np.ones(len(log)) if log.weight is None else log.weight
    rows = Rows(
        bases=members.mean(axis=2).T,
        offset=np.zeros(len(log)),
        level=log.level,
        response=log.response / scale,
        weight=whole / whole.sum(),
        K=members.shape[2],
        binary=log.binary,
    )
    stiffness = _stiffness(rows, fold, log.cluster, seed)
    base = _base(rows, stiffness, log)
    tried, scores = zip(*_candidates(members, rows, fold, stiffness, shares, base), strict=True)
    losses = np.array([rows.losses(score) for score in scores])
    choices = one_standard_error(
        [_label(c, names) for c in tried], losses * scale**2, log.weight, log.cluster, of="increments"
    )
    kept = next(c for c, choice in zip(tried, choices, strict=True) if choice.chosen)
    kept = _stretched(kept, rows, together)
    return replace(kept, ladder=kept.ladder * scale, centre=kept.centre * scale), choices


def _base(rows: Rows, stiffness: float, log: Log) -> Array:
    """Return weights (M,) of the members' bases: of the best one alone, or of all where that is clearly better."""
    M = rows.bases.shape[1]
    found, losses = [], []
    for some in [*([m] for m in range(M)), list(range(M))][: M + (M > 1)]:
        part = replace(rows, bases=rows.bases[:, some])
        fitted = fit_ladder(part, stiffness)
        weights = np.zeros(M)
        weights[some] = fitted[: len(some)]
        found.append(weights)
        losses.append(rows.losses(part.design() @ fitted))
    best = int(np.argmin([rows.weight @ loss for loss in losses[:M]]))
    gain = mean_estimate(losses[best] - losses[-1], log.weight, log.cluster)
    return found[-1] if gain.estimate > gain.se else found[best]


def _stretched(made: Blend, rows: Rows, together: Array) -> Blend:
    """Return the blend for means of fold models: their bases (M, n) vary less than the held-out ones."""
    one, mean = rows.bases @ made.weights, made.weights @ together
    if one.std() < SAME or mean.std() < SAME:
        return made
    middle = float(rows.weight @ mean)
    own = rows.weight @ (one - rows.weight @ one) ** 2
    factor = float(np.clip(own / (rows.weight @ (mean - middle) ** 2), 1.0, MOST))
    return replace(made, weights=factor * made.weights, ladder=made.ladder + (1.0 - factor) * middle)


def _label(candidate: Blend, names: Sequence[str]) -> str:
    return f"{names[candidate.leader]} × {candidate.share:g}" if candidate.share else "common steps"


def _candidates(
    members: Array, rows: Rows, fold: Array, stiffness: float, shares: Sequence[Sequence[float]], weights: Array
) -> Iterator[tuple[Blend, Array]]:
    """Yield what is tried and its held-out scores (n,), the most shrunk first; among equals, the simplest member first."""
    base = rows.bases @ weights
    centres, own = _deviations(members, rows.level, fold)

    def ladder(offset: Array) -> Array:
        # Fitted again for each: what deviations explain must not be in it twice.
        return np.cumsum(fit_ladder(replace(rows, bases=rows.bases[:, :0], offset=offset), stiffness))

    common = ladder(base)
    yield Blend(weights, common, 0, 0.0, centres[0]), base + common[rows.level]
    differ = np.sqrt((own**2).mean(axis=1)) > SAME
    for share, m in sorted({(float(s), m) for m, mine in enumerate(shares) for s in mine if s > 0 and differ[m]}):
        offset = base + share * own[m]
        steps = ladder(offset)
        yield Blend(weights, steps, m, share, centres[m]), offset + steps[rows.level]


def _deviations(members: Array, level: Array, fold: Array) -> tuple[Array, Array]:
    """Return each member's mean ladder (M, K) over its fold models, and deviations (M, n) from it at rows' own levels.

    Each fold model is measured from its own mean ladder: that folds disagree about it says nothing about customers.
    """
    deviations = members - members.mean(axis=2, keepdims=True)  # (M, n, K)
    _, place = np.unique(fold, return_inverse=True)
    centres = np.stack([deviations[:, place == f].mean(axis=1) for f in range(place.max() + 1)])  # (F, M, K)
    rows = np.arange(len(level))
    own = deviations[:, rows, level] - centres[place, :, level].T
    return centres.mean(axis=0), own


def _stiffness(rows: Rows, fold: Array, cluster: Array | None, seed: int) -> float:
    """Return the stiffest setting that the best one does not clearly beat on rows that the ladder was not fitted to."""
    if len(fold) > ROWS:
        some = sample_rows(len(fold), ROWS, seed)
        rows, fold, cluster = rows.take(some), fold[some], None if cluster is None else cluster[some]
    losses = np.empty((len(STIFFNESSES), len(fold)))
    for f in np.unique(fold):
        train, test = rows.take(fold != f), rows.take(fold == f)
        design = test.design()
        for j, stiffness in enumerate(STIFFNESSES):
            losses[j, fold == f] = test.losses(test.offset + design @ fit_ladder(train, stiffness))
    return STIFFNESSES[chosen(one_standard_error([f"{s:g}" for s in STIFFNESSES], losses, rows.weight, cluster))]
