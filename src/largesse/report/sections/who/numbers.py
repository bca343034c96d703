"""The features that go with the planned levels most, and the levels within their groups."""

from __future__ import annotations

import numpy as np

from largesse.allocation import total_of
from largesse.records import Array
from largesse.report.section import Part, PlanStep
from largesse.report.tally import Shown, measure_explained


def describe_who(step: PlanStep) -> Part:
    """Return the features that explain most of the plan, each with its groups' customers and shares of levels."""
    ends = np.cumsum([len(one.grouping.labels) for one in step.shown])[:-1]
    grouped, paid = np.split(step.tally.grouped, ends), np.split(step.tally.paid, ends)
    features = [_describe_feature(*given) for given in zip(step.shown, grouped, paid, strict=False)]
    return {"features": sorted(features, key=lambda one: -one["explains"])}


def _describe_feature(shown: Shown, grouped: Array, paid: Array) -> Part:
    return {
        "feature": shown.feature,
        "explains": measure_explained(grouped),
        "groups": [
            {
                "label": label,
                "customers": int(grouped[g].sum()),
                "shares": (grouped[g] / grouped[g].sum()).tolist(),
                "average_cost": total_of(paid[g]) / int(grouped[g].sum()),
            }
            for g, label in enumerate(shown.grouping.labels)
            if grouped[g].any()
        ],
    }
