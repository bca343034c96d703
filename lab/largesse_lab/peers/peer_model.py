"""Base classes that adapt other packages' methods to logs and response curves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from largesse.data import Encoder
from largesse.evaluation import compute_paid_costs
from largesse.records import Array, Log


class PeerModel:
    """Base class of an adapted method that learns from encoded features (n, p), levels and responses."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, log: Log) -> Self:
        """Fit the method to a log."""
        self.encoder, self.K, self.binary = Encoder(), len(log.levels), log.binary
        X = self.encoder.fit_transform(log.features, log.response, seed=self.seed).astype(np.float64)
        rows = np.bincount(log.level, minlength=self.K)
        self.level_costs = np.bincount(log.level, compute_paid_costs(log), self.K) / np.maximum(rows, 1)
        self._learn(X, log.level, log.response)
        return self

    def predict(self, customers: Any) -> Array:
        """Return the predicted curves (n, K) of customers; probabilities are clipped to 0 and 1."""
        curves = np.asarray(self._predict(self.encoder.transform(customers).astype(np.float64)), dtype=np.float64)
        return np.clip(curves, 0.0, 1.0) if self.binary else curves

    def _learn(self, X: Array, level: Array, response: Array) -> None:
        raise NotImplementedError

    def _predict(self, X: Array) -> Array:
        raise NotImplementedError


class EffectModel(PeerModel):
    """Base class of a method that estimates the effect of each level over the cheapest level.

    Boosting on the rows of the cheapest level gives the rest.
    """

    def _learn(self, X: Array, level: Array, response: Array) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind = HistGradientBoostingClassifier if self.binary else HistGradientBoostingRegressor
        cheapest = level == 0
        # A held-out part needs rows of both classes.
        early = not self.binary or min(response[cheapest].sum(), (1 - response[cheapest]).sum()) >= 10
        self.base = kind(early_stopping=early, random_state=self.seed).fit(X[cheapest], response[cheapest])
        self._learn_effects(X, level, response)

    def _predict(self, X: Array) -> Array:
        base = self.base.predict_proba(X)[:, 1] if self.binary else self.base.predict(X)
        return base[:, None] + np.column_stack([np.zeros(len(X)), self._predict_effects(X)])

    def _learn_effects(self, X: Array, level: Array, response: Array) -> None:
        raise NotImplementedError

    def _predict_effects(self, X: Array) -> Array:
        """Return the effects (n, K − 1) of the levels over the cheapest."""
        raise NotImplementedError
