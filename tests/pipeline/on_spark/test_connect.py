"""Spark Connect: a session that is only a client gives the plan of one machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sessions import near, skip_without_spark

import largesse
from largesse.data import read_table

SCRIPT = """
import sys
from pyspark.sql import SparkSession
from largesse.pipeline import spark

session = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(session).__module__
customers = session.read.parquet("file://" + sys.argv[2]).coalesce(1)
spark(sys.argv[1], sys.argv[3], customers=customers, session=session)
session.stop()
"""


@pytest.mark.slow
def test_a_client_of_spark_connect_gets_the_plan_of_one_machine(ran: Path, tmp_path: Path) -> None:
    skip_without_spark()
    pytest.importorskip("grpc_status", reason="Spark Connect needs pip install 'pyspark[connect]'")
    source = os.pathsep.join([str(Path(largesse.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    shop = ran.parent
    paths = [str(shop / "campaign.toml"), str(shop / "customers.parquet"), str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": source, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", SCRIPT, *paths], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found, own = (read_table(folder / "plan.parquet").to_pydict() for folder in (tmp_path / "run", ran))
    assert found == near(own)
