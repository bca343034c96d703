"""The features that go with the planned levels most, and the levels within their groups."""

from __future__ import annotations

import numpy as np

from largesse.data import Groups, group_column
from largesse.records import Array
from largesse.report.section import Part, PlanStep

SHOWN = 4
GROUPS = 5
ROWS = 200_000  # how much a feature explains is known well enough from this many rows
LEAST = 0.005  # a feature that explains less of the plan than this is not worth a picture


def describe_who(step: PlanStep) -> Part:
    """Return the features that explain most of the plan, each with its groups' customers and shares of levels.

    How much a feature explains is the share of the levels' variance that lies between its groups. Features are compared
    on a sample of the customers where there are very many; what is shown of a feature counts all of them.
    """
    levels = step.plan.levels
    sample, known = step.features, levels
    if len(levels) > ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(len(levels))[:ROWS])
        sample, known = step.features.take(rows), levels[rows]
    explained = {
        name: _measure_explained(group_column(sample.column(name), GROUPS), known) for name in sample.column_names
    }
    telling = sorted((-share, name) for name, share in explained.items() if share >= LEAST)
    return {"features": [_describe_feature(name, step) for _, name in telling[:SHOWN]]}


def _describe_feature(name: str, step: PlanStep) -> Part:
    levels, groups = step.plan.levels, group_column(step.features.column(name), GROUPS)
    costs = step.costs[np.arange(len(levels)), levels]
    return {
        "feature": name,
        "explains": _measure_explained(groups, levels),
        "groups": [
            _describe_group(label, levels[here], costs[here], len(step.labels))
            for label, here in ((label, groups.code == g) for g, label in enumerate(groups.labels))
            if here.any()
        ],
    }


def _describe_group(label: str, levels: Array, costs: Array, K: int) -> Part:
    return {
        "label": label,
        "customers": len(levels),
        "shares": (np.bincount(levels, minlength=K) / len(levels)).tolist(),
        "average_cost": float(costs.mean()),
    }


def _measure_explained(groups: Groups, levels: Array) -> float:
    """Return the share of the levels' variance that lies between the groups."""
    total = float(levels.var())
    if total == 0:
        return 0.0
    size = np.bincount(groups.code, minlength=len(groups.labels))
    mean = np.bincount(groups.code, weights=levels, minlength=len(groups.labels)) / np.maximum(size, 1)
    return float(size @ (mean - levels.mean()) ** 2 / len(levels) / total)
