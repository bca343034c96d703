"""The page of a log's checkup: the checks, the mean response at each level, overlap and balance."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.io import to_json
from largesse.records import Checkup, Log, name_response, summarise_checkup
from largesse.report.number_format import Units, finite, name_day, write_count, write_percent, write_rate
from largesse.report.section import Numbers, Part
from largesse.report.sections.level_responses import Level, view_levels
from largesse.report.sections.log_checks import view_support
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
    rows = zip(found.labels, found.overlap.rows, found.weighted, found.raw, strict=True)
    numbers: Part = to_json(
        {
            "title": title,
            "unit": unit,
            "response_unit": response_unit,
            "made": name_day(),
            "version": __version__,
            "fingerprint": log.fingerprint,
            "headline": HEADLINES[found.answer],
            "answer": found.answer,
            "randomised": found.randomised,
            "dependence": found.dependence,
            "response": name_response(log),
            "levels": [{"name": label} for label in found.labels],
            "log": {
                "rows": found.rows,
                "clusters": found.clusters,
                "propensity": found.propensity.source,
                "model": found.propensity.model,
                "clipped": found.propensity.clipped,
                "clipped_weight": found.propensity.clipped_weight,
            },
            "curve": {
                "levels": [
                    {"name": label, "rows": int(n), "value": weighted, "raw": raw} for label, n, weighted, raw in rows
                ]
            },
            "support": summarise_checkup(found),
            "leaks": found.leaks,
            "heavy": found.heavy,
            "notes": [note[:1].upper() + note[1:] for note in notes],
        }
    )
    return numbers


def view_checkup(numbers: Numbers, units: Units) -> Part:
    """Return what the page shows: words, numbers as text, and figures."""
    levels = [
        Level(row["name"], f"{write_count(row['rows'])} rows", row["value"], row["raw"])
        for row in numbers["curve"]["levels"]
    ]
    clusters = finite(numbers["log"]["clusters"])
    return {
        "rows": write_count(numbers["log"]["rows"]),
        "clusters": "" if clusters is None else write_count(clusters),
        "levels": view_levels(levels, units),
        "support": view_support(numbers, units),
        "leaks": [{**leak, "explained": write_percent(leak["explained"])} for leak in numbers["leaks"]],
        "heavy": [
            {
                "row": f"{row['row']:,}",
                "level": row["level"],
                "propensity": write_rate(row["propensity"]),
                "share": write_percent(row["share"]),
            }
            for row in numbers["heavy"]
        ],
    }
