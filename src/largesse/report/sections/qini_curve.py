"""Section with the cost curve, its area, and gains over every level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.report.charts.curve_chart import DESK, PHONE, Chart, Point, draw_frontier
from largesse.report.figure_rows import view_gains
from largesse.report.number_format import Units, finite
from largesse.report.section import Numbers, Part, Section
from largesse.report.sentences import write_gain


def view_targeting(numbers: Numbers, units: Units) -> Part | None:
    """Return the cost curve for a desk and for a phone, its area in words, and gains; None with nothing to show."""
    area, points = numbers["targeting"]["area"], numbers["targeting"]["points"]
    if not points and not numbers["uniform"]:
        return None
    chart = Chart(
        curve=[Point(row["spend"], row["gain"], _write_readout(row, units), beside=row["uniform"]) for row in points],
        summary=f"Gain over the cheapest plan at each spend. {_write_area(area, units)}",
        across_title=units.title_axis("spend per customer"),
        up_title="gain over the cheapest plan",
        units=units,
        gains=True,
    )
    return {
        "desk": draw_frontier(chart, DESK) if points else "",
        "phone": draw_frontier(chart, PHONE) if points else "",
        "area": _write_area(area, units),
        "readout": _write_readout(points[-1], units) if points else "",
        "gains": view_gains(numbers["uniform"], units),
    }


def _write_readout(row: Mapping[str, Any], units: Units) -> str:
    style = units.gain_style(row["gain"])
    same = style.text(row["uniform"], signed=True)
    spend = f"Spend {units.cost(row['spend'])} per customer"
    return f"{spend}: choosing gains {style.both(row['gain'])} over the cheapest plan; the best random mix, {same}."


def _write_area(area: Mapping[str, Any], units: Units) -> str:
    """Say in words whether choosing pays on average over all budgets."""
    gain = write_gain(units, area)
    low, high = finite(area.get("low")), finite(area.get("high"))
    if low is not None and low > 0:
        return f"On average over all budgets, choosing who gets what gains {gain} over treating everyone alike."
    if high is not None and high < 0:
        return f"On average over all budgets, choosing who gets what loses: {gain} against treating everyone alike."
    return f"On average over all budgets, the log does not show that choosing who gets what gains anything: {gain}."


SECTION = Section("qini_curve", view_targeting, "Does choosing pay?")
