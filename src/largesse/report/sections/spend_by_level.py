"""Section with customers and spend by level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from largesse.report.charts.row_charts import draw_stacked_strip, draw_swatch
from largesse.report.comparison_rows import FigureRow, FigureRows
from largesse.report.number_format import Numbers, Units, View, finite, write_count, write_percent


def view_spend(numbers: Numbers, units: Units) -> View:
    """Return the bars of customers and spend by level, and one table row per level."""
    rows, logged = numbers["money"]["levels"], numbers["support"]["overlap"]
    names, bars = [row["name"] for row in rows], []
    counts = [finite(row["rows"]) or 0.0 for row in logged]
    if len(logged) == len(rows) and any(counts):
        shares = [count / sum(counts) for count in counts]
        bars.append(_draw_bar("Before", "Share of the log's rows", shares, [row["name"] for row in logged]))
    for label, key in (("customers", "share"), ("spend", "spend_share")):
        bars.append(_draw_bar(label.capitalize(), f"Share of {label}", [row[key] for row in rows], names))
    spends, money = units.money([row["spend"] for row in rows]), bool(units.response_unit) and not units.binary
    table = [
        {
            "swatch": draw_swatch(level),
            "name": row["name"],
            "customers": write_count(row["customers"]),
            "share": write_percent(row["share"]),
            # in one style if all sums are small; large sums each in their own, so that none reads 0.000 million
            "spend": units.total(row["spend"]) if spends.unit > 1 else spends.text(row["spend"]),
            "spend_share": write_percent(row["spend_share"]),
            "extra": units.response([row["extra"]]).text(row["extra"]) if money else write_count(row["extra"]),
            "cost_per_extra": units.cost(row["cost_per_extra"]),
        }
        for level, row in enumerate(rows)
    ]
    one = units.response([1.0]).text(1.0) if units.response_unit else "unit"
    return {"figure": FigureRows(bars), "table": table, "one": one}


def _draw_bar(label: str, words: str, shares: Sequence[Any], names: Sequence[str]) -> FigureRow:
    listed = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, shares, strict=True))
    return FigureRow(label, draw_stacked_strip(shares, names, f"{words} by level: {listed}"))
