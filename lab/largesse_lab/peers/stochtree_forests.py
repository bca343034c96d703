"""stochtree: Bayesian causal forests (BCF), with one effect forest for all levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.errors import import_optional_package
from largesse.records import Array
from largesse_lab.peers.peer_model import PeerModel


class CausalForestBCF(PeerModel):
    """`BCFModel` with the sampler's settings of its tutorial: 10 warm-start sweeps, then 100 draws.

    With two levels it estimates propensities itself; for more levels (a vector of treatments) it has no propensity model. 0/1 responses
    are learnt with the identity link.
    """

    def _learn(self, X: Array, level: Array, response: Array) -> None:
        package = import_optional_package("stochtree", "", "stochtree", hint="pip install stochtree")
        self.model = package.BCFModel()
        general: dict[str, Any] = {"random_seed": self.seed, "num_threads": 1}
        if self.K > 2:
            general |= {"propensity_covariate": "none", "adaptive_coding": False}
        effects = {"sample_sigma2_leaf": False}
        self.model.sample(
            X_train=X,
            Z_train=self._encode(level),
            y_train=response.astype(np.float64),
            num_gfr=10,
            num_burnin=0,
            num_mcmc=100,
            general_params=general,
            treatment_effect_forest_params=effects,
        )

    def _encode(self, level: Array) -> Array:
        steps = (level[:, None] == np.arange(1, self.K)).astype(np.float64)
        return steps[:, 0] if self.K == 2 else steps

    def _predict(self, X: Array) -> Array:
        curves = []
        for k in range(self.K):
            Z = self._encode(np.full(len(X), k))
            curves.append(np.ravel(self.model.predict(X=X, Z=Z, type="mean", terms="y_hat")))
        return np.column_stack(curves)
