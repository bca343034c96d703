"""A small shop to attack: a log, customers, a campaign, and the run folder they give."""

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
    """Return a randomised log of coupons, or the same sort of customers without one."""
    rng = np.random.default_rng(seed)
    level = np.arange(rows) % 3
    age = rng.uniform(20, 70, rows)
    columns = {
        "id": [f"c{i}" for i in range(rows)],
        "age": age,
        "city": np.array(["Oslo", "Rome", "Lima"])[rng.integers(0, 3, rows)],
    }
    if log:
        columns |= {"coupon": level * 5, "bought": (rng.random(rows) < 0.2 + 0.2 * level).astype(int)}
    return pa.table(columns)


def write_shop(folder: Path) -> Path:
    """Write the tables and the campaign."""
    pq.write_table(shop_table(120, 1), folder / "log.parquet")
    pq.write_table(shop_table(60, 2, log=False), folder / "customers.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    return folder


@cache
def ran_shop() -> tempfile.TemporaryDirectory[str]:
    """Return a shop whose campaign was run, once for each process."""
    from largesse.runs import read_campaign, run

    kept = tempfile.TemporaryDirectory()
    shop = write_shop(Path(kept.name))
    run(read_campaign(shop / "campaign.toml"), shop / "run")
    return kept


def copy_run(folder: Path) -> Path:
    """Put a run folder of the shop into a folder."""
    return shutil.copytree(Path(ran_shop().name) / "run", folder / "run")
