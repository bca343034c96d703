"""The simplest candidate that the best one does not clearly beat: held-out loss and one paired standard error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.progress import subrange, track
from largesse.records import Array, Log
from largesse.response.base import ResponseModel, blank_copy, check_auto, fit_copy, own_level_loss, take_rows
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
        few, some = take_rows(X, log, sample_rows(len(log), ROWS, self.seed))
        fold = assign_folds(some, self.folds, self.seed)
        with subrange(0.0, 0.8):
            blank = [blank_copy(model, some, self.encoder_) for model in candidates]
            losses = np.array([_held_out(model, few, some, fold) for model in track(blank)])
        self.choices_ = one_standard_error(
            [type(m).__name__ for m in candidates], losses, some.weight, some.cluster, of="model"
        )
        kept = chosen(self.choices_)
        # The encoding is the same for every candidate, so the matrix need not be made again.
        with subrange(0.8, 1.0):
            self.model_ = fit_copy(candidates[kept], X, log, self.encoder_)

    def _curves(self, X: Array) -> Array:
        return self.model_._curves(X)


def _held_out(model: ResponseModel, X: Array, log: Log, fold: Array) -> Array:
    return own_level_loss(model._hold_out(X, log, fold).curves, log, log.binary)
