"""Section with the cost curve (Qini curve), its area, and the plan's gains over every level."""

from __future__ import annotations

from largesse.report.charts.curve_chart import CurveChart, CurvePoint, draw_for_screens
from largesse.report.comparison_rows import view_gains
from largesse.report.number_format import Numbers, Units, View
from largesse.report.sentences import judge_gain


def view_qini_curve(numbers: Numbers, units: Units) -> View | None:
    """Return the cost curve, its area in words, and gains; None with nothing to show."""
    area, points = numbers["targeting"]["area"], numbers["targeting"]["points"]
    if not points and not numbers["uniform"]:
        return None
    curve = [CurvePoint(row["spend"], row["gain"], _write_readout(row, units), dashed=row["uniform"]) for row in points]
    chart = CurveChart(
        curve=curve,
        summary=f"Gain over the cheapest plan at each spend. {write_area(area, units)}",
        across_title=units.title_axis("spend per customer"),
        up_title="gain over the cheapest plan",
        units=units,
        gains=True,
    )
    return {
        **draw_for_screens(chart if points else None),
        "area": write_area(area, units),
        "readout": curve[-1].words if points else "",
        "gains": view_gains(numbers["uniform"], units),
    }


def _write_readout(row: Numbers, units: Units) -> str:
    gain, style = row["gain"], units.gain_style(row["gain"])
    spend, uniform = units.cost(row["spend"]), style.text(row["uniform"], signed=True)
    gains = f"choosing gains {style.with_interval(gain)} over the cheapest plan; the best random mix, {uniform}"
    return f"Spend {spend} per customer: {gains}."


def write_area(area: Numbers, units: Units) -> str:
    """Describe the average gain over all budgets."""
    gain, judged = units.write_gain(area), judge_gain(area)
    if judged == "pays":
        return f"On average over all budgets, choosing who gets what gains {gain} over treating everyone the same."
    if judged == "loses":
        return f"On average over all budgets, choosing who gets what loses: {gain} against treating everyone the same."
    return f"On average over all budgets, the log does not show that choosing who gets what gains anything: {gain}."
