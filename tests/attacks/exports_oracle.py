"""Exported policies against the policy itself: the same levels for attacked rows, names and words, in DuckDB and ONNX Runtime.

Where two levels are worth the same at the price, up to rounding, either is right.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from exports import CITIES, EXTREME, draw_customers, make_policy, run_duckdb
from harness import FINE, Outcome, judge_message
from odd_values import NAMES, WORDS

Rng = np.random.Generator
MODELS = ("linear", "additive", "boosting", "thresholds")
EDGE = 1e-9  # of the best level's worth: closer levels are a tie
FLOATS = (*EXTREME, 5e-324, -5e-324, 2.2e-308, 3.4e38, 3.5e38, 1e-45, 2.0**53 + 2, 0.1, 44.99999999, 1e16, -1e-300)


def attack(seed: int) -> Outcome:
    """Export one policy, and compare it with itself on attacked rows."""
    rng = np.random.default_rng([seed, 61])
    return compare_names(rng) if seed % 4 == 3 else compare_rows(rng, first=seed < 6)


def compare_rows(rng: Rng, *, first: bool) -> Outcome:
    """Compare a policy that is known with its exports, on rows that are odd in every column."""
    name = MODELS[0] if first else str(rng.choice(MODELS))
    policy, rows = make_policy(name), int(rng.integers(1, 60))
    table = draw_customers(rows, int(rng.integers(2**31)), odd=True)
    kinds = {
        "age": odd_numbers,
        "group by": odd_words,
        'post"code': odd_words,
        "since": odd_times,
        "visits": odd_counts,
        "member": odd_flags,
    }
    for column, make in kinds.items():
        if rng.random() < 0.5:
            table = table.set_column(table.column_names.index(column), column, make(rng, rows))
    return compare(policy, name, table, rng)


def compare(policy: Any, name: str, table: pa.Table, rng: Rng, customer: str = "customer") -> Outcome:
    """Decide by the policy, by its query and by its model; say where they differ."""
    told = policy.explain(table.drop_columns([customer]))
    if rng.random() < 0.5:
        found = run_duckdb(query_of(policy, name, customer), table)
        numbers, expected = (np.asarray(found[column].to_numpy()) for column in ("level_number", "expected_response"))
        way = "DuckDB"
    else:
        numbers, expected = run_onnx(policy, name, table.drop_columns([customer]))
        way = "ONNX"
    rows = np.arange(len(told))
    worth = told.curves - (policy.price or 0.0) * told.costs
    wrong = numbers != told.levels
    short = worth.max(axis=1) - worth[rows, numbers.astype(np.int64)]
    tied = short <= EDGE * np.maximum(1.0, np.abs(worth).max(axis=1))
    if (wrong & ~tied).any():
        at = int(np.flatnonzero(wrong & ~tied)[0])
        return Outcome(
            "wrong",
            f"{way} of {name}: row {at} gets {numbers[at]}, not {told.levels[at]}: {table.slice(at, 1).to_pylist()}",
        )
    if not np.allclose(expected[~wrong], told.curves[rows, told.levels][~wrong], rtol=1e-9, atol=1e-9):
        at = int(np.abs(expected - told.curves[rows, told.levels]).argmax())
        return Outcome("wrong", f"{way} of {name}: row {at} expects {expected[at]}, not {told.curves[at, told.levels[at]]}: "
                                f"{table.slice(at, 1).to_pylist()}")  # fmt: skip
    return FINE


@cache
def _kept() -> dict[Any, Any]:
    return {}


def query_of(policy: Any, name: str, customer: str) -> str:
    if not name:
        return str(policy.to_sql("duckdb", customer=customer))
    return str(_kept().setdefault(("sql", name), policy.to_sql("duckdb") if ("sql", name) not in _kept() else None))


def run_onnx(policy: Any, name: str, table: pa.Table) -> tuple[Any, Any]:
    import onnxruntime

    key = ("onnx", name)
    session = _kept().get(key) if name else None
    if session is None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(policy.to_onnx(), options, providers=["CPUExecutionProvider"])
        if name:
            _kept()[key] = session
    numbers, expected = session.run(["level_number", "expected_response"], policy.onnx_inputs(table))
    return np.asarray(numbers).ravel(), np.asarray(expected).ravel()


# -- odd columns ---------------------------------------------------------------------------------------------------------


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


# -- odd names -----------------------------------------------------------------------------------------------------------


def compare_names(rng: Rng) -> Outcome:
    """Learn from a log whose columns, words and levels have odd names, and compare."""
    import largesse as lg
    from largesse.errors import LargesseError

    def draw(rows: int, names: list[str], words: list[str]) -> dict[str, Any]:
        numbers = rng.normal(size=rows)
        return {
            names[0]: numbers,
            names[1]: [words[i] for i in rng.integers(0, len(words), rows)],
            names[2]: rng.integers(0, 5, rows),
        }

    names, words, labels = (draw_names(rng, many) for many in (3, 4, 3))
    columns = draw(150, names, words)
    chance = 1 / (1 + np.exp(-columns[names[0]]))
    level = rng.integers(0, 3, 150)
    answered = rng.random(150) < chance * (0.4 + 0.3 * level)
    try:
        log = lg.read_log(
            {**columns, "the level": [labels[k] for k in level], "the answer": answered.astype(float)},
            level="the level", response="the answer", features=names, levels=lg.Levels(costs=[0, 5, 10], names=labels),
        )  # fmt: skip
        model = lg.Linear() if rng.random() < 0.7 else lg.Boosting(rounds=3)
        policy = lg.Policy(model.fit(log), log.levels).calibrate(log, 3.0)
        for dialect in ("postgresql", "spark", "bigquery"):
            policy.to_sql(dialect, customer="the customer")
        more = draw(20, names, [*words, "never seen"])
        table = pa.table(
            {**{name: pa.array(values) for name, values in more.items()}, "customer": [f"c{i}" for i in range(20)]}
        )
        return compare(policy, "", table, rng)
    except LargesseError as error:
        return judge_message(str(error))


def draw_names(rng: Rng, many: int) -> list[str]:
    """Return different names; DuckDB takes two that differ in case alone for one, as this does."""
    found: dict[str, str] = {}
    while len(found) < many:
        name = NAMES[rng.integers(len(NAMES))] if rng.random() < 0.7 else f"x{rng.integers(10**6)}"
        if name.lower() not in ("customer", "the level", "the answer"):
            found.setdefault(name.lower().strip(), name)
    return list(found.values())
