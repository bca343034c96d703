"""Several models made one: bases weighted together, increments as much the customers' own as held-out rows advise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array, Log
from largesse.response.additive import Additive
from largesse.response.base import ResponseModel, fit_copy, row_losses
from largesse.response.baselines.bart import BART, at_hand
from largesse.response.boosting import Boosting
from largesse.response.fold_ensemble import fit_folds, held_out_scores, mean_scores
from largesse.response.interval import jackknife_factor, mean_bounds
from largesse.response.steps import Blend, blend, unlinked
from largesse.response.thresholds import MANY, Thresholds
from largesse.stats import assign_folds, mean_estimate

ROWS = 50_000  # show the mean curve
SHARES = (0.0, 0.25, 0.5, 1.0)  # of one member's deviations
NEAR = 2.0  # standard errors: trees that are further behind the best member have nothing to add to it
BART_ROWS = 20_000  # in a log with more, trees that are grown by boosting see as much and cost less
SMALL: dict[str, Any] = {"trees": 50, "draws": 20, "warm": 0, "burn": 50}  # of a BART that is one member of several


@final
class Stack(ResponseModel):
    """What members are good at is taken from each: where a customer's curve lies, and how it rises, are chosen apart.

    Every member is fitted once per fold and predicts the rows it has not seen. On the logit scale for 0/1 responses, the
    base (a curve's mean over levels) is the best member's, or that of all weighted together where held-out rows say that
    it is clearly better; common steps are fitted to it. Then a share of one member's deviations from common steps is
    added: the smallest that is worse than the best by no more than one standard error of the rows' paired losses. New
    customers get the mean of the fold models; from `Thresholds`, whose mean of models would be no more than one of fewer
    rows, what it says once fitted to all rows.

    Of a BART only the base is used: its deviations are draws of noise often enough to be chosen for nothing. It is asked
    where trees have something to say: where boosting comes near the best of the other members. It is a small one, of few
    trees and draws, and needs the extra ``largesse[bart]`` to fit, but not to predict or load.

    Parameters
    ----------
    models
        Members, the simplest first; None is ``[Additive(), Boosting(), SIRE()]``, with ``Thresholds()`` after the first
        for 0/1 responses and more than a hundred features, as embeddings have them, and, perhaps, a small BART at the end.
    bart
        Whether it is among them: True, False or "auto", where stochtree is installed, the log has no more than 20,000
        rows, and boosting's held-out loss is at most two paired standard errors above the best member's. Without effect
        where `models` are given.
    folds, seed
        How the log is cut.

    Attributes
    ----------
    members_, whole_
        The fold models of each member, and its model of all rows or None.
    choices_
        What was tried for increments, with its held-out loss and its difference from the best.
    blend_
        The weights, the common steps, and the share of whose deviations was chosen.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> model = Stack(models=[Additive(), Boosting(rounds=20)]).fit(sim.log)
    >>> next(c.name for c in model.choices_ if c.chosen)
    'common steps'
    """

    members_: tuple[tuple[ResponseModel, ...], ...]
    whole_: tuple[ResponseModel | None, ...]
    blend_: Blend

    def __init__(
        self,
        *,
        models: Sequence[ResponseModel] | None = None,
        bart: bool | str = "auto",
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.models = models
        self.bart = bart
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        refuse("Stack", self._problems())
        models = list(self.models) if self.models is not None else self._usual(X.shape[1], log.binary)
        fold = assign_folds(log, self.folds, self.seed)
        members = [tuple(fit_folds(model, X, log, fold, self)) for model in models]
        held = np.array([held_out_scores(member, X, fold, self.binary_) for member in members])
        if self.models is None and self._wants_bart(models, held, log):
            models.append(BART(seed=self.seed, **SMALL))
            members.append(tuple(fit_folds(models[-1], X, log, fold, self)))
            held = np.concatenate([held, held_out_scores(members[-1], X, fold, self.binary_)[None]])
        self.members_ = tuple(members)
        self.whole_ = tuple(fit_copy(model, X, log, self.encoder_) if model.whole else None for model in models)
        # One model of all rows is as bold on rows that it has not seen as a fold's model is.
        together = np.array(
            [
                held[m].mean(axis=1) if self.whole_[m] else mean_scores(member, X, self.binary_).mean(axis=1)
                for m, member in enumerate(self.members_)
            ]
        )
        names = [type(model).__name__ for model in models]
        shares = [_shares(model) for model in models]
        self.blend_, choices = blend(held, together, names, log, fold, shares, self.seed)
        own = (replace(choice, of="increments of the stack") for choice in choices)
        self.choices_ = (*own, *(choice for member in members for choice in member[0].choices_))

    def _problems(self) -> list[Problem]:
        wrong = []
        if self.models is not None and not list(self.models):
            wrong.append(Problem("there are no models to stack", "give at least one, the simplest first"))
        if self.bart not in (True, False, "auto"):
            wrong.append(Problem(f"bart={self.bart!r}", "True, False, or 'auto': where it can be had and rows are few"))
        return wrong

    def _usual(self, features: int, binary: bool) -> list[ResponseModel]:
        """Return the members for a log of so many encoded features, BART apart."""
        from largesse.response.networks.sire import SIRE

        # With few features the others say as much, and one more to choose from is one more to be wrong about.
        thresholds = [Thresholds(seed=self.seed)] if binary and features > MANY else []
        return [Additive(seed=self.seed), *thresholds, Boosting(seed=self.seed), SIRE(seed=self.seed)]

    def _wants_bart(self, models: Sequence[ResponseModel], held: Array, log: Log) -> bool:
        """Return whether trees are to be asked once more: as told, or where boosted ones come near the best member."""
        if self.bart != "auto":
            return bool(self.bart)
        boosted = [m for m, model in enumerate(models) if isinstance(model, Boosting)]
        if not boosted or len(log) > BART_ROWS or not at_hand():
            return False
        losses = np.array([row_losses(unlinked(score, log.binary), log) for score in held])
        best = int(np.argmin(np.average(losses, axis=1, weights=log.weight)))
        behind = mean_estimate(losses[boosted[0]] - losses[best], log.weight, log.cluster)
        return behind.estimate <= NEAR * behind.se

    def _curves(self, X: Array) -> Array:
        asked = [models if one is None else [one] for one, models in zip(self.whole_, self.members_, strict=True)]
        return self._blended(X, asked)

    def _blended(self, X: Array, members: Sequence[Sequence[ResponseModel]]) -> Array:
        """Return curves (n, K) from the members' scores of encoded features; who has no say in them is not asked."""
        scores = np.zeros((len(members), len(X), self.levels_))
        for m in self.blend_.used:
            scores[m] = mean_scores(members[m], X, self.binary_)
        return unlinked(self.blend_.scores(scores), self.binary_)

    def mean_interval(self, customers: Any, level: float = 0.9) -> tuple[Array, Array] | None:
        """Return the ends (K,), (K,) of intervals around the mean curve of customers, from the spread of the folds."""
        X = self.encode(customers)
        if not len(X) or len(self.members_[0]) < 2:
            return None
        X = X[:: -(-len(X) // ROWS)]
        folds = zip(*self.members_, strict=True)
        means = [self._blended(X, [[model] for model in fold]).mean(axis=0) for fold in folds]
        return mean_bounds(np.array(means), jackknife_factor(len(means)), level)

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
    if isinstance(model, BART):
        return ()
    # A member that has shrunk its own increments is taken at its word, or not at all.
    return (1.0,) if model.shrinks else SHARES
