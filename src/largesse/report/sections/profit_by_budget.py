"""Section with the profit at each budget and of each alternative."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.report.charts.curve_chart import DESK, PHONE, Chart, Point, draw_frontier
from largesse.report.number_format import DASH, Units, write_rate
from largesse.report.section import Numbers, Part, Section
from largesse.report.sentences import judge_profit, write_best, write_gain, write_profit, write_returned


def view_profit(numbers: Numbers, units: Units) -> Part | None:
    """Return the figure for a desk and for a phone, its words and the table; None where no response has a value."""
    if not numbers["profit"]:
        return None
    profit, points = numbers["profit"], [row for row in numbers["frontier"]["points"] if row["profit"]]
    best = numbers["best_budget"]
    chart = Chart(
        curve=[Point(row["budget"], row["profit"], _write_readout(row, units)) for row in points],
        summary=f"Profit after costs at each budget. {write_best(units, numbers)}".strip(),
        across_title=units.title_axis("budget per customer"),
        up_title="profit per customer" + (f" ({units.currency})" if units.currency else ""),
        units=units.profit,
        chosen=Point(numbers["budget"]["average"], profit["own"], "", label="this plan"),
        squares=[]
        if best is None
        else [Point(best["budget"], _find_point(points, best["budget"]), "most is left here", label="most")],
    )
    return {
        "desk": draw_frontier(chart, DESK) if len(points) > 1 else "",
        "phone": draw_frontier(chart, PHONE) if len(points) > 1 else "",
        "said": write_profit(units, numbers),
        "judged": judge_profit(numbers),
        "best": write_best(units, numbers),
        "readout": _write_readout({"budget": numbers["budget"]["average"], "profit": profit["own"]}, units),
        "worth": _write_worth(profit["response_value"], units),
        "returned": _write_returned(profit["returned"], units),
        "rows": _list_rows(numbers, units),
    }


def _find_point(points: list[Mapping[str, Any]], budget: Any) -> Mapping[str, Any]:
    return next((row["profit"] for row in points if row["budget"] == budget), {})


def _write_readout(row: Mapping[str, Any], units: Units) -> str:
    profit = units.profit.value_style(row["profit"]).both(row["profit"])
    return f"Budget {units.cost(row['budget'])} per customer: profit {profit}."


def _write_worth(worth: Any, units: Units) -> str:
    """Say what a response is worth."""
    if worth == 1 and units.response_unit:
        return "the response, which is money,"
    value = units.cost(worth) if units.currency else write_rate(worth)
    each = units.response([1.0]).text(1.0) if units.response_unit and not units.binary else "unit"
    return f"the response (each {'yes' if units.binary else f'{each} of it'} is worth {value})"


def _write_returned(returned: Mapping[str, Any], units: Units) -> str:
    """Say what each unit spent brings back, with its interval."""
    big = write_returned(units, returned.get("estimate"))
    if big == DASH:
        return ""
    between = units.profit.value_style(returned).interval(returned)
    one = units.one if units.currency else "unit"
    return f"Every {one} spent beyond the cheapest level brings back {big} ({between})."


def _list_rows(numbers: Numbers, units: Units) -> list[dict[str, str]]:
    """Return a row for the plan and for each thing that it is compared with."""
    own = {"name": "this plan", "detail": "", "value": numbers["value"], "spend": numbers["spend"]}
    found = [_view_row({**own, "profit": numbers["profit"]["own"]}, units)]
    found += [_view_row(row, units) for row in numbers["safety"]["options"][1:] if row["profit"]]
    uniform = [{**row, "name": f"everyone gets {row['name']}", "detail": ""} for row in numbers["uniform"]]
    return found + [_view_row(row, units) for row in (*numbers["versus"], *uniform) if row["profit"]]


def _view_row(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    style, more = units.profit.value_style(row["profit"]), row.get("profit_difference")
    return {
        "name": row["name"],
        "detail": row["detail"],
        "value": units.value_style(row["value"]).text(row["value"]["estimate"]),
        "spend": units.spend_style(row["spend"]).text(row["spend"]["estimate"]),
        "profit": style.text(row["profit"]["estimate"]),
        "interval": style.interval(row["profit"]),
        "more": DASH if more is None else write_gain(units.profit, more),
    }


SECTION = Section("profit_by_budget", view_profit, "What is left after costs")
