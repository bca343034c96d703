"""Section with the big numbers, the comparisons and the urgent warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_spend_strip
from largesse.report.figure_rows import Rows, view_gains
from largesse.report.number_format import (
    DASH,
    Style,
    Units,
    choose_style,
    finite,
    half_width,
    label_interval,
    parts,
    write_count,
    write_percent,
)
from largesse.report.section import Numbers, Part, Section
from largesse.report.sentences import brief_urgent, warn_of_spending, write_nothing, write_returned, write_sentences


def write_answer(numbers: Numbers) -> Part:
    """Return the verdict in one sentence, the reasons, and all warnings."""
    units = Units.of(numbers)
    return {
        **write_sentences(units, numbers),
        "warnings": [*warn_of_spending(units, numbers), *numbers["warnings"]],
    }


def view_answer(numbers: Numbers, units: Units) -> Part:
    """Return what the plan brings, costs and gains, and its price."""
    return {
        "customers": write_count(numbers["customers"]),
        "brings": _view_value(numbers, units),
        "costs": _view_spend(numbers, units),
        "price": _view_price(numbers, units),
        "left": _view_profit(numbers, units),
        "gains": _view_gains(numbers, units),
        "urgent": brief_urgent(numbers["answer"]["warnings"]),
    }


def _view_gains(numbers: Numbers, units: Units) -> Rows:
    """Return the comparisons: of profits where these are known, since plans that bring less may leave more."""
    if not numbers["profit"]:
        return view_gains(numbers["versus"], units)
    nothing = [{**row, "name": f"everyone gets {row['name']}", "detail": ""} for row in numbers["uniform"][:1]]
    rows = [row for row in (*numbers["versus"], *nothing) if row["profit_difference"]]
    return view_gains([{**row, "difference": row["profit_difference"]} for row in rows], units, units.profit)


def _view_value(numbers: Numbers, units: Units) -> dict[str, str]:
    value = numbers["value"]
    style = units.value_style(value)
    total = {key: _multiply(value.get(key), numbers["customers"]) for key in ("estimate", "low", "high")}
    return {
        "big": style.text(value["estimate"]),
        "interval": label_interval(style.interval(value)),
        "total": _choose_total_style(total, units).both(total),
    }


def _view_spend(numbers: Numbers, units: Units) -> dict[str, str]:
    spend, budget, people = numbers["spend"], numbers["budget"], numbers["customers"]
    style = units.spend_style(spend, budget["average"])
    across = fit_axis([*parts(spend), budget["average"]], snug=True)
    label = f"Spend {style.text(spend['estimate'])} per customer, budget {style.text(budget['average'])}"
    return {
        "big": style.text(spend["estimate"]),
        "interval": label_interval(style.interval(spend)),
        "budget": style.text(budget["average"]),
        "total": units.total(_multiply(spend["estimate"], people)),
        "budget_total": units.total(budget["total"]),
        "figure": draw_spend_strip(across, spend, budget["average"], label),
        "sure": write_percent(numbers["planned"]["confidence"]) if numbers["planned"]["confidence"] is not None else "",
    }


def _view_price(numbers: Numbers, units: Units) -> dict[str, str]:
    price, gain = finite(numbers["planned"]["price"]), numbers["gain_per_spend"] or {}
    known = finite(gain.get("estimate")) is not None
    money = bool(units.response_unit) and not units.binary
    style = units.response([price], abs(price) if price else None) if money else _choose_rate_style(price)
    each = units.gain_style(gain) if money else choose_style(parts(gain), half_width(gain))
    one = units.response([1.0]).text(1.0)
    return {
        "big": style.text(price, signed=True),
        "more": "one more response"
        if units.binary
        else f"{one} more of response"
        if money
        else "one more unit of response",
        "rate": units.cost(1 / price) if price and price > 0 else DASH,
        "spent": "yes" if price == 0 else "",
        "each": each.both(gain) if known else "",
    }


def _view_profit(numbers: Numbers, units: Units) -> dict[str, str]:
    """Return what is left after costs; nothing where no response has a value."""
    if not numbers["profit"]:
        return {}
    own, gain, returned = (numbers["profit"][key] for key in ("own", "gain", "returned"))
    total = {key: _multiply(own.get(key), numbers["customers"]) for key in ("estimate", "low", "high")}
    style = units.profit.value_style(own)
    return {
        "big": style.text(own["estimate"]),
        "interval": label_interval(style.interval(own)),
        "total": units.profit.value_style(total).both(total),
        "more": units.profit.gain_style(gain).both(gain, signed=True),
        "nothing": write_nothing(numbers),
        "back": write_returned(units, returned.get("estimate")),
        "one": units.one if units.currency else "unit",
    }


def _choose_rate_style(price: float | None) -> Style:
    return choose_style([price], abs(price) if price else None)


def _choose_total_style(total: Mapping[str, Any], units: Units) -> Style:
    if units.response_unit and not units.binary:
        return units.value_style(total)
    style = choose_style(parts(total), half_width(total))
    return style if style.unit > 1 else Style(decimals=0)


def _multiply(value: Any, factor: Any) -> float | None:
    first, second = finite(value), finite(factor)
    return None if first is None or second is None else first * second


SECTION = Section("key_figures", view_answer, "The answer")
