"""Any model, its curves made non-falling one customer at a time (pool adjacent violators)."""

from __future__ import annotations

from typing import final

from largesse.records import Array, Log
from largesse.response.base import ResponseModel, fit_copy
from largesse.response.boosting import Boosting
from largesse.response.steps import isotonic


@final
class Pava(ResponseModel):
    """A model's curves, each moved to the nearest one that never falls in the level.

    Where the truth never falls this cannot hurt: a projection onto a convex set brings every curve nearer to what is in it.

    Parameters
    ----------
    model
        What is projected; None is ``Boosting()``.
    seed
        For that default.

    Attributes
    ----------
    model_
        The fitted model.
    """

    model_: ResponseModel

    def __init__(self, *, model: ResponseModel | None = None, seed: int = 0) -> None:
        self.model = model
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        model = self.model if self.model is not None else Boosting(seed=self.seed)
        self.model_ = fit_copy(model, X, log, self.encoder_)

    def _curves(self, X: Array) -> Array:
        return isotonic(self.model_._curves(X))
