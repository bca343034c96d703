"""What the plan changes for the log's customers: what each level adds, and who moves from where to where."""

from __future__ import annotations

from dataclasses import asdict

from largesse.evaluation import measure_changes
from largesse.records import Estimate, Log, Study
from largesse.report.plain import plain_estimate
from largesse.report.section import Part


def describe_changes(log: Log, study: Study) -> Part:
    """Return what was done, what each level of the plan adds to it, the plan, and all moves between levels."""
    found = measure_changes(study.scores, study.plan.levels)
    titles = log.levels.titles
    return {
        "before": _describe_both(*found.before),
        "after": _describe_both(*found.after),
        "levels": [
            {"name": titles[one.level], "share": one.share, **_describe_both(one.value, one.spend)}
            for one in found.levels
        ],
        "moves": [asdict(move) for move in found.moves],
    }


def _describe_both(value: Estimate, spend: Estimate) -> Part:
    return {"value": plain_estimate(value), "spend": plain_estimate(spend)}
