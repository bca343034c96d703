"""The demo's campaign: Thornton's randomised cash for collecting a test result, at half the most generous budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from largesse.campaign import Campaign, Planning
from largesse.worlds import read_thornton, thornton_levels

if TYPE_CHECKING:
    import pyarrow as pa


def demo_campaign() -> tuple[Campaign, pa.Table]:
    """Return the campaign and its log; the budget is half of what the most generous level would cost.

    That level is paid only to those who come, so what it would cost is its face value times the share who came.
    """
    levels = thornton_levels()
    table = read_thornton()
    came = [
        got
        for name, got in zip(table["incentive"].to_pylist(), table["got"].to_pylist(), strict=True)
        if name == levels.labels[-1]
    ]
    dearest = float(levels.costs[-1]) * sum(came) / len(came)
    campaign = Campaign(
        log="log.parquet",  # beside the campaign file: `run` writes it there
        levels=levels,
        roles={
            "level": "incentive",
            "response": "got",
            "cluster": "village",
            "customer": "customer",
            "features": ["block", "age", "distance"],
        },
        planning=Planning(budget=round(dearest / 2, 2)),
        title="Cash for collecting a test result (Thornton 2008)",
        unit="USD",
    )
    return campaign, table
