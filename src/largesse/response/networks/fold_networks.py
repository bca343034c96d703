"""Fitted networks of all folds: weights, the scale of the response, and the calculation of curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from largesse.errors import require_part
from largesse.io import Shaped
from largesse.records import Array, Choice
from largesse.response.calibration import Calibration
from largesse.response.level_effects import isotonic
from largesse.response.networks.curve_correction import CurveCorrection, apply_correction
from largesse.response.networks.network_settings import NetworkShape
from largesse.stats import sigmoid


@dataclass(frozen=True)
class ResponseScale:
    """Scale of scores: logits of responses in [0, 1], or standardised amounts."""

    bounded: bool
    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def of(cls, response: Array) -> Self:
        """Return the scale of some responses (n,).

        >>> ResponseScale.of(np.array([0.0, 0.5, 1.0])), ResponseScale.of(np.array([1.0, 3.0]))
        (ResponseScale(bounded=True, mean=0.0, deviation=1.0), ResponseScale(bounded=False, mean=2.0, deviation=1.0))
        """
        if is_bounded(response):
            return cls(True)
        return cls(False, float(response.mean()), float(response.std()) or 1.0)

    def standardise(self, response: Array) -> Array:
        """Return responses on the scale that networks are trained on."""
        return (response - self.mean) / self.deviation

    def restore(self, standardised: Array) -> Array:
        """Return standardised responses on their own scale."""
        return self.mean + self.deviation * standardised

    def responses(self, score: Array) -> Array:
        """Return the responses of scores."""
        return sigmoid(score) if self.bounded else self.restore(score)


def is_bounded(response: Array) -> bool:
    """Return True if all responses lie in [0, 1]."""
    return bool(response.min() >= 0 and response.max() <= 1)


def check_shapes(params: dict[str, Array], shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuse saved parameters with shapes other than the network's: wrong ones might pass by broadcasting."""
    found = {name: array.shape for name, array in params.items()}
    if found != shapes:
        raise ValueError(f"parameters of shapes {found}")


def check_depth(params: dict[str, Array], *depths: int) -> None:
    """Refuse more layers than there are parameters, before any layer is built."""
    if max(depths) > len(params):
        raise ValueError(f"{max(depths)} layers and {len(params)} parameters")


def choose_least(names: Sequence[str], losses: Array, of: str = "") -> tuple[Choice, ...]:
    """Return candidates with their losses (candidates,), the lowest chosen; standard errors are unknown.

    >>> [choice.chosen for choice in choose_least(["a", "b", "c"], np.array([2.0, np.nan, 1.0]))]
    [False, False, True]
    """
    best = int(np.nanargmin(losses)) if np.isfinite(losses).any() else 0
    return tuple(
        Choice(name, float(loss), float(loss - losses[best]), 0.0, i == best, of=of)
        for i, (name, loss) in enumerate(zip(names, losses, strict=True))
    )


@dataclass(frozen=True, eq=False)
class FoldNetworks:
    """Networks of SIRE or IRE, one per fold and member; the mean of their scores is the prediction."""

    shape: NetworkShape
    scale: ResponseScale
    params: dict[str, Annotated[Array, Shaped(..., dtype="float32")]]  # each (members·folds, …)
    gate: Annotated[Array, Shaped("models", dtype="float32")]  # (members·folds,) zero: common increments
    folds: int
    kappa: float
    penalty: float  # on deviations; infinite: common increments
    calibration: Calibration  # of the mean
    correction: CurveCorrection | None  # the second stage

    def scores(self, X: Array) -> Array:
        """Return the mean scores (n, K) of encoded features (n, p): logits for bounded responses."""
        require_part("optax", "networks", "predict")
        from largesse.response.networks.sire_training import mean_scores

        return self.calibration(mean_scores(self.params, X, self.shape, self.gate))

    def curves(self, X: Array) -> Array:
        """Return the expected responses (n, K) of encoded features (n, p); corrected curves are monotone in the level."""
        curves = self.scale.responses(self.scores(X))
        if self.correction is None:
            return curves
        first = {name: value[: self.folds] for name, value in self.params.items()}  # the members it was learnt with
        moved = apply_correction(self.correction, curves, first, X, self.shape)
        return isotonic(np.clip(moved, 0.0, 1.0) if self.scale.bounded else moved)

    def single(self, fold: int) -> FoldNetworks:
        """Return the networks of a single fold."""
        return replace(
            self,
            params={name: value[fold :: self.folds] for name, value in self.params.items()},
            gate=self.gate[fold :: self.folds],
            folds=1,
            calibration=Calibration(),  # it belongs to the mean
            correction=None,  # it was learnt from the very rows that this fold's networks must be honest about
        )

    def check(self, features: int, levels: int) -> None:
        """Raise ValueError unless the arrays fit the network, and the network fits the features and levels."""
        from largesse.response.networks.layers import param_shapes

        models = len(self.gate)
        if self.folds < 1 or models % self.folds:
            raise ValueError(f"{models} models of {self.folds} folds")
        if (self.shape.features, self.shape.levels) != (features, levels):
            raise ValueError(f"a network of {self.shape.features} features and {self.shape.levels} levels")
        check_depth(self.params, self.shape.depth)
        wanted = param_shapes(self.shape)
        check_shapes(self.params, {name: (models, *size) for name, size in wanted.items()})
