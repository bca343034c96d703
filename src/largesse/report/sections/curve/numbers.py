"""The mean response at each level: the model's own and the raw one, beside the estimate; and that of groups of customers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from largesse.evaluation import trace_groups
from largesse.records import Array, GroupPoint, Log, Study
from largesse.report.plain import plain_estimate
from largesse.report.section import Part
from largesse.report.tally import SAMPLE, Shown, choose_shown

FEATURES = 2  # whose groups have curves of their own


def describe_curve(log: Log, study: Study) -> Part:
    """Return each level's mean response: the model's own, and the raw mean of the log; and the curves of groups."""
    return {
        "levels": [
            {"name": label, "model": float(own), "raw": plain_estimate(raw)}
            for label, own, raw in zip(log.levels.titles, study.mean_curve, study.checkup.raw, strict=True)
        ],
        "features": _describe_features(log, study),
    }


def _describe_features(log: Log, study: Study) -> list[Part]:
    """Return the curves of groups, by the features that the plan goes with most."""
    seen, scores, step = log.seen, study.scores, max(-(-len(log.seen) // SAMPLE), 1)
    places = np.arange(0, len(seen), step)
    rows, features = places, seen.features if step == 1 else seen.features.take(places)
    if log.sample is not None:  # rows of a sample have weights that make up for how they were drawn
        rows, weight = log.sample.rows[places], np.zeros(len(scores.weight))
        weight[log.sample.rows] = seen.weights
        scores = replace(scores, weight=weight)
    found = []
    for shown in choose_shown(features, study.plan.levels[rows])[:FEATURES]:
        codes, many = shown.grouping.code(features.column(shown.feature)), len(shown.grouping.labels)
        curves = trace_groups(scores, rows, codes, many)
        found.append({"feature": shown.feature, "groups": _describe_groups(shown, codes, curves)})
    return found


def _describe_groups(shown: Shown, codes: Array, curves: list[list[GroupPoint]]) -> list[Part]:
    sizes = np.bincount(codes, minlength=len(curves))
    return [
        {"label": label, "rows": int(n), "levels": [_describe_point(point) for point in points]}
        for label, n, points in zip(shown.grouping.labels, sizes, curves, strict=True)
        if points
    ]


def _describe_point(point: GroupPoint) -> Part:
    return {
        "model": point.model,
        "value": plain_estimate(point.value),
        "rows": point.rows,
        "effective": point.effective,
        "few": point.few,
    }
