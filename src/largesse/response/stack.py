"""Models blended: bases combined, increments as individual as held-out rows advise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.progress import subrange
from largesse.records import Array, HeldOut, Log
from largesse.response.additive import Additive
from largesse.response.amounts import Amounts, fold_amounts, split_amounts, times_amounts
from largesse.response.base import ResponseModel, check_auto, fit_copy
from largesse.response.blend import Blend, Members, blend_held_out, choose_blend, deviation_precision, unlink
from largesse.response.boosting import Boosting
from largesse.response.fold_ensemble import fit_folds, fit_members, held_out_scores, mean_scores
from largesse.response.links import link_of
from largesse.response.thresholds import MANY, Thresholds
from largesse.stats import assign_folds

FEW = "few"  # the default's members without the boosting of small trees
MANY_ROWS = 50_000  # from which trees make larger steps; with four times as many they are twice as large


@final
class Shrunk(ResponseModel):
    """A model's base, common increments fitted anew, and a share of its deviations from them.

    The model is fitted once per fold. Its held-out curves, on the logit scale for 0/1 responses, are split into base +
    common increments + deviations. The common increments are those of the averaged ladder; the deviations are held to zero
    by a prior, which only rows outweigh. New customers get the mean of the fold models, treated alike.

    Parameters
    ----------
    model
        What is shrunk; "auto" is ``Boosting()``.
    folds, seed
        How the log is cut.

    Attributes
    ----------
    choices_
        The held-out losses of common increments and of those that were chosen.
    models_
        The fold models.
    blend_
        The common increments, the share of deviations, and what these are measured from.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> model = Shrunk(model=Boosting(rounds=20)).fit(sim.log)
    >>> bool(model.blend_.shares[0] < 0.5), model.predict(sim.features[:2]).shape
    (True, (2, 5))
    """

    by_folds = True
    models_: tuple[ResponseModel, ...]
    blend_: Blend

    def __init__(self, *, model: ResponseModel | str = "auto", folds: int = 5, seed: int = 0) -> None:
        self.model = model
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        self._learn_folds(X, log, assign_folds(log, self.folds, self.seed))

    def _hold_out(self, X: Array, log: Log, fold: Array) -> HeldOut:
        members = self._learn_folds(X, log, fold)
        curves, self._blends = blend_held_out(members, log, fold, self.seed)
        return HeldOut(curves, fold)

    def curves_without(self, X: Array, place: int) -> Array:
        """Return the curves (n, K) of encoded features (n, p) by what predicted the rows of one fold, after `fit_held_out`."""
        blend = self._blends[place]
        scores = blend.link.to_scores(self.models_[place]._curves(X))
        return unlink(blend.scores(scores[None]), blend.link)

    def _learn_folds(self, X: Array, log: Log, fold: Array) -> Members:
        """Fit the model once per fold, and the blend to what fold models expect of held-out rows; return the latter."""
        check_auto(self, "model")
        model = Boosting(seed=self.seed) if isinstance(self.model, str) else self.model
        self.models_ = tuple(fit_folds(model, X, log, fold, self))
        held = held_out_scores(self.models_, X, fold, link_of(log))
        members = Members(held[None], [deviation_precision(model.shrinks, model.only_base)])
        self.blend_, self.choices_ = choose_blend(members, log, fold, self.seed)
        return members

    def _curves(self, X: Array) -> Array:
        scores = mean_scores(self.models_, X, self.blend_.link)[None]
        return unlink(self.blend_.scores(scores), self.blend_.link)

    def _check_learnt(self) -> None:
        self.blend_.check(1)


@final
class Stack(ResponseModel):
    """Several models made one: where a customer's curve lies and how it rises are learnt separately.

    Every member is fitted once per fold and predicts the rows it has not seen. On the logit scale for 0/1 responses, the
    base (a curve's mean over levels) is a weighted sum of the members' bases. The increments between levels are common ones,
    averaged over the shapes that a ladder may have, plus as much of what members say about single customers as held-out
    rows support (see `blend`). New customers get the mean of the fold models; of a member for which one model of all rows
    is better (`Thresholds`), that model. Amounts that are mostly zero are learnt in two parts: whether, and how much.

    Parameters
    ----------
    models
        Members; "auto" is ``[Additive(), Boosting(), Boosting(leaves=4, …)]``, with ``Thresholds()`` for 0/1 responses and
        more than a hundred features, as embeddings have them; "few" leaves out the last, which has small trees.
    folds, seed
        How the log is cut.

    Attributes
    ----------
    members_, whole_
        The fold models of each member, and its model of all rows or None.
    choices_
        The held-out losses of common increments and of those that were chosen; then the members' choices.
    blend_
        The weights, the common increments, and the shares of the members' deviations.
    amounts_
        Where responses look like whether and how much, the second part; members learn the first.

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
    amounts_: Amounts | None

    def __init__(self, *, models: Sequence[ResponseModel] | str = "auto", folds: int = 5, seed: int = 0) -> None:
        self.models = models
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        self._learn_folds(X, log, assign_folds(log, self.folds, self.seed))

    def _hold_out(self, X: Array, log: Log, fold: Array) -> HeldOut:
        """Return each fold's curves by members fitted without it and a blend fitted without its held-out rows."""
        members, first = self._learn_folds(X, log, fold)
        curves, blends = blend_held_out(members, first, fold, self.seed)
        amounts: list[Amounts] | list[None] = [None] * len(blends)
        if self.amounts_ is not None:
            amounts = fold_amounts(X, log, fold, self.encoder_, "auto", self.seed)
            for f, much in zip(np.unique(fold), amounts, strict=True):
                curves[fold == f] = times_amounts(curves[fold == f], much, X[fold == f])
        self._by_fold = list(zip(blends, amounts, strict=True))
        return HeldOut(curves, fold)

    def predict_by_fold(self, customers: Any) -> list[Array]:
        """Return the curves (n, K) of customers by what each fold's rows were predicted by, after `fit_held_out`.

        These are what an evaluation judges. They are not saved.
        """
        X = self.encode(customers)
        return [self.curves_without(X, place) for place in range(len(self._by_fold))]

    def curves_without(self, X: Array, place: int) -> Array:
        """Return the curves (n, K) of encoded features (n, p) by what predicted the rows of one fold, after `fit_held_out`."""
        blend, amounts = self._by_fold[place]
        scores = np.array([blend.link.to_scores(member[place]._curves(X)) for member in self.members_])
        return times_amounts(unlink(blend.scores(scores), blend.link), amounts, X)

    def _learn_folds(self, X: Array, log: Log, fold: Array) -> tuple[Members, Log]:
        """Fit members once per fold, and the blend to what they expect of held-out rows; return that, and of which log."""
        if self.models != FEW:
            check_auto(self, "models")
        if not isinstance(self.models, str) and not list(self.models):
            refuse("Stack", [Problem("there are no models to stack", "give at least one")])
        log, self.amounts_ = split_amounts(X, log, self.encoder_, self.seed)
        models = self._default_models(X, log.binary) if isinstance(self.models, str) else list(self.models)
        with subrange(0.0, 0.9):  # then they predict, and are blended
            self.members_ = fit_members(models, X, log, fold, self)
        held = np.array([held_out_scores(member, X, fold, link_of(log)) for member in self.members_])
        self.whole_ = tuple(fit_copy(model, X, log, self.encoder_) if model.whole else None for model in models)
        members = Members(held, [deviation_precision(model.shrinks, model.only_base) for model in models])
        self.blend_, choices = choose_blend(members, log, fold, self.seed)
        own = (replace(choice, of="increments of the stack") for choice in choices)
        self.choices_ = (*own, *(choice for member in self.members_ for choice in member[0].choices_))
        return members, log

    def _default_models(self, X: Array, binary: bool) -> list[ResponseModel]:
        """Return the members for encoded features (n, p)."""
        # With few features the others say as much, and one more to weigh is one more to be wrong about.
        thresholds = [Thresholds(seed=self.seed)] if binary and X.shape[1] > MANY else []
        # Trees of many rows are worth larger steps: fewer of them take half the time and predict as well.
        hurry = float(np.clip(np.log2(len(X) / MANY_ROWS) / 2, 0.0, 1.0)) if len(X) else 0.0
        boosting = [
            Boosting(seed=self.seed, rate=0.05 * 2**hurry),
            Boosting(seed=self.seed, leaves=4, rounds=400, rate=0.06 * 2.5**hurry),  # sees few features together
        ][: 1 if self.models == FEW else None]
        return [Additive(seed=self.seed), *thresholds, *boosting]

    def _curves(self, X: Array) -> Array:
        link = self.blend_.link
        scores = np.zeros((len(self.members_), len(X), self.levels_))
        for m in self.blend_.used:  # the others do not predict
            whole = self.whole_[m]
            scores[m] = mean_scores(self.members_[m] if whole is None else [whole], X, link)
        return times_amounts(unlink(self.blend_.scores(scores), link), self.amounts_, X)

    @property
    def weights_(self) -> Array:
        """Weights (M,) of the members' bases."""
        return self.blend_.weights

    def _check_learnt(self) -> None:
        self.blend_.check(len(self.members_))
        if len(self.whole_) != len(self.members_) or len({len(member) for member in self.members_}) != 1:
            raise ValueError(f"{[len(member) for member in self.members_]} fold models of the members")
