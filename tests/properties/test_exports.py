"""Exported policies against the policy itself: the same levels for odd rows, names and words, in DuckDB and ONNX Runtime.

Where two levels are worth the same at the price, up to rounding, either is right.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import largesse as lg
from support.answers import refusals
from support.examples import RNGS, SEEDS, examples
from support.exports import CITIES, EXTREME, draw_customers, make_policy, run_duckdb
from support.odd_values import NAMES, WORDS

Rng = np.random.Generator
MODELS = ("linear", "additive", "boosting", "thresholds")
WAYS = st.sampled_from(["DuckDB", "ONNX"])
TIE = 1e-9  # of the best level's worth
FLOATS = (*EXTREME, 5e-324, -5e-324, 2.2e-308, 3.4e38, 3.5e38, 1e-45, 2.0**53 + 2, 0.1, 44.99999999, 1e16, -1e-300)


def odd_numbers(rng: Rng, rows: int) -> Any:
    values = np.where(rng.random(rows) < 0.5, rng.choice(FLOATS, rows), rng.normal(45, 30, rows))
    return pa.array(values, mask=rng.random(rows) < 0.1)


def odd_counts(rng: Rng, rows: int) -> Any:
    top = int(rng.choice([3, 10**6, 2**31 - 1, 2**53]))
    return pa.array(rng.integers(-top, top, rows), mask=rng.random(rows) < 0.1)


def odd_words(rng: Rng, rows: int) -> Any:
    words = [word for word in (*CITIES, *WORDS, "p1", "p2", "p99", "<missing>", "É", "İ", "ß") if "\0" not in word]
    return pa.array([words[i] for i in rng.integers(0, len(words), rows)], pa.string(), mask=rng.random(rows) < 0.1)


def odd_times(rng: Rng, rows: int) -> Any:
    days = rng.choice([0, -1, 1, 19_000, 20_000, -719_162, 2_932_896, 47_482], rows)
    micros = days.astype(np.int64) * 86_400_000_000 + rng.integers(0, 86_400_000_000, rows)
    return pa.array(micros, mask=rng.random(rows) < 0.1).cast(pa.timestamp("us"))


def odd_flags(rng: Rng, rows: int) -> Any:
    return pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.5)


ODD_COLUMNS: dict[str, Any] = {
    "age": odd_numbers,
    "group by": odd_words,
    'post"code': odd_words,
    "since": odd_times,
    "visits": odd_counts,
    "member": odd_flags,
}


@examples(4)
@given(st.sampled_from(MODELS), WAYS, st.integers(1, 60), st.sets(st.sampled_from(sorted(ODD_COLUMNS))), SEEDS)
def test_an_export_decides_odd_rows_as_the_policy_does(
    name: str, way: str, rows: int, odd: set[str], seed: int
) -> None:
    rng, table = np.random.default_rng(seed), draw_customers(rows, seed % 2**31, odd=True)
    for column in sorted(odd):
        table = table.set_column(table.column_names.index(column), column, ODD_COLUMNS[column](rng, rows))
    policy = make_policy(name)
    numbers, expected = (
        run_sql(policy_sql(name), table) if way == "DuckDB" else run_onnx(policy_session(name), policy, table)
    )
    check_decisions(policy, table, numbers, expected)


def check_decisions(policy: Any, table: pa.Table, numbers: Any, expected: Any) -> None:
    """Compare the decisions of an export with the policy's own."""
    told, rows = policy.explain(table.drop_columns(["customer"])), np.arange(len(table))
    worth = told.curves - (policy.price or 0.0) * told.costs
    wrong = numbers != told.levels
    short = worth.max(axis=1) - worth[rows, numbers.astype(np.int64)]
    tied = short <= TIE * np.maximum(1.0, np.abs(worth).max(axis=1))
    for at in np.flatnonzero(wrong & ~tied):
        pytest.fail(f"row {at} gets {numbers[at]}, not {told.levels[at]}: {table.slice(at, 1).to_pylist()}")
    np.testing.assert_allclose(expected[~wrong], told.curves[rows, told.levels][~wrong], rtol=1e-9, atol=1e-9)


@cache
def policy_sql(name: str) -> str:
    return str(make_policy(name).to_sql("duckdb"))


@cache
def policy_session(name: str) -> Any:
    return open_session(make_policy(name))


def open_session(policy: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(policy.to_onnx(), options, providers=["CPUExecutionProvider"])


def run_sql(query: str, table: pa.Table) -> tuple[Any, Any]:
    found = run_duckdb(query, table)
    return np.asarray(found["level_number"].to_numpy()), np.asarray(found["expected_response"].to_numpy())


def run_onnx(session: Any, policy: Any, table: pa.Table) -> tuple[Any, Any]:
    inputs = policy.onnx_inputs(table.drop_columns(["customer"]))
    numbers, expected = session.run(["level_number", "expected_response"], inputs)
    return np.asarray(numbers).ravel(), np.asarray(expected).ravel()


# -- odd names -----------------------------------------------------------------------------------------------------------


@examples(5)
@given(WAYS, st.booleans(), RNGS)
def test_an_export_decides_as_the_policy_under_odd_names(way: str, boosting: bool, rng: Rng) -> None:
    names, words, labels = (draw_names(rng, count) for count in (3, 4, 3))
    columns = draw_columns(rng, 150, names, words)
    level = rng.integers(0, 3, 150)
    answered = rng.random(150) < (0.4 + 0.3 * level) / (1 + np.exp(-columns[names[0]]))
    with refusals():
        log = lg.read_log(
            {**columns, "the level": [labels[k] for k in level], "the answer": answered.astype(float)},
            level="the level", response="the answer", features=names, levels=lg.Levels(costs=[0, 5, 10], names=labels),
        )  # fmt: skip
        model = lg.Boosting(rounds=3) if boosting else lg.Linear()
        policy = lg.Policy(model.fit(log), log.levels).calibrate(log, 3.0)
        for dialect in ("postgresql", "spark", "bigquery"):
            policy.to_sql(dialect, customer="the customer")
        table = pa.table(
            {**draw_columns(rng, 20, names, [*words, "never seen"]), "customer": [f"c{i}" for i in range(20)]}
        )
        sql = way == "DuckDB"
        found = run_sql(str(policy.to_sql("duckdb")), table) if sql else run_onnx(open_session(policy), policy, table)
        check_decisions(policy, table, *found)


def draw_columns(rng: Rng, rows: int, names: list[str], words: list[str]) -> dict[str, Any]:
    drawn = [words[i] for i in rng.integers(0, len(words), rows)]
    return {names[0]: rng.normal(size=rows), names[1]: drawn, names[2]: rng.integers(0, 5, rows)}


def draw_names(rng: Rng, many: int) -> list[str]:
    """Return different names; DuckDB takes two that differ in case alone for one, as this does."""
    found: dict[str, str] = {}
    while len(found) < many:
        name = NAMES[rng.integers(len(NAMES))] if rng.random() < 0.7 else f"x{rng.integers(10**6)}"
        if name.lower() not in ("customer", "the level", "the answer"):
            found.setdefault(name.lower().strip(), name)
    return list(found.values())
