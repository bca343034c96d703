"""A campaign on Spark in one call."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sessions import near
from typer.testing import CliRunner

from largesse.cli import app
from largesse.data import read_table
from largesse.errors import InputError, OutputError
from largesse.pipeline import open_engine, plan, spark
from largesse.pipeline.on_spark import ClusterError, Spark, parts


def read_part(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def on_spark(session: Any, ran: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of the shop's campaign on Spark, with customers in a DataFrame of several partitions."""
    out, shop = tmp_path_factory.mktemp("spark") / "run", ran.parent
    table = pq.read_table(shop / "customers.parquet")
    frame = session.createDataFrame(table).repartitionByRange(3, "id").sortWithinPartitions("id")
    spark(shop / "campaign.toml", out, customers=frame.unionByName(frame.limit(0)), session=session)
    return out


@pytest.mark.parametrize("part", ["fit", "plan", "evaluation"])
def test_the_numbers_are_those_of_one_machine(part: str, on_spark: Path, ran: Path) -> None:
    assert read_part(on_spark, part) == near(read_part(ran, part))


def test_the_plan_is_a_folder_with_the_rows_of_one_machine_in_their_order(on_spark: Path, ran: Path) -> None:
    assert (on_spark / "plan.parquet").is_dir()
    found, own = (read_table(folder / "plan.parquet", plain=["customer", "level"]) for folder in (on_spark, ran))
    assert found.schema.equals(own.schema)
    for name in ("customer", "level", "level_number"):
        assert found.column(name).to_pylist() == own.column(name).to_pylist()
    for name in ("expected_response", "expected_cost"):
        assert found.column(name).to_pylist() == near(own.column(name).to_pylist())


def test_one_machine_plans_in_a_folder_that_spark_wrote_and_the_other_way_round(
    on_spark: Path, ran: Path, session: Any, tmp_path: Path
) -> None:
    customers = str(ran.parent / "customers.parquet")
    run = shutil.copytree(on_spark, tmp_path / "run")
    plan(run, customers, budget=2.0)
    assert (run / "plan.parquet").is_file()
    own = read_table(run / "plan.parquet").to_pydict()
    plan(run, customers, budget=2.0, out=tmp_path / "plan.csv", engine=Spark(session))
    assert (run / "plan.parquet").is_dir()
    assert read_table(run / "plan.parquet").to_pydict() == near(own)
    written = read_table(tmp_path / "plan.csv", parse={"level": "text"}).to_pydict()
    assert written == near(own)
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == ["plan.csv", "run"]


def test_a_run_that_fails_while_writing_leaves_the_old_folder(
    on_spark: Path, ran: Path, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_write(_order: Any, _costs: Any, _stored: Any, batches: Any) -> Any:
        for _ in batches:
            raise OSError(28, "No space left on device")
        yield

    run = shutil.copytree(on_spark, tmp_path / "run")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    monkeypatch.setattr(parts, "write_part", fail_to_write)
    with pytest.raises(ClusterError, match=r"writing the plan failed: OSError.*No space left"):
        plan(run, str(ran.parent / "customers.parquet"), budget=2.0, engine=Spark(session))
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == ["run"]


def test_parts_on_a_disk_that_is_not_shared_are_missed(tmp_path: Path) -> None:
    told = [{"file": "part-000000000000.parquet", "rows": 3}]
    with pytest.raises(OutputError, match=r"1 of 1 parts of the plan are not in .*\n.*share"):
        parts._check_parts(tmp_path, told, 3)


def test_the_command_line_runs_on_spark(session: Any, on_spark: Path, ran: Path, tmp_path: Path) -> None:
    command = ["run", str(ran.parent / "campaign.toml"), "--engine", "spark", "--out", str(tmp_path / "run"), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert read_part(tmp_path / "run", "plan") == near(read_part(on_spark, "plan"))
    command = ["plan", str(tmp_path / "run"), "--engine", "spark", "--budget", "1"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "planned 200 customers" in done.output


def test_an_unknown_engine_and_a_master_without_spark_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'spark'"), open_engine("sparc"):
        pass
    with pytest.raises(InputError, match="add --engine spark"), open_engine(master="local[2]"):
        pass
