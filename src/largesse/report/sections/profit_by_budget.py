"""Section on the profit after costs, by budget and by alternative plan."""

from __future__ import annotations

from typing import Any

from largesse.report.charts.curve_chart import CurveChart, CurvePoint, draw_desktop_and_phone_charts
from largesse.report.comparison_rows import view_value_and_spend
from largesse.report.number_format import MISSING_DASH, Numbers, Units, View, write_two_digits
from largesse.report.sentences import write_best_budget, write_profit, write_return_per_unit


def view_profit_by_budget(numbers: Numbers, units: Units) -> View | None:
    """Return the template values of the profit section; None if responses have no money value."""
    if not numbers["profit"]:
        return None
    profit, points = numbers["profit"], [row for row in numbers["frontier"]["points"] if row["profit"]]
    best, best_text = numbers["best_budget"], write_best_budget(units, numbers)
    squares = []
    if best is not None:
        value: Numbers = next((row["profit"] for row in points if row["budget"] == best["budget"]), {})
        squares = [CurvePoint(best["budget"], value, "most is left here", label="most")]
    chart = CurveChart(
        curve=[CurvePoint(row["budget"], row["profit"], _write_point_sentence(row, units)) for row in points],
        summary=f"Profit after costs at each budget. {best_text}".strip(),
        across_title=units.title_axis("budget per customer"),
        up_title=f"profit per customer{f' ({units.currency})' if units.currency else ''}",
        units=units.profit,
        chosen=CurvePoint(numbers["budget"]["average"], profit["own"], "", label="this plan"),
        squares=squares,
    )
    plan = {"name": "this plan", "value": numbers["value"], "spend": numbers["spend"], "profit": profit["own"]}
    uniform = [{**row, "name": f"everyone gets {row['name']}", "detail": ""} for row in numbers["uniform"]]
    others = (*numbers["safety"]["options"][1:], *numbers["versus"], *uniform)
    return {
        **draw_desktop_and_phone_charts(chart if len(points) > 1 else None),
        "summary": write_profit(units, numbers),
        "best": best_text,
        "readout": _write_point_sentence({"budget": numbers["budget"]["average"], "profit": profit["own"]}, units),
        "definition": _write_response_value(profit["response_value"], units),
        "returned": _write_return_on_spend(profit["returned"], units),
        "rows": [_view_profit_row(row, units) for row in (plan, *others) if row["profit"]],
    }


def _write_point_sentence(row: Numbers, units: Units) -> str:
    profit = units.profit.value_style(row["profit"]).with_interval(row["profit"])
    return f"Budget {units.write_cost(row['budget'])} per customer: profit {profit}."


def _write_response_value(value: Any, units: Units) -> str:
    """Write the money value of a response as a phrase."""
    if value == 1 and units.response_unit:
        return "the response, all of which counts as profit (response_value in the campaign file sets your margin),"
    price = units.write_cost(value) if units.currency else write_two_digits(value)
    unit = units.response([1.0]).text(1.0) if units.response_unit and not units.has_binary_response else "unit"
    return f"the response (each {'yes' if units.has_binary_response else f'{unit} of it'} is worth {price})"


def _write_return_on_spend(returned: Numbers, units: Units) -> str:
    number = write_return_per_unit(units, returned.get("estimate"))
    if number == MISSING_DASH:
        return ""
    interval = units.profit.value_style(returned).interval(returned)
    return f"Every {units.spent_unit_text} spent beyond the cheapest level brings back {number} ({interval})."


def _view_profit_row(row: Numbers, units: Units) -> dict[str, str]:
    style, more = units.profit.value_style(row["profit"]), row.get("profit_difference")
    return view_value_and_spend(row, units) | {
        "profit": style.text(row["profit"]["estimate"]),
        "interval": style.interval(row["profit"]),
        "more": MISSING_DASH if more is None else units.profit.write_gain(more),
    }
