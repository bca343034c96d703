"""The features that go with the planned levels most, and the levels within their groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from largesse.allocation import total_of
from largesse.records import Array
from largesse.report.section import Part, PlanStep
from largesse.report.stops import CountedStop, arrange_stops
from largesse.report.tally import Shown, measure_explained


def describe_who(step: PlanStep) -> Part:
    """Return the features that explain most of the plan, each with its groups' customers and shares of levels.

    Groups also say how many of them get each level, and what they cost on average, at every stop of the budget slider.
    """
    sizes = [len(one.grouping.labels) for one in step.shown]
    ends, stops = np.cumsum(sizes)[:-1], arrange_stops(step)
    grouped, paid = np.split(step.tally.grouped, ends), np.split(step.tally.paid, ends)
    first = np.cumsum([0, *sizes])
    features = [
        _describe_feature(one, each, spent, stops, int(start))
        for one, each, spent, start in zip(step.shown, grouped, paid, first, strict=False)
    ]
    return {"features": sorted(features, key=lambda one: -one["explains"])}


def _describe_feature(shown: Shown, grouped: Array, paid: Array, stops: Sequence[CountedStop], first: int) -> Part:
    return {
        "feature": shown.feature,
        "explains": measure_explained(grouped),
        "groups": [
            {
                "label": label,
                "customers": int(grouped[g].sum()),
                "shares": (grouped[g] / grouped[g].sum()).tolist(),
                "average_cost": total_of(paid[g]) / int(grouped[g].sum()),
                **_describe_stops(stops, first + g),
            }
            for g, label in enumerate(shown.grouping.labels)
            if grouped[g].any()
        ],
    }


def _describe_stops(stops: Sequence[CountedStop], group: int) -> Part:
    """Return the customers of a group at each level, and their average cost, at every stop."""
    many = [int(stop.counts[group].sum()) for stop in stops]
    return {
        "stop_counts": [stop.counts[group].tolist() for stop in stops],
        "stop_costs": [float(stop.paid[group] / n) for stop, n in zip(stops, many, strict=True)],
    }
