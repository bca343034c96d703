"""Small shops: a log, customers, a campaign, and run folders of several kinds, each made once in a process."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

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


OWN_COSTS = ("free", "small", "large")
KINDS = {
    "plain": CAMPAIGN,
    "coupons": CAMPAIGN.replace("costs = [0, 5, 10]", "costs = [0, 5, 10]\non_redemption = true\ncontact_cost = 0.05"),
    "explored": CAMPAIGN.replace("budget = 2.5", "budget = 2.5\nexplore = 0.3"),
    "own costs": CAMPAIGN.replace("[0, 5, 10]", json.dumps(OWN_COSTS) + '\nnames = ["0", "5", "10"]'),
}
AT_RANDOM = {"explored": 0.3}


def add_costs(table: pa.Table) -> pa.Table:
    """Give every customer costs of their own."""
    drawn = np.random.default_rng(3).uniform(0, 2, len(table))
    for name, least in zip(OWN_COSTS, (0.0, 4.0, 8.0), strict=True):
        table = table.append_column(name, pa.array(least + drawn if least else 0.0 * drawn))
    return table


@cache
def _keep() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


@cache
def run_folder(kind: str = "plain") -> Path:
    """Return the run folder of a shop; the tables lie beside it."""
    from largesse.campaign import read_campaign
    from largesse.pipeline import run

    shop = Path(_keep().name) / kind.replace(" ", "-")
    shop.mkdir()
    write_shop(shop)
    if kind == "own costs":
        for name in ("log.parquet", "customers.parquet"):
            pq.write_table(add_costs(pq.read_table(shop / name)), shop / name)
    (shop / "campaign.toml").write_text(KINDS[kind], encoding="utf-8")
    run(read_campaign(shop / "campaign.toml"), shop / "run")
    return shop / "run"


def copy_run(folder: Path, kind: str = "plain") -> Path:
    """Put a copy of the run folder of a shop into a folder."""
    return shutil.copytree(run_folder(kind), folder / "run")


@cache
def customers_of(kind: str) -> tuple[dict[str, Any], ...]:
    """Return a shop's customers as JSON has them."""
    rows = pq.read_table(run_folder(kind).parent / "customers.parquet").to_pylist()
    return tuple(json.loads(json.dumps(row, default=str)) for row in rows)


@cache
def policy_of(kind: str) -> Any:
    """Return a shop's policy."""
    import largesse as lg

    return lg.Policy.load(run_folder(kind) / "policy.largesse")
