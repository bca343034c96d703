"""Models blended: bases combined, increments as individual as held-out rows advise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array, Log
from largesse.response.additive import Additive
from largesse.response.base import ResponseModel, check_auto, fit_copy, own_level_loss
from largesse.response.baselines.bart import BART, at_hand
from largesse.response.blend import Blend, Members, choose_blend, unlink
from largesse.response.boosting import Boosting
from largesse.response.fold_ensemble import fit_folds, held_out_scores, mean_scores
from largesse.response.networks.sire import SIRE
from largesse.response.thresholds import MANY, Thresholds
from largesse.stats import assign_folds, mean_estimate

SHARES = (0.0, 0.25, 0.5, 1.0)  # of one member's deviations
NEAR = 2.0  # standard errors: trees that are further behind the best member have nothing to add to it
BART_ROWS = 20_000  # in a log with more, boosted trees see as much and cost less
SMALL: dict[str, Any] = {"trees": 50, "draws": 20, "warm": 0, "burn": 50}  # of a BART that is one member of several


@final
class Shrunk(ResponseModel):
    """A model's base, common increments fitted anew, and a share of its deviations from them.

    The model is fitted once per fold. Its held-out curves, on the logit scale for 0/1 responses, are split into base +
    common increments + deviations; the smallest share of the deviations is kept that is worse than the best share by no
    more than one standard error of the rows' paired losses. New customers get the mean of the fold models, treated alike.

    Parameters
    ----------
    model
        What is shrunk; "auto" is ``Boosting()``.
    shares
        The shares that are tried; 0 (the same increments for all) is always among them.
    folds, seed
        How the log is cut.

    Attributes
    ----------
    choices_
        What was tried, with its held-out loss and its difference from the best.
    models_
        The fold models.
    blend_
        The common increments, the share that was chosen, and what deviations are measured from.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> model = Shrunk(model=Boosting(rounds=20)).fit(sim.log)
    >>> model.blend_.share, model.predict(sim.features[:2]).shape
    (0.0, (2, 5))
    """

    models_: tuple[ResponseModel, ...]
    blend_: Blend

    def __init__(
        self,
        *,
        model: ResponseModel | str = "auto",
        shares: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.shares = shares
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_auto(self, "model")
        check_shares("Shrunk", self.shares)
        model = Boosting(seed=self.seed) if isinstance(self.model, str) else self.model
        fold = assign_folds(log, self.folds, self.seed)
        self.models_ = tuple(fit_folds(model, X, log, fold, self))
        members = Members(
            names=[type(model).__name__],
            shares=[self.shares],
            held=held_out_scores(self.models_, X, fold, self.binary_)[None],
            together=mean_scores(self.models_, X, self.binary_).mean(axis=1)[None],
        )
        self.blend_, self.choices_ = choose_blend(members, log, fold, self.seed)

    def _curves(self, X: Array) -> Array:
        scores = mean_scores(self.models_, X, self.binary_)[None]
        return unlink(self.blend_.scores(scores), self.binary_)

    def _check_learnt(self) -> None:
        self.blend_.check(1)


def check_shares(what: str, shares: Sequence[float]) -> None:
    """Refuse shares of deviations outside [0, 1]."""
    outside = [share for share in shares if not 0 <= share <= 1]
    hint = "0 gives everybody the common increments, 1 the model's own"
    refuse(what, [Problem(f"the shares {outside} of deviations are outside [0, 1]", hint)] if outside else [])


@final
class Stack(ResponseModel):
    """Several models made one: where a customer's curve lies and how it rises are chosen separately.

    Every member is fitted once per fold and predicts the rows it has not seen. On the logit scale for 0/1 responses, the
    base (a curve's mean over levels) is the best member's, or a weighted sum of all where that is clearly better on held-out
    rows; common increments are fitted to it. Then a share of one member's deviations from common increments is added: the
    smallest that is worse than the best by no more than one standard error of the rows' paired losses. New customers get
    the mean of the fold models; of a member for which one model of all rows is better (`Thresholds`), that model.

    BART contributes only its base. "auto" adds it where trees do well: where boosting comes near the best of the other
    members. It is a small one, of few trees and draws, and needs the extra ``largesse[bart]`` to fit, but not to predict
    or load.

    Parameters
    ----------
    models
        Members, the simplest first; "auto" is ``[Additive(), Boosting(), SIRE()]``, with ``Thresholds()`` after the first
        for 0/1 responses and more than a hundred features, as embeddings have them, and perhaps a small BART at the end.
    bart
        Whether it is among them: True, False or "auto": where stochtree is installed, the log has no more than 20,000
        rows, and boosting's held-out loss is at most two paired standard errors above the best member's. Without effect
        where `models` are given.
    folds, seed
        How the log is cut.

    Attributes
    ----------
    members_, whole_
        The fold models of each member, and its model of all rows or None.
    choices_
        What was tried for increments, with its held-out loss and its difference from the best; then the members' choices.
    blend_
        The weights, the common increments, and the share of whose deviations was chosen.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> model = Stack(models=[Additive(), Boosting(rounds=20)]).fit(sim.log)
    >>> next(c.name for c in model.choices_ if c.chosen)
    'common increments'
    """

    members_: tuple[tuple[ResponseModel, ...], ...]
    whole_: tuple[ResponseModel | None, ...]
    blend_: Blend

    def __init__(
        self,
        *,
        models: Sequence[ResponseModel] | str = "auto",
        bart: bool | str = "auto",
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.models = models
        self.bart = bart
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_auto(self, "models")
        refuse("Stack", self._problems())
        models = self._default_models(X.shape[1], log.binary) if isinstance(self.models, str) else list(self.models)
        fold = assign_folds(log, self.folds, self.seed)
        members = [tuple(fit_folds(model, X, log, fold, self)) for model in models]
        held = [held_out_scores(member, X, fold, self.binary_) for member in members]
        if isinstance(self.models, str) and self._wants_bart(models, held, log):
            models.append(BART(seed=self.seed, **SMALL))
            members.append(tuple(fit_folds(models[-1], X, log, fold, self)))
            held.append(held_out_scores(members[-1], X, fold, self.binary_))
        self.members_ = tuple(members)
        self.whole_ = tuple(fit_copy(model, X, log, self.encoder_) if model.whole else None for model in models)
        found = Members(
            names=[type(model).__name__ for model in models],
            shares=[_shares(model) for model in models],
            held=np.array(held),
            together=self._bases(X, held),
        )
        self.blend_, choices = choose_blend(found, log, fold, self.seed)
        own = (replace(choice, of="increments of the stack") for choice in choices)
        self.choices_ = (*own, *(choice for member in members for choice in member[0].choices_))

    def _bases(self, X: Array, held: Sequence[Array]) -> Array:
        """Return the bases (M, n) that new customers like these rows would get."""
        # On rows that it has not seen, one model of all rows varies as much as a fold's model does.
        return np.array(
            [
                mean_scores(member, X, self.binary_).mean(axis=1) if whole is None else scores.mean(axis=1)
                for member, whole, scores in zip(self.members_, self.whole_, held, strict=True)
            ]
        )

    def _problems(self) -> list[Problem]:
        wrong = []
        if not isinstance(self.models, str) and not list(self.models):
            wrong.append(Problem("there are no models to stack", "give at least one, the simplest first"))
        if self.bart not in (True, False, "auto"):
            wrong.append(Problem(f"bart={self.bart!r}", "True, False, or 'auto': where it can be had and rows are few"))
        return wrong

    def _default_models(self, features: int, binary: bool) -> list[ResponseModel]:
        """Return the members for a log of this many encoded features, BART apart."""
        # With few features the others say as much, and one more to choose from is one more to be wrong about.
        thresholds = [Thresholds(seed=self.seed)] if binary and features > MANY else []
        return [Additive(seed=self.seed), *thresholds, Boosting(seed=self.seed), SIRE(seed=self.seed)]

    def _wants_bart(self, models: Sequence[ResponseModel], held: Sequence[Array], log: Log) -> bool:
        """Return whether BART is added: as set, or where boosted trees come near the best member."""
        if self.bart != "auto":
            return bool(self.bart)
        boosted = [m for m, model in enumerate(models) if isinstance(model, Boosting)]
        if not boosted or len(log) > BART_ROWS or not at_hand():
            return False
        losses = np.array([own_level_loss(unlink(score, log.binary), log, log.binary) for score in held])
        best = int(np.argmin(np.average(losses, axis=1, weights=log.weight)))
        behind = mean_estimate(losses[boosted[0]] - losses[best], log.weight, log.cluster)
        return behind.estimate <= NEAR * behind.se

    def _curves(self, X: Array) -> Array:
        asked = [models if one is None else [one] for one, models in zip(self.whole_, self.members_, strict=True)]
        return self._blend_members(X, asked)

    def _blend_members(self, X: Array, members: Sequence[Sequence[ResponseModel]]) -> Array:
        """Return curves (n, K) from the members' scores of encoded features; members without weight do not predict."""
        scores = np.zeros((len(members), len(X), self.levels_))
        for m in self.blend_.used:
            scores[m] = mean_scores(members[m], X, self.binary_)
        return unlink(self.blend_.scores(scores), self.binary_)

    @property
    def weights_(self) -> Array:
        """Weights (M,) of the members' bases."""
        return self.blend_.weights

    def _check_learnt(self) -> None:
        self.blend_.check(len(self.members_))
        if len(self.whole_) != len(self.members_) or len({len(member) for member in self.members_}) != 1:
            raise ValueError(f"{[len(member) for member in self.members_]} fold models of the members")


def _shares(model: ResponseModel) -> tuple[float, ...]:
    """Return the shares of a member's deviations that are tried."""
    if model.only_base:
        return ()
    # A member that has shrunk its own increments is used as it is, or not at all.
    return (1.0,) if model.shrinks else SHARES
