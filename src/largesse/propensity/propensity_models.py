"""Fitted propensity models: classifiers, their calibration, and the function from tables to probabilities.

Other machines receive them as JSON and arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import Encoder
from largesse.io import RecordReader, pack_value
from largesse.propensity.covariate_balancing import LogitCorrections
from largesse.records import Array
from largesse.stats import Trees

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Classifier:
    """Fitted classifier: shares of the classes, a logistic regression, or boosted trees."""

    n_classes: int  # K
    classes: Array  # (m,) int64, of the training rows
    shares: Array | None = None  # (m,)
    coef: Array | None = None  # (1 or m, p): two classes need one score
    intercept: Array | None = None  # (1 or m,): also the baseline of the trees
    trees: Trees | None = None  # by score

    def __call__(self, X: Array) -> Array:
        """Return the class probabilities (n, K) of encoded features (n, p)."""
        probabilities = np.zeros((len(X), self.n_classes))
        if len(X):
            probabilities[:, self.classes] = self._predict(X) if self.shares is None else self.shares
        return probabilities

    def _predict(self, X: Array) -> Array:
        from scipy.special import expit

        assert self.intercept is not None
        if self.trees is None:
            scores = X @ self.coef.T + self.intercept  # type: ignore[union-attr]
        else:
            tree_scores = np.tile(self.intercept, (len(X), 1))[:, :, None]
            self.trees.add_predictions(tree_scores, X)
            scores = tree_scores[:, :, 0]
        if scores.shape[1] > 1:
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            return np.asarray(odds / odds.sum(axis=1, keepdims=True))
        second = expit(scores[:, 0])
        return np.column_stack([1 - second, second])


@dataclass(frozen=True, eq=False)
class LogitCalibration:
    """Calibration of class probabilities by a regression on their logits and squared logits.

    Without `classifier` it is the identity.
    """

    classes: Array  # (m,) int64
    centre: Array  # (m,) of the logits
    spread: Array  # (m,)
    classifier: Classifier | None  # of the positions in `classes`

    def __call__(self, probabilities: Array) -> Array:
        """Return the calibrated class probabilities (n, K) from uncalibrated ones."""
        if self.classifier is None:
            return probabilities
        calibrated = np.zeros(probabilities.shape)
        calibrated[:, self.classes] = self.classifier(
            self.make_regressors(select_centred_logits(probabilities, self.classes))
        )
        return calibrated

    def make_regressors(self, logits: Array) -> Array:
        """Return the regressors of the calibration: standardised logits that vary, and their squares."""
        varies = self.spread > 1e-6
        scaled = (logits - self.centre)[:, varies] / self.spread[varies]
        return np.column_stack([scaled, scaled**2])


def select_centred_logits(probabilities: Array, classes: Array) -> Array:
    """Return the logits (n, m) of some classes (m,), centred by row, from probabilities (n, K)."""
    logits: Array = np.log(np.maximum(probabilities[:, classes], 1e-4))
    logits -= logits.mean(axis=1, keepdims=True)
    return logits


@dataclass(frozen=True, eq=False)
class CalibratedClassifier:
    """Classifier followed by its calibration."""

    classifier: Classifier
    calibration: LogitCalibration

    def __call__(self, X: Array) -> Array:
        """Return the calibrated class probabilities (n, K) of encoded features (n, p)."""
        return self.calibration(self.classifier(X))


@dataclass(frozen=True, eq=False)
class PropensityModel:
    """Classifiers of the levels under each logging policy, and classifier of the logging policy."""

    by_logger: tuple[CalibratedClassifier, ...]  # of the levels, one classifier for each logging policy
    loggers: CalibratedClassifier | None = None  # of the logging policies, if there are several
    tilts: LogitCorrections | None = None


@dataclass(frozen=True, eq=False)
class PropensityScorer:
    """Function from tables of features to level probabilities, which can be sent to other processes.

    It is pickled as JSON and arrays.
    """

    model: PropensityModel
    encoder: Encoder
    logger_encoder: Encoder | None = None  # for `model.loggers`

    def __call__(self, table: pa.Table) -> Array:
        """Return the probabilities (n, K) of all levels for the rows of a table of features.

        They are balanced if the model has corrections.
        """
        return self._predict(table, self.encoder.transform(table))

    def encode_and_predict(self, table: pa.Table) -> Array:
        """Return the encoded features and the level probabilities of a table in one array (n, p + K)."""
        X = self.encoder.transform(table)
        return np.hstack([X, self._predict(table, X)])

    def _predict(self, table: pa.Table, X: Array) -> Array:
        model = self.model
        predictions = [predict(X) for predict in model.by_logger]
        probabilities = predictions[0]
        if model.loggers is not None and self.logger_encoder is not None:
            logger_shares = model.loggers(self.logger_encoder.transform(table))
            probabilities = np.sum(
                [logger_shares[:, [logger]] * prediction for logger, prediction in enumerate(predictions)], axis=0
            )
        return probabilities if model.tilts is None else model.tilts.correct_all_levels(probabilities, X)

    def __reduce__(self) -> tuple[Any, ...]:
        arrays: dict[str, Array] = {}
        state = pack_value(self.model, PropensityModel, "", arrays)
        logger_state = None if self.logger_encoder is None else self.logger_encoder.state
        return restore_propensity_scorer, (state, arrays, self.encoder.state, logger_state)


def restore_propensity_scorer(
    state: Any, arrays: dict[str, Array], encoder: Any, logger_state: Any
) -> PropensityScorer:
    """Restore a propensity scorer from its JSON and arrays."""
    model = RecordReader(arrays).unpack(state, PropensityModel, "", {})
    logger_encoder = None if logger_state is None else Encoder.from_state(logger_state)
    return PropensityScorer(model, Encoder.from_state(encoder), logger_encoder)
