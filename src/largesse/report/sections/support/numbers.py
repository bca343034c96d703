"""Whether the log can answer the question: its checks, overlap, propensities and balance."""

from __future__ import annotations

from largesse.records import Checkup, Log, Overlap, Study
from largesse.report.plain import plain_finding
from largesse.report.section import Part


def describe_support(_log: Log, study: Study) -> Part:
    """Return what the log's checkup found."""
    return describe_checks(study.checkup)


def describe_checks(checkup: Checkup) -> Part:
    """Return the checks, how well the log covers each level, and how alike the levels' customers are."""
    seen = checkup.overlap
    return {
        "checks": [plain_finding(finding) for finding in checkup.findings],
        "overlap": [
            {
                "name": label,
                "rows": int(rows),
                "effective": float(effective),
                "smallest": float(smallest),
                "answer": answer,
            }
            for label, rows, effective, smallest, answer in zip(
                checkup.labels, seen.rows, seen.effective, seen.smallest, seen.answers, strict=True
            )
        ],
        "propensities": {"edges": seen.edges.tolist(), "counts": seen.counts.tolist()},
        "balance": _describe_balance(seen),
        "balance_sample": seen.sampled,  # rows that balance was measured on; 0: all
    }


def _describe_balance(seen: Overlap) -> list[Part]:
    levels_before, levels_after = seen.by_level
    return [
        {
            "feature": name,
            "before": float(seen.before[j]),
            "after": float(seen.after[j]),
            "levels_before": levels_before[j].tolist(),
            "levels_after": levels_after[j].tolist(),
        }
        for j, name in enumerate(seen.features)
    ]
