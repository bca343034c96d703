"""What a log's checkup shows, as one dict of plain numbers and words: a record in, JSON out."""

from __future__ import annotations

from typing import Any

from largesse.records import Checkup, Log
from largesse.report.formats import choose_style, write_percent
from largesse.report.numbers import overlap_part
from largesse.version import __version__

HEADLINES = {
    "fine": "This log can answer the question.",
    "careful": "This log can answer the question, with care.",
    "no": "This log cannot answer the whole question as it is.",
}


def checkup_numbers(
    found: Checkup, log: Log, *, title: str, unit: str = "", notes: list[str] | None = None
) -> dict[str, Any]:
    """Return the dict that the checkup's page is made from."""
    return {
        "title": title,
        "unit": unit,
        "version": __version__,
        "fingerprint": log.fingerprint,
        "headline": HEADLINES[found.answer],
        "answer": found.answer,
        "randomised": found.randomised,
        "dependence": {"p": found.dependence.p, "times": found.dependence.times},
        "response": {"name": log.response_name, "kind": "binary" if log.binary else "amount"},
        "levels": [{"name": label} for label in found.labels],
        "log": {
            "rows": found.rows,
            "clusters": found.clusters,
            "propensity": found.propensity.source,
            "model": found.propensity.model,
            "clipped": found.propensity.clipped,
            "clipped_weight": found.propensity.clipped_weight,
        },
        "doctor": [{"about": f.topic, "answer": f.answer, "text": f.text} for f in found.findings],
        "curve": [
            {
                "name": label,
                "rows": int(rows),
                "value": weighted.estimate,
                "low": weighted.low,
                "high": weighted.high,
                "raw": raw.estimate,
                "raw_low": raw.low,
                "raw_high": raw.high,
            }
            for label, rows, weighted, raw in zip(
                found.labels, found.overlap.rows, found.weighted, found.raw, strict=True
            )
        ],
        **overlap_part(found.labels, found.overlap),
        "leaks": [{"feature": k.feature, "of": k.of, "explained": write_percent(k.explained)} for k in found.leaks],
        "heavy": [
            {
                "row": f"{row.row:,}",
                "level": row.level,
                "propensity": choose_style([row.propensity], row.propensity).text(row.propensity),
                "share": write_percent(row.share),
            }
            for row in found.heavy
        ],
        "notes": [note[:1].upper() + note[1:] for note in notes or []],
    }
