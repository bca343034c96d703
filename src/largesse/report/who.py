"""Who gets what: the features that go with the planned levels most, and the levels within their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import Groups, group_column
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 4
GROUPS = 5
ROWS = 200_000  # groups of this many rows are known to a third of a per cent
LEAST = 0.005  # a feature that explains less of the plan than this is not worth a picture


def who_gets_what(features: pa.Table, levels: Array, costs: Array, K: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return the features that explain most of the plan, each with its groups' customers and shares of levels.

    `levels` (n,) are the planned levels and `costs` (n,) what they are expected to cost. How much a feature explains
    is the share of the levels' variance that lies between its groups.
    """
    if features.num_rows > ROWS:
        rows = np.sort(np.random.default_rng(seed).permutation(features.num_rows)[:ROWS])
        features, levels, costs = features.take(rows), levels[rows], costs[rows]
    found = []
    for name in features.column_names:
        groups = group_column(features.column(name), GROUPS)
        explains = _explained(groups.code, levels, len(groups.labels))
        if explains >= LEAST:
            found.append({"feature": name, "explains": explains, "groups": _groups(groups, levels, costs, K)})
    return sorted(found, key=lambda row: (-row["explains"], row["feature"]))[:SHOWN]


def _explained(code: Array, levels: Array, groups: int) -> float:
    total = float(levels.var())
    if total == 0:
        return 0.0
    size = np.bincount(code, minlength=groups)
    mean = np.bincount(code, weights=levels, minlength=groups) / np.maximum(size, 1)
    return float(size @ (mean - levels.mean()) ** 2 / len(levels) / total)


def _groups(groups: Groups, levels: Array, costs: Array, K: int) -> list[dict[str, Any]]:
    found = []
    for g, label in enumerate(groups.labels):
        here = groups.code == g
        if here.any():
            shares = np.bincount(levels[here], minlength=K) / here.sum()
            found.append(
                {
                    "label": label,
                    "customers": int(here.sum()),
                    "shares": shares.tolist(),
                    "average_cost": float(costs[here].mean()),
                }
            )
    return found
