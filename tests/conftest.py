"""Small logs that many tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Tests compile many small networks once each: compiling quickly is worth more than fast code. Set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

SHOP_CAMPAIGN = """
title = "Shop"
unit = "€"
log = "log.parquet"
customers = "customers.parquet"

[columns]
level = "coupon"
response = "bought"
customer = "id"

[levels]
costs = [0, 5, 10]

[plan]
budget = 2.5

[model]
name = "linear"
"""


def shop_table(rows: int, seed: int, *, log: bool = True) -> pa.Table:
    """Return a randomised coupon log with a number, a text and a date; the old respond more, everybody to coupons."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, rows)
    level = rng.integers(0, 3, rows)
    chance = 1 / (1 + np.exp(-(0.03 * (age - 45) - 0.8 + 0.7 * level)))
    columns = {
        "id": pa.array([f"c{i:05d}" for i in range(rows)]),
        "age": pa.array(age, mask=rng.random(rows) < 0.05),
        "city": pa.array(np.array(["Oslo", "Rome", "Lima"])[rng.integers(0, 3, rows)]),
        "since": pa.array(np.datetime64("2024-01-01") + rng.integers(0, 700, rows).astype("timedelta64[D]")),
    }
    if log:
        columns["coupon"] = pa.array(np.array([0, 5, 10])[level])
        columns["bought"] = pa.array((rng.random(rows) < chance).astype(np.int64))
    return pa.table(columns)


def write_shop(folder: Path) -> Path:
    pq.write_table(shop_table(300, seed=1), folder / "log.parquet")
    pq.write_table(shop_table(200, seed=2, log=False), folder / "customers.parquet")
    (folder / "campaign.toml").write_text(SHOP_CAMPAIGN, encoding="utf-8")
    return folder


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a log, a table of customers and a campaign file."""
    return write_shop(tmp_path)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of the shop, beside its log and customers: for reading only."""
    from largesse.runs import read_campaign, run

    shop = write_shop(tmp_path_factory.mktemp("shop"))
    run(read_campaign(shop), shop / "run")
    return shop / "run"


@pytest.fixture
def run_copy(ran: Path, tmp_path: Path) -> Path:
    """A copy of the shop's run folder that a test may change; its campaign names the shop's own tables."""
    return shutil.copytree(ran, tmp_path / "run")


@pytest.fixture
def programs() -> Iterator[list[int]]:
    """How many models each training program was given, in the order they ran; nothing is really trained."""
    import jax

    from largesse.response import TrainedNetworks, TrainingJob, use_runner

    ran: list[int] = []

    def leave_untrained(job: TrainingJob) -> TrainedNetworks:
        many = len(job.seeds)
        assert all(len(part) == many for part in jax.tree.leaves(job.own))
        ran.append(many)
        params = jax.tree.map(np.asarray, job.program.keep(job.program.start(job.seeds, job.own)))
        return TrainedNetworks(params, np.zeros(many, np.float32), np.zeros(many, np.int32))

    with use_runner(leave_untrained):
        yield ran
