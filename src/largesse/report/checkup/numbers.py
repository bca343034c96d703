"""What a log's checkup shows, as one dict of plain numbers and words: a record in, JSON types out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from largesse.records import Checkup, Log
from largesse.report.formats import name_day
from largesse.report.plain import plain_estimate, plain_response
from largesse.report.section import Part
from largesse.report.sections.support.numbers import describe_checks
from largesse.version import __version__

HEADLINES = {
    "fine": "This log can answer the question.",
    "careful": "This log can answer the question, with care.",
    "no": "This log cannot answer the whole question as it is.",
}


def describe_checkup(
    found: Checkup, log: Log, *, title: str, unit: str = "", response_unit: str = "", notes: Sequence[str] = ()
) -> Part:
    """Return the numbers that the checkup's page is made from."""
    return {
        "title": title,
        "unit": unit,
        "response_unit": response_unit,
        "made": name_day(),
        "version": __version__,
        "fingerprint": log.fingerprint,
        "headline": HEADLINES[found.answer],
        "answer": found.answer,
        "randomised": found.randomised,
        "dependence": asdict(found.dependence),
        "response": plain_response(log),
        "levels": [{"name": label} for label in found.labels],
        "log": {
            "rows": found.rows,
            "clusters": found.clusters,
            "propensity": found.propensity.source,
            "model": found.propensity.model,
            "clipped": found.propensity.clipped,
            "clipped_weight": found.propensity.clipped_weight,
        },
        "curve": _describe_curve(found),
        "support": describe_checks(found),
        "leaks": [{"feature": leak.feature, "of": leak.of, "explained": leak.explained} for leak in found.leaks],
        "heavy": [
            {"row": row.row, "level": row.level, "propensity": row.propensity, "share": row.share}
            for row in found.heavy
        ],
        "notes": [note[:1].upper() + note[1:] for note in notes],
    }


def _describe_curve(found: Checkup) -> Part:
    rows = zip(found.labels, found.overlap.rows, found.weighted, found.raw, strict=True)
    return {
        "levels": [
            {"name": label, "rows": int(count), "value": plain_estimate(weighted), "raw": plain_estimate(raw)}
            for label, count, weighted, raw in rows
        ]
    }
