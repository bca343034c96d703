"""Shops whose plan is served, paced and exported: run folders of several kinds, each made once in a process."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from shops import CAMPAIGN, ran_shop, shop_table

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
def ran(kind: str) -> Path:
    """Return the run folder of a shop; the tables lie beside it."""
    from largesse.campaign import read_campaign
    from largesse.pipeline import run

    if kind == "plain":
        return Path(ran_shop().name) / "run"
    shop = Path(_keep().name) / kind.replace(" ", "-")
    shop.mkdir()
    more = add_costs if kind == "own costs" else lambda table: table
    pq.write_table(more(shop_table(120, seed=1)), shop / "log.parquet")
    pq.write_table(more(shop_table(60, seed=2, log=False)), shop / "customers.parquet")
    (shop / "campaign.toml").write_text(KINDS[kind], encoding="utf-8")
    run(read_campaign(shop / "campaign.toml"), shop / "run")
    return shop / "run"


@cache
def _keep() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


@cache
def customers_of(kind: str) -> tuple[dict[str, Any], ...]:
    """Return a shop's customers as JSON has them."""
    rows = pq.read_table(ran(kind).parent / "customers.parquet").to_pylist()
    return tuple(json.loads(json.dumps(row, default=str)) for row in rows)


@cache
def policy_of(kind: str) -> Any:
    """Return a shop's policy."""
    import largesse as lg

    return lg.Policy.load(ran(kind) / "policy.largesse")
