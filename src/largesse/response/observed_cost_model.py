"""Response models with observed costs: a second model for the costs, and a proportional cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np

from largesse.errors import Problem, fail, plural, refuse
from largesse.io import ArraySpec
from largesse.progress import start_stage, subrange
from largesse.records import Array, Customers, HeldOutPredictions, Log
from largesse.response.fold_ensemble import OUTSIDE, predict_rows_outside_log_sample
from largesse.response.response_model import (
    ResponseModel,
    check_auto_setting,
    compute_in_blocks,
    copy_with_encoder,
    fit_copy,
)
from largesse.response.stacking import Stack
from largesse.stats import assign_folds, count_cores, dot_rows, limit_to_one_thread, minimise, sample_rows


@final
class WithCosts(ResponseModel):
    """Response model with a second model for observed costs.

    `predict` returns responses, `predict_costs` costs.

    Parameters
    ----------
    model
        The response model; "auto" is ``Stack()``.
    costs
        The model of the log's cost column; "auto" is ``Proportional()``: features scale the cost of every level.
    seed
        For both defaults.

    Attributes
    ----------
    model_, costs_
        The fitted models. They share one encoding of the features.
    """

    model_: ResponseModel
    costs_: ResponseModel

    def __init__(
        self, model: ResponseModel | str = "auto", *, costs: ResponseModel | str = "auto", seed: int = 0
    ) -> None:
        self.model = model
        self.costs = costs
        self.seed = seed

    @property
    def unfitted_models(self) -> tuple[ResponseModel, ResponseModel]:
        """Unfitted models of the response and of the costs."""
        check_auto_setting(self, "model")
        check_auto_setting(self, "costs")
        model = Stack(seed=self.seed) if isinstance(self.model, str) else self.model
        return model, Proportional(seed=self.seed) if isinstance(self.costs, str) else self.costs

    def _learn(self, X: Array, log: Log) -> None:
        model, costs = self.unfitted_models
        paid = _make_cost_log(log)
        self.model_ = fit_copy(model, X, log, self.encoder_)
        self.costs_ = fit_copy(costs, X, paid, self.encoder_)
        self.choices_ = self.model_.choices_

    def _learn_held_out(self, X: Array, log: Log, fold: Array) -> HeldOutPredictions:
        model, costs = self.unfitted_models
        paid = _make_cost_log(log)
        self.model_, self.costs_ = (
            copy_with_encoder(model, log, self.encoder_),
            copy_with_encoder(costs, paid, self.encoder_),
        )
        with subrange(0.0, 0.8):
            responses = self.model_._learn_held_out(X, log, fold)
        with subrange(0.8, 1.0):
            spent = self.costs_._learn_held_out(X, paid, fold)
        self.choices_ = self.model_.choices_
        return HeldOutPredictions(responses.curves, fold, np.maximum(spent.curves, 0.0))

    def _hold_out(self, X: Array, log: Log, fold: Array) -> HeldOutPredictions:
        model, costs = self.unfitted_models
        paid = _make_cost_log(log)
        responses = copy_with_encoder(model, log, self.encoder_)._hold_out(X, log, fold)
        spent = copy_with_encoder(costs, paid, self.encoder_)._hold_out(X, paid, fold)
        return HeldOutPredictions(responses.curves, fold, np.maximum(spent.curves, 0.0))

    def _curves(self, X: Array) -> Array:
        return self.model_._curves(X)

    def predict_without_fold(self, X: Array, place: int) -> Array:
        """Predict response curves (n, K) by the model that was fitted without one fold.

        X are encoded features (n, p).

        Only after `fit_held_out`; `place` is the position of the fold among all folds.
        """
        return self.model_.predict_without_fold(X, place)

    def predict_costs(self, customers: Any) -> Array:
        """Predict the expected cost (n, K) of each level for each customer."""
        costs: Array = np.maximum(self.costs_._curves(self.encode(customers)), 0.0)
        return costs

    def check_curves(self) -> None:
        """Raise ValueError unless both fitted models can predict finite values."""
        self.model_.check_curves()
        self.costs_.check_curves()


def _make_cost_log(log: Log) -> Log:
    """Return the log with its observed costs as responses, or raise an error if it has none."""
    if log.paid is None:
        hint = "name the column with what each row cost: read_log(…, cost_column=…); or fit the response model alone"
        refuse("WithCosts", [Problem("the log has no column of observed costs", hint)])
    return log.of_costs


def get_customer_costs(model: ResponseModel, customers: Any) -> Array | None:
    """Return customers' individual costs (n, K), predicted or from their table; None for common costs."""
    if isinstance(model, WithCosts):
        return model.predict_costs(customers)
    return customers.costs if isinstance(customers, Customers | Log) else None


def fit_out_of_fold(model: ResponseModel, log: Log, fold: Array) -> HeldOutPredictions:
    """Fit a model to a log, and return out-of-fold predictions of the log's rows.

    `fold` (n,) holds the fold of each row.

    Of a large log, the model learns from the sample, and itself predicts the other rows, which it has not seen.
    """
    if log.sample is None:
        return model.fit_held_out(log, fold)
    held = model.fit_held_out(log.sample.log, fold[log.sample.rows])
    model.fingerprint_ = log.fingerprint
    start_stage(OUTSIDE, len(log))
    return predict_rows_outside_log_sample(held, log, fold, model)


def predict_curves_and_costs(
    model: ResponseModel, customers: Customers, workers: int | None = None, *, tracked: bool = False
) -> tuple[Array, Array | None]:
    """Predict the response curves (n, K) of customers, and their costs (n, K) if costs differ between customers.

    Results are bit-identical for any split of the customers into tables. `workers` is the number of threads, by
    default one per core. `tracked` reports the progress.
    """
    X = model.encode(customers)
    workers = count_cores() if workers is None else workers
    curves = compute_in_blocks(model._curves, X, workers, tracked=tracked)
    if isinstance(model, WithCosts):
        return curves, np.maximum(compute_in_blocks(model.costs_._curves, X, workers), 0.0)
    return curves, customers.costs


AMOUNT_PENALTIES = (1.0, 0.1, 0.03, 0.01, 1e-3, 1e-4)  # in units of the mean amount, the largest first
AMOUNT_SEARCH_ROWS = 20_000  # more rows do not make the choice of a penalty better, only slower
AMOUNT_SEARCH_FOLDS = 5
MAX_LOG_SCALE = 30.0  # larger logarithms would overflow or mean nothing as an amount


@dataclass(frozen=True, eq=False)
class FittedProportional:
    """Fitted proportional model: coefficients of a customer's factor, and the amount of each level at factor 1."""

    coef: Annotated[Array, ArraySpec("p")]
    sizes: Annotated[Array, ArraySpec("K")]
    low: float  # logarithms
    high: float
    penalty: float

    def predict_amounts(self, X: Array) -> Array:
        """Predict amounts (n, K) from features (n, p), with customers' factors clipped to their range in the log."""
        return np.exp(np.clip(dot_rows(X, self.coef), self.low, self.high))[:, None] * self.sizes


@final
class Proportional(ResponseModel):
    """Proportional model of costs or other amounts: a factor from the features times one curve over the levels.

    Parameters
    ----------
    penalty
        Ridge penalty on the coefficients (per row), or "auto": chosen by cross-validation.
    seed
        For that cross-validation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, level = rng.normal(size=(400, 1)), rng.integers(0, 2, 400)
    >>> costs = level * np.exp(x[:, 0]) * rng.exponential(size=400)
    >>> curves = Proportional().fit(x, level, costs).predict(x)
    >>> float(curves[:, 0].max()), bool((curves[:, 1] > 0).all())
    (0.0, True)
    """

    fit_: FittedProportional

    def __init__(self, *, penalty: float | str = "auto", seed: int = 0) -> None:
        self.penalty = penalty
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_auto_setting(self, "penalty")
        below = int((log.response < 0).sum())
        if below:
            hint = "amounts are zero or more: use another model, such as Boosting()"
            fail("Proportional", Problem(f"the response is negative in {plural(below, 'row')}", hint))
        with limit_to_one_thread(X.size):
            penalty = _choose_penalty(X, log, self.seed) if isinstance(self.penalty, str) else float(self.penalty)
            self.fit_ = _fit_penalties(X, log, (penalty,))[0]

    def _curves(self, X: Array) -> Array:
        return self.fit_.predict_amounts(X)

    def _check_learnt(self) -> None:
        if not self.fit_.low <= self.fit_.high <= 2 * MAX_LOG_SCALE or self.fit_.low < -2 * MAX_LOG_SCALE:
            raise ValueError(f"scales from {self.fit_.low} to {self.fit_.high}")


def _choose_penalty(X: Array, log: Log, seed: int) -> float:
    """Choose the ridge penalty with the lowest held-out Poisson loss."""
    some = sample_rows(len(log), AMOUNT_SEARCH_ROWS, seed) if len(log) > AMOUNT_SEARCH_ROWS else np.arange(len(log))
    X, log = X[some], log.take(some)
    fold, loss = assign_folds(log, AMOUNT_SEARCH_FOLDS, seed), np.zeros(len(AMOUNT_PENALTIES))
    for f in np.unique(fold):
        test = fold == f
        held, indices = log.take(test), np.arange(int(test.sum()))
        for j, fitted in enumerate(_fit_penalties(X[~test], log.take(~test), AMOUNT_PENALTIES)):
            # A level without costs in the other folds would make any cost here impossible: it has a little.
            least = max(1e-6 * float(fitted.sizes.max(initial=0.0)), 1e-300)
            mean = np.maximum(fitted.predict_amounts(X[test])[indices, held.level], least)
            loss[j] += float(held.weights @ (mean - held.response * np.log(mean)))
    return AMOUNT_PENALTIES[int(np.argmin(loss))]


def _fit_penalties(X: Array, log: Log, penalties: tuple[float, ...]) -> list[FittedProportional]:
    """Fit the proportional model for each ridge penalty, started at the previous fit."""
    K, X = len(log.levels), X.astype(np.float64)
    paid = log.weights * log.response
    total, whole = np.bincount(log.level, weights=paid, minlength=K), float(paid.sum())
    scalings, coef = [], np.zeros(X.shape[1])
    for penalty in penalties:
        if whole > 0:
            coef = _minimise_poisson_loss(X, log, paid / whole, penalty, coef)
        score = np.clip(X @ coef, -MAX_LOG_SCALE, MAX_LOG_SCALE)
        mass = np.bincount(log.level, weights=log.weights * np.exp(score), minlength=K)
        sizes = np.divide(total, mass, out=np.zeros(K), where=mass > 0)
        scalings.append(FittedProportional(coef, sizes, float(score.min()), float(score.max()), penalty))
    return scalings


def _minimise_poisson_loss(X: Array, log: Log, share: Array, penalty: float, start: Array) -> Array:
    """Return the coefficients (p,) with the lowest penalised Poisson loss.

    `share` (n,) is each row's share of the total amount.
    """
    K, pull = len(log.levels), X.T @ share
    size = np.bincount(log.level, weights=share, minlength=K)

    def normalise_factors(coef: Array) -> tuple[Array, Array]:
        """Return each row's factor as a share (n,) of its level's sum, and the logarithms (K,) of the sums."""
        score = X @ coef
        most = float(score.max())
        scale = log.weights * np.exp(score - most)
        mass = np.maximum(np.bincount(log.level, weights=scale, minlength=K), 1e-300)
        return scale / mass[log.level], np.log(mass) + most

    def objective(coef: Array) -> float:
        return float(size @ normalise_factors(coef)[1] - pull @ coef + penalty / 2 * (coef @ coef))

    def derivatives(coef: Array) -> tuple[Array, Array]:
        row_shares = normalise_factors(coef)[0]
        means = np.stack(
            [X[log.level == k].T @ row_shares[log.level == k] for k in range(K)]
        )  # (K, p) mean features, by scale
        slope = size @ means - pull + penalty * coef
        curvature = (X * (size[log.level] * row_shares)[:, None]).T @ X - (means * size[:, None]).T @ means
        return slope, curvature + (penalty + 1e-9) * np.eye(len(coef))

    return minimise(objective, derivatives, start)
