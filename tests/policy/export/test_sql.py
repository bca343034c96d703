from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.data import log_from_arrays, read_log
from largesse.errors import InputError, NotFittedError
from largesse.levels import Levels
from largesse.policy import Policy
from largesse.policy.export.graph_compiler import COMPILERS
from largesse.policy.export.sql import DIALECTS, VELTKAMP_FACTOR
from largesse.records import Customers
from largesse.response import Additive, Boosting, Linear, Thresholds, list_model_classes
from largesse_lab.baselines import BART
from support.exports import (
    MODELS,
    POLICIES,
    assert_same,
    draw_customers,
    fitted,
    make_policy,
    odd_customers,
    run_duckdb,
)
from support.postgres import Server

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")


@pytest.mark.parametrize("kind", POLICIES)
def test_duckdb_decides_like_the_policy(kind: str) -> None:
    policy, customers = POLICIES[kind](), odd_customers(3000 if kind in MODELS else 500)
    assert_same(run_duckdb(policy.to_sql("duckdb"), customers), policy, customers)


def test_a_customer_without_own_costs_gets_no_level() -> None:
    levels = Levels(costs=["cost a", 'cost "b"', "order"])
    policy = make_policy("linear", levels=levels)
    table, rng = draw_customers(300, 5, odd=True), np.random.default_rng(0)
    own = [5.0 * j + rng.uniform(0, 5, 300) for j in range(3)]
    for name, cost in zip(levels.cost_columns or (), own, strict=True):
        table = table.append_column(name, pa.array(cost))
    customers = Customers(table.drop_columns(["customer"]), None, np.column_stack(own))
    assert_same(run_duckdb(policy.to_sql("duckdb"), table), policy, customers)
    gone = table.set_column(table.schema.get_field_index("order"), "order", pa.nulls(300, pa.float64()))
    assert run_duckdb(policy.to_sql("duckdb"), gone)["level"].null_count == 300


def test_names_cannot_leave_their_quotation_marks() -> None:
    names = ['a"; DROP TABLE x; --', "b'c\\", "SELECT", "c`d\n"]
    rng = np.random.default_rng(0)
    word = "x\"\\'; --\0y"
    table = pa.table(
        {name: rng.normal(size=200) for name in names}
        | {"w": np.array([word, "z"], dtype=object)[rng.integers(0, 2, 200)]}
    )
    full = table.append_column("k", pa.array(rng.integers(0, 2, 200)))
    full = full.append_column("r", pa.array(np.arange(200) % 2 * 1.0 + (np.asarray(full["k"]) * 0.3)))
    log = read_log(full, level="k", response="r", levels=Levels(costs=[0, 1], names=["0", "1"]))
    policy = Policy(Linear().fit(log), log.levels, price=0.2)
    found = run_duckdb(policy.to_sql("duckdb", table='my "table"', customer=None), table, 'my "table"')
    assert np.array_equal(np.sort(np.asarray(found["level_number"])), np.sort(policy.decide(table)))
    for dialect in set(DIALECTS) - {"bigquery"}:
        assert "DROP TABLE" in policy.to_sql(dialect, customer=None)


def test_levels_that_tie_are_decided_as_the_policy_does() -> None:
    rng = np.random.default_rng(0)
    X, level = rng.integers(0, 3, (400, 2)).astype(float), rng.integers(0, 3, 400)
    log = log_from_arrays(X, level, rng.random(400) < 0.3 + 0.15 * level, levels=Levels(costs=[0, 1, 2]))
    for model in (Linear(penalty=0.1), Additive(), Boosting(rounds=10, leaves=3)):
        for budget in (0.4, 0.9, 1.3):
            # Nine kinds of customers: at the price of a budget, one kind ties.
            policy = Policy(model.fit(log), log.levels).calibrate(log, budget)
            names = log.features.column_names
            table = pa.table({"customer": np.arange(400), **dict(zip(names, X.T, strict=True))})
            found = run_duckdb(policy.to_sql("duckdb"), table)
            assert np.array_equal(np.asarray(found["level_number"]), policy.decide(log))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["linear", "additive", "boosting"]), st.integers(2, 6), st.booleans())
def test_any_policy_decides_the_same(seed: int, name: str, K: int, amounts: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3)) * 10.0 ** rng.integers(-3, 4, 3)
    level = rng.permutation(np.arange(80) % K)
    response = rng.normal(size=80) + level if amounts else (rng.random(80) < 0.5).astype(float)
    log = log_from_arrays(X, level, response, levels=Levels(costs=np.arange(K) * rng.uniform(0.1, 3)))
    model = {"linear": Linear(penalty=0.1), "additive": Additive(knots=2), "boosting": Boosting(rounds=5)}[name]
    policy = Policy(model.fit(log), log.levels, price=float(rng.exponential(0.1)))
    names = log.features.column_names
    table = pa.table({"customer": np.arange(80), **dict(zip(names, X.T, strict=True))})
    found = run_duckdb(policy.to_sql("duckdb"), table)
    assert np.array_equal(np.asarray(found["level_number"]), policy.decide(log))


def test_every_model_is_written_or_refused_by_name() -> None:
    assert set(list_model_classes().values()) == set(COMPILERS)
    model = BART()
    model.encoder_, model.levels_ = fitted("linear").encoder_, 4
    with pytest.raises(InputError, match=r"BART(?s:.)*to_tree"):
        Policy(model, make_policy("linear").levels, price=0.1).to_sql()


def test_what_cannot_be_written_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make_policy("boosting")
    with pytest.raises(InputError, match="dialect 'oracle' is not known"):
        policy.to_sql("oracle")
    with pytest.raises(InputError, match=r"dialect \['duckdb'\] is not known"):
        policy.to_sql(["duckdb"])  # type: ignore[arg-type]
    with pytest.raises(NotFittedError, match="no price"):
        replace(policy, price=None).to_sql()
    with pytest.raises(InputError, match="the table is"):
        policy.to_sql(table="")
    with pytest.raises(InputError, match="name"):
        policy.to_sql(customer="level")
    monkeypatch.setattr("largesse.policy.export.sql.MAX_ANY_LENGTH", 5_000)
    with pytest.raises(InputError, match="longer than the 5,000 characters"):
        policy.to_sql("spark")


def test_names_that_a_database_cannot_have_are_refused() -> None:
    columns = {"Age": [1.0, 2, 3, 4], "age": [4.0, 3, 1, 1], "": [1.0, 3, 2, 5], "k": [0, 1, 0, 1], "r": [0, 1, 1, 0]}
    roles: Any = {"level": "k", "response": "r", "levels": Levels(costs=[0, 1])}
    for features, words in ((["Age", "age"], "'Age', 'age' have one name in duckdb"), (["age", ""], "the name ''")):
        log = read_log(pa.table(columns), features=features, **roles)
        policy = Policy(Linear(penalty=0.1).fit(log), log.levels, price=0.1)
        with pytest.raises(InputError, match=words):
            policy.to_sql("duckdb")
        if "" not in features:
            assert policy.to_sql("postgresql")  # case matters
    name: Any
    for name in ("", "a\0b", "\ud800", 5, None, [""], {}):
        with pytest.raises(InputError, match="the table is"):
            make_policy("linear").to_sql(table=name)
        if name is not None:
            with pytest.raises(InputError, match="customer column"):
                make_policy("linear").to_sql(customer=name)


def test_names_are_quoted_by_the_dialects_own_rules() -> None:
    query = make_policy("stack").to_sql("spark", table="shop.people", customer="who`")
    assert "`shop`.`people`" in query
    assert "`who```" in query
    assert "'O\\'Brien\\\\town'" in query
    assert '"group by"' not in query
    with pytest.raises(InputError, match=r"bigquery .*'post\"code'"):
        make_policy("stack").to_sql("bigquery")


def test_bigquery_has_its_own_types_and_functions() -> None:
    day = np.datetime64("2024-01-01", "us") + np.arange(90).astype("timedelta64[D]")
    table = pa.table(
        {"day": pa.array(day), "word": ["O'Brien\\", "b", None] * 30, "k": [0, 1] * 45, "r": [0.0, 1, 1] * 30}
    )
    log = read_log(table, level="k", response="r", levels=Levels(costs=[0, 1]))
    policy = Policy(Linear(penalty=0.1).fit(log), log.levels, price=0.1)
    query = policy.to_sql("bigquery", table="shop.people", customer=None)
    for part in (
        "`shop`.`people`",
        "FLOAT64",
        "INT64",
        "UNIX_MICROS(CAST(customers.`day` AS TIMESTAMP))",
        "'O\\'Brien\\\\'",
    ):
        assert part in query
    rng = np.random.default_rng(0)
    x, split = rng.normal(size=10_000) * 10.0 ** rng.integers(-20, 7, 10_000), float(VELTKAMP_FACTOR)
    assert np.array_equal((x * split) - ((x * split) - x), x.astype(np.float32).astype(np.float64))
    assert f"* {VELTKAMP_FACTOR}" in query  # it has no float32
    assert "MATERIALIZED" not in query
    assert "EPOCH_US" not in query.upper()


def test_postgresql_decides_like_the_policy(server: Server) -> None:
    import psycopg

    table = odd_customers(800)
    kinds = dict(
        zip(table.column_names, ["text", "float8", "text", "text", "boolean", "timestamp", "integer"], strict=True)
    )
    columns = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}" {kind}' for name, kind in kinds.items())
    with psycopg.connect(f"postgresql://largesse@/postgres?host={server.folder}") as database:
        database.execute(f"CREATE TEMPORARY TABLE customers ({columns})")
        with database.cursor().copy("COPY customers FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(tuple(row.values()))
        for name in ("additive", "boosting", "stack"):
            policy = make_policy(name)
            rows = database.execute(policy.to_sql("postgresql")).fetchall()
            place = {row[0]: row for row in rows}
            ordered = [place[who] for who in table["customer"].to_pylist()]
            names = ("customer", "level", "level_number", "expected_response", "expected_cost")
            assert_same(dict(zip(names, zip(*ordered, strict=True), strict=True)), policy, table)


def test_levels_are_the_same_where_exponentials_underflow(server: Server) -> None:
    import psycopg
    from onnxruntime import InferenceSession

    rng = np.random.default_rng(1)
    x, level = rng.normal(50, 20, 4000), rng.integers(0, 3, 4000)
    bought = (rng.random(4000) < 1 / (1 + np.exp(-(-1 + 0.04 * (x - 50) + 0.3 * level)))).astype(float)
    log = log_from_arrays(x[:, None], level, bought, levels=Levels(costs=[0, 5, 10], on_redemption=True))
    policy = Policy(Thresholds(penalty=0.001).fit(log), log.levels).calibrate(log, 1.0)
    name = log.features.column_names[0]
    values = -(10.0 ** np.linspace(0, 9, 200))
    table = pa.table({"customer": np.arange(200), name: values})
    levels = policy.decide(table.drop_columns(["customer"]))
    curves = policy.model.predict(table.drop_columns(["customer"]))
    assert ((curves == 0).all(axis=1)).any()
    assert np.array_equal(np.asarray(run_duckdb(policy.to_sql("duckdb"), table)["level_number"]), levels)
    session = InferenceSession(policy.to_onnx())
    assert np.array_equal(session.run(["level_number"], policy.onnx_inputs(table))[0].ravel(), levels)
    with psycopg.connect(f"postgresql://largesse@/postgres?host={server.folder}") as database:
        database.execute(f'CREATE TEMPORARY TABLE customers (customer integer, "{name}" float8)')
        with database.cursor().copy("COPY customers FROM STDIN") as copy:
            for row in zip(range(200), values.tolist(), strict=True):
                copy.write_row(row)
        rows = database.execute(f"{policy.to_sql('postgresql')} ORDER BY 1").fetchall()
    assert [row[2] for row in rows] == levels.tolist()


def test_postgresql_reads_numbers_of_any_type(server: Server) -> None:
    import psycopg

    policy = make_policy("linear")
    age = odd_customers(300)["age"].to_numpy(zero_copy_only=False)
    age = np.where(np.abs(age) < 1e6, age, 45.5).astype(np.float32)
    kinds = {"group by": "text", 'post"code': "text", "member": "boolean", "since": "timestamp", "visits": "integer"}
    others = ", ".join(f'"{name.replace(chr(34), 2 * chr(34))}" {kind}' for name, kind in kinds.items())
    table = pa.table({"age": age.astype(np.float64), **{name: pa.nulls(len(age)) for name in kinds}})
    expected = policy.explain(table)
    with psycopg.connect(f"postgresql://largesse@/postgres?host={server.folder}") as database:
        for kind in ("real", "float8", "numeric"):
            database.execute("DROP TABLE IF EXISTS customers")
            database.execute(f"CREATE TEMPORARY TABLE customers (customer integer, age {kind}, {others})")
            with database.cursor().copy("COPY customers (customer, age) FROM STDIN") as copy:
                for row in enumerate(age.tolist()):
                    copy.write_row(row)
            rows = database.execute(f"{policy.to_sql('postgresql')} ORDER BY 1").fetchall()
            responses = expected.curves[range(len(age)), expected.levels]
            np.testing.assert_allclose([row[3] for row in rows], responses, rtol=1e-14)
