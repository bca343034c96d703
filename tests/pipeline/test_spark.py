"""Spark and one machine agree: the same log, price, levels, values and messages, wherever the rows are."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import largesse
from largesse.campaign import Campaign, read_campaign
from largesse.cli import app
from largesse.data import digest_log, read_table
from largesse.errors import InputError, MissingPackageError
from largesse.evaluation import summarise_study
from largesse.io import to_json
from largesse.levels import Levels
from largesse.pipeline import customer_table_validation, open_engine, plan, run, run_on_spark
from largesse.pipeline.commands import evaluate_plan, score_log, show_no_progress
from largesse.pipeline.customer_sources import open_planned_customers
from largesse.pipeline.engine_protocol import Engine, PlanOutputFile
from largesse.pipeline.local_engine import LocalEngine
from largesse.pipeline.scored_customer_plan import make_plan
from largesse.pipeline.spark import ClusterError, SparkEngine, check_spark, open_spark_session, spark_engine
from largesse.pipeline.spark.chunked_tables import ChunkedTable
from largesse.pipeline.spark.executor_tasks import ChunkCosts
from largesse.pipeline.spark.session import _start_session, explain_spark_failure, find_java
from largesse.pipeline.spark.spark_engine import SparkCustomers
from largesse.policy import Policy
from largesse.records import Log
from largesse.response import Linear, fit_out_of_fold
from largesse.stats import assign_folds
from support.shops import shop_table, write_shop
from support.spark import near, skip_without_spark

KINDS = {"age": "number", "city": "text", "since": "date"}


def spread(session: Any, table: pa.Table) -> Any:
    """Return a DataFrame whose rows are in order, in several partitions, one of which is empty."""
    frame = session.createDataFrame(table).repartitionByRange(3, "id").sortWithinPartitions("id")
    return frame.unionByName(frame.limit(0))


def read_part(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def on_spark(session: Any, ran: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of the shop's campaign on Spark, with customers in a DataFrame of several partitions."""
    out, shop = tmp_path_factory.mktemp("spark") / "run", ran.parent
    customers = spread(session, pq.read_table(shop / "customers.parquet"))
    run_on_spark(shop / "campaign.toml", out, customers=customers, session=session)
    return out


# -- the same answers -------------------------------------------------------------------------------------------------


def test_a_run_gives_the_plan_and_the_numbers_of_one_machine(on_spark: Path, ran: Path) -> None:
    found, expected = (read_table(folder / "plan.parquet") for folder in (on_spark, ran))
    assert found.to_pydict() == near(expected.to_pydict())
    for part in ("fit", "plan", "evaluation"):
        assert read_part(on_spark, part) == near(read_part(ran, part))


def plan_with(engine: Engine, campaign: Campaign, model: Any, source: Any, folder: Path) -> tuple[Any, Any]:
    opened, policy = engine.open_customers(campaign, source, KINDS), Policy(model, campaign.levels)
    with engine.score_customer_table(policy, opened, folder, show_no_progress) as scored:
        result = make_plan(campaign, policy, scored, show_no_progress)
        counts = scored.write_plan_tables(result, [PlanOutputFile(folder / "plan.parquet")], show_no_progress)
    numbers = (
        result.plan.price,
        result.plan.value,
        result.plan.spend,
        result.plan.bound,
        result.policy.tie_probability,
    )
    points = [[point.budget, point.value] for point in result.points]
    return list(numbers), [
        points,
        counts.counts.tolist(),
        counts.other_spend.tolist(),
        read_table(folder / "plan.parquet"),
    ]


CASES: dict[str, Callable[[Campaign], Campaign]] = {
    "costs": lambda campaign: campaign,
    "explore": lambda campaign: replace(campaign, planning=replace(campaign.planning, explore=0.3)),
    "redemption": lambda campaign: replace(
        campaign.spending(budget=1.0), levels=Levels(costs=[0, 5, 10], on_redemption=True)
    ),
    "own costs": lambda campaign: replace(campaign, levels=Levels(costs=["c0", "c1", "c2"])),
    "constraints": lambda campaign: replace(
        campaign, planning=replace(campaign.planning, constraints={"caps": {2: 10}})
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_plans_of_every_kind_are_those_of_one_machine(case: str, session: Any, shop: Path) -> None:
    campaign = CASES[case](read_campaign(shop))
    model = Linear().fit(LocalEngine().read_log(read_campaign(shop)))
    table = pq.read_table(shop / "customers.parquet")
    for k in range(3):
        table = table.append_column(f"c{k}", pa.array(k * (4.0 + np.arange(len(table)) % 3)))
    pq.write_table(table, shop / "customers.parquet", row_group_size=70)
    expected = plan_with(LocalEngine(), campaign, model, shop / "customers.parquet", shop)
    source = spread(session, table) if case == "own costs" else str(shop / "customers.parquet")
    found = plan_with(SparkEngine(session), campaign, model, source, shop)
    assert found[0] == near(expected[0])
    assert found[1][:3] == near(expected[1][:3])
    assert found[1][3].to_pydict() == near(expected[1][3].to_pydict())


@pytest.mark.parametrize("kind", ["table", "parquet", pytest.param("csv", marks=pytest.mark.slow)])
def test_executors_write_the_plan_to_a_table_or_an_address(
    kind: str, on_spark: Path, session: Any, ran: Path, run_copy: Path, tmp_path: Path
) -> None:
    target = "table:shop_plan" if kind == "table" else (tmp_path / f"plan.{kind}").as_uri()
    plan(run_copy, str(ran.parent / "customers.parquet"), engine=SparkEngine(session, plan=target))
    assert not (run_copy / "plan.parquet").exists()
    readers = {"table": session.table, "parquet": session.read.parquet, "csv": partial(session.read.csv, header=True)}
    written = read_table(readers[kind](target.removeprefix("table:")).toArrow(), plain=["customer", "level"])
    expected = read_table(on_spark / "plan.parquet", plain=["customer", "level"])
    for name in ("customer", "level"):
        assert written.sort_by("customer")[name].to_pylist() == expected.sort_by("customer")[name].to_pylist()
    if kind == "table":
        session.sql("drop table shop_plan")


# -- logs -------------------------------------------------------------------------------------------------------------


def test_a_log_of_spark_is_that_of_its_file(session: Any, shop: Path) -> None:
    campaign = read_campaign(shop)
    frame = session.createDataFrame(pq.read_table(shop / "log.parquet")).coalesce(1)
    frame.createOrReplaceTempView("shop_log")
    expected = digest_log(LocalEngine().read_log(campaign))
    for source in (None, frame, "shop_log", "table:shop_log", (shop / "log.parquet").as_uri(), shop / "log.parquet"):
        assert digest_log(SparkEngine(session, log=source).read_log(campaign)) == expected


def test_rows_of_a_large_log_are_scored_where_they_are(
    session: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Curves, propensities and the whole evaluation are those of one machine; beyond the sample, no features are read."""

    def refuse(_: Any) -> Any:
        raise AssertionError("features of all rows came to the driver")

    monkeypatch.setattr(spark_engine, "DRIVER_ROWS", 100)
    campaign, table = replace(read_campaign(shop), most_rows=200), pq.read_table(shop / "log.parquet")
    table = table.set_column(5, "bought", pa.array([None, *table["bought"].to_pylist()[1:]]))  # has no response
    pq.write_table(table, shop / "log.parquet")
    with SparkEngine(session, log=spread(session, table)) as on_cluster:
        local, remote = (one.read_log(campaign) for one in (LocalEngine(), on_cluster))
        assert remote.sample is not None
        assert digest_log(remote) == digest_log(local)
        remote = replace(remote, sample=replace(remote.sample, batches=refuse))
        held, numbers = [], []
        for log in (local, remote):
            model = Linear()
            held.append(fit_out_of_fold(model, log, assign_folds(log, 5, 0)))
            scored = score_log(campaign, log, held[-1], show_no_progress)
            numbers.append(to_json(summarise_study(evaluate_plan(campaign, log, scored, 2.5, len(log)))))
        assert (held[1].curves == held[0].curves).all()
        assert numbers[1] == near(numbers[0])
        monkeypatch.setattr(customer_table_validation, "read_memory_limit", lambda: 1000)
        capped = replace(campaign, customers=None, planning=replace(campaign.planning, constraints={"caps": {2: 10}}))
        with pytest.raises(InputError, match="constraints"):
            open_planned_customers(capped, remote, on_cluster)
        policy = Policy(model, campaign.levels)
        own_customers = open_planned_customers(replace(campaign, customers=None), remote, on_cluster)
        with on_cluster.score_customer_table(policy, own_customers, shop, show_no_progress) as scored_log:
            assert (scored_log.curves == model.predict(log_features(local))).all()  # type: ignore[attr-defined]


def log_features(log: Log) -> pa.Table:
    assert log.sample is not None
    return pa.concat_tables(log.sample.batches(None), promote_options="permissive").unify_dictionaries()


def test_a_large_log_that_fits_into_memory_is_read_whole(
    session: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_engine, "DRIVER_ROWS", 100)
    campaign = read_campaign(shop)
    with SparkEngine(session, log=spread(session, pq.read_table(shop / "log.parquet"))) as on_cluster:
        log = on_cluster.read_log(campaign)
    assert log.sample is None
    assert digest_log(log) == digest_log(LocalEngine().read_log(campaign))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("table:nowhere.log", "nowhere.log"),
        ("s3a://shop/log.csv", "is not Parquet"),
        ("missing.parquet", "missing.parquet"),
        (3, "got int"),
    ],
)
def test_a_missing_source_is_named(source: Any, message: str, session: Any) -> None:
    with pytest.raises((InputError, ClusterError), match=message):
        spark_engine.find_spark_table(session, source, "log")


# -- bad input --------------------------------------------------------------------------------------------------------


def spoil(table: pa.Table, name: str, rows: list[int], value: Any) -> pa.Table:
    column = table.column(name).to_pylist()
    for row in rows:
        column[row] = value
    return table.set_column(table.column_names.index(name), name, pa.array(column, table.schema.field(name).type))


SPOILT: dict[str, Callable[[pa.Table], pa.Table]] = {
    "no id": lambda table: spoil(table, "id", [3, 150, 199], None),
    "ids twice": lambda table: spoil(table, "id", [3, 150, 199], "c00007"),
    "no feature": lambda table: table.drop_columns("age"),
    "id misspelt": lambda table: table.rename_columns(["ids", *table.column_names[1:]]),
    "no rows": lambda table: table.slice(0, 0),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_bad_customers_get_the_message_of_one_machine(kind: str, session: Any, shop: Path) -> None:
    campaign, table = read_campaign(shop), SPOILT[kind](pq.read_table(shop / "customers.parquet"))
    model = Linear().fit(LocalEngine().read_log(campaign))
    messages = []
    for one, source in ((LocalEngine(), table), (SparkEngine(session), session.createDataFrame(table).coalesce(2))):
        with pytest.raises(InputError) as caught:
            plan_with(one, campaign, model, source, shop)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_files_that_do_not_fit_together_and_damaged_ones_are_refused_as_on_one_machine(
    session: Any, shop: Path
) -> None:
    campaign, table = read_campaign(shop), pq.read_table(shop / "customers.parquet")
    model = Linear().fit(LocalEngine().read_log(campaign))
    (shop / "all").mkdir()
    pq.write_table(table.slice(0, 100), shop / "all" / "a.parquet")
    pq.write_table(table.slice(100).drop_columns("age"), shop / "all" / "b.parquet")
    for _ in range(2):
        messages = []
        for one in (LocalEngine(), SparkEngine(session)):
            with pytest.raises(InputError) as caught:
                plan_with(one, campaign, model, str(shop / "all"), shop)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
        (shop / "all" / "b.parquet").write_bytes((shop / "all" / "a.parquet").read_bytes()[:-40])


def test_numbers_written_as_text_and_columns_without_a_feature_are_read_by_the_driver(session: Any, shop: Path) -> None:
    table = pq.read_table(shop / "customers.parquet")
    words = pa.array([None if age is None else f"{age:.2f}".replace(".", ",") for age in table["age"].to_pylist()])
    table = table.set_column(table.column_names.index("age"), "age", words)
    opened = SparkEngine(session).open_customers(read_campaign(shop), session.createDataFrame(table).coalesce(1), KINDS)
    assert opened.features.equals(LocalEngine().open_customers(read_campaign(shop), table, KINDS).features)


@pytest.mark.parametrize(
    ("planning", "words"),
    [
        ({"constraints": {"caps": {2: 10}}}, "constraints"),
        ({"exact": True}, "exact = true"),
        ({"explore": 0.2, "explore_for": "evaluation"}, "exploration"),
        ({}, "age"),  # numbers that are written as text
    ],
)
@pytest.mark.parametrize("kind", ["frame", "files"])
def test_customers_that_the_driver_needs_at_once_are_refused_if_they_do_not_fit_into_its_memory(
    planning: dict[str, Any], words: str, kind: str, session: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, path = read_campaign(shop), shop / "customers.parquet"
    campaign, table = replace(campaign, planning=replace(campaign.planning, **planning)), pq.read_table(path)
    if not planning:
        pq.write_table(table.set_column(1, "age", pa.array([f"{k},5" for k in range(200)])), path)
    source = session.read.parquet(path.as_uri()) if kind == "frame" else str(path)
    needed = 200 * (table.num_columns + 3) * customer_table_validation.BYTES_PER_VALUE
    monkeypatch.setattr(
        customer_table_validation, "read_memory_limit", lambda: int(needed / customer_table_validation.MEMORY_SHARE) - 1
    )
    with pytest.raises(InputError, match=rf"(?s){words}.*200 customers.*more memory") as caught:
        SparkEngine(session).open_customers(campaign, source, KINDS)
    assert len(caught.value.problems) == 1
    monkeypatch.setattr(
        customer_table_validation, "read_memory_limit", lambda: int(needed / customer_table_validation.MEMORY_SHARE) + 1
    )
    assert len(SparkEngine(session).open_customers(campaign, source, KINDS)) == 200


class WideFrame:
    """A DataFrame of a billion customers, without Java."""

    columns, schema, sparkSession, mapInArrow = ("age", "city", "since"), (), None, None  # noqa: N815

    def count(self) -> int:
        return 10**9

    def toArrow(self) -> None:  # noqa: N802
        raise AssertionError("the driver fetched a billion rows")


@pytest.mark.parametrize("planning", [{"constraints": {"caps": {2: 10}}}, {"exact": True}])
def test_customers_beyond_the_memory_of_the_driver_are_refused_before_they_are_fetched(
    planning: dict[str, Any], shop: Path
) -> None:
    campaign = read_campaign(shop)
    campaign = replace(campaign, planning=replace(campaign.planning, **planning))
    with pytest.raises(InputError, match="1,000,000,000 customers"):
        SparkEngine(cast(Any, None)).open_customers(campaign, WideFrame(), KINDS)


def test_customers_on_the_executors_cannot_be_collected() -> None:
    chunks = ChunkedTable(None, np.zeros(1, dtype=np.int64), np.array([0, 700_000]), [b""], [])
    with pytest.raises(InputError, match="700,000 customers"):
        SparkCustomers(chunks, ChunkCosts(np.arange(3.0), 3), (), None).collect()


def test_a_plan_that_is_refused_leaves_the_run_folder_as_it_was(
    session: Any, run_copy: Path, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (run_copy / "campaign.toml").read_text(encoding="utf-8")
    (run_copy / "campaign.toml").write_text(text.replace("exact = false", "exact = true"), encoding="utf-8")
    before = {path: path.read_bytes() for path in run_copy.rglob("*") if path.is_file()}
    monkeypatch.setattr(customer_table_validation, "read_memory_limit", lambda: 1000)
    with pytest.raises(InputError, match="exact = true"):
        plan(run_copy, str(ran.parent / "customers.parquet"), engine=SparkEngine(session))
    assert {path: path.read_bytes() for path in run_copy.rglob("*") if path.is_file()} == before


def test_a_run_that_fails_while_writing_leaves_the_old_folder(
    session: Any, on_spark: Path, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_plan(*_: Any) -> bytes:
        raise OSError(28, "No space left on device")

    before = {path: path.read_bytes() for path in on_spark.rglob("*") if path.is_file()}
    monkeypatch.setattr(spark_engine, "plan_chunk", fail_to_plan)
    with pytest.raises(ClusterError, match=r"OSError.*No space left"):
        plan(on_spark, str(ran.parent / "customers.parquet"), budget=2.0, engine=SparkEngine(session))
    assert {path: path.read_bytes() for path in on_spark.rglob("*") if path.is_file()} == before


# -- sessions and commands --------------------------------------------------------------------------------------------


def test_the_command_line_runs_on_spark(session: Any, on_spark: Path, ran: Path, tmp_path: Path) -> None:
    command = ["run", str(ran.parent / "campaign.toml"), "--engine", "spark", "--out", str(tmp_path / "run"), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code in (0, 10, 20), done.output  # 10 and 20: findings about the log
    assert read_part(tmp_path / "run", "plan") == near(read_part(on_spark, "plan"))
    command = ["plan", str(tmp_path / "run"), "--engine", "spark", "--budget", "1", "--plan-to", "not/a/table"]
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, InputError)


@pytest.mark.parametrize("options", [{"engine": "sparc"}, {"master": "local[2]"}, {"plan_to": "table:shop.plan"}])
def test_an_unknown_engine_and_options_without_spark_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"spark"), open_engine(**options):
        pass


def lack_grpc(*_: object) -> None:
    raise RuntimeError("[PACKAGE_NOT_INSTALLED] grpcio >= 1.67.0 must be installed; however, it was not found.")


def test_a_missing_or_old_part_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert find_java() is None
    check_spark(needs_java=False)  # Spark Connect is only a client
    with pytest.raises(MissingPackageError, match="Java 17"), open_spark_session():
        pass
    with monkeypatch.context() as patch:
        patch.setattr(pyspark.sql.SparkSession.Builder, "getOrCreate", lack_grpc)
        with pytest.raises(ClusterError, match=r"pyspark\[connect\]"):
            _start_session("sc://127.0.0.1:1")
    with monkeypatch.context() as patch:
        patch.setattr(pyspark, "__version__", "3.5.1")
        with pytest.raises(MissingPackageError, match=r"3\.5\.1"):
            check_spark()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingPackageError, match=r"largesse\[spark\]"), open_spark_session():
        pass


def test_the_active_session_is_used_and_left_running(session: Any) -> None:
    for given in (None, session):
        with open_spark_session(given) as found:
            assert found is session
    assert session.range(3).count() == 3


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("Total size of results is bigger than spark.driver.maxResultSize", "maxResultSize"),
        ("java.lang.OutOfMemoryError: Java heap space", "spark.executor.memory"),
        ("No module named 'largesse'", "install the same version"),
        ("FileNotFoundError: No such file or directory: '/work/1.parquet'", "an address that Spark reads"),
        (
            "Job aborted\nTraceback (most recent call last):\n  File 'x.py'\nValueError: no such thing\nat scala.x",
            "ValueError",
        ),
    ],
)
def test_errors_of_spark_become_a_sentence_with_a_hint(message: str, hint: str) -> None:
    with pytest.raises(ClusterError, match=hint), explain_spark_failure("counting"):
        raise RuntimeError(message)


# -- other clusters ---------------------------------------------------------------------------------------------------

CONNECT = """
import sys
from pyspark.sql import SparkSession
from largesse.pipeline import run_on_spark

session = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(session).__module__
customers = session.read.parquet("file://" + sys.argv[2]).coalesce(1)
run_on_spark(sys.argv[1], sys.argv[3], customers=customers, session=session)
session.stop()
"""


def run_apart(*command: str) -> str:
    source = os.pathsep.join([str(Path(largesse.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": source, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_client_of_spark_connect_gets_the_plan_of_one_machine(ran: Path, tmp_path: Path) -> None:
    skip_without_spark()
    pytest.importorskip("grpc_status", reason="Spark Connect needs pip install 'pyspark[connect]'")
    shop = ran.parent
    run_apart("-c", CONNECT, str(shop / "campaign.toml"), str(shop / "customers.parquet"), str(tmp_path / "run"))
    found, expected = (read_table(folder / "plan.parquet").to_pydict() for folder in (tmp_path / "run", ran))
    assert found == near(expected)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    from support import spark_cluster

    skip_without_spark()
    shop = write_shop(tmp_path, rows=300, customers=10)
    (shop / "customers.parquet").unlink()
    (shop / "customers").mkdir()
    table = shop_table(3000, seed=2, log=False)
    for k in range(6):
        pq.write_table(table.slice(500 * k, 500), shop / "customers" / f"part{k}.parquet")
    text = (shop / "campaign.toml").read_text(encoding="utf-8").replace("customers.parquet", "customers")
    (shop / "campaign.toml").write_text(text, encoding="utf-8")
    run(read_campaign(shop), shop / "one")
    killed = run_apart(spark_cluster.__file__, str(shop / "campaign.toml"), str(shop / "two"))
    assert killed == "scoring planning writing"
    plans = [read_table(shop / name / "plan.parquet") for name in ("one", "two")]
    assert plans[1].to_pydict() == near(plans[0].to_pydict())
    for part in ("fit", "plan", "evaluation"):
        assert read_part(shop / "two", part) == near(read_part(shop / "one", part))
