"""Policies to export, customers that make it hard, and what databases say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from largesse.data import read_log
from largesse.levels import Levels
from largesse.policy import Policy
from largesse.records import Array, Customers, Log
from largesse.response import (
    Additive,
    Boosting,
    Hurdle,
    Linear,
    Proportional,
    ResponseModel,
    Stack,
    Thresholds,
    WithCosts,
)

CITIES = ("Oslo", "O'Brien\\town", 'Li"ma', "select", "", "line\nbreak; --", "`tick`", "日本")
EXTREME = (1e308, -1e308, 1e12, -5e9, float("inf"), float("-inf"), float("nan"), 1e-60, 0.0, -0.0)
NAMES = ["none", "small's", 'big "x" \\', "'; DROP TABLE customers; --"]
LEVELS = Levels(costs=[0, 5, 10, 20], names=NAMES)


def draw_customers(rows: int, seed: int, *, odd: bool) -> pa.Table:
    """Return customers with every kind of feature; `odd` ones have extreme numbers and words never seen."""
    rng = np.random.default_rng(seed)

    def some_missing(values: Any, share: float = 0.05) -> pa.Array:
        return pa.array(values, mask=rng.random(rows) < share)

    age = rng.uniform(20, 70, rows)
    if odd:
        strange = rng.random(rows) < 0.05
        age[strange] = rng.choice(EXTREME, strange.sum())
    cities = np.array([*CITIES, *(["never seen", "it''s"] if odd else [])], dtype=object)
    since = np.datetime64("2022-01-01T00:00:00", "us") + rng.integers(0, 900 * 86_400, rows).astype("timedelta64[s]")
    return pa.table(
        {
            "customer": pa.array([f"c{i}" for i in range(rows)]),
            "age": some_missing(age),
            "group by": some_missing(cities[rng.integers(0, len(cities), rows)], 0.1),
            'post"code': some_missing(np.array([f"p{i}" for i in rng.integers(0, 130 if odd else 100, rows)])),
            "member": some_missing(rng.random(rows) < 0.3),
            "since": some_missing(since),
            "visits": pa.array(rng.poisson(3, rows)),
        }
    )


@cache
def odd_customers(rows: int = 3000) -> pa.Table:
    return draw_customers(rows, 7, odd=True)


@cache
def draw_log(kind: str = "yes or no", levels: Levels = LEVELS, rows: int = 1500) -> Log:
    """Return a log of answers, of amounts that are mostly zero, or one with observed costs."""
    table, rng = draw_customers(rows, 1, odd=False), np.random.default_rng(2)
    level = rng.integers(0, len(levels), rows)
    age = np.nan_to_num(table["age"].to_numpy(zero_copy_only=False), nan=45.0)
    chance = 1 / (1 + np.exp(-(0.04 * (age - 45) - 0.8 + 0.5 * level * (1 + 0.5 * (age > 50)))))
    response = (rng.random(rows) < chance).astype(float)
    paid = response * level * rng.exponential(3.0, rows)
    if kind == "amounts":
        response = response * np.exp(rng.normal(3, 1, rows))
    names = np.array(levels.names or [str(k) for k in range(len(levels))], dtype=object)
    table = table.append_column("coupon", pa.array(names[level])).append_column("bought", pa.array(response))
    roles = {"cost_column": "paid"} if levels.observed else {}
    if levels.observed:
        table = table.append_column("paid", pa.array(paid))
    for j, name in enumerate(levels.cost_columns or ()):
        table = table.append_column(name, pa.array(5.0 * j + rng.uniform(0, 5, rows)))
    return read_log(table, level="coupon", response="bought", customer="customer", levels=levels, **roles)


MODELS: dict[str, Any] = {
    "linear": lambda: Linear(penalty=0.01),
    "additive": Additive,
    "boosting": lambda: Boosting(rounds=25),
    "thresholds": lambda: Thresholds(penalty=0.01),
    "stacked boosting": lambda: Stack(models=[Boosting(rounds=5, leaves=6)], folds=2),
    "stack": lambda: Stack(models=[Additive(), Boosting(rounds=8), Thresholds(penalty=0.01)], folds=2),
}


@cache
def fitted(name: str, kind: str = "yes or no", levels: Levels = LEVELS) -> ResponseModel:
    makers = {
        **MODELS,
        "hurdle": Hurdle,
        "proportional": Proportional,
        "with_costs": lambda: WithCosts(Linear(penalty=0.01)),
    }
    model: ResponseModel = makers[name]()
    return model.fit(draw_log(kind, levels))


@cache
def make_policy(name: str, kind: str = "yes or no", levels: Levels = LEVELS) -> Policy:
    log = draw_log(kind, levels)
    customers = Customers(log.features, None, log.costs)
    budget = {True: 1.0, False: 6.0}[levels.observed]
    return Policy(fitted(name, kind, levels), levels).calibrate(customers, budget)


REDEEMED = Levels(costs=[0, 5, 10, 20], on_redemption=True, contact_cost=0.3)
PAID = Levels(names=["0", "1", "2", "3"], observed=True)
POLICIES: dict[str, Callable[[], Policy]] = {
    **{name: partial(make_policy, name) for name in MODELS},
    **{f"{name}, amounts": partial(make_policy, name, "amounts") for name in ("hurdle", "additive", "thresholds")},
    "on redemption, scaled": lambda: replace(Policy(fitted("linear"), REDEEMED, price=0.02), scale=1.3),
    "observed costs": lambda: make_policy("with_costs", levels=PAID),
}


def run_duckdb(query: str, customers: pa.Table, name: str = "customers") -> pa.Table:
    """Return what DuckDB says, in the order of the customers."""
    import duckdb

    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        database.register(name, customers)
        found = database.sql(query).to_arrow_table()
    if "customer" not in found.column_names:
        return found
    place = {name: j for j, name in enumerate(customers["customer"].to_pylist())}
    order = np.argsort([place[name] for name in found["customer"].to_pylist()])
    return found.take(pa.array(order))


def expect(policy: Policy, customers: Any) -> tuple[Array, Array, Array]:
    """Return levels, expected responses and costs of customers by the policy itself."""
    told = policy.explain(customers.drop_columns(["customer"]) if isinstance(customers, pa.Table) else customers)
    rows = np.arange(len(told))
    return told.levels, told.curves[rows, told.levels], told.costs[rows, told.levels]


def assert_same(found: Any, policy: Policy, customers: Any, most: float = 1e-12) -> None:
    """Check levels, their names, and responses and costs up to rounding."""
    levels, response, cost = expect(policy, customers)
    assert np.array_equal(np.asarray(found["level_number"]), levels)
    assert list(np.asarray(found["level"])) == [policy.levels.labels[level] for level in levels]
    np.testing.assert_allclose(np.asarray(found["expected_response"]), response, rtol=most, atol=most)
    np.testing.assert_allclose(np.asarray(found["expected_cost"]), cost, rtol=most, atol=most)
    assert len(np.unique(levels)) > 1  # a rule that gives everybody the same would show nothing
