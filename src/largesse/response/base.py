"""The contract that everything that learns from a log keeps, and that of response models."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from largesse.data import Encoder, feature_table, log_from_arrays
from largesse.errors import NotFittedError, Problem, nearest, refuse
from largesse.records import Array, Customers, Log


class Learner(ABC):
    """Something that learns from a log: parameters, fitting, encoding, keeping.

    Works with `sklearn.base.clone` and scikit-learn's parameter search without importing scikit-learn.
    """

    encoder_: Encoder
    levels_: int  # K
    binary_: bool
    fingerprint_: str  # of the log it learnt from

    # -- parameters (scikit-learn's contract) ---------------------------------------------------------------------

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments."""
        params = {name: getattr(self, name) for name in self._names()}
        if deep:
            nested = {
                f"{name}__{k}": v
                for name, value in params.items()
                if hasattr(value, "get_params")
                for k, v in value.get_params().items()
            }
            params |= nested
        return params

    def set_params(self, **params: Any) -> Self:
        """Change constructor's arguments."""
        for name, value in params.items():
            owner, _, inner = name.partition("__")
            if owner not in self._names():
                refuse(type(self).__name__, [Problem(f"{owner!r} is not a parameter", nearest(owner, self._names()))])
            if inner:
                getattr(self, owner).set_params(**{inner: value})
            else:
                setattr(self, owner, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        changed = [
            f"{name}={value!r}" for name, value in self.get_params(deep=False).items() if value != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    # -- learning ---------------------------------------------------------------------------------------------------

    def fit(self, log: Any, level: Any = None, response: Any = None, *, weight: Any = None) -> Self:
        """Learn from a `Log`, or from features (n, p), level (n,) and response (n,)."""
        if isinstance(log, Log):
            if any(given is not None for given in (level, response, weight)):
                hint = "call fit(log) alone; weights are named when it is read: read_log(…, weight=…)"
                refuse("fit", [Problem("a log already holds its levels, responses and weights", hint)])
        else:
            if level is None or response is None:
                hint = "model.fit(log) with a log from read_log, or model.fit(X, level, response)"
                refuse("fit", [Problem(f"got a {type(log).__name__} and no level or response", hint)])
            log = log_from_arrays(log, level, response, weight=weight)
        self.encoder_ = Encoder()
        X = self.encoder_.fit_transform(log.features, log.response, seed=getattr(self, "seed", 0))
        self.levels_, self.binary_, self.fingerprint_ = len(log.levels), log.binary, log.fingerprint
        self._learn(X, log)
        return self

    def encode(self, customers: Any) -> Array:
        """Return the customers' features as the matrix the model was trained on."""
        self._check_fitted()
        table = customers.features if isinstance(customers, Customers | Log) else feature_table(customers)
        if isinstance(customers, list | np.ndarray) and table.num_columns != self.encoder_.width:
            got = f"the array has {table.num_columns} columns; the model was fitted with {self.encoder_.width}"
            refuse("predict", [Problem(got, "give the same columns in the same order")])
        return self.encoder_.transform(table)

    def _check_fitted(self) -> None:
        if not hasattr(self, "encoder_"):
            name = type(self).__name__
            raise NotFittedError(name, [Problem("it has not been fitted yet", f"call {name}().fit(log) first")])

    @abstractmethod
    def _learn(self, X: Array, log: Log) -> None:
        """Learn from encoded features (n, p) and the log's levels and responses."""

    # -- keeping ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _keep(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learnt beyond the encoder: JSON and arrays."""

    @abstractmethod
    def _recall(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take back what `_keep` returned."""

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the fitted model as JSON and arrays."""
        self._check_fitted()
        facts, arrays = self._keep()
        common = {
            "levels": self.levels_,
            "binary": self.binary_,
            "fingerprint": self.fingerprint_,
            "encoder": self.encoder_.state,
        }
        return {
            "kind": type(self).__name__,
            "params": {name: value for name, value in self.get_params(deep=False).items() if not _holds_models(value)},
            "common": common,
            "learnt": facts,
        }, arrays

    @classmethod
    def from_state(cls, state: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the fitted model that `state` describes."""
        model = cls(**state["params"])
        common = state["common"]
        model.levels_, model.binary_, model.fingerprint_ = common["levels"], common["binary"], common["fingerprint"]
        model.encoder_ = Encoder.from_state(common["encoder"])
        model._recall(state["learnt"], arrays)
        return model


class ResponseModel(Learner):
    """A model of the response at every level. Subclasses are final: they learn from, and predict for, a matrix."""

    shrinks: ClassVar[bool] = False  # whether it holds customers' own increments to common ones as held-out rows advise
    whole: ClassVar[bool] = False  # whether all rows in one model are worth more to it than a mean of models of some

    def predict(self, customers: Any) -> Array:
        """Return the expected response (n, K) of customers: `Customers`, a `Log`, a table or an array (n, p)."""
        return self._curves(self.encode(customers))

    def mean_interval(self, customers: Any, level: float = 0.9) -> tuple[Array, Array] | None:  # noqa: ARG002
        """Return the ends (K,), (K,) of intervals around the mean curve of customers; None if the model has no spread."""
        return None

    @abstractmethod
    def _curves(self, X: Array) -> Array:
        """Return curves (n, K) of encoded features (n, p)."""


def _holds_models(value: Any) -> bool:
    """Whether a parameter is a model or several: they are kept fitted, among what was learnt, and `_recall` puts them back."""
    inside = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(one, ResponseModel) for one in inside)


def row_losses(curves: Array, log: Log) -> Array:
    """Return each row's loss (n,) at its own level: log loss for 0/1 responses, else half the squared error."""
    fitted = curves[np.arange(len(log)), log.level]
    if log.binary:
        inside = np.clip(fitted, 1e-6, 1 - 1e-6)
        return -np.where(log.response > 0.5, np.log(inside), np.log1p(-inside))
    return 0.5 * (fitted - log.response) ** 2


def fresh(model: Any) -> Any:
    """Return an unfitted copy of a model, its nested models copied too (what scikit-learn's `clone` does)."""
    parameters = {
        name: fresh(value) if hasattr(value, "get_params") and not isinstance(value, type) else value
        for name, value in model.get_params(deep=False).items()
    }
    return type(model)(**parameters)
