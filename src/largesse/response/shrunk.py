"""Any model with its customers' own increments held to the common ones, as strongly as held-out rows advise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from largesse.errors import Problem, refuse
from largesse.records import Array, Log
from largesse.response.base import ResponseModel
from largesse.response.boosting import Boosting
from largesse.response.fold_ensemble import fit_folds, held_out_scores, mean_scores
from largesse.response.steps import Blend, blend, unlinked
from largesse.stats import assign_folds


@final
class Shrunk(ResponseModel):
    """A model's base, common steps fitted anew, and a share of its deviations from them.

    The model is fitted once per fold. Its held-out curves, on the logit scale for 0/1 responses, are split into base +
    common steps + deviations; the smallest share of the deviations is kept that is worse than the best share by no more
    than one standard error of the rows' paired losses. New customers get the mean of the fold models, treated alike.

    Parameters
    ----------
    model
        What is shrunk; None is ``Boosting()``.
    weights
        The shares that are tried; 0 (the same steps for all) is always among them.
    folds, seed
        How the log is cut.

    Attributes
    ----------
    choices_
        What was tried, with its held-out loss and its difference from the best.
    models_
        The fold models.
    blend_
        The common steps, the share that was chosen, and what deviations are measured from.

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
        model: ResponseModel | None = None,
        weights: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.weights = weights
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_shares("Shrunk", self.weights)
        model = self.model if self.model is not None else Boosting(seed=self.seed)
        fold = assign_folds(log, self.folds, self.seed)
        self.models_ = tuple(fit_folds(model, X, log, fold, self))
        held = held_out_scores(self.models_, X, fold, self.binary_)[None]
        together = mean_scores(self.models_, X, self.binary_).mean(axis=1)[None]
        self.blend_, self.choices_ = blend(held, together, [type(model).__name__], log, fold, [self.weights], self.seed)

    def _curves(self, X: Array) -> Array:
        scores = mean_scores(self.models_, X, self.binary_)[None]
        return unlinked(self.blend_.scores(scores), self.binary_)

    def _check_learnt(self) -> None:
        self.blend_.check(1)


def check_shares(what: str, shares: Sequence[float]) -> None:
    """Refuse shares of deviations outside [0, 1]."""
    outside = [share for share in shares if not 0 <= share <= 1]
    problem = Problem(f"the weights {outside} of deviations are outside [0, 1]", "0 is common steps, 1 the model's own")
    refuse(what, [problem] if outside else [])
