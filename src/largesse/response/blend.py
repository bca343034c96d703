"""Curves split into a base, increments common to all customers and deviations from them, and blended again.

On the scale of the link: s(x, k) = base(x) + common_k + tilt·z(x)·lift_k + Σ_m share_m · deviation_m(x, k). Plans are made of
the increments between levels, and of these the deviations are the least certain part. Everything is fitted to held-out rows,
the most certain part first, each under a prior that only rows can outweigh:

- the base is a weighted sum of the members' bases, the weights shrunk to equal ones;
- the common increments are the ladder of `ladder`;
- the tilt lets increments of yes and no rise or fall with the base z(x): with one chance in five it is there at all;
- the shares of the members' own deviations from common increments are shrunk to none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from largesse.records import Array, Choice, Log
from largesse.response.archive import Shaped
from largesse.response.common import (
    FLAT,
    LOOSE,
    Ladder,
    Prior,
    ScoredRows,
    fit_ladder,
    fit_scores,
    information,
    measure_noise,
    scored_rows,
)
from largesse.response.links import Link, link_of
from largesse.response.monotone import isotonic
from largesse.stats import least_loss, sample_rows

ROWS = 200_000  # held-out rows that decide; more only take longer
EQUAL = 10.0  # precision of the belief that all members' bases count alike
NONE = 64.0  # precision of the belief that deviations count for nothing
SHRUNK = 4.0  # the same for a member that has shrunk its deviations itself
TILTED = 0.2  # prior probability that increments follow the base
TILT = 0.5  # standard deviation of the tilt, where there is one: of a multiple, for one standard deviation of the base
TILT_REACH = 2.5  # standard deviations of the base, beyond which the tilt does not grow


def unlink(scores: Array, link: Link) -> Array:
    """Return the expected responses of scores (n, K), never falling in the level."""
    return link.to_responses(isotonic(scores))


@dataclass(frozen=True, eq=False)
class Blend:
    """How the scores of M members become one, all on the scale of the link."""

    link: Link
    weights: Annotated[Array, Shaped("M")]  # of the members' bases: not negative
    common: Annotated[Array, Shaped("K")]  # what each level adds to the base of every customer: never falling
    shares: Annotated[Array, Shaped("M")]  # of the members' deviations: not negative
    centres: Annotated[Array, Shaped("M", "K")]  # members' mean curves less their bases; deviations start there
    tilt: float  # how much increments grow with the base
    middle: float  # of the bases
    spread: float  # of the bases; 0 where they are the same for all
    lift: Annotated[Array, Shaped("K")]  # the common increments, around their mean in the log

    @property
    def used(self) -> list[int]:
        """The members whose scores count: for the others, zeros will do."""
        return [m for m in range(len(self.weights)) if self.weights[m] > 0 or self.shares[m] > 0]

    def check(self, members: int) -> None:
        """Refuse a blend of another number of members, or of numbers that no fit can have found."""
        if len(self.weights) != members:
            raise ValueError(f"a blend of {len(self.weights)} members, of {members}")
        self.link.check()
        if (self.weights < 0).any() or (self.shares < 0).any():
            raise ValueError("a blend with negative weights or shares")
        if not np.isfinite([self.tilt, self.middle, self.spread]).all() or self.spread < 0:
            raise ValueError(f"a blend with a tilt of {self.tilt}, around {self.middle} ± {self.spread}")
        if self.tilt and self.spread <= FLAT:
            raise ValueError(f"a blend with a tilt of {self.tilt} along bases that are the same for all")

    def scores(self, members: Array) -> Array:
        """Return scores (n, K) from the members' scores (M, n, K)."""
        bases = members.mean(axis=2)
        # A sum over members, not a matrix product: a row's score must not depend on which rows come with it.
        base = sum((w * row for w, row in zip(self.weights, bases, strict=True)), np.zeros(bases.shape[1]))
        out = base[:, None] + self.common
        if self.tilt:
            out = out + (self.tilt * _follow(base, self.middle, self.spread))[:, None] * self.lift
        for m in np.flatnonzero(self.shares):
            out = out + self.shares[m] * (members[m] - bases[m][:, None] - self.centres[m])
        return out


@dataclass(frozen=True, eq=False)
class Members:
    """What M members expect of held-out rows, on the scale of the link; the simplest member first."""

    held: Array  # (M, n, K) scores, each row's from the fold model that did not see it
    precisions: Sequence[float]  # of the belief that a member's deviations count for nothing; infinite: they never do


def deviation_precision(shrinks: bool, only_base: bool) -> float:
    """Return how firmly a member's deviations are held to zero."""
    return np.inf if only_base else SHRUNK if shrinks else NONE


def choose_blend(members: Members, log: Log, fold: Array, seed: int = 0) -> tuple[Blend, tuple[Choice, ...]]:
    """Choose how members become one on the held-out rows of a log and its folds (n,); return it and what was tried."""
    rows, held = scored_rows(log, link_of(log)), members.held
    if len(fold) > ROWS:
        some = sample_rows(len(fold), ROWS, seed)
        rows, held, fold = rows.take(some), held[:, some], fold[some]
    plain, made = _fit_blend(rows, replace(members, held=held), fold)
    return made, _list_choices([plain, made], held, rows)


def blend_held_out(members: Members, log: Log, fold: Array, seed: int = 0) -> tuple[Array, list[Blend]]:
    """Return the curves (n, K) of a log, each fold's by a blend that was fitted without the fold's rows; and these blends."""
    rows, curves, blends = scored_rows(log, link_of(log)), np.empty(members.held.shape[1:]), []
    for f in np.unique(fold):
        others = np.flatnonzero(fold != f)
        others = others[sample_rows(len(others), ROWS, seed)]
        _, blend = _fit_blend(rows.take(others), replace(members, held=members.held[:, others]), fold[others])
        curves[fold == f] = unlink(blend.scores(members.held[:, fold == f]), rows.link)
        blends.append(blend)
    return curves, blends


def _fit_blend(rows: ScoredRows, members: Members, fold: Array) -> tuple[Blend, Blend]:
    """Fit blends of members to held-out rows and their folds (n,): one of common increments alone, and the whole one."""
    held = members.held
    bases = held.mean(axis=2).T  # (n, M)
    weights = _weigh_bases(rows, bases)
    base = bases @ weights
    ladder = fit_ladder(rows, base)
    weights, base = weights * ladder.slope, base * ladder.slope
    lift = ladder.effects - float(rows.weight @ ladder.effects[rows.level]) / (rows.weight.sum() or 1.0)
    middle, spread = _place(base, rows.weight)
    tilt = _find_tilt(rows, base, ladder, lift, (middle, spread))
    centres, own = _deviations(held, rows, fold)
    shares, shift = _share_deviations(
        rows, base, ladder, tilt * _follow(base, middle, spread) * lift[rows.level], own, members
    )
    common = ladder.intercept + ladder.effects
    made = Blend(rows.link, weights, common + shift, shares, centres, tilt, middle, spread, lift)
    return replace(made, common=common, shares=np.zeros(len(shares)), tilt=0.0), made


def _place(base: Array, weight: Array) -> tuple[float, float]:
    """Return the weighted mean and standard deviation of bases."""
    weight = weight / (weight.sum() or 1.0)
    middle = float(weight @ base)
    return middle, float(np.sqrt(weight @ (base - middle) ** 2))


def _follow(base: Array, middle: float, spread: float) -> Array:
    """Return what the tilt multiplies (n,): standardised bases, held to a few standard deviations."""
    return np.clip((base - middle) / spread, -TILT_REACH, TILT_REACH) if spread > FLAT else np.zeros(len(base))


def _weigh_bases(rows: ScoredRows, bases: Array) -> Array:
    """Return weights (M,) of the members' bases (n, M), each level with an effect of its own."""
    M = bases.shape[1]
    design = np.column_stack([np.ones(len(bases)), bases - bases.mean(axis=0), rows.reached()])
    q = design.shape[1]
    start = np.zeros(q)
    start[0], start[1 : M + 1] = rows.mean_score, 1.0 / M
    precision = np.full(q, LOOSE)
    precision[0], precision[1 : M + 1] = 1e-6, EQUAL
    lower = np.full(q, -np.inf)
    lower[1 : M + 1] = 0.0
    noise = measure_noise(rows, design[:, :1], np.full(len(bases), rows.mean_score))
    return fit_scores(rows, design, np.zeros(len(bases)), Prior(start, precision, lower), noise)[1 : M + 1]


def _find_tilt(rows: ScoredRows, base: Array, ladder: Ladder, lift: Array, place: tuple[float, float]) -> float:
    """Return how much increments grow with the base: the mean of none and of a normal one, by what rows say of each."""
    middle, spread = place
    # Of amounts, trees find as much.
    if not rows.link.binary or spread <= FLAT or not np.ptp(lift):
        return 0.0
    column = _follow(base, middle, spread) * lift[rows.level]
    design = np.column_stack([np.ones(len(base)), base - middle, column])
    start = np.array([ladder.intercept + middle, 1.0, 0.0])
    precision = np.array([1e-6, 1.0, 1e-6])
    prior = Prior(start, precision, np.array([-np.inf, 0.0, -np.inf]))
    offset = ladder.effects[rows.level]
    found = fit_scores(rows, design, offset, prior, ladder.noise)
    told = information(rows, design, offset + design @ found, ladder.noise) + np.diag(precision)
    variance = float(np.linalg.inv(told)[2, 2])
    tilt, wide = float(found[2]), variance + TILT**2
    favour = 0.5 * np.log(variance / wide) + 0.5 * tilt**2 * (1.0 / variance - 1.0 / wide)
    there = 1.0 / (1.0 + (1.0 - TILTED) / TILTED * np.exp(-np.clip(favour, -50.0, 50.0)))
    return float(there * tilt * TILT**2 / wide)


def _deviations(held: Array, rows: ScoredRows, fold: Array) -> tuple[Array, Array]:
    """Return each member's mean curve less its base (M, K), and deviations (M, n) from it at rows' own levels.

    Each fold model is measured from its own mean: that folds disagree about it says nothing about customers.
    """
    deviations = held - held.mean(axis=2, keepdims=True)  # (M, n, K)
    parts, place = np.unique(fold, return_inverse=True)
    weight = rows.weight + 1e-12  # a fold may have no weight
    centres = np.stack(
        [np.average(deviations[:, place == f], axis=1, weights=weight[place == f]) for f in range(len(parts))]
    )  # (F, M, K)
    own = deviations[:, np.arange(len(place)), rows.level] - centres[place, :, rows.level].T
    return centres.mean(axis=0), own


def _share_deviations(
    rows: ScoredRows, base: Array, ladder: Ladder, more: Array, own: Array, members: Members
) -> tuple[Array, float]:
    """Return the shares (M,) of the members' deviations (M, n), and what the intercept changes by."""
    M = len(own)
    use = [m for m in range(M) if np.isfinite(members.precisions[m]) and own[m].std() > FLAT]
    design = np.column_stack([np.ones(len(base)), *own[use]])
    precision = np.array([1e-6, *(members.precisions[m] for m in use)])
    lower = np.array([-np.inf, *np.zeros(len(use))])
    offset = ladder.intercept + base + ladder.effects[rows.level] + more
    found = fit_scores(rows, design, offset, Prior(np.zeros(len(precision)), precision, lower), ladder.noise)
    shares = np.zeros(M)
    shares[use] = found[1:]
    return shares, float(found[0])


def _list_choices(made: Sequence[Blend], held: Array, rows: ScoredRows) -> tuple[Choice, ...]:
    """Return the held-out losses of common increments and, where they differ, of those that were chosen."""
    last = made[-1]
    names = ["common increments"] + ["individual increments"] * bool(last.tilt or last.shares.any())
    picked = np.arange(len(rows.level)), rows.level
    losses = np.array([rows.losses(one.scores(held)[picked]) for one in made[: len(names)]])
    losses = losses * (1.0 if rows.link.binary else rows.link.unit**2)
    tried = least_loss(names, losses, rows.weight, rows.cluster, of="increments")
    return tuple(replace(choice, chosen=choice is tried[-1]) for choice in tried)
