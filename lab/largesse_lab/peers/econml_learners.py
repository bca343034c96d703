"""EconML: doubly robust learners and the causal forest, for levels without an order."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.errors import import_optional_package
from largesse.records import Array
from largesse_lab.peers.boosting_packages import HINT
from largesse_lab.peers.peer_model import EffectModel


class EconMLLearner(EffectModel):
    """Estimator of EconML with its automatic first-stage models, which also estimate the propensities.

    `kind` is "DRLearner" (final stage: boosting), "LinearDRLearner" or "CausalForestDML".
    """

    def __init__(self, kind: str = "LinearDRLearner", seed: int = 0) -> None:
        super().__init__(seed)
        self.kind = kind

    def _learn_effects(self, X: Array, level: Array, response: Array) -> None:
        self.estimator = self._make_estimator()
        self.estimator.fit(response, level, X=X)

    def _make_estimator(self) -> Any:
        shared = {"discrete_outcome": self.binary, "random_state": self.seed}
        if self.kind == "CausalForestDML":
            package = import_optional_package("econml.dml", "", "EconML", hint=HINT)
            return package.CausalForestDML(discrete_treatment=True, categories=list(range(self.K)), **shared)
        package = import_optional_package("econml.dr", "", "EconML", hint=HINT)
        if self.kind == "DRLearner":
            from sklearn.ensemble import HistGradientBoostingRegressor

            final = HistGradientBoostingRegressor(early_stopping=True, random_state=self.seed)
            return package.DRLearner(model_final=final, categories=list(range(self.K)), **shared)
        return package.LinearDRLearner(categories=list(range(self.K)), **shared)

    def _predict_effects(self, X: Array) -> Array:
        effects = [np.ravel(self.estimator.effect(X, T0=0, T1=k)) for k in range(1, self.K)]
        return np.column_stack(effects)
