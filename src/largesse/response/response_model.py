"""Base classes of estimators that learn from a log, and of response models."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from largesse.data import EncodedRows, Encoder, log_from_arrays, make_feature_table, read_memory_limit
from largesse.errors import Problem, fail_not_fitted, refuse, suggest
from largesse.io import Arrays, RecordReader, State, pack_value
from largesse.progress import count_as_stage
from largesse.records import Array, CandidateLoss, Card, Customers, HeldOutPredictions, Log, join_first_names
from largesse.response.settings_serialisation import (
    learnt_attribute_types,
    pack_constructor_arguments,
    restore_unfitted_model,
)
from largesse.response.shuffled_predictions import predict_shuffled_features
from largesse.stats import assign_folds, count_cores, run_in_threads

FIT_BYTES_PER_CELL = 30  # memory of a fit per cell of its matrix: several copies, one of them in float64
MIN_THREADED_CELLS = 200_000  # smaller matrices are fitted faster by one thread
DEFAULT_FOLDS = 5  # for models without a `folds` setting
PREDICTION_BLOCK_ROWS = 4096  # rows per block, so that no curve depends on the other rows of the table


class Configurable:
    """Base class of objects with constructor settings, compatible with scikit-learn's `clone` and grid search.

    Settings are the arguments of the constructor.
    """

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the constructor's arguments."""
        return [name for name in inspect.signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        params = {name: getattr(self, name) for name in self.parameter_names()}
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
        """Change some of the constructor's arguments."""
        for name, value in params.items():
            owner, _, inner = name.partition("__")
            if owner not in self.parameter_names():
                refuse(
                    type(self).__name__,
                    [Problem(f"{owner!r} is not a parameter", suggest(owner, self.parameter_names()))],
                )
            if inner:
                setattr(self, owner, getattr(self, owner).set_params(**{inner: value}))  # settings are frozen values
            else:
                setattr(self, owner, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        changed = [
            f"{name}={value!r}" for name, value in self.get_params(deep=False).items() if value != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        settings = [(name, repr(value)) for name, value in self.get_params(deep=False).items()]
        fitted = getattr(self, "encoder_", None)
        if fitted is None:
            return Card(f"{self!r}, not fitted yet", ("setting", ""), settings).html
        tried = [
            (choice.of, choice.name, choice.loss, "chosen" if choice.chosen else "")
            for choice in getattr(self, "choices_", ())
        ]
        below = Card("What it tried", ("", "", "held-out loss", ""), tried) if tried else None
        return Card(
            f"{self!r}, fitted", ("setting", ""), settings, (f"Features: {join_first_names(fitted.features)}.",), below
        ).html


class Learner(Configurable, ABC):
    """Base class of estimators that learn from a log: fitting, encoding of features, saving and loading.

    `sklearn.base.clone` works on all of them. Learnt attributes are the names that end in an underscore and have an
    annotation in its body; annotated in this way it is saved and read back without any code of its own (see `io.pack`).
    """

    encoder_: Encoder
    levels_: int  # K
    binary_: bool
    fingerprint_: str  # fingerprint of the log that the model learnt from
    choices_: tuple[CandidateLoss, ...]  # candidates of its data-driven choices; `CandidateLoss.of` names the choice

    # -- learning ---------------------------------------------------------------------------------------------------

    def fit(
        self, log: Any, level: Any = None, response: Any = None, *, weight: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit to a log, or to features (n, p), levels (n,) and responses (n,).

        Of a large log, the model learns from the sample.

        Level and response may also be the two columns of one target (n, 2), as scikit-learn's searches hand it over, which
        call weights `sample_weight`.
        """
        level, response = split_target(level, response)
        weight = choose_weight("fit", weight, sample_weight)
        if isinstance(log, Log):
            log = log.seen
            if any(argument is not None for argument in (level, response, weight)):
                hint = "call fit(log) alone; weights are named when it is read: read_log(…, weight=…)"
                refuse("fit", [Problem("a log already holds its levels, responses and weights", hint)])
        else:
            if level is None or response is None:
                hint = "model.fit(log) with a log from read_log, or model.fit(X, level, response)"
                refuse("fit", [Problem(f"got a {type(log).__name__} and no level or response", hint)])
            log = log_from_arrays(log, level, response, weight=weight)
        with count_as_stage(f"fitting {type(self).__name__}", len(log)):
            self._learn(self._fit_encoder(log, self._assign_encoding_folds(log)), log)
        return self

    def _fit_encoder(self, log: Log, fold: Array | None) -> Array:
        """Fit the feature encoder to a log, and return the encoded features (n, p)."""
        encoder = Encoder()
        X = encoder.fit_transform(log.features, log.response, seed=getattr(self, "seed", 0), fold=fold)
        self._store_log_properties(encoder, log)
        return X

    def _assign_encoding_folds(self, log: Log) -> Array | None:
        """Assign rows to folds (n,) for the out-of-fold encoding of text columns with many values."""
        folds, seed = getattr(self, "folds", DEFAULT_FOLDS), getattr(self, "seed", 0)
        can = isinstance(folds, int) and isinstance(seed, int) and 2 <= folds <= len(log) and seed >= 0
        return assign_folds(log, folds, seed) if can and (log.clusters is None or log.clusters > 1) else None

    def _store_log_properties(self, encoder: Encoder, log: Log) -> None:
        """Store the encoder and the log's number of levels, kind of response and fingerprint."""
        self.encoder_ = encoder
        self.levels_, self.binary_, self.fingerprint_ = len(log.levels), log.binary, log.fingerprint
        self.choices_ = ()

    def encode(self, customers: Any) -> Array:
        """Encode customers' features as the matrix (n, p) that the model expects."""
        self._check_fitted()
        return encode_customers(self.encoder_, customers)

    def _check_fitted(self) -> None:
        if not hasattr(self, "encoder_"):
            name = type(self).__name__
            fail_not_fitted(name, Problem("it has not been fitted yet", f"call {name}().fit(log) first"))

    @abstractmethod
    def _learn(self, X: Array, log: Log) -> None:
        """Fit the model to encoded features (n, p) and to the log's levels and responses."""

    # -- what scikit-learn reads --------------------------------------------------------------------------------------

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the feature table."""
        return self.encoder_.width

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns of the feature table; x0, x1 and so on for an array."""
        return np.array(self.encoder_.features, dtype=object)

    def set_fit_request(self, *, sample_weight: bool | str | None) -> Self:
        """Request weights for `fit` from scikit-learn's metadata routing."""
        return self._set_metadata_request("fit", sample_weight)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Request weights for `score` from scikit-learn's metadata routing."""
        return self._set_metadata_request("score", sample_weight)

    def get_metadata_routing(self) -> Any:
        """Return the requests for scikit-learn's metadata routing."""
        from sklearn.utils.metadata_routing import MetadataRequest

        requests = getattr(self, "_metadata_request", None)  # copied by `sklearn.base.clone`
        return MetadataRequest(owner=self) if requests is None else copy.deepcopy(requests)

    def _set_metadata_request(self, method: str, sample_weight: bool | str | None) -> Self:
        self._metadata_request = self.get_metadata_routing()
        getattr(self._metadata_request, method).add_request(param="sample_weight", alias=sample_weight)
        return self

    # -- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[State, Arrays]:
        """Return the fitted model as JSON and arrays."""
        self._check_fitted()
        arrays: Arrays = {}
        return {"encoder": self.encoder_.state, **self.pack_into("", arrays)}, arrays

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, known: Mapping[str, type[ResponseModel]] | None = None) -> Self:
        """Restore a fitted model from a saved state; raise ValueError if the state is invalid.

        `known` are the classes, by name, of models that it may hold.
        """
        reader = RecordReader(arrays, known or {}, Encoder.from_state(state["encoder"]))
        model = cls.unpack_from(state, "", reader)
        if unused := sorted(set(arrays) - reader.used):
            raise ValueError(f"arrays that belong to nothing: {', '.join(unused)}")
        return model

    def pack_into(self, place: str, arrays: Arrays) -> State:
        """Convert the model's settings and learnt attributes to JSON and named arrays.

        Arrays are stored under the path `place`.

        The encoder is not included.
        """
        hints = learnt_attribute_types(type(self))
        at = f"{place}/" if place else ""
        learnt = {name: pack_value(getattr(self, name), hint, at + name, arrays) for name, hint in hints.items()}
        return {"kind": type(self).__name__, "params": pack_constructor_arguments(self), "learnt": learnt}

    @classmethod
    def unpack_from(cls, state: State, place: str, reader: RecordReader) -> Self:
        """Restore a fitted model from its JSON and named arrays.

        They are those of `pack_into`; all models share the reader's encoder.
        """
        model: Self = restore_unfitted_model(cls, state["params"], reader)
        model.encoder_ = reader.encoder
        at = f"{place}/" if place else ""
        levels = reader.unpack(state["learnt"].get("levels_"), int, f"{at}levels_", {})
        lengths = {"p": len(model.encoder_.names), "K": levels}
        learnt = reader.unpack_fields(state["learnt"], learnt_attribute_types(cls), place, lengths)
        for name, value in learnt.items():
            setattr(model, name, value)
        model._check_learnt()
        return model

    def _copy_with(self, **learnt: Any) -> Self:
        """Return a shallow copy of the model with other learnt attributes."""
        other = copy.copy(self)
        vars(other).update(learnt)
        return other

    def _check_learnt(self) -> None:
        """Raise ValueError if the learnt attributes contradict each other.

        Their types and shapes have been checked before.
        """


class ResponseModel(Learner):
    """Base class of models that predict the response at every level.

    Subclasses are final and work on a matrix of encoded features.
    """

    shrinks: ClassVar[bool] = False  # True if the model itself shrinks increments towards common ones
    whole: ClassVar[bool] = False  # True if one model of all rows is better than the mean of fold models
    only_base: ClassVar[bool] = False  # True if a blend uses its base scores alone and none of its increments
    threads: ClassVar[bool] = False  # True if fits release the interpreter lock, so that threads are faster
    _without: list[ResponseModel]  # fold models of the last `fit_held_out`; not saved
    by_folds: ClassVar[bool] = False  # True if the model learns by holding out every fold in turn
    _estimator_type: ClassVar[str] = "regressor"  # read by scikit-learn before 1.6

    def predict(self, customers: Any) -> Array:
        """Return the expected responses (n, K) of customers at all levels.

        Customers are `Customers`, a `Log`, a table or an array (n, p).
        """
        return self._curves(self.encode(customers))

    def score(
        self,
        customers: Any,
        level: Any = None,
        response: Any = None,
        *,
        weight: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Return R², the share of the responses' variance that the predictions at the logged levels explain.

        Rows are a `Log`, or features (n, p), level (n,) and response (n,), or features and a target (n, 2) of both. This is
        the score that `cross_val_score` and `GridSearchCV` compare. It judges curves, not plans: for these, `evaluate`.
        """
        weight = choose_weight("score", weight, sample_weight)
        if isinstance(customers, Log):
            log = customers.seen
            level, response, weight = log.level, log.response, log.weights
            customers = log
        return compute_r_squared(self.predict(customers), level, response, weight)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=False),  # a log holds its own
            regressor_tags=RegressorTags(),
            input_tags=InputTags(allow_nan=True, string=True, categorical=True),
        )

    def check_curves(self) -> None:
        """Raise ValueError unless the model predicts a finite curve for an average customer."""
        with np.errstate(all="ignore"):
            curves = self._curves(np.zeros((1, len(self.encoder_.names)), dtype=np.float32))
        if curves.shape != (1, self.levels_) or not np.isfinite(curves).all():
            raise ValueError("the model has no finite curves")

    def fold_models(self, X: Array, log: Log, fold: Array) -> list[ResponseModel]:
        """Return one copy of the model per fold, fitted to the encoded features (n, p) of all other folds.

        Models that choose settings may override this, to choose once for all folds.
        """
        jobs = self.fold_jobs(X, log, fold)
        done = run_in_threads(jobs, self.count_workers(X), tracked=True)
        models = [model for models in done for model in models]
        self.harmonise_fold_models(models, log, fold)
        return models

    def harmonise_fold_models(self, models: list[ResponseModel], log: Log, fold: Array) -> None:
        """Replace the settings that fold models chose on their own held-out folds by one common value.

        The default does nothing.
        """

    def _learn_without_fold(self, X: Array, log: Log, fold: Array, without: int) -> None:
        """Fit the model to all rows except those of one fold."""
        rows = fold != without
        self._learn(X[rows], log.take(rows))

    def fold_jobs(self, X: Array, log: Log, fold: Array) -> list[Callable[[], list[ResponseModel]]]:
        """Return one function per fold that fits the model of the fold, for parallel execution.

        They are in the order of the folds.
        """
        if type(self).fold_models is not ResponseModel.fold_models:
            return [partial(self.fold_models, X, log, fold)]
        bare = log.bare

        def fit_without(f: int) -> list[ResponseModel]:
            model = copy_with_encoder(self, bare.take(fold != f), self.encoder_)
            model._learn_without_fold(X, bare, fold, f)
            return [model]

        return [partial(fit_without, f) for f in np.unique(fold)]

    def count_workers(self, X: Array) -> int:
        """Return the number of threads for fitting fold models, from the size of the encoded features.

        It is 1 if fits are small, and limited by memory if they are large.
        """
        room = read_memory_limit() // 2 // max(FIT_BYTES_PER_CELL * X.size, 1)
        return min(count_cores(), room) if self.threads and X.size >= MIN_THREADED_CELLS else 1

    def fit_held_out(self, log: Log, fold: Array) -> HeldOutPredictions:
        """Fit the model to a log, and return out-of-fold predictions of the log's rows.

        `fold` (n,) holds the fold of each row.
        """
        X = self._fit_encoder(log, fold)
        held = self._learn_held_out(X, log, fold)
        return replace(held, shuffled=predict_shuffled_features(self.predict_without_fold, self.encoder_, X, fold))

    def predict_held_out(self, log: Log, fold: Array) -> HeldOutPredictions:
        """Return out-of-fold predictions of a log by copies of the model, which itself does not change.

        Each row is predicted by the copy fitted without the row's fold (n,).
        """
        unfitted: ResponseModel = copy_unfitted(self)
        return unfitted._hold_out(unfitted._fit_encoder(log, fold), log, fold)

    def _learn_held_out(self, X: Array, log: Log, fold: Array) -> HeldOutPredictions:
        """Fit the model to encoded features (n, p) and a log, and return out-of-fold predictions."""
        held = self._hold_out(X, log, fold)
        if not self.by_folds:
            self._learn(X, log)
        return held

    def _hold_out(self, X: Array, log: Log, fold: Array) -> HeldOutPredictions:
        """Return out-of-fold predictions by fold models that share the encoded features (n, p)."""
        curves = np.empty((len(log), len(log.levels)))
        self._without = self.fold_models(X, log, fold)
        for model, f in zip(self._without, np.unique(fold), strict=True):
            curves[fold == f] = model._curves(X[fold == f])
        return HeldOutPredictions(curves, fold)

    def predict_without_fold(self, X: Array, place: int) -> Array:
        """Predict response curves (n, K) by the model that was fitted without one fold.

        X are encoded features (n, p).

        Only after `fit_held_out`; fold models are not saved. `place` is the position of the fold among all folds.
        """
        return self._without[place]._curves(X)

    @abstractmethod
    def _curves(self, X: Array) -> Array:
        """Predict response curves (n, K) from encoded features (n, p)."""


def compute_in_blocks(curves: Callable[[Array], Array], X: Array, workers: int = 1, *, tracked: bool = False) -> Array:
    """Compute response curves (n, K) of encoded features (n, p) in row blocks, in parallel threads.

    Blocks have equal length.

    The last block is padded with zeros.

    One thread per worker takes blocks in turn.

    In tables of different lengths sums are rounded differently, in the seventh digit of a few rows. Here every sum is over a
    block of one length, so a customer's curve does not depend on who else is in the table.
    """
    if not len(X):
        return curves(X)

    def compute(starts: range) -> list[Array]:
        parts = []
        for start in starts:
            block = X[start : start + PREDICTION_BLOCK_ROWS]
            short = PREDICTION_BLOCK_ROWS - len(block)
            whole = np.concatenate([block, np.zeros((short, X.shape[1]), dtype=X.dtype)]) if short else block
            parts.append(curves(whole)[: len(block)])
        return parts

    starts = range(0, len(X), PREDICTION_BLOCK_ROWS)
    each = max(-(-len(starts) // (8 * workers)), 1)  # a few jobs for each worker: some are slower
    jobs = [partial(compute, starts[first : first + each]) for first in range(0, len(starts), each)]
    parts = [block for blocks in run_in_threads(jobs, workers, tracked=tracked) for block in blocks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def fit_copy(model: ResponseModel, X: Array, log: Log, encoder: Encoder) -> ResponseModel:
    """Fit an unfitted copy of a model to encoded features (n, p) and a log.

    The copy has the same encoder.
    """
    fitted = copy_with_encoder(model, log, encoder)
    fitted._learn(X, log)
    return fitted


def copy_with_encoder(model: ResponseModel, log: Log, encoder: Encoder) -> ResponseModel:
    """Return an unfitted copy of a model that has an encoder and the levels of a log."""
    blank: ResponseModel = copy_unfitted(model)
    # Part of a log of amounts may happen to hold only 0 and 1: predictions follow the part that the model learns from.
    blank._store_log_properties(encoder, log)
    return blank


def take_rows(X: Array, log: Log, rows: Array) -> tuple[Array, Log]:
    """Select rows of encoded features (n, p) and of the log.

    Indices rise; if they select all rows, nothing is copied.
    """
    return (X, log) if len(rows) == len(log) else (X[rows], log.take(rows))


def check_auto_setting(learner: Learner, name: str) -> None:
    """Raise an error for a setting of a model that is text other than "auto"."""
    value = getattr(learner, name)
    if value is None or (isinstance(value, str) and value != "auto"):
        hint = f"leave {name}='auto' to have it chosen, or give it yourself"
        refuse(type(learner).__name__, [Problem(f"{name}={value!r}", hint)])


def copy_unfitted(model: Any) -> Any:
    """Return an unfitted copy of a model and of its nested models, like scikit-learn's `clone`."""
    parameters = {
        name: copy_unfitted(value) if hasattr(value, "get_params") and not isinstance(value, type) else value
        for name, value in model.get_params(deep=False).items()
    }
    return type(model)(**parameters)


def encode_customers(encoder: Encoder, customers: Any) -> Array:
    """Encode the features of customers, given in any form, as a matrix (n, p).

    It is the matrix that the encoder was fitted for.
    """
    if isinstance(customers, EncodedRows) and customers.encoder is encoder:
        return customers.matrix
    table = customers.features if isinstance(customers, Customers | Log) else make_feature_table(customers)
    if isinstance(customers, list | np.ndarray) and table.num_columns != encoder.width:
        got = f"the array has {table.num_columns} columns; the model was fitted with {encoder.width}"
        refuse("predict", [Problem(got, "give the same columns in the same order")])
    return encoder.transform(table)


def split_target(level: Any, response: Any) -> tuple[Any, Any]:
    """Return level and response from two arguments, or from the two columns of one array (n, 2)."""
    if level is None or response is not None:
        return level, response
    shape = np.shape(level)
    if len(shape) != 2 or shape[1] != 2:
        return level, response
    target = np.asarray(level)
    return target[:, 0], target[:, 1]


def choose_weight(subject: str, weight: Any, sample_weight: Any) -> Any:
    """Return the row weights, given under one of two names, or raise an error if both are given."""
    if weight is not None and sample_weight is not None:
        refuse(subject, [Problem("weights are given as weight and as sample_weight", "give one of them")])
    return sample_weight if weight is None else weight


def compute_r_squared(curves: Array, level: Any, response: Any, weight: Any = None) -> float:
    """Return R², the share of the responses' variance that predicted curves (n, K) explain.

    It is taken at the rows' levels (n,).
    """
    level, response, weight = _check_scored_rows(curves, *split_target(level, response), weight)
    wrong = np.average((response - curves[np.arange(len(curves)), level]) ** 2, weights=weight)
    spread = np.average((response - np.average(response, weights=weight)) ** 2, weights=weight)
    return float(1 - wrong / spread) if spread > 0 else float(wrong == 0)


def _check_scored_rows(curves: Array, level: Any, response: Any, weight: Any) -> tuple[Array, Array, Array]:
    """Convert levels, responses and weights (n,) of rows to arrays, or raise an error for invalid ones.

    The rows have curves (n, K).
    """
    n, K = curves.shape
    if level is None or response is None:
        hint = "model.score(log), or model.score(X, level, response)"
        refuse("score", [Problem("got features and no level or response", hint)])
    columns = {"level": level, "response": response, "weight": np.ones(n) if weight is None else weight}
    try:
        arrays = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}
    except (TypeError, ValueError):
        refuse("score", [Problem("level, response or weight does not hold numbers", "give numbers, one per row")])
    sizes = [
        Problem(f"{name} has shape {values.shape}, features have {n:,} rows", "give one number per row")
        for name, values in arrays.items()
        if values.shape != (n,)
    ]
    refuse("score", sizes)
    problems = [
        Problem(f"{name} holds values that are missing or infinite", "leave these rows out")
        for name, values in arrays.items()
        if not np.isfinite(values).all()
    ]
    refuse("score", problems)
    known = np.isin(arrays["level"], np.arange(K))
    if not known.all():
        got = f"level holds {arrays['level'][~known][0]:g}; the model was fitted with the levels 0 to {K - 1}"
        hint = "give their numbers; if the rows of a fit lack the highest level, fit a log, which knows all levels"
        problems.append(Problem(got, hint))
    if not n or (arrays["weight"] < 0).any() or not arrays["weight"].any():
        problems.append(Problem("there are no rows with weight", "give rows, and weights of zero or more"))
    refuse("score", problems)
    return arrays["level"].astype(np.int64), arrays["response"], arrays["weight"]
