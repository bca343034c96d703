"""Section with customers and spend by level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.report.charts.row_charts import draw_stacked_strip, draw_swatch
from largesse.report.figure_rows import Row, Rows
from largesse.report.number_format import Style, Units, finite, write_count, write_percent
from largesse.report.section import Numbers, Part, Section


def view_money(numbers: Numbers, units: Units) -> Part:
    """Return the bars of customers and spend by level, and one table row per level."""
    rows = numbers["money"]["levels"]
    names, bars = [row["name"] for row in rows], _view_before(numbers)
    for label, key in (("customers", "share"), ("spend", "spend_share")):
        shares = ", ".join(f"{row['name']} {write_percent(row[key])}" for row in rows)
        figure = draw_stacked_strip([row[key] for row in rows], names, f"Share of {label} by level: {shares}")
        bars.append(Row(label.capitalize(), figure))
    spends = units.money([row["spend"] for row in rows])
    table = [_view_level(level, row, spends, units) for level, row in enumerate(rows)]
    one = units.response([1.0]).text(1.0) if units.response_unit else "unit"
    return {"figure": Rows(bars), "table": table, "one": one}


def _view_before(numbers: Numbers) -> list[Row]:
    """Return the bar of what was done before: the share of the log's rows at each level; none where that is not known."""
    logged = numbers["support"]["overlap"]
    counts = [finite(row["rows"]) or 0.0 for row in logged]
    if len(logged) != len(numbers["money"]["levels"]) or not sum(counts):
        return []
    names, shares = [row["name"] for row in logged], [count / sum(counts) for count in counts]
    words = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, shares, strict=True))
    return [Row("Before", draw_stacked_strip(shares, names, f"Share of the log's rows by level: {words}"))]


def _view_level(level: int, row: Mapping[str, Any], spends: Style, units: Units) -> dict[str, str]:
    return {
        "swatch": draw_swatch(level),
        "name": row["name"],
        "customers": write_count(row["customers"]),
        "share": write_percent(row["share"]),
        # in one style where sums are small; large ones each in their own, so that nothing reads 0.000 million
        "spend": units.total(row["spend"]) if spends.unit > 1 else spends.text(row["spend"]),
        "spend_share": write_percent(row["spend_share"]),
        "extra": units.response([row["extra"]]).text(row["extra"])
        if units.response_unit and not units.binary
        else write_count(row["extra"]),
        "cost_per_extra": units.cost(row["cost_per_extra"]),
    }


SECTION = Section("spend_by_level", view_money, "Where the money goes")
