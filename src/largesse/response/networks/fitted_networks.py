"""Fitted networks of all folds: parameters, scale of the response, and prediction of curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from largesse.errors import import_optional_package
from largesse.io import ArraySpec
from largesse.records import Array, CandidateLoss
from largesse.response.ensemble_calibration import ScoreCalibration
from largesse.response.level_effect_estimation import make_monotone
from largesse.response.networks.doubly_robust_correction import CurveCorrection, apply_correction
from largesse.response.networks.network_settings import NetworkShape
from largesse.stats import sigmoid


@dataclass(frozen=True)
class ResponseScale:
    """Scale of network scores: logits for responses in [0, 1], else standardised amounts."""

    bounded: bool
    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def choose_scale(cls, response: Array) -> Self:
        """Choose the scale of network scores from responses (n,).

        >>> ResponseScale.choose_scale(np.array([0.0, 0.5, 1.0])), ResponseScale.choose_scale(np.array([1.0, 3.0]))
        (ResponseScale(bounded=True, mean=0.0, deviation=1.0), ResponseScale(bounded=False, mean=2.0, deviation=1.0))
        """
        if is_bounded(response):
            return cls(True)
        return cls(False, float(response.mean()), float(response.std()) or 1.0)

    def standardise(self, response: Array) -> Array:
        """Convert responses to the scale on which networks are trained."""
        return (response - self.mean) / self.deviation

    def restore_units(self, standardised: Array) -> Array:
        """Convert standardised responses back to their original scale."""
        return self.mean + self.deviation * standardised

    def convert_scores_to_responses(self, score: Array) -> Array:
        """Convert network scores to expected responses."""
        return sigmoid(score) if self.bounded else self.restore_units(score)


def is_bounded(response: Array) -> bool:
    """Test if all responses lie in [0, 1]."""
    return bool(response.min() >= 0 and response.max() <= 1)


def check_parameter_shapes(params: dict[str, Array], shapes: dict[str, tuple[int, ...]]) -> None:
    """Raise ValueError if saved parameters do not have the shapes that the network needs.

    Wrong shapes might pass by broadcasting.
    """
    actual = {name: array.shape for name, array in params.items()}
    if actual != shapes:
        raise ValueError(f"parameters of shapes {actual}")


def check_saved_layers(params: dict[str, Array], *depths: int) -> None:
    """Raise ValueError if a network has more layers than saved parameters.

    It is checked before any layer is built.
    """
    if max(depths) > len(params):
        raise ValueError(f"{max(depths)} layers and {len(params)} parameters")


def mark_lowest_loss(names: Sequence[str], losses: Array, of: str = "") -> tuple[CandidateLoss, ...]:
    """Return each candidate's loss as a `CandidateLoss`, and mark the candidate with the lowest loss.

    Standard errors are unknown, and set to 0.

    >>> [choice.chosen for choice in mark_lowest_loss(["a", "b", "c"], np.array([2.0, np.nan, 1.0]))]
    [False, False, True]
    """
    best = int(np.nanargmin(losses)) if np.isfinite(losses).any() else 0
    return tuple(
        CandidateLoss(name, float(loss), float(loss - losses[best]), 0.0, i == best, of=of)
        for i, (name, loss) in enumerate(zip(names, losses, strict=True))
    )


@dataclass(frozen=True, eq=False)
class FoldNetworkEnsemble:
    """Fitted SIRE or IRE networks, one or more for each fold, which predict by their mean score."""

    shape: NetworkShape
    scale: ResponseScale
    params: dict[str, Annotated[Array, ArraySpec(..., dtype="float32")]]  # each (members·folds, …)
    gate: Annotated[Array, ArraySpec("models", dtype="float32")]  # (members·folds,) zero: common increments
    folds: int
    kappa: float
    penalty: float  # on deviations; infinite: common increments
    calibration: ScoreCalibration  # of the mean
    correction: CurveCorrection | None  # the second stage

    def scores(self, X: Array) -> Array:
        """Return the networks' mean scores (n, K) of encoded features (n, p).

        Scores are logits if responses are bounded.
        """
        import_optional_package("optax", "networks", "predict")
        from largesse.response.networks.sire_training import predict_mean_scores

        return self.calibration(predict_mean_scores(self.params, X, self.shape, self.gate))

    def predict_curves(self, X: Array) -> Array:
        """Return the expected responses (n, K) of encoded features (n, p).

        Corrected curves are monotone in the level.
        """
        curves = self.scale.convert_scores_to_responses(self.scores(X))
        if self.correction is None:
            return curves
        first = {name: value[: self.folds] for name, value in self.params.items()}  # members that it was fitted with
        moved = apply_correction(self.correction, curves, first, X, self.shape)
        return make_monotone(np.clip(moved, 0.0, 1.0) if self.scale.bounded else moved)

    def networks_of_fold(self, fold: int) -> FoldNetworkEnsemble:
        """Return the networks of one fold, without calibration and correction."""
        return replace(
            self,
            params={name: value[fold :: self.folds] for name, value in self.params.items()},
            gate=self.gate[fold :: self.folds],
            folds=1,
            calibration=ScoreCalibration(),  # it belongs to the mean
            correction=None,  # it was fitted to the rows that this fold's networks hold out
        )

    def check(self, features: int, levels: int) -> None:
        """Raise ValueError unless the saved arrays match the network's shape, features and levels."""
        from largesse.response.networks.layers import parameter_shapes

        models = len(self.gate)
        if self.folds < 1 or models % self.folds:
            raise ValueError(f"{models} models of {self.folds} folds")
        if (self.shape.features, self.shape.levels) != (features, levels):
            raise ValueError(f"a network of {self.shape.features} features and {self.shape.levels} levels")
        check_saved_layers(self.params, self.shape.depth)
        wanted = parameter_shapes(self.shape)
        check_parameter_shapes(self.params, {name: (models, *size) for name, size in wanted.items()})
