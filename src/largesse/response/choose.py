"""The simplest candidate that the best one does not clearly beat: held-out loss and one paired standard error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.progress import portion, track
from largesse.records import Array, Log
from largesse.response.base import ResponseModel, check_auto, fit_copy, fresh, own_level_loss
from largesse.response.boosting import Boosting
from largesse.response.linear import Linear
from largesse.stats import assign_folds, chosen, one_standard_error, sample_rows

ROWS = 50_000  # held-out losses of these tell two models apart; more only take longer


@final
class Choose(ResponseModel):
    """Fit several models and keep one.

    Each candidate predicts every row from a fit that did not see it. The best mean loss wins, unless a simpler candidate
    (earlier in the list) is worse by no more than one standard error of the rows' paired differences.

    Parameters
    ----------
    models
        Candidates, the simplest first; "auto" is ``[Linear(), Boosting()]``.
    folds, seed
        How the log is cut.

    Attributes
    ----------
    choices_
        What was tried, with its loss and its difference from the best.
    model_
        The one that was chosen, fitted to the whole log; predictions are its own.
    """

    model_: ResponseModel

    def __init__(self, *, models: Sequence[ResponseModel] | str = "auto", folds: int = 5, seed: int = 0) -> None:
        self.models = models
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_auto(self, "models")
        default = [Linear(seed=self.seed), Boosting(seed=self.seed)]
        candidates = default if isinstance(self.models, str) else list(self.models)
        if not candidates:
            refuse("Choose", [Problem("there are no models to choose from", "give at least one, the simplest first")])
        some = log if len(log) <= ROWS else log.take(sample_rows(len(log), ROWS, self.seed))
        fold = assign_folds(some, self.folds, self.seed)
        with portion(0.0, 0.8):
            losses = np.array([_held_out(model, some, fold) for model in track(candidates)])
        self.choices_ = one_standard_error(
            [type(m).__name__ for m in candidates], losses, some.weight, some.cluster, of="model"
        )
        kept = chosen(self.choices_)
        # The encoding is the same for every candidate, so the matrix need not be made again.
        with portion(0.8, 1.0):
            self.model_ = fit_copy(candidates[kept], X, log, self.encoder_)

    def _curves(self, X: Array) -> Array:
        return self.model_._curves(X)


def _held_out(model: ResponseModel, log: Log, fold: Array) -> Array:
    losses = np.empty(len(log))
    for f in track(np.unique(fold)):
        test = fold == f
        held = log.take(test)
        losses[test] = own_level_loss(fresh(model).fit(log.take(~test)).predict(held), held, log.binary)
    return losses
