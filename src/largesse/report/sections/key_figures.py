"""Section with the key figures: value, spend, profit and price, the comparisons, and the urgent warnings."""

from __future__ import annotations

from typing import Any

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_spend_strip
from largesse.report.comparison_rows import FigureRows, view_gains
from largesse.report.number_format import (
    MISSING_DASH,
    Numbers,
    NumberStyle,
    Units,
    View,
    choose_style,
    finite,
    half_width,
    label_interval,
    list_ends,
    write_count,
    write_percent,
)
from largesse.report.sentences import name_cheapest, select_urgent, write_returned


def view_key_figures(numbers: Numbers, units: Units) -> View:
    """Return value, spend, price, profit and comparisons of the plan."""
    return {
        "customers": write_count(numbers["customers"]),
        "value": _view_value(numbers, units),
        "spend": _view_spend(numbers, units),
        "price": _view_price(numbers, units),
        "profit": _view_profit(numbers, units),
        "gains": _view_gains(numbers, units),
        "urgent": select_urgent(numbers["answer"]["warnings"]),
    }


def _view_gains(numbers: Numbers, units: Units) -> FigureRows:
    """Return the comparisons: of profits where responses have a value, because a plan that brings less may leave more."""
    if not numbers["profit"]:
        return view_gains(numbers["versus"], units)
    cheapest = [{**row, "name": f"everyone gets {row['name']}", "detail": ""} for row in numbers["uniform"][:1]]
    rows = [row for row in (*numbers["versus"], *cheapest) if row["profit_difference"]]
    return view_gains([{**row, "difference": row["profit_difference"]} for row in rows], units, units.profit)


def _view_value(numbers: Numbers, units: Units) -> View:
    value, total = numbers["value"], _multiply(numbers["value"], numbers["customers"])
    style = units.value_style(value)
    if units.response_unit and not units.binary:
        total_style = units.value_style(total)
    else:
        total_style = choose_style(list_ends(total), half_width(total))
        total_style = total_style if total_style.unit > 1 else NumberStyle()
    return {
        "number": style.text(value["estimate"]),
        "interval": label_interval(style.interval(value)),
        "total": total_style.with_interval(total),
    }


def _view_spend(numbers: Numbers, units: Units) -> View:
    spend, budget, confidence = numbers["spend"], numbers["budget"], numbers["planned"]["confidence"]
    style = units.spend_style(spend, budget["average"])
    axis = fit_axis([*list_ends(spend), budget["average"]], snug=True)
    label = f"Spend {style.text(spend['estimate'])} per customer, budget {style.text(budget['average'])}"
    return {
        "number": style.text(spend["estimate"]),
        "interval": label_interval(style.interval(spend)),
        "budget": style.text(budget["average"]),
        "total": units.total(_multiply(spend, numbers["customers"])["estimate"]),
        "budget_total": units.total(budget["total"]),
        "figure": draw_spend_strip(axis, spend, budget["average"], label),
        "confidence": "" if confidence is None else write_percent(confidence),
    }


def _view_price(numbers: Numbers, units: Units) -> View:
    price = finite(numbers["planned"]["price"])
    money, spread = bool(units.response_unit) and not units.binary, abs(price) if price else None
    style = units.response([price], spread) if money else choose_style([price], spread)
    more = "one more unit of response"
    if units.binary:
        more = "one more response"
    elif money:
        more = f"{units.response([1.0]).text(1.0)} more of response"
    return {
        "number": style.text(price, signed=True),
        "more": more,
        "rate": units.cost(1 / price) if price and price > 0 else MISSING_DASH,
        "spent": price == 0,
    }


def _view_profit(numbers: Numbers, units: Units) -> View:
    """Return the profit after costs; empty if responses have no value."""
    if not numbers["profit"]:
        return {}
    own, gain, returned = (numbers["profit"][key] for key in ("own", "gain", "returned"))
    style, total = units.profit.value_style(own), _multiply(own, numbers["customers"])
    return {
        "number": style.text(own["estimate"]),
        "interval": label_interval(style.interval(own)),
        "total": units.profit.value_style(total).with_interval(total),
        "gain": units.profit.write_gain(gain),
        "cheapest": name_cheapest(numbers),
        "returned": write_returned(units, returned.get("estimate")),
        "one": units.one_spent,
    }


def _multiply(estimate: Numbers, factor: Any) -> dict[str, float | None]:
    """Return an estimate for all customers together."""
    n = finite(factor)
    known = {end: finite(estimate.get(end)) for end in ("estimate", "low", "high")}
    return {end: None if number is None or n is None else number * n for end, number in known.items()}
