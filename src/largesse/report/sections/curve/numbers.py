"""The mean response at each level: the model's own and the raw one, beside the estimate."""

from __future__ import annotations

from largesse.records import Log, Study
from largesse.report.plain import plain_estimate
from largesse.report.section import Part


def describe_curve(log: Log, study: Study) -> Part:
    """Return each level's mean response: the model's own, and the raw mean of the log."""
    return {
        "levels": [
            {"name": label, "model": float(own), "raw": plain_estimate(raw)}
            for label, own, raw in zip(log.levels.titles, study.mean_curve, study.checkup.raw, strict=True)
        ]
    }
