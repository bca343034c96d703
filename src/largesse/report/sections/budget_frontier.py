"""Section on other budgets: the value frontier, and the budget slider."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from largesse.report.charts.curve_chart import (
    CurveChart,
    CurvePoint,
    choose_point_labels,
    draw_desktop_and_phone_charts,
)
from largesse.report.charts.row_charts import draw_swatch
from largesse.report.comparison_rows import view_value_and_spend
from largesse.report.number_format import MISSING_DASH, Numbers, Units, View, finite_or_none, write_percent

NOTHING_MORE = "The model expects nothing from a larger budget."
NOTHING_PAYS = "The model expects that no step up pays."
NO_SLIDER: View = {"stops": "", "start": 0, "last": 0, "now": {}, "levels": [], "scenarios": [], "excuse": ""}
UNJUDGED = {"constraints": "your constraints", "exploration": "exploration"}  # by topic of a warning


def view_frontier(numbers: Numbers, units: Units) -> View:
    """Return the template values of the budget section: figure, legend, table and slider."""
    points, uniform = numbers["frontier"]["points"], numbers["uniform"]
    names = [row["name"] for row in uniform]
    labels, topics = choose_point_labels(names), {warning["topic"] for warning in numbers["warnings"]}
    missing = next((words for topic, words in UNJUDGED.items() if topic in topics), "")
    return {
        **draw_desktop_and_phone_charts(_make_frontier_chart(numbers, units, labels)),
        "banded": any(finite_or_none(row["band"][0]) is not None for row in points),
        "key": list(zip(labels, names, strict=True)) if labels != names else [],
        "table": [_view_frontier_point(row, units) for row in points],
        "uniform": [view_value_and_spend(row, units) for row in uniform],
        "readout": _write_plan_sentence(numbers, units),
        "promise": describe_overpredicted_budgets(points),
        "unjudged": f"Value and gain are those of plans without {missing}." if missing else "",
        **view_budget_slider(numbers, units),
    }


def describe_overpredicted_budgets(points: Sequence[Numbers]) -> str:
    """Write the number of budgets at which the predicted value exceeds the estimated value."""
    pairs = [(finite_or_none(row["promise"]), finite_or_none(row["value"]["estimate"])) for row in points]
    known = [(promise, value) for promise, value in pairs if promise is not None and value is not None]
    above = sum(promise > value for promise, value in known)
    return f"above the honest value at {above} of {len(known)} budgets" if known else ""


def _make_frontier_chart(numbers: Numbers, units: Units, labels: list[str]) -> CurveChart:
    unit = f", {units.response_unit}" if units.response_unit else ""
    measure = "response rate" if units.has_binary_response else f"mean response{unit}"
    return CurveChart(
        curve=[
            CurvePoint(
                row["budget"],
                row["value"],
                _write_point_sentence(row, units),
                band=dict(zip(("low", "high"), row["band"], strict=True)),
                dashed=row["promise"],
            )
            for row in numbers["frontier"]["points"]
        ],
        summary=f"Value at each budget. {_write_plan_sentence(numbers, units)}",
        across_title=units.title_axis("budget per customer"),
        up_title=f"value per customer ({measure})",
        units=units,
        squares=[
            CurvePoint(
                row["spend"]["estimate"],
                row["value"],
                f"everyone gets {row['name']}: {view_value_and_spend(row, units)['value']}",
                label=label,
            )
            for row, label in zip(numbers["uniform"], labels, strict=True)
        ],
        chosen=CurvePoint(numbers["budget"]["average"], numbers["value"], "", label="this plan"),
    )


def _view_frontier_point(row: Numbers, units: Units) -> dict[str, str]:
    style = units.value_style(row["value"])
    return {
        "budget": units.write_cost(row["budget"]),
        "spend": units.write_cost(row["spend"]["estimate"]),
        "value": style.text(row["value"]["estimate"]),
        "interval": style.interval(row["value"]),
        "both": style.with_interval(row["value"]),
        "band": style.interval(dict(zip(("low", "high"), row.get("band", ()), strict=False))),
        "promise": style.text(row["promise"]),
        "price": units.write_price_number(row["price"]),
    }


def _write_point_sentence(point: Numbers, units: Units) -> str:
    row = _view_frontier_point(point, units)
    more = "; ".join(filter(None, (f"value {row['both']}", units.write_price(point["price"]))))
    return f"Budget {row['budget']} per customer: spend {row['spend']}, {more}."


def _write_plan_sentence(numbers: Numbers, units: Units) -> str:
    point = {key: numbers[key] for key in ("value", "spend", "promise")}
    point |= {"budget": numbers["budget"]["average"], "price": numbers["planned"]["price"]}
    return f"This plan. {_write_point_sentence(point, units)}"


# -- the slider --------------------------------------------------------------------------------------------------------


def view_budget_slider(numbers: Numbers, units: Units) -> View:
    """Return the template values of the budget slider, or the reason for a missing slider."""
    stops = list_slider_stops(numbers)
    if len(stops) < 2:
        return {**NO_SLIDER, "excuse": numbers["frontier"]["excuse"]}
    views = [_view_slider_stop(row, numbers, units) for row in stops]
    start = find_initial_stop(stops, numbers["budget"]["average"])
    levels = [
        {"swatch": draw_swatch(k), "name": level["name"], "share": share}
        for k, (level, share) in enumerate(zip(numbers["levels"], views[start]["levels"], strict=False))
    ]
    return {
        "stops": json.dumps(views, ensure_ascii=False, separators=(",", ":")),
        "start": start,
        "last": len(stops) - 1,
        "now": views[start],
        "levels": levels,
        "excuse": "",
        "scenarios": describe_three_budgets(stops, numbers, units),
    }


def list_slider_stops(numbers: Numbers) -> list[View]:
    """Return the stops of the budget slider: each budget with its estimates of value, gain and profit.

    The estimates at the budget of the run's plan are those of the evaluation.
    """
    slider, profit, stops = numbers["frontier"], numbers["profit"], []
    for row, estimates in zip(slider["stops"], slider["estimates"], strict=True):
        if finite_or_none(row["budget"]) is None:
            continue
        if row["own"]:
            gain = (numbers.get("versus") or [{}])[0].get("difference")
            own = {"value": numbers["value"], "gain": gain, "profit": profit["own"] if profit else None}
            estimates = {**estimates, **own}
        stops.append({**row, "estimates": estimates})
    return stops


def find_initial_stop(stops: Sequence[Numbers], budget: Any) -> int:
    """Return the index of the slider's initial stop: the plan's budget, or the budget nearest to it."""
    own = [k for k, row in enumerate(stops) if row["own"]]
    return own[0] if own else _find_nearest_stop(stops, budget)


def _find_nearest_stop(stops: Sequence[Numbers], budget: Any) -> int:
    target = finite_or_none(budget)
    if target is None:
        return len(stops) - 1
    return min(range(len(stops)), key=lambda k: abs(stops[k]["budget"] - target))


def _view_slider_stop(row: Numbers, numbers: Numbers, units: Units) -> View:
    value, gain, profit = (row["estimates"][key] for key in ("value", "gain", "profit"))
    # the promise gets as many digits as the honest value next to it
    style = units.value_style(value) if value else units.response([row["value"]], abs(row["value"]) / 100 or None)
    words = {
        "budget": write_stop_budget(row, numbers, units),
        "spend": f"{units.write_cost(row['spend'])} per customer",
        "value": MISSING_DASH if value is None else units.value_style(value).with_interval(value),
        "gain": MISSING_DASH if gain is None else units.write_gain(gain),
        "model": style.text(row["value"]),
    }
    if numbers["profit"]:
        words["left"] = MISSING_DASH if profit is None else units.profit.value_style(profit).with_interval(profit)
    spoken = [f"Budget {words['budget']}."]
    spoken += [f"Honest value {words['value']}."] if words["value"] != MISSING_DASH else []
    spoken += [f"Gain over everyone the same {words['gain']}."] if words["gain"] != MISSING_DASH else []
    ends = [finite_or_none((value or {}).get(end)) for end in ("estimate", "low", "high")]
    return {
        "at": float(f"{row['budget']:.8g}"),
        **words,
        "price": units.write_price_number(row["price"]),
        "how": _write_estimate_source(row),
        "levels": [write_percent(share) for share in row["shares"]],
        "say": " ".join(["This plan.", *spoken] if row["own"] else spoken),
        "shares": [round(share, 4) for share in row["shares"]],
        "y": [None if end is None else float(f"{end:.6g}") for end in ends],
    }


def write_stop_budget(row: Numbers, numbers: Numbers, units: Units) -> str:
    """Write a budget of the report's slider, per customer and in total."""
    customers = finite_or_none(numbers["customers"])
    total = MISSING_DASH if customers is None else units.write_total_cost(round(row["budget"] * customers))
    return f"{units.write_cost(row['budget'])} per customer, {total} in total"


def _write_estimate_source(row: Numbers) -> str:
    if row["estimates"]["value"] is None:
        return "unknown: beyond the judged budgets"
    if row["own"]:
        return "this plan, as judged"
    return "judged at this budget" if row["estimates"]["judged"] else "interpolated between two judged budgets"


def describe_three_budgets(stops: Sequence[Numbers], numbers: Numbers, units: Units) -> list[dict[str, str]]:
    """Describe the values of three budgets: the current budget, half of it, and the largest profitable budget.

    The last is reached where the next unit brings less than it costs, or where the model expects nothing more.
    """
    budget, profit = finite_or_none(numbers["budget"]["average"]), numbers["profit"]
    if budget is None or budget <= 0:
        return []
    others = [row for row in stops if not row["own"]] or stops
    half = others[_find_nearest_stop(others, budget / 2)]
    pays = [k for k, row in enumerate(stops) if row["pays"]]
    last, title, note = stops[-1], "The largest budget that the model would use", NOTHING_MORE
    if profit and pays:
        last, note = stops[pays[-1]], "" if pays[-1] else NOTHING_PAYS
        title = f"Until {units.one_more_unit_text} brings back less than it costs"
    own = {"value": numbers["value"], "profit": profit["own"] if profit else None}
    scenarios = [
        (f"This budget, {units.write_cost(budget)} per customer", own, ""),
        (f"About half of it, {units.write_cost(half['budget'])}", half["estimates"], ""),
        (f"{title}, {units.write_cost(last['budget'])}", last["estimates"], note),
    ]
    return [
        {"title": title, "text": f"{_write_value_and_profit(estimates, units)} {note}".strip()}
        for title, estimates, note in scenarios
        if estimates["value"] is not None
    ]


def _write_value_and_profit(estimates: Numbers, units: Units) -> str:
    value, profit = estimates["value"], estimates["profit"]
    text = units.value_style(value).with_interval(value)
    text += " of customers respond" if units.has_binary_response else " per customer"
    if profit is None:
        return f"{text}."
    return f"{text}; {units.profit.value_style(profit).with_interval(profit)} left after costs."
