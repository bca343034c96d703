"""Logistic (0/1 responses) or ridge regression on features and ordered level steps."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from largesse.records import Array, Log
from largesse.response.base import ResponseModel
from largesse.response.regression import StepFit, fit_steps


@final
class Linear(ResponseModel):
    """Features shift the whole curve; each level adds one common step, never downwards.

    Parameters
    ----------
    penalty
        Ridge penalty on the features' coefficients (per row); None chooses it by cross-validation.
    seed
        For that cross-validation.

    Attributes
    ----------
    coef_, intercept_, steps_
        Coefficients (p,), intercept, and the K−1 steps, on the logit scale for 0/1 responses.
    penalty_
        The penalty used.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> Linear().fit(sim.log).predict(sim.features[:2]).shape
    (2, 5)
    """

    def __init__(self, *, penalty: float | None = None, seed: int = 0) -> None:
        self.penalty = penalty
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        self._take(
            fit_steps(
                X,
                log.level,
                log.response,
                K=len(log.levels),
                binary=log.binary,
                weight=log.weight,
                penalty=self.penalty,
                seed=self.seed,
            )
        )

    def _take(self, fit: StepFit) -> None:
        self.coef_, self.intercept_, self.steps_, self.penalty_ = fit.coef, fit.intercept, fit.steps, fit.penalty

    def _curves(self, X: Array) -> Array:
        return StepFit(self.coef_, self.intercept_, self.steps_, self.binary_, self.penalty_).predict(X)

    def _keep(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"intercept": self.intercept_, "penalty": self.penalty_}, {"coef": self.coef_, "steps": self.steps_}

    def _recall(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        coef, steps = (np.asarray(arrays[name], dtype=np.float64) for name in ("coef", "steps"))
        if coef.shape != (len(self.encoder_.names),) or steps.shape != (self.levels_ - 1,):
            raise ValueError(f"coefficients {coef.shape} and steps {steps.shape} do not fit features and levels")
        self._take(StepFit(coef, float(facts["intercept"]), steps, self.binary_, float(facts["penalty"])))
