"""Fitted propensity models as records of arrays: another machine can predict with them, and nothing is pickled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import Encoder
from largesse.io import Reader, pack
from largesse.propensity.balance import Tilts
from largesse.records import Array
from largesse.stats import Trees

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Classifier:
    """A fitted classifier: shares of the target, a logistic regression, or boosted trees; exactly one of them is set."""

    kinds: int  # K, of the target
    known: Array  # (m,) int64 kinds that it has learnt
    shares: Array | None = None  # (m,)
    coef: Array | None = None  # (1 or m, p): two kinds need one score
    intercept: Array | None = None  # (1 or m,) also the baseline of the trees
    trees: Trees | None = None  # those of the first score, then those of the next

    def __call__(self, X: Array) -> Array:
        """Return the probabilities (n, K) of encoded features (n, p)."""
        found = np.zeros((len(X), self.kinds))
        if len(X):
            found[:, self.known] = self._predict(X) if self.shares is None else self.shares
        return found

    def _predict(self, X: Array) -> Array:
        from scipy.special import expit

        assert self.intercept is not None
        if self.trees is None:
            scores = X @ self.coef.T + self.intercept  # type: ignore[union-attr]
        else:
            out = np.tile(self.intercept, (len(X), 1))[:, :, None]
            self.trees.add_to(out, X)
            scores = out[:, :, 0]
        if scores.shape[1] > 1:
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            return np.asarray(odds / odds.sum(axis=1, keepdims=True))
        high = expit(scores[:, 0])
        return np.column_stack([1 - high, high])


@dataclass(frozen=True, eq=False)
class LogitCalibration:
    """A regression of the target on the logits of probabilities and on their squares; no `classifier` leaves them alone."""

    known: Array  # (m,) int64 kinds of the target
    centre: Array  # (m,) of the logits
    spread: Array  # (m,)
    classifier: Classifier | None  # of the known kinds, by their places

    def __call__(self, found: Array) -> Array:
        """Return calibrated probabilities (n, K)."""
        if self.classifier is None:
            return found
        out = np.zeros(found.shape)
        out[:, self.known] = self.classifier(self.scale(to_logits(found, self.known)))
        return out

    def scale(self, logits: Array) -> Array:
        """Return what the regression learns from: standardised logits that vary, and their squares."""
        varies = self.spread > 1e-6
        scaled = (logits - self.centre)[:, varies] / self.spread[varies]
        return np.column_stack([scaled, scaled**2])


def to_logits(found: Array, known: Array) -> Array:
    """Return the centred logits (n, m) of the probabilities (n, K) of some kinds (m,)."""
    logits: Array = np.log(np.maximum(found[:, known], 1e-4))
    logits -= logits.mean(axis=1, keepdims=True)
    return logits


@dataclass(frozen=True, eq=False)
class CalibratedClassifier:
    """A classifier and its calibration."""

    classifier: Classifier
    calibration: LogitCalibration

    def __call__(self, X: Array) -> Array:
        """Return the probabilities (n, K) of encoded features (n, p)."""
        return self.calibration(self.classifier(X))


@dataclass(frozen=True, eq=False)
class PropensityModel:
    """The probabilities of levels under each logging policy, and which of the policies a row may meet."""

    levels: tuple[CalibratedClassifier, ...]  # one for each logging policy
    loggers: CalibratedClassifier | None = None  # of several policies
    tilts: Tilts | None = None


@dataclass(frozen=True, eq=False)
class PropensityScorer:
    """Predicts the probabilities of levels from tables of features. It travels to other machines as JSON and arrays."""

    model: PropensityModel
    encoder: Encoder
    of_loggers: Encoder | None = None  # the encoding for `model.loggers`

    def __call__(self, table: pa.Table) -> Array:
        """Return the probabilities (n, K) of every level; balanced if the model has tilts."""
        return self._predict(table, self.encoder.transform(table))

    def encode_and_predict(self, table: pa.Table) -> Array:
        """Return encoded features and the probabilities of every level (n, p + K)."""
        X = self.encoder.transform(table)
        return np.hstack([X, self._predict(table, X)])

    def _predict(self, table: pa.Table, X: Array) -> Array:
        model = self.model
        parts = [predict(X) for predict in model.levels]
        found = parts[0]
        if model.loggers is not None and self.of_loggers is not None:
            shares = model.loggers(self.of_loggers.transform(table))
            found = np.sum([shares[:, [s]] * part for s, part in enumerate(parts)], axis=0)
        return found if model.tilts is None else model.tilts.apply_all(found, X)

    def __reduce__(self) -> tuple[Any, ...]:
        arrays: dict[str, Array] = {}
        state = pack(self.model, PropensityModel, "", arrays)
        others = None if self.of_loggers is None else self.of_loggers.state
        return restore_scorer, (state, arrays, self.encoder.state, others)


def restore_scorer(state: Any, arrays: dict[str, Array], encoder: Any, of_loggers: Any) -> PropensityScorer:
    """Return the scorer that was packed as JSON and arrays."""
    model = Reader(arrays).unpack(state, PropensityModel, "", {})
    others = None if of_loggers is None else Encoder.from_state(of_loggers)
    return PropensityScorer(model, Encoder.from_state(encoder), others)
