"""Two workers with memory of their own give the plan of one machine, also when one of them dies."""

import json
import os
import subprocess
import sys
from pathlib import Path

import on_cluster
import pyarrow.parquet as pq
import pytest
from sessions import near, skip_without_spark
from shops import shop_table, write_shop

import largesse
from largesse.campaign import read_campaign
from largesse.data import read_table
from largesse.pipeline import run


@pytest.mark.xdist_group("spark")
def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
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
    source = os.pathsep.join([str(Path(largesse.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, on_cluster.__file__, str(shop / "campaign.toml"), str(shop / "two")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "scoring writing"
    plans = [read_table(shop / name / "plan.parquet") for name in ("one", "two")]
    assert plans[1].to_pydict() == near(plans[0].to_pydict())
    for part in ("fit", "plan", "evaluation"):
        one, two = (json.loads((shop / name / f"{part}.json").read_text()) for name in ("one", "two"))
        assert two == near(one)
    assert {path.suffix for path in (shop / "two" / "plan.parquet").iterdir()} == {".parquet"}
