"""T-learner baseline: one model per level, each fitted to the rows of that level."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, final

import numpy as np

from largesse.io import ONE_LEVEL, ArraySpec
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response import Linear, ResponseModel, check_auto_setting, copy_unfitted, fit_copy

FEWEST = 20  # a level with fewer rows is predicted by a model of all rows: a handful would say anything


@final
class TLearner(ResponseModel):
    """Response model with a separate regression per level, fitted to the rows of that level.

    Parameters
    ----------
    model
        The model of each level: a response model, or any regressor or classifier in scikit-learn's style
        (`fit(X, y)`, `predict` or `predict_proba`); only the former can be saved. "auto" is ``Linear()``.
    seed
        For that default.

    Attributes
    ----------
    models_
        One fitted model per level; if some level has too few rows, one more, of all rows.
    own_
        The place (K,) in that list of each level's model.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> TLearner().fit(sim.log).predict(sim.features[:2]).shape
    (2, 5)
    """

    models_: tuple[Annotated[ResponseModel, ONE_LEVEL], ...]
    own_: Annotated[Array, ArraySpec("K", dtype="int64")]

    def __init__(self, *, model: Any = "auto", seed: int = 0) -> None:
        self.model = model
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_auto_setting(self, "model")
        model = Linear(seed=self.seed) if isinstance(self.model, str) else self.model
        K = len(log.levels)
        count = np.bincount(log.level, minlength=K)
        enough = np.flatnonzero(count >= FEWEST)
        self.own_ = np.full(K, len(enough))
        self.own_[enough] = np.arange(len(enough))
        parts = [log.level == k for k in enough] + ([np.ones(len(log), dtype=bool)] if len(enough) < K else [])
        self.models_ = tuple(self._fit_level_model(model, X[mine], log.take(mine)) for mine in parts)

    def _fit_level_model(self, model: Any, X: Array, log: Log) -> Any:
        if isinstance(model, ResponseModel):
            rows = replace(log, level=np.zeros_like(log.level), levels=Levels(costs=[0.0]), costs=None)
            return fit_copy(model, X, rows, self.encoder_)
        estimator = copy_unfitted(model) if hasattr(model, "get_params") else model
        response = log.response
        if self.binary_ and hasattr(estimator, "predict_proba"):
            response = response.astype(np.int64)
            if np.ptp(response) == 0:  # classifiers want two classes
                return _ConstantPrediction(float(response[0]))
        extra = {} if log.weight is None else {"sample_weight": log.weight}
        return estimator.fit(X, response, **extra)

    def _curves(self, X: Array) -> Array:
        columns = [_predict_level_responses(self.models_[k], X) for k in self.own_]
        curves = np.column_stack(columns).astype(np.float64)
        return np.clip(curves, 0.0, 1.0) if self.binary_ else curves

    def _check_learnt(self) -> None:
        if not ((self.own_ >= 0) & (self.own_ < len(self.models_))).all():
            raise ValueError(f"levels predicted by the models {self.own_.tolist()} of {len(self.models_)}")


class _ConstantPrediction:
    """Model that predicts a constant, for levels whose responses are all equal."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, X: Array) -> Array:
        """Return the constant for every row."""
        return np.full(len(X), self.value)


def _predict_level_responses(model: Any, X: Array) -> Array:
    """Return the responses (n,) that the model of one level predicts for rows."""
    if isinstance(model, ResponseModel):
        return model._curves(X)[:, 0]
    if not len(X):
        return np.zeros(0)
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else np.ravel(model.predict(X))
