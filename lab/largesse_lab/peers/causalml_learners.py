"""causalml: X- and R-learner with XGBoost, one effect for each level over the cheapest."""

from __future__ import annotations

import numpy as np

from largesse.errors import import_optional_package
from largesse.records import Array
from largesse_lab.peers.boosting_packages import HINT, make_xgboost
from largesse_lab.peers.peer_model import EffectModel


class CausalMLLearner(EffectModel):
    """A meta-learner of causalml, as in its examples: XGBoost regressors, propensities estimated by elastic net.

    `kind` is "BaseXRegressor" or "BaseRRegressor".
    """

    def __init__(self, kind: str = "BaseXRegressor", seed: int = 0) -> None:
        super().__init__(seed)
        self.kind = kind

    def _learn_effects(self, X: Array, level: Array, response: Array) -> None:
        package = import_optional_package("causalml.inference.meta", "", "causalml", hint=HINT)
        names = np.array([f"level {k:02d}" for k in range(self.K)])  # predictions are in the order of these names
        learner = make_xgboost(False, None, self.seed)
        self.estimator = getattr(package, self.kind)(learner=learner, control_name=names[0])
        self.estimator.fit(X=X, treatment=names[level], y=response.astype(np.float64))

    def _predict_effects(self, X: Array) -> Array:
        return np.asarray(self.estimator.predict(X=X), dtype=np.float64)
