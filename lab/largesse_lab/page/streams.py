"""Results of pacing random streams: tables, figures and sentences from a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from largesse.errors import percent
from largesse_lab.page.figures import Caption, draw_lines
from largesse_lab.page.sections import Result, Section
from largesse_lab.page.tables import DASH, write_table

Kind = Mapping[str, Any]  # the summary of streams that pay in one way


def tabulate_streams(summary: Mapping[str, Any]) -> str:
    """Return all tables as Markdown."""
    return "\n\n".join(part for kind in summary["kinds"] for part in _write_kind(kind)) + "\n"


def _write_kind(kind: Kind) -> list[str]:
    """Return the heading and the tables of streams that pay in one way."""
    parts = [f"### {kind['streams']:,} streams, {kind['kind']}", _tabulate_ways(kind)]
    if "refusals" in kind:
        parts.append(_tabulate_rates(kind["rates"], lasts=True))
    elif "rates" in kind:
        kept = percent(kind["reserved"], 1)
        parts.append(f"Of the gain of an offline plan that reserves nothing, one that reserves promises keeps {kept}.")
        parts.append(_tabulate_rates(kind["rates"], lasts=False))
    return parts


def _tabulate_ways(kind: Kind) -> str:
    body, refusals = [], kind.get("refusals")
    last = ["budget used ≥ 99.5 %", "redemptions refused", "streams with any"] if refusals else ["committed"]
    for name, way in kind["ways"].items():
        cells = [_write(way[word], 2) for word in ("value", "worst")] + [_write(way["good"], 0)]
        cells += [_write(way[word], 2) for word in ("gain", "use")]
        if refusals:
            cells += [_write(way["used"], 0), _write(refusals[name]["share"], 3), _write(refusals[name]["streams"], 0)]
        else:
            cells.append(_write(way["committed"], 2))
        body.append([name, str(way["overspent"]), *cells])
    if "rates" in kind:
        body.append(
            ["offline optimum", "", "100 %", "", "", "100 %", _write(kind["offline_use"], 2), *[""] * len(last)]
        )
    head = ["", "overspent", "value, mean", "5 % worst", "value ≥ 99.5 %", "gain, mean", "budget used", *last]
    return write_table(head, body)


def _tabulate_rates(rates: Sequence[Mapping[str, Any]], *, lasts: bool) -> str:
    body = [
        [f"{percent(row['low'])} to {percent(row['high'])}", str(row["streams"])]
        + [_write(row[word], 1) for word in ("value", "gain", "use")]
        + [_write(row["refused"], 3) if lasts else _write(row["reserved"], 0)]
        for row in rates
    ]
    last = "redemptions refused" if lasts else "gain kept by reserving"
    return write_table(["customers who redeem", "streams", "value", "gain", "budget used", last], body)


def _write(share: float | None, decimals: int) -> str:
    return DASH if share is None else percent(share, decimals)


def fill_streams(section: Section, result: Result, _notes: Sequence[str]) -> None:
    """Add the tables, and the distribution of values."""
    for kind in result.summary["kinds"]:
        section.say(*_write_kind(kind))
    series = [
        {
            "panel": _short(kind["kind"]),
            "label": name,
            "x": drawn["x"],
            "mean": drawn["share"],
            "sd": [None] * len(drawn["x"]),
        }
        for kind in result.summary["kinds"]
        for name, way in kind["ways"].items()
        if (drawn := way["distribution"])
    ]
    title = "Value, as a share of the offline optimum"
    note = "Share of streams with at most this value. Lower lines are better."
    words = Caption(title, "value / value of the offline optimum", "share of streams", note)
    section.show(f"{PurePath(result.file).stem}.svg", draw_lines(series, words), title)


def _short(kind: str) -> str:
    """Return a kind of streams as it fits over a small picture."""
    return kind.replace("paid on redemption while the budget lasts", "while the budget lasts")
