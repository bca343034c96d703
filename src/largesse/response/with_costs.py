"""A response model and, beside it, a model of what levels cost: for logs whose costs are observed."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.progress import start_stage, subrange
from largesse.records import Array, Customers, HeldOut, Log
from largesse.response.base import ResponseModel, blank_copy, check_auto, fit_copy, in_blocks
from largesse.response.fold_ensemble import OUTSIDE
from largesse.response.outside import add_outside
from largesse.response.proportional import Proportional
from largesse.response.stack import Stack
from largesse.stats import cores


@final
class WithCosts(ResponseModel):
    """A response model, and a second model for costs that are observed: `predict` gives responses, `predict_costs` costs.

    Parameters
    ----------
    model
        The response model; "auto" is ``Stack()``.
    costs
        What is fitted to the log's cost column; "auto" is ``Proportional()``: features scale what every level costs.
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
    def parts(self) -> tuple[ResponseModel, ResponseModel]:
        """The unfitted models of the response and of costs."""
        check_auto(self, "model")
        check_auto(self, "costs")
        model = Stack(seed=self.seed) if isinstance(self.model, str) else self.model
        return model, Proportional(seed=self.seed) if isinstance(self.costs, str) else self.costs

    def _learn(self, X: Array, log: Log) -> None:
        model, costs = self.parts
        paid = _of_costs(log)
        self.model_ = fit_copy(model, X, log, self.encoder_)
        self.costs_ = fit_copy(costs, X, paid, self.encoder_)
        self.choices_ = self.model_.choices_

    def _learn_held_out(self, X: Array, log: Log, fold: Array) -> HeldOut:
        model, costs = self.parts
        paid = _of_costs(log)
        self.model_, self.costs_ = blank_copy(model, log, self.encoder_), blank_copy(costs, paid, self.encoder_)
        with subrange(0.0, 0.8):
            responses = self.model_._learn_held_out(X, log, fold)
        with subrange(0.8, 1.0):
            spent = self.costs_._learn_held_out(X, paid, fold)
        self.choices_ = self.model_.choices_
        return HeldOut(responses.curves, fold, np.maximum(spent.curves, 0.0))

    def _hold_out(self, X: Array, log: Log, fold: Array) -> HeldOut:
        model, costs = self.parts
        paid = _of_costs(log)
        responses = blank_copy(model, log, self.encoder_)._hold_out(X, log, fold)
        spent = blank_copy(costs, paid, self.encoder_)._hold_out(X, paid, fold)
        return HeldOut(responses.curves, fold, np.maximum(spent.curves, 0.0))

    def _curves(self, X: Array) -> Array:
        return self.model_._curves(X)

    def curves_without(self, X: Array, place: int) -> Array:
        """Return the curves (n, K) of encoded features (n, p) by what predicted the rows of one fold, after `fit_held_out`."""
        return self.model_.curves_without(X, place)

    def predict_costs(self, customers: Any) -> Array:
        """Return what every level is expected to cost each customer (n, K), never less than zero."""
        costs: Array = np.maximum(self.costs_._curves(self.encode(customers)), 0.0)
        return costs

    def check_curves(self) -> None:
        """Raise ValueError unless the curves of both models can be computed and are finite."""
        self.model_.check_curves()
        self.costs_.check_curves()


def _of_costs(log: Log) -> Log:
    """Return the log of what its rows cost; refuse one that does not say."""
    if log.paid is None:
        hint = "name the column with what each row cost: read_log(…, cost_column=…); or fit the response model alone"
        refuse("WithCosts", [Problem("the log does not say what its rows cost", hint)])
    return log.of_costs


def own_costs(model: ResponseModel, customers: Any) -> Array | None:
    """Return each customer's own costs (n, K): predicted where costs are observed, else those of the table, if any."""
    if isinstance(model, WithCosts):
        return model.predict_costs(customers)
    return customers.costs if isinstance(customers, Customers | Log) else None


def learn_held_out(model: ResponseModel, log: Log, fold: Array) -> HeldOut:
    """Learn from a log, and return what models that did not see its rows' folds (n,) expect of them.

    From a large log it is the sample that is learnt. The model has not seen other rows: it says itself what it expects of them.
    """
    if log.sample is None:
        return model.fit_held_out(log, fold)
    held = model.fit_held_out(log.sample.log, fold[log.sample.rows])
    model.fingerprint_ = log.fingerprint
    start_stage(OUTSIDE, len(log))
    features = list(model.encoder_.features)
    return add_outside(held, log, fold, features, lambda table: expect_in_blocks(model, Customers(table)))


def expect_in_blocks(
    model: ResponseModel, customers: Customers, workers: int | None = None, *, tracked: bool = False
) -> tuple[Array, Array | None]:
    """Return the curves (n, K) of customers and their own costs (n, K), if they have any: see `own_costs`.

    To the last bit, they do not depend on how customers are cut into tables. As many threads work on it as there are
    workers: one for each core, unless told otherwise. If it is `tracked`, it is the current part of the work.
    """
    X = model.encode(customers)
    workers = cores() if workers is None else workers
    curves = in_blocks(model._curves, X, workers, tracked=tracked)
    if isinstance(model, WithCosts):
        return curves, np.maximum(in_blocks(model.costs_._curves, X, workers), 0.0)
    return curves, customers.costs
