"""S- and T-learners with gradient boosting of scikit-learn, LightGBM and XGBoost; the S-learner's response never falls with the level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from largesse.errors import require_part
from largesse.records import Array
from largesse.response import make_monotone
from largesse_lab.peers.peer_model import PeerModel

HINT = "pip install -e 'lab[peers]' in a checkout of the repository"
Constraints = list[int] | None


def make_sklearn(binary: bool, constraints: Constraints, seed: int) -> Any:
    """Return scikit-learn's histogram boosting with early stopping."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
    return kind(monotonic_cst=constraints, early_stopping=True, random_state=seed)


def make_lightgbm(binary: bool, constraints: Constraints, seed: int) -> Any:
    """Return LightGBM with its defaults and many small steps, as its guide to accuracy advises."""
    package = require_part("lightgbm", "", "LightGBM", hint=HINT)
    kind = package.LGBMClassifier if binary else package.LGBMRegressor
    settings = {"learning_rate": 0.05, "n_estimators": 200, "num_leaves": 15, "n_jobs": 1, "verbose": -1}
    return kind(monotone_constraints=constraints, monotone_constraints_method="advanced", random_state=seed, **settings)


def make_xgboost(binary: bool, constraints: Constraints, seed: int) -> Any:
    """Return XGBoost with its defaults and many small steps, as its notes on tuning advise."""
    package = require_part("xgboost", "", "XGBoost", hint=HINT)
    kind = package.XGBClassifier if binary else package.XGBRegressor
    settings = {"learning_rate": 0.05, "n_estimators": 200, "max_depth": 4, "subsample": 0.8, "n_jobs": 1}
    return kind(monotone_constraints=None if constraints is None else tuple(constraints), random_state=seed, **settings)


LEVEL_BOOSTERS: dict[str, Callable[[bool, Constraints, int], Any]] = {
    "sklearn": make_sklearn,
    "lightgbm": make_lightgbm,
    "xgboost": make_xgboost,
}


class LevelBooster(PeerModel):
    """Boosting of features and level (S-learner, monotone in the level), or of the features at each level (T-learner)."""

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
