"""A small shop for tests and attacks: a log, customers, a campaign, and the run folder they give."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CAMPAIGN = """
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


def write_shop(folder: Path, rows: int = 120, customers: int = 60) -> Path:
    """Write the tables and the campaign."""
    pq.write_table(shop_table(rows, seed=1), folder / "log.parquet")
    pq.write_table(shop_table(customers, seed=2, log=False), folder / "customers.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    return folder


@cache
def ran_shop() -> tempfile.TemporaryDirectory[str]:
    """Return a shop whose campaign was run, once for each process."""
    from largesse.campaign import read_campaign
    from largesse.pipeline import run

    kept = tempfile.TemporaryDirectory()
    shop = write_shop(Path(kept.name))
    run(read_campaign(shop / "campaign.toml"), shop / "run")
    return kept


def copy_run(folder: Path) -> Path:
    """Put a run folder of the shop into a folder."""
    return shutil.copytree(Path(ran_shop().name) / "run", folder / "run")
