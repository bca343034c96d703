"""Stacking of response models, with separate weights for mean scores and for differences between levels.

On the scale of the link: s(x, k) = base(x) + common_k + tilt·z(x)·lift_k + Σ_m share_m · deviation_m(x, k). Plans are made of
the increments between levels, and of these the deviations are the least certain part. Everything is fitted to held-out rows,
the most certain part first, each under a prior that only rows can outweigh:

- the base (a customer's mean score over levels) is a weighted sum of the stacked models' bases, with a prior of equal weights;
- the common increments are the ladder of `level_effect_estimation`, corrected by recorded propensities, or with many rows by
  estimated ones, for confounding that the base misses;
- the tilt lets increments of 0/1 responses rise or fall with the standardised base z(x); its prior probability is one in five;
- the shares of the models' own deviations from common increments are shrunk to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.io import ArraySpec
from largesse.progress import subrange
from largesse.propensity import estimate_single_index_propensities
from largesse.records import Array, CandidateLoss, HeldOutPredictions, Log
from largesse.response.additive import Additive
from largesse.response.boosting import Boosting
from largesse.response.fold_ensemble import average_member_scores, fit_fold_copies, score_held_out_rows
from largesse.response.level_effect_estimation import (
    MIN_BASE_SPREAD,
    WEAK_PRECISION,
    CoefficientPrior,
    LevelEffects,
    Link,
    ScoredRows,
    choose_link,
    compute_fisher_information,
    fit_coefficients,
    fit_level_effects,
    make_monotone,
    make_scored_rows,
    measure_slope_noise,
)
from largesse.response.responder_amounts import (
    ResponderAmounts,
    fit_responder_amounts_by_fold,
    multiply_by_amounts,
    split_off_responder_amounts,
)
from largesse.response.response_model import ResponseModel, check_auto_setting, fit_copy
from largesse.response.threshold_model import MANY_FEATURES, Thresholds
from largesse.stats import assign_folds, choose_lowest_loss, sample_rows

# Propensities that are estimated from fewer rows cost more skill than they bring (-.016 ± .011 on 42 worlds of 2,000 rows).
MIN_ESTIMATION_ROWS = 5_000
MAX_STACKING_ROWS = 200_000  # held-out rows that weights are fitted to; more rows only take longer
WEIGHT_PRECISION = 10.0  # prior precision of equal weights for all models' base scores
DEVIATION_PRECISION = 64.0  # prior precision of a share of zero for a model's deviations
SHRUNK_PRECISION = 4.0  # the same for a model that shrinks its deviations itself
TILT_PROBABILITY = 0.2  # prior probability that increments follow the base
TILT_DEVIATION = 0.3  # prior standard deviation of a tilt that is not zero, per standard deviation of the base
TILT_REACH = 2.5  # standard deviations of the base, beyond which the tilt does not grow


def convert_to_responses(scores: Array, link: Link) -> Array:
    """Convert scores (n, K) to expected responses that do not decrease with the level."""
    return link.to_responses(make_monotone(scores))


@dataclass(frozen=True, eq=False)
class Blend:
    """Weights that combine the scores of M stacked models, on the scale of the link function."""

    link: Link
    weights: Annotated[Array, ArraySpec("M")]  # of the models' base scores; not negative
    common: Annotated[Array, ArraySpec("K")]  # effect of each level on every customer's score; never falling
    shares: Annotated[Array, ArraySpec("M")]  # of the models' deviations; not negative
    centres: Annotated[Array, ArraySpec("M", "K")]  # mean curves less base scores; deviations start there
    tilt: float  # growth of increments with the base score
    middle: float  # of the base scores
    spread: float  # of the base scores; 0 if all are equal
    lift: Annotated[Array, ArraySpec("K")]  # the common increments, around their mean in the log

    @property
    def used_models(self) -> list[int]:
        """Indices of the stacked models with a nonzero weight in the stack."""
        return [m for m in range(len(self.weights)) if self.weights[m] > 0 or self.shares[m] > 0]

    def check(self, members: int) -> None:
        """Raise ValueError for invalid weights, or for weights of another number of models."""
        if len(self.weights) != members:
            raise ValueError(f"a blend of {len(self.weights)} members, of {members}")
        if not 0 < self.link.unit < np.inf:
            raise ValueError(f"responses in units of {self.link.unit}")
        if (self.weights < 0).any() or (self.shares < 0).any():
            raise ValueError("a blend with negative weights or shares")
        if not np.isfinite([self.tilt, self.middle, self.spread]).all() or self.spread < 0:
            raise ValueError(f"a blend with a tilt of {self.tilt}, around {self.middle} ± {self.spread}")
        if self.tilt and self.spread <= MIN_BASE_SPREAD:
            raise ValueError(f"a blend with a tilt of {self.tilt} along bases that are the same for all")

    def scores(self, members: Array) -> Array:
        """Combine the scores (M, n, K) of the stacked models into one array (n, K)."""
        bases = members.mean(axis=2)
        # A sum over members, not a matrix product: a row's score must not depend on which rows come with it.
        base = sum((w * row for w, row in zip(self.weights, bases, strict=True)), np.zeros(bases.shape[1]))
        out = base[:, None] + self.common
        if self.tilt:
            out = out + (self.tilt * _standardise_base(base, self.middle, self.spread))[:, None] * self.lift
        for m in np.flatnonzero(self.shares):
            out = out + self.shares[m] * (members[m] - bases[m][:, None] - self.centres[m])
        return out


@dataclass(frozen=True, eq=False)
class MemberScores:
    """Out-of-fold scores (M, n, K) of the stacked models, and the prior precision of each model's weight."""

    held: Array  # (M, n, K) scores, each row's from the fold model that did not see it
    precisions: Sequence[float]  # prior precision of each model's share of deviations; infinite for a share of zero


def choose_increment_precision(shrinks: bool, only_base: bool) -> float:
    """Choose the prior precision of the weight of a stacked model's differences between levels.

    It is infinite for a model without customer-specific differences, and low for a model that shrinks them itself.
    """
    return np.inf if only_base else SHRUNK_PRECISION if shrinks else DEVIATION_PRECISION


def choose_blend(
    members: MemberScores, log: Log, fold: Array, seed: int = 0
) -> tuple[Blend, tuple[CandidateLoss, ...]]:
    """Fit the weights of stacked models to held-out rows of a log, and list the candidate losses.

    `fold` (n,) holds the fold of each row.
    """
    rows, held = make_scored_rows(log, choose_link(log)), members.held
    if len(fold) > MAX_STACKING_ROWS:
        some = sample_rows(len(fold), MAX_STACKING_ROWS, seed)
        rows, held, fold = rows.take_rows(some), held[:, some], fold[some]
    plain, made = _fit_blend(rows, replace(members, held=held), fold)
    return made, _list_choices([plain, made], held, rows)


def blend_held_out(members: MemberScores, log: Log, fold: Array, seed: int = 0) -> tuple[Array, list[Blend]]:
    """Return the out-of-fold curves (n, K) of stacked models, with weights that are fitted without each fold.

    Also returns these blends, each fitted without one fold.
    """
    rows, curves, blends = make_scored_rows(log, choose_link(log)), np.empty(members.held.shape[1:]), []
    for f in np.unique(fold):
        others = np.flatnonzero(fold != f)
        others = others[sample_rows(len(others), MAX_STACKING_ROWS, seed)]
        _, blend = _fit_blend(rows.take_rows(others), replace(members, held=members.held[:, others]), fold[others])
        curves[fold == f] = convert_to_responses(blend.scores(members.held[:, fold == f]), rows.link)
        blends.append(blend)
    return curves, blends


def _fit_blend(rows: ScoredRows, members: MemberScores, fold: Array) -> tuple[Blend, Blend]:
    """Fit the weights of stacked models to held-out rows, with and without customer-specific level effects.

    The first blend has common increments only, the second is the full one.

    `fold` (n,) holds the fold of each row.
    """
    held = members.held
    bases = held.mean(axis=2).T  # (n, M)
    weights = _fit_base_weights(rows, bases)
    base = bases @ weights
    ladder = fit_level_effects(rows, base)
    weights, base = weights * ladder.slope, base * ladder.slope
    lift = ladder.effects - float(rows.weight @ ladder.effects[rows.level]) / (rows.weight.sum() or 1.0)
    middle, spread = _measure_base_moments(base, rows.weight)
    tilt = _estimate_tilt(rows, base, ladder, lift, (middle, spread))
    centres, deviations = _measure_deviations(held, rows, fold)
    shares, shift = _fit_deviation_shares(
        rows, base, ladder, tilt * _standardise_base(base, middle, spread) * lift[rows.level], deviations, members
    )
    common = ladder.intercept + ladder.effects
    made = Blend(rows.link, weights, common + shift, shares, centres, tilt, middle, spread, lift)
    return replace(made, common=common, shares=np.zeros(len(shares)), tilt=0.0), made


def _measure_base_moments(base: Array, weight: Array) -> tuple[float, float]:
    """Return the weighted mean and standard deviation of base scores (n,), the mean scores over all levels."""
    weight = weight / (weight.sum() or 1.0)
    middle = float(weight @ base)
    return middle, float(np.sqrt(weight @ (base - middle) ** 2))


def _standardise_base(base: Array, middle: float, spread: float) -> Array:
    """Standardise base scores (n,), the mean scores over levels, and clip them to a few standard deviations.

    They are the factor of the tilt.
    """
    return (
        np.clip((base - middle) / spread, -TILT_REACH, TILT_REACH) if spread > MIN_BASE_SPREAD else np.zeros(len(base))
    )


def _fit_base_weights(rows: ScoredRows, bases: Array) -> Array:
    """Fit the weights (M,) of the stacked models' mean scores over levels (n, M), together with level effects."""
    M = bases.shape[1]
    design = np.column_stack([np.ones(len(bases)), bases - bases.mean(axis=0), rows.level_indicators()])
    q = design.shape[1]
    start = np.zeros(q)
    start[0], start[1 : M + 1] = rows.score_of_mean_response, 1.0 / M
    precision = np.full(q, WEAK_PRECISION)
    precision[0], precision[1 : M + 1] = 1e-6, WEIGHT_PRECISION
    lower = np.full(q, -np.inf)
    lower[1 : M + 1] = 0.0
    noise = measure_slope_noise(rows, design[:, :1], np.full(len(bases), rows.score_of_mean_response))
    return fit_coefficients(rows, design, np.zeros(len(bases)), CoefficientPrior(start, precision, lower), noise)[
        1 : M + 1
    ]


def _estimate_tilt(
    rows: ScoredRows, base: Array, ladder: LevelEffects, lift: Array, place: tuple[float, float]
) -> float:
    """Estimate the interaction of level effects with the mean score over levels.

    It is the posterior mean under a mixture of zero and a normal prior.
    """
    middle, spread = place
    # For amounts, trees find the same.
    if not rows.link.binary or spread <= MIN_BASE_SPREAD or not np.ptp(lift):
        return 0.0
    column = _standardise_base(base, middle, spread) * lift[rows.level]
    design = np.column_stack([np.ones(len(base)), base - middle, column])
    start = np.array([ladder.intercept + middle, 1.0, 0.0])
    precision = np.array([1e-6, 1.0, 1e-6])
    prior = CoefficientPrior(start, precision, np.array([-np.inf, 0.0, -np.inf]))
    offset = ladder.effects[rows.level]
    params = fit_coefficients(rows, design, offset, prior, ladder.noise)
    precisions = compute_fisher_information(rows, design, offset + design @ params, ladder.noise) + np.diag(precision)
    variance = float(np.linalg.inv(precisions)[2, 2])
    tilt, wide = float(params[2]), variance + TILT_DEVIATION**2
    favour = 0.5 * np.log(variance / wide) + 0.5 * tilt**2 * (1.0 / variance - 1.0 / wide)
    there = 1.0 / (1.0 + (1.0 - TILT_PROBABILITY) / TILT_PROBABILITY * np.exp(-np.clip(favour, -50.0, 50.0)))
    return float(there * tilt * TILT_DEVIATION**2 / wide)


def _measure_deviations(held: Array, rows: ScoredRows, fold: Array) -> tuple[Array, Array]:
    """Split the models' scores at logged levels into mean curves (M, K) and customers' deviations from them (M, n).

    Base scores are subtracted first.

    Deviations are taken at the rows' levels.

    Each fold model is measured from its own mean: that folds disagree about it says nothing about customers.
    """
    deviations = held - held.mean(axis=2, keepdims=True)  # (M, n, K)
    parts, place = np.unique(fold, return_inverse=True)
    weight = rows.weight + 1e-12  # a fold may have no weight
    centres = np.stack(
        [np.average(deviations[:, place == f], axis=1, weights=weight[place == f]) for f in range(len(parts))]
    )  # (F, M, K)
    at_level = deviations[:, np.arange(len(place)), rows.level] - centres[place, :, rows.level].T
    return centres.mean(axis=0), at_level


def _fit_deviation_shares(
    rows: ScoredRows, base: Array, ladder: LevelEffects, more: Array, deviations: Array, members: MemberScores
) -> tuple[Array, float]:
    """Fit the weights (M,) of the models' customer-specific deviations (M, n), and the change of the intercept."""
    M = len(deviations)
    use = [m for m in range(M) if np.isfinite(members.precisions[m]) and deviations[m].std() > MIN_BASE_SPREAD]
    design = np.column_stack([np.ones(len(base)), *deviations[use]])
    precision = np.array([1e-6, *(members.precisions[m] for m in use)])
    lower = np.array([-np.inf, *np.zeros(len(use))])
    offset = ladder.intercept + base + ladder.effects[rows.level] + more
    params = fit_coefficients(
        rows, design, offset, CoefficientPrior(np.zeros(len(precision)), precision, lower), ladder.noise
    )
    shares = np.zeros(M)
    shares[use] = params[1:]
    return shares, float(params[0])


def _list_choices(made: Sequence[Blend], held: Array, rows: ScoredRows) -> tuple[CandidateLoss, ...]:
    """List the held-out losses with common level effects and with customer-specific level effects.

    The second only if it differs.
    """
    last = made[-1]
    names = ["common increments"] + ["individual increments"] * bool(last.tilt or last.shares.any())
    picked = np.arange(len(rows.level)), rows.level
    losses = np.array([rows.row_losses(blend.scores(held)[picked]) for blend in made[: len(names)]])
    losses = losses * (1.0 if rows.link.binary else rows.link.unit**2)
    tried = choose_lowest_loss(names, losses, rows.weight, rows.cluster, of="increments")
    return tuple(replace(choice, chosen=choice is tried[-1]) for choice in tried)


FEW_MODELS = "few"  # the default models without the boosting of small trees
MANY_ROWS = 50_000  # with more rows, trees have a larger learning rate: twice as large at four times as many


@final
class Stack(ResponseModel):
    """Stack of several response models, with separate weights for mean scores and for differences between levels.

    Every member is fitted once per fold and predicts the rows it has not seen. On the logit scale for 0/1 responses, the
    base (a curve's mean over levels) is a weighted sum of the members' bases. The increments between levels are common ones,
    averaged over the shapes that a ladder may have, plus as much of the members' deviations for single customers as held-out
    rows support (see `blend`). New customers get the mean of the fold models; of a member for which one model of all rows
    is better (`Thresholds`), that model. Amounts that are mostly zero are learnt in two parts: whether, and how much.

    Parameters
    ----------
    models
        Members; "auto" is ``[Additive(), Boosting(), Boosting(leaves=4, …)]``, with ``Thresholds()`` for 0/1 responses and
        more than a hundred features, as embeddings have them; "few" leaves out the last, which has small trees.
    folds, seed
        Number and seed of the folds.

    Attributes
    ----------
    members_, whole_
        The fold models of each member, and its model of all rows or None.
    choices_
        The held-out losses of common and of chosen increments, and then the candidates of the members' own choices.
    blend_
        The weights, the common increments, and the shares of the members' deviations.
    amounts_
        The amounts of responders, for responses that look two-part; the members then learn 0/1 responses.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> model = Stack(models=[Additive(), Boosting(rounds=20)]).fit(sim.log)
    >>> bool(model.weights_[0] > model.weights_[1]), model.predict(sim.features[:2]).shape
    (True, (2, 5))
    """

    by_folds = True
    members_: tuple[tuple[ResponseModel, ...], ...]
    whole_: tuple[ResponseModel | None, ...]
    blend_: Blend
    amounts_: ResponderAmounts | None

    def __init__(self, *, models: Sequence[ResponseModel] | str = "auto", folds: int = 5, seed: int = 0) -> None:
        self.models = models
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        self._learn_folds(X, log, assign_folds(log, self.folds, self.seed))

    def _hold_out(self, X: Array, log: Log, fold: Array) -> HeldOutPredictions:
        """Return out-of-fold curves by stacked models and weights that are fitted without each fold."""
        members, first = self._learn_folds(X, log, fold)
        curves, blends = blend_held_out(members, first, fold, self.seed)
        amounts: list[ResponderAmounts] | list[None] = [None] * len(blends)
        if self.amounts_ is not None:
            amounts = fit_responder_amounts_by_fold(X, log, fold, self.encoder_, "auto", self.seed)
            for f, much in zip(np.unique(fold), amounts, strict=True):
                curves[fold == f] = multiply_by_amounts(curves[fold == f], much, X[fold == f])
        self._by_fold = list(zip(blends, amounts, strict=True))
        return HeldOutPredictions(curves, fold)

    def predict_by_fold(self, customers: Any) -> list[Array]:
        """Predict the curves (n, K) of customers by each of the stacks that were fitted without one fold.

        Only after `fit_held_out`.

        An evaluation judges these models. They are not saved.
        """
        X = self.encode(customers)
        return [self.predict_without_fold(X, place) for place in range(len(self._by_fold))]

    def predict_without_fold(self, X: Array, place: int) -> Array:
        """Predict response curves (n, K) by the stack that was fitted without one fold.

        X are encoded features (n, p).

        Only after `fit_held_out`; `place` is the position of the fold among all folds.
        """
        blend, amounts = self._by_fold[place]
        scores = np.array([blend.link.to_scores(member[place]._curves(X)) for member in self.members_])
        return multiply_by_amounts(convert_to_responses(blend.scores(scores), blend.link), amounts, X)

    def _learn_folds(self, X: Array, log: Log, fold: Array) -> tuple[MemberScores, Log]:
        """Fit the stacked models once per fold, and their weights to the out-of-fold scores.

        Returns these scores and the log that they were fitted to.
        """
        if self.models != FEW_MODELS:
            check_auto_setting(self, "models")
        if not isinstance(self.models, str) and not list(self.models):
            refuse("Stack", [Problem("there are no models to stack", "give at least one")])
        log, self.amounts_ = split_off_responder_amounts(X, log, self.encoder_, self.seed)
        models = self._default_models(X, log.binary) if isinstance(self.models, str) else list(self.models)
        with subrange(0.0, 0.9):  # the rest is prediction and blending
            self.members_ = fit_fold_copies(models, X, log, fold, self)
        held = np.array([score_held_out_rows(member, X, fold, choose_link(log)) for member in self.members_])
        if log.propensity is None and log.unit is None and len(log) >= MIN_ESTIMATION_ROWS:
            log = replace(
                log, propensity=estimate_single_index_propensities(log, X, held.mean(axis=(0, 2)), fold, self.seed)
            )
        self.whole_ = tuple(fit_copy(model, X, log, self.encoder_) if model.whole else None for model in models)
        members = MemberScores(held, [choose_increment_precision(model.shrinks, model.only_base) for model in models])
        self.blend_, choices = choose_blend(members, log, fold, self.seed)
        blend_choices = (replace(choice, of="increments of the stack") for choice in choices)
        self.choices_ = (*blend_choices, *(choice for member in self.members_ for choice in member[0].choices_))
        return members, log

    def _default_models(self, X: Array, binary: bool) -> list[ResponseModel]:
        """Return the models to stack by default, from the number of features and rows."""
        # With few features the other models predict as well, and every further weight adds error.
        thresholds = [Thresholds(seed=self.seed)] if binary and X.shape[1] > MANY_FEATURES else []
        # With many rows, fewer trees with larger steps take half the time and predict as well.
        hurry = float(np.clip(np.log2(len(X) / MANY_ROWS) / 2, 0.0, 1.0)) if len(X) else 0.0
        boosting = [
            Boosting(seed=self.seed, rate=0.05 * 2**hurry),
            Boosting(seed=self.seed, leaves=4, rounds=400, rate=0.06 * 2.5**hurry),  # sees few features together
        ][: 1 if self.models == FEW_MODELS else None]
        return [Additive(seed=self.seed), *thresholds, *boosting]

    def _curves(self, X: Array) -> Array:
        link = self.blend_.link
        scores = np.zeros((len(self.members_), len(X), self.levels_))
        for m in self.blend_.used_models:  # models without a weight need no prediction
            whole = self.whole_[m]
            scores[m] = average_member_scores(self.members_[m] if whole is None else [whole], X, link)
        return multiply_by_amounts(convert_to_responses(self.blend_.scores(scores), link), self.amounts_, X)

    @property
    def weights_(self) -> Array:
        """Weights (M,) of the stacked models' mean scores over levels."""
        return self.blend_.weights

    def _check_learnt(self) -> None:
        self.blend_.check(len(self.members_))
        if len(self.whole_) != len(self.members_) or len({len(member) for member in self.members_}) != 1:
            raise ValueError(f"{[len(member) for member in self.members_]} fold models of the members")
