"""The checkup's page: the checks, the mean response at each level, overlap and balance, and what to look at."""

from __future__ import annotations

from largesse.report.formats import Units, finite, write_count, write_percent, write_rate
from largesse.report.section import Numbers, Part
from largesse.report.sections.curve.view import Level, view_levels
from largesse.report.sections.support.view import view_support


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
