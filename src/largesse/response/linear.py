"""Logistic (0/1 responses) or ridge regression on features and ordered level steps."""

from __future__ import annotations

from typing import final

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
    fit_
        Coefficients (p,), intercept, the K−1 steps (on the logit scale for 0/1 responses), and the penalty used.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> Linear().fit(sim.log).predict(sim.features[:2]).shape
    (2, 5)
    """

    fit_: StepFit

    def __init__(self, *, penalty: float | None = None, seed: int = 0) -> None:
        self.penalty = penalty
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        self.fit_ = fit_steps(
            X,
            log.level,
            log.response,
            K=len(log.levels),
            binary=log.binary,
            weight=log.weight,
            penalty=self.penalty,
            seed=self.seed,
        )

    def _curves(self, X: Array) -> Array:
        return self.fit_.predict(X)

    @property
    def penalty_(self) -> float:
        """The ridge penalty that was used."""
        return self.fit_.penalty

    def _check_learnt(self) -> None:
        if len(self.fit_.coef) != len(self.encoder_.names):
            raise ValueError(f"{len(self.fit_.coef)} coefficients of {len(self.encoder_.names)} features")
