"""S- and T-learners with gradient boosting of scikit-learn, LightGBM or XGBoost."""

from __future__ import annotations

import numpy as np

from largesse.records import Array
from largesse.response import make_monotone
from largesse_lab.peers.boosting_packages import LEVEL_BOOSTERS
from largesse_lab.peers.peer_model import PeerModel


class BoostingLearner(PeerModel):
    """Gradient boosting as an S-learner (level is a monotone feature) or as a T-learner (one model per level)."""

    def __init__(self, package: str = "sklearn", *, per_level: bool = False, seed: int = 0) -> None:
        super().__init__(seed)
        self.package, self.per_level = package, per_level

    def _learn(self, X: Array, level: Array, response: Array) -> None:
        make = LEVEL_BOOSTERS[self.package]
        if self.per_level:
            parts = [level == k for k in range(self.K)]
            self.models = [make(self.binary, None, self.seed).fit(X[part], response[part]) for part in parts]
        else:
            constraints = [0] * X.shape[1] + [1]
            self.models = [make(self.binary, constraints, self.seed).fit(np.column_stack([X, level]), response)]

    def _predict(self, X: Array) -> Array:
        models = self.models if self.per_level else self.models * self.K
        inputs = [X if self.per_level else np.column_stack([X, np.full(len(X), k)]) for k in range(self.K)]
        pairs = zip(models, inputs, strict=True)
        columns = [model.predict_proba(X_k)[:, 1] if self.binary else model.predict(X_k) for model, X_k in pairs]
        return make_monotone(np.column_stack(columns).astype(np.float64))
