"""Comparison of exported policies with the policy itself, for a million customers in DuckDB and ONNX Runtime.

    python benchmarks/export.py                 # linear, additive, boosting, quick
    python benchmarks/export.py --models auto,sire --rows 100000

Customers have missing values, extreme numbers and words never seen. Printed for each model: levels that differ, the largest
difference of expected responses, how many customers are tied (two levels are worth the same up to 1e-12, and up to 1e-9), the
size of the export, and seconds per million customers on one thread, the policy's own beside them.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa

import largesse as lg
from largesse.errors import LargesseError
from largesse.response import make_model

EXTREME = (1e308, -1e308, 1e12, -5e9, np.inf, -np.inf, np.nan, 1e-60)
WORDS = ("Oslo", "O'Brien\\town", 'Li"ma', "select", "", "日本")
LEVELS = lg.Levels(costs=[0, 5, 10, 20], names=["none", "small", "big", "huge"])
BATCH = 100_000


def draw_customers(rows: int, seed: int, *, odd: bool) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, rows)
    if odd:
        strange = rng.random(rows) < 0.01
        age[strange] = rng.choice(EXTREME, strange.sum())
    cities = np.array([*WORDS, *(["never seen"] if odd else [])], dtype=object)
    since = np.datetime64("2022-01-01", "us") + rng.integers(0, 900 * 86_400, rows).astype("timedelta64[s]")
    return pa.table(
        {
            "customer": np.arange(rows),
            "age": pa.array(age, mask=rng.random(rows) < 0.05),
            "city": pa.array(cities[rng.integers(0, len(cities), rows)], mask=rng.random(rows) < 0.05),
            "postcode": np.char.add("p", rng.integers(0, 330 if odd else 300, rows).astype(str)).astype(object),
            "member": rng.random(rows) < 0.3,
            "since": pa.array(since, mask=rng.random(rows) < 0.05),
            "visits": rng.poisson(3, rows),
            **{f"x{j}": rng.normal(size=rows) for j in range(8)},
        }
    )


def draw_log(rows: int) -> Any:
    table, rng = draw_customers(rows, 1, odd=False), np.random.default_rng(2)
    level = rng.integers(0, 4, rows)
    age = np.nan_to_num(table["age"].to_numpy(zero_copy_only=False), nan=45.0)
    score = 0.04 * (age - 45) - 0.8 + 0.5 * level * (1 + 0.5 * (age > 50)) + 0.4 * table["x0"].to_numpy()
    score = score + 0.4 * (table["x1"].to_numpy() ** 2 - 1)  # bends: lines alone do not follow it
    bought = (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(float)
    table = table.append_column("coupon", pa.array(np.array(LEVELS.names, dtype=object)[level]))
    table = table.append_column("bought", pa.array(bought))
    return lg.read_log(table, level="coupon", response="bought", customer="customer", levels=LEVELS)


def decide_and_count_ties(policy: Any, table: pa.Table) -> tuple[Any, Any, dict[str, int]]:
    """Return the levels and responses of customers, and the number of ties between levels."""
    told = policy.explain(table.drop_columns(["customer"]))
    worth = np.sort(told.worth, axis=1)
    apart = worth[:, -1] - worth[:, -2]
    size = np.abs(told.curves).max(axis=1) + told.price * told.costs.max(axis=1)
    ties = {f"{most:g}": int((apart <= most * size).sum()) for most in (1e-12, 1e-9)}
    return told.levels, told.curves[np.arange(len(told)), told.levels], ties


def run_duckdb(query: str, table: pa.Table) -> tuple[Any, Any]:
    import duckdb

    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        database.register("customers", table)
        found = database.sql(query).to_arrow_table().sort_by("customer")
    return np.asarray(found["level_number"]), np.asarray(found["expected_response"])


def run_onnx(policy: Any, model: bytes, table: pa.Table) -> tuple[Any, Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    wanted = ["level_number", "expected_response"]
    parts = [
        session.run(wanted, policy.onnx_inputs(table.slice(first, BATCH).drop_columns(["customer"])))
        for first in range(0, table.num_rows, BATCH)
    ]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]


def compare_exports(name: str, log: Any, table: pa.Table) -> None:
    model = make_model(name).fit(log)
    policy = lg.Policy(model, log.levels).calibrate(log, budget=6.0)
    million = 1e6 / table.num_rows
    start = time.perf_counter()
    levels, response, ties = decide_and_count_ties(policy, table)
    own = (time.perf_counter() - start) * million
    print(f"{name}: tied {ties}; the policy itself takes {own:.1f} s", flush=True)
    for target in ("duckdb", "onnx"):
        try:
            made = policy.to_sql("duckdb") if target == "duckdb" else policy.to_onnx()
        except LargesseError as error:
            print(f"  {target}: {error}", flush=True)
            continue
        start = time.perf_counter()
        found = run_duckdb(made, table) if isinstance(made, str) else run_onnx(policy, made, table)
        took = (time.perf_counter() - start) * million
        differ = found[0] != levels
        most = np.abs(found[1] - response)[~differ].max()
        size = f"{len(made) / 1e3:,.0f} kB"
        print(
            f"  {target}: {int(differ.sum())} levels differ, responses by {most:.1e}; {size}, {took:.1f} s", flush=True
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="linear,additive,boosting,quick")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--log-rows", type=int, default=20_000)
    options = parser.parse_args()
    log, table = draw_log(options.log_rows), draw_customers(options.rows, 7, odd=True)
    for name in options.models.split(","):
        compare_exports(name, log, table)
