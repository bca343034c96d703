"""The cost curve: what choosing gains at every spend, beside the best mix of levels that treats everyone alike."""

from __future__ import annotations

from largesse.records import Log, Study
from largesse.report.plain import plain_estimate
from largesse.report.section import Part


def describe_targeting(_log: Log, study: Study) -> Part:
    """Return gains over the cheapest plan at each spend, and the mean advantage of choosing over all spends."""
    return {
        "area": plain_estimate(study.cost_curve.area),
        "points": [
            {
                "budget": point.budget,
                "spend": point.spend,
                "gain": plain_estimate(point.gain),
                "uniform": point.uniform,
                "difference": plain_estimate(point.difference),
            }
            for point in study.cost_curve.points
        ],
    }
