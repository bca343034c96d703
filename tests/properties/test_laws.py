"""Laws: units of weights, responses, costs and features, the order of rows and columns, and rows that come twice instead of with
weight two change nothing but rounding.

Where a model holds rows out to choose its settings, the order of rows decides which: these laws are then those of given settings.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import largesse as lg
from largesse.evaluation import evaluate
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response import ResponseModel
from largesse.response.model_catalogue import MODEL_CATALOGUE
from support.examples import examples


def make_models() -> list[Any]:
    """Every model of the catalogue; networks with given settings and little training."""
    settings = {"kappa": 0.1, "training": lg.Training(epochs=2)}
    return [
        pytest.param(name, entry.kind(**{**entry.settings, **(settings if entry.slow else {})}), id=name, marks=marks)
        for name, entry in MODEL_CATALOGUE.items()
        for marks in [[pytest.mark.slow] if entry.slow else []]
    ]


FACTORS = st.sampled_from([1.0, 1e-6, 1e-3, 0.3, 3.0, 7.0, 1e4, 1e8])


@dataclass(frozen=True)
class Drawn:
    """A random log of yes/no responses or of amounts, with or without weights."""

    seed: int
    binary: bool
    weighted: bool
    levels: int

    @property
    def log(self) -> Log:
        rng, n, K = np.random.default_rng(self.seed), 160, self.levels
        x, z, city = rng.normal(size=n), rng.exponential(size=n), rng.choice(["a", "b", "c"], n)
        level = rng.integers(0, K, n)
        mean = 0.2 + 0.1 * (x > 0) + 0.4 * level / K * (city == "a")
        yes = (rng.random(n) < mean).astype(float)
        yes[:K], yes[K : 2 * K] = 1.0, 0.0
        level[: 2 * K] = np.tile(np.arange(K), 2)
        response = yes if self.binary else yes * np.round(rng.lognormal(3, 0.5, n), 2)
        weight = rng.uniform(0.2, 3, n) if self.weighted else None
        features = pa.table({"x": x, "z": z, "city": city})
        propensity = np.full(n, 1 / K)
        return Log(features, level, response, Levels(costs=[2.0 * k for k in range(K)]), propensity, weight=weight)


LOGS = st.builds(Drawn, st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.integers(2, 4))


def fit(model: ResponseModel, log: Log) -> Array:
    return model.fit(log).predict(log.features)


@pytest.mark.parametrize(("name", "model"), make_models())
@examples(3)
@given(
    drawn=LOGS,
    weights=FACTORS,
    responses=FACTORS,
    numbers=FACTORS,
    shift=st.sampled_from([0.0, -3.0, 100.0]),
    reversed_columns=st.booleans(),
)
def test_a_model_depends_on_no_unit_and_no_order_of_columns(
    name: str,
    model: ResponseModel,
    drawn: Drawn,
    weights: float,
    responses: float,
    numbers: float,
    shift: float,
    reversed_columns: bool,
) -> None:
    if name == "hurdle":
        drawn = replace(drawn, binary=False)
    elif name == "thresholds":
        drawn = replace(drawn, binary=True)
    log, unit = drawn.log, 1.0 if drawn.binary else responses
    table: Any = log.features.set_column(0, "x", pa.array(numbers * (log.features["x"].to_numpy() + shift)))
    if reversed_columns:
        table = table.select(table.column_names[::-1])
    weight = weights * (np.ones(len(log)) if log.weight is None else log.weight)
    changed = replace(log, features=table, response=unit * log.response, weight=weight)
    np.testing.assert_allclose(fit(model, changed) / unit, fit(model, log), rtol=1e-3, atol=1e-4 * log.response.max())


@examples(3)
@given(drawn=LOGS, factor=FACTORS)
def test_estimates_follow_the_units_of_weights_and_responses(drawn: Drawn, factor: float) -> None:
    log = drawn.log
    levels = np.arange(len(log)) % drawn.levels
    known, weighted = evaluate(log, levels), replace(log, weight=factor * log.weights)
    for result, unit in (
        (evaluate(weighted, levels), 1.0),
        *(() if drawn.binary else ((evaluate(replace(log, response=factor * log.response), levels), factor),)),
    ):
        for ours, other in ((known.value, result.value), (known.value_se, result.value_se)):
            assert other / unit == pytest.approx(ours, rel=1e-4, abs=1e-6 * log.response.max())
        assert result.spend == pytest.approx(known.spend)


@examples(3)
@given(drawn=LOGS, factor=FACTORS, share=st.floats(0, 1))
def test_costs_and_budget_may_have_any_unit(drawn: Drawn, factor: float, share: float) -> None:
    log = drawn.log
    curves, costs = np.sort(fit(lg.Linear(), log), axis=1), np.asarray(log.levels.costs, dtype=float)
    budget = share * costs.max()
    plan, other = lg.allocate(curves, costs, budget), lg.allocate(curves, factor * costs, factor * budget)
    assert other.value == pytest.approx(plan.value, rel=1e-9)
    assert other.spend / factor == pytest.approx(plan.spend, rel=1e-9, abs=1e-12)
    assert other.price * factor == pytest.approx(plan.price, rel=1e-9)


def shuffled(log: Log, seed: int) -> tuple[Array, Log]:
    order = np.random.default_rng(seed).permutation(len(log))
    return order, log.take(order)


def doubled(log: Log) -> tuple[Array, Log]:
    """Every row twice, as one cluster."""
    rows = np.repeat(np.arange(len(log)), 2)
    return rows, replace(log.take(rows), cluster=rows)


@examples(5)
@given(drawn=LOGS, factor=st.sampled_from([0.01, 0.3]))
def test_a_linear_model_depends_on_no_order_and_counts_a_row_twice_as_weight_two(drawn: Drawn, factor: float) -> None:
    log = replace(drawn, binary=True).log  # the amounts of responders are learnt with held-out rows
    model = lg.Linear(penalty=factor)
    curves = model.fit(log).predict(log.features)
    columns = log.features.select(log.features.column_names[::-1])
    for other in (shuffled(log, drawn.seed)[1], doubled(log)[1], replace(log, features=columns)):
        found = lg.Linear(penalty=factor).fit(other).predict(log.features)
        # The solvers stop at 1e-10 of the mean loss and 1e-9 of the ladder's: 1e-4 of a curve.
        np.testing.assert_allclose(found, curves, rtol=1e-3, atol=1e-4 * log.response.max())


@examples(20)
@given(drawn=LOGS, share=st.floats(0, 1))
def test_plans_depend_on_no_order_and_are_the_same_for_two_of_every_customer(drawn: Drawn, share: float) -> None:
    rng = np.random.default_rng(drawn.seed)
    n, K = int(rng.integers(1, 60)), drawn.levels
    curves, costs = rng.normal(size=(n, K)).cumsum(axis=1), np.sort(rng.uniform(0, 9, (n, K)), axis=1)
    low = costs[:, 0].mean()
    budget = low + share * (costs.max(axis=1).mean() - low)
    plan, order, twice = lg.allocate(curves, costs, budget), rng.permutation(n), np.repeat(np.arange(n), 2)
    other = lg.allocate(curves[order], costs[order], budget)
    assert other.bound == pytest.approx(plan.bound, rel=1e-9, abs=1e-9)
    assert other.price == pytest.approx(plan.price, rel=1e-9, abs=1e-12)
    assert abs(other.value - plan.value) <= max(plan.gap, other.gap) + 1e-9
    both = lg.allocate(curves[twice], costs[twice], budget)
    assert both.bound == pytest.approx(plan.bound, rel=1e-9, abs=1e-9)
    assert both.value >= plan.value - both.gap - 1e-9


@examples(20)
@given(drawn=LOGS, factor=FACTORS)
def test_frontiers_follow_the_units_and_no_order(drawn: Drawn, factor: float) -> None:
    rng = np.random.default_rng(drawn.seed)
    n, K = int(rng.integers(1, 60)), drawn.levels
    curves, costs = rng.normal(size=(n, K)).cumsum(axis=1), np.arange(K, dtype=float)
    front = lg.frontier(curves, costs)
    for other, value, money in (
        (lg.frontier(curves[rng.permutation(n)], costs), 1.0, 1.0),
        (lg.frontier(np.repeat(curves, 2, axis=0), costs), 1.0, 1.0),
        (lg.frontier(factor * curves, costs), factor, 1.0),
        (lg.frontier(curves, factor * costs), 1.0, factor),
    ):
        best = np.interp(front.spend, other.spend / money, other.value / value)
        np.testing.assert_allclose(best, front.value, rtol=1e-9, atol=1e-9)


@examples(3)
@given(drawn=LOGS)
def test_estimates_depend_on_no_order_of_columns(drawn: Drawn) -> None:
    log = drawn.log
    levels = np.arange(len(log)) % drawn.levels
    columns = log.features.select(log.features.column_names[::-1])
    known, other = evaluate(log, levels), evaluate(replace(log, features=columns), levels)
    assert other.value == pytest.approx(known.value, rel=1e-4, abs=1e-6 * log.response.max())
    assert other.value_se == pytest.approx(known.value_se, rel=1e-4, abs=1e-6 * log.response.max())


@examples(20)
@given(drawn=LOGS, factor=FACTORS)
def test_importance_weighted_estimates_depend_on_no_order_unit_or_repetition(drawn: Drawn, factor: float) -> None:
    log = drawn.log
    levels = np.arange(len(log)) % drawn.levels
    known = evaluate(log, levels, estimator="snips")
    order, mixed = shuffled(log, drawn.seed)
    rows, twice = doubled(log)
    for other, at in ((mixed, order), (twice, rows), (replace(log, weight=factor * log.weights), slice(None))):
        found = evaluate(other, levels[at], estimator="snips")
        assert found.value == pytest.approx(known.value, rel=1e-9, abs=1e-9 * log.response.max())
        assert found.spend == pytest.approx(known.spend, rel=1e-9, abs=1e-9)
