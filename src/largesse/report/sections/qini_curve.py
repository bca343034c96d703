"""Section with the Qini curve (gain by cost), its area, and gains over each level."""

from __future__ import annotations

from largesse.report.charts.curve_chart import CurveChart, CurvePoint, draw_desktop_and_phone_charts
from largesse.report.comparison_rows import view_gain_rows
from largesse.report.number_format import Numbers, Units, View
from largesse.report.sentences import classify_gain


def view_qini_curve(numbers: Numbers, units: Units) -> View | None:
    """Return the template values of the Qini curve; None without a curve."""
    area, points = numbers["targeting"]["area"], numbers["targeting"]["points"]
    if not points and not numbers["uniform"]:
        return None
    curve = [
        CurvePoint(row["spend"], row["gain"], _write_point_sentence(row, units), dashed=row["uniform"])
        for row in points
    ]
    chart = CurveChart(
        curve=curve,
        summary=f"Gain over the cheapest plan at each spend. {write_average_gain(area, units)}",
        across_title=units.title_axis("spend per customer"),
        up_title="gain over the cheapest plan",
        units=units,
        gains=True,
    )
    return {
        **draw_desktop_and_phone_charts(chart if points else None),
        "area": write_average_gain(area, units),
        "readout": curve[-1].words if points else "",
        "gains": view_gain_rows(numbers["uniform"], units),
    }


def _write_point_sentence(row: Numbers, units: Units) -> str:
    gain, style = row["gain"], units.gain_style(row["gain"])
    spend, uniform = units.write_cost(row["spend"]), style.text(row["uniform"], signed=True)
    gains = f"choosing gains {style.with_interval(gain)} over the cheapest plan; the best random mix, {uniform}"
    return f"Spend {spend} per customer: {gains}."


def write_average_gain(area: Numbers, units: Units) -> str:
    """Write the plan's average gain over all budgets, the area under the Qini curve."""
    gain, judged = units.write_gain(area), classify_gain(area)
    if judged == "pays":
        return f"On average over all budgets, choosing who gets what gains {gain} over treating everyone the same."
    if judged == "loses":
        return f"On average over all budgets, choosing who gets what loses: {gain} against treating everyone the same."
    return f"On average over all budgets, the log does not show that choosing who gets what gains anything: {gain}."
