"""Curves split into a base, increments common to all customers and deviations from them, and blended again.

On the logit scale for 0/1 responses, on their own scale for amounts: s(x, k) = base(x) + common_k + deviation(x, k). Plans
are made of the increments between levels, and of these the deviations are the least certain part. So the base is that of
the best member, or a weighted sum of all where that is clearly better; the common increments are fitted anew to held-out
rows; and the deviations of one member are multiplied by a share between 0 and 1: the smallest that is not clearly worse on
held-out rows than the best. In the end the base is stretched, since a mean of fold models varies less than each of them
(see `calibration`).

Weights and common increments are a small convex problem: minimise the mean loss of
s = offset + Σ_m v_m base_m + a + θ_1 + … + θ_level over v ≥ 0, a, and θ ≥ 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from largesse.records import Array, Choice, Log
from largesse.response.archive import Shaped
from largesse.response.calibration import MOST
from largesse.response.linear import STIFFNESSES, stiffness_ridge
from largesse.response.monotone import isotonic
from largesse.stats import (
    chosen,
    logit,
    mean_estimate,
    minimise,
    one_standard_error,
    sample_rows,
    score_curvature,
    score_loss,
    score_slope,
    sigmoid,
)

ROWS = 50_000  # held-out rows that choose the stiffness; more only take longer
SAME = 1e-6  # deviations smaller than this (of a logit, or of the spread of amounts) are rounding
NEWTON_STEPS = 100
TOLERANCE = 1e-11  # of the mean loss


def link(curves: Array, binary: bool) -> Array:
    """Return curves on the scale on which they are split: logits of probabilities, amounts as they are."""
    return logit(curves) if binary else curves


def unlink(scores: Array, binary: bool) -> Array:
    """Return the responses of scores (n, K), never falling in the level."""
    rising = isotonic(scores)
    return sigmoid(rising) if binary else rising


@dataclass(frozen=True, eq=False)
class Blend:
    """How the scores of M members become one, all on the linked scale."""

    weights: Annotated[Array, Shaped("M")]  # of the members' bases: not negative
    common: Annotated[Array, Shaped("K")]  # what each level adds to the base of every customer: never falling
    leader: int  # the member whose deviations are used
    share: float  # what they are multiplied by; 0 gives everybody the common increments
    centre: Annotated[Array, Shaped("K")]  # the leader's mean curve less its base: deviations are measured from it

    @property
    def used(self) -> list[int]:
        """The members whose scores count: for the others, zeros will do."""
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
        out = base[:, None] + self.common
        if self.share > 0:
            out = out + self.share * (members[self.leader] - bases[self.leader][:, None] - self.centre)
        return out


@dataclass(frozen=True, eq=False)
class Members:
    """What M members expect of held-out rows, on the linked scale; the simplest member first."""

    names: Sequence[str]
    shares: Sequence[Sequence[float]]  # of each member's deviations, to be tried
    held: Array  # (M, n, K) scores, each row's from the fold model that did not see it
    together: Array  # (M, n) bases of the same rows from the mean of each member's fold models


def choose_blend(members: Members, log: Log, fold: Array, seed: int = 0) -> tuple[Blend, tuple[Choice, ...]]:
    """Choose how members become one on the held-out rows of a log and its folds (n,); return it and what was tried."""
    scale = 1.0 if log.binary else float(np.std(log.response)) or 1.0
    held = members.held / scale
    rows = HeldOut(
        bases=held.mean(axis=2).T,
        offset=np.zeros(len(log)),
        level=log.level,
        response=log.response / scale,
        weight=log.weights / log.weights.sum(),
        K=held.shape[2],
        binary=log.binary,
    )
    stiffness = _choose_stiffness(rows, fold, log.cluster, seed)
    weights = _choose_base(rows, stiffness, log)
    tried, scores = zip(*_candidates(held, rows, fold, stiffness, members.shares, weights), strict=True)
    losses = np.array([rows.losses(score) for score in scores]) * scale**2
    names = [_label(candidate, members.names) for candidate in tried]
    choices = one_standard_error(names, losses, log.weight, log.cluster, of="increments")
    kept = _stretch(tried[chosen(choices)], rows, members.together / scale)
    return replace(kept, common=kept.common * scale, centre=kept.centre * scale), choices


def _choose_base(rows: HeldOut, stiffness: float, log: Log) -> Array:
    """Return weights (M,) of the members' bases: of the best one alone, or of all where that is clearly better."""
    M = rows.bases.shape[1]
    found, losses = [], []
    for some in [*([m] for m in range(M)), list(range(M))][: M + (M > 1)]:
        part = replace(rows, bases=rows.bases[:, some])
        fitted = fit_increments(part, stiffness)
        weights = np.zeros(M)
        weights[some] = fitted[: len(some)]
        found.append(weights)
        losses.append(rows.losses(part.design() @ fitted))
    best = int(np.argmin([rows.weight @ loss for loss in losses[:M]]))
    gain = mean_estimate(losses[best] - losses[-1], log.weight, log.cluster)
    return found[-1] if gain.estimate > gain.se else found[best]


def _stretch(made: Blend, rows: HeldOut, together: Array) -> Blend:
    """Return the blend for means of fold models: their bases (M, n) vary less than the held-out ones."""
    one, mean = rows.bases @ made.weights, made.weights @ together
    if one.std() < SAME or mean.std() < SAME:
        return made
    middle = float(rows.weight @ mean)
    own = rows.weight @ (one - rows.weight @ one) ** 2
    factor = float(np.clip(own / (rows.weight @ (mean - middle) ** 2), 1.0, MOST))
    return replace(made, weights=factor * made.weights, common=made.common + (1.0 - factor) * middle)


def _label(candidate: Blend, names: Sequence[str]) -> str:
    return f"{names[candidate.leader]} × {candidate.share:g}" if candidate.share else "common increments"


def _candidates(
    members: Array, rows: HeldOut, fold: Array, stiffness: float, shares: Sequence[Sequence[float]], weights: Array
) -> Iterator[tuple[Blend, Array]]:
    """Yield what is tried and its held-out scores (n,), the most shrunk first; among equals, the simplest member first."""
    base = rows.bases @ weights
    centres, own = _deviations(members, rows.level, fold)

    def common_effects(offset: Array) -> Array:
        # Fitted again for each candidate: what its deviations explain must not be counted twice.
        return np.cumsum(fit_increments(replace(rows, bases=rows.bases[:, :0], offset=offset), stiffness))

    common = common_effects(base)
    yield Blend(weights, common, 0, 0.0, centres[0]), base + common[rows.level]
    differ = np.sqrt((own**2).mean(axis=1)) > SAME
    for share, m in sorted({(float(s), m) for m, mine in enumerate(shares) for s in mine if s > 0 and differ[m]}):
        offset = base + share * own[m]
        common = common_effects(offset)
        yield Blend(weights, common, m, share, centres[m]), offset + common[rows.level]


def _deviations(members: Array, level: Array, fold: Array) -> tuple[Array, Array]:
    """Return each member's mean curve less its base (M, K), and deviations (M, n) from it at rows' own levels.

    Each fold model is measured from its own mean: that folds disagree about it says nothing about customers.
    """
    deviations = members - members.mean(axis=2, keepdims=True)  # (M, n, K)
    _, place = np.unique(fold, return_inverse=True)
    centres = np.stack([deviations[:, place == f].mean(axis=1) for f in range(place.max() + 1)])  # (F, M, K)
    rows = np.arange(len(level))
    own = deviations[:, rows, level] - centres[place, :, level].T
    return centres.mean(axis=0), own


def _choose_stiffness(rows: HeldOut, fold: Array, cluster: Array | None, seed: int) -> float:
    """Return the stiffest setting that the best one does not clearly beat on rows that it was not fitted to."""
    if len(fold) > ROWS:
        some = sample_rows(len(fold), ROWS, seed)
        rows, fold, cluster = rows.take(some), fold[some], None if cluster is None else cluster[some]
    losses = np.empty((len(STIFFNESSES), len(fold)))
    for f in np.unique(fold):
        train, test = rows.take(fold != f), rows.take(fold == f)
        design = test.design()
        for j, stiffness in enumerate(STIFFNESSES):
            losses[j, fold == f] = test.losses(test.offset + design @ fit_increments(train, stiffness))
    return STIFFNESSES[chosen(one_standard_error([f"{s:g}" for s in STIFFNESSES], losses, rows.weight, cluster))]


# -- weights and common increments ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out rows: what weights and increments are fitted to, amounts in units of their spread."""

    bases: Array  # (n, M)
    offset: Array  # (n,) added to every score
    level: Array  # (n,)
    response: Array  # (n,)
    weight: Array  # (n,) sums to one
    K: int
    binary: bool

    def take(self, rows: Array) -> HeldOut:
        """Return the given rows, their weights summing to one again."""
        weight = self.weight[rows] / (self.weight[rows].sum() or 1.0)  # a part may hold only rows that do not count
        return replace(
            self,
            bases=self.bases[rows],
            offset=self.offset[rows],
            level=self.level[rows],
            response=self.response[rows],
            weight=weight,
        )

    def design(self) -> Array:
        """Return the matrix (n, M + K) that turns weights, intercept and increments into scores, less the offset."""
        return np.column_stack([self.bases, np.tril(np.ones((self.K, self.K)))[self.level]])

    def losses(self, score: Array) -> Array:
        """Return each row's loss (n,)."""
        return score_loss(score, self.response, self.binary)


def fit_increments(rows: HeldOut, stiffness: float) -> Array:
    """Return weights (M,), intercept and increments (K−1,) with the least mean loss; increments are shrunk to their mean.

    Neither weights nor increments are negative.
    """
    M, K = rows.bases.shape[1], rows.K
    design, ridge = rows.design(), np.zeros((M + K, M + K))
    ridge[M + 1 :, M + 1 :] = stiffness_ridge(K, stiffness)

    def objective(here: Array) -> float:
        return float(rows.weight @ rows.losses(rows.offset + design @ here) + 0.5 * here @ ridge @ here)

    def derivatives(here: Array) -> tuple[Array, Array]:
        score = rows.offset + design @ here
        pull = rows.weight * score_slope(score, rows.response, rows.binary)
        curve = rows.weight * score_curvature(score, rows.binary)
        # The small diagonal decides where rows do not: two equal members, or a level without rows.
        curvature = design.T @ (curve[:, None] * design) + ridge + 1e-9 * np.eye(M + K)
        return design.T @ pull + ridge @ here, curvature

    start = np.concatenate([np.full(M, 1.0 / max(M, 1)), [0.0], np.full(K - 1, 0.1)])
    lower = np.where(np.arange(M + K) == M, -np.inf, 0.0)
    return minimise(objective, derivatives, start, lower=lower, steps=NEWTON_STEPS, tolerance=TOLERANCE)
