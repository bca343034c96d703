"""Section with the frontier, and the budget slider with its plans and estimates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.curve_chart import DESK, PHONE, Chart, Point, choose_labels, draw_frontier
from largesse.report.charts.row_charts import draw_swatch
from largesse.report.number_format import DASH, Units, finite, write_percent
from largesse.report.section import Numbers, Part, Section

MOST = "From more, it expects nothing."
NOTHING_PAYS = "The model expects that no step up pays."
NOTHING: Part = {"stops": "", "start": 0, "last": 0, "now": {}, "levels": [], "scenarios": [], "excuse": ""}


def view_slider(numbers: Numbers, units: Units) -> Part:
    """Return the stops as JSON, where the slider begins, and the levels; nothing where there are too few stops."""
    stops = list_stops(numbers)
    if len(stops) < 2:
        return {**NOTHING, "excuse": numbers["frontier"]["excuse"]}
    shown = [_view_stop(row, numbers, units) for row in stops]
    start = find_start(stops, numbers["budget"]["average"])
    levels = [
        {"swatch": draw_swatch(k), "name": level["name"], "share": share}
        for k, (level, share) in enumerate(zip(numbers["levels"], shown[start]["levels"], strict=False))
    ]
    packed = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    fixed = {"start": start, "last": len(stops) - 1, "now": shown[start], "levels": levels, "excuse": ""}
    return {"stops": packed, **fixed, "scenarios": write_scenarios(stops, numbers, units)}


def list_stops(numbers: Numbers) -> list[Mapping[str, Any]]:
    """Return the stops whose budget is known, each with the estimates there."""
    slider = numbers["frontier"]
    both = zip(slider["stops"], slider["estimates"], strict=True)
    return [{**row, "found": found} for row, found in both if finite(row["budget"]) is not None]


def find_start(stops: Sequence[Mapping[str, Any]], budget: Any) -> int:
    """Return where the slider begins: at the plan itself, or as near to its budget as stops are."""
    own = [k for k, row in enumerate(stops) if row["own"]]
    return own[0] if own else _find_nearest(stops, budget)


def _view_stop(row: Mapping[str, Any], numbers: Numbers, units: Units) -> dict[str, Any]:
    value, gain, left = _judge_stop(row, numbers)
    found = value or {}
    words = {
        "budget": write_budget(row, numbers, units),
        "spend": f"{units.cost(row['spend'])} per customer",
        "value": DASH if value is None else units.value_style(value).both(value),
        "gain": DASH if gain is None else units.gain_style(gain).both(gain, signed=True),
        "model": _write_promise(row["value"], found, units),
        **({"left": DASH if left is None else units.profit.value_style(left).both(left)} if numbers["profit"] else {}),
        "price": units.rate(row["price"]),
        "how": _write_how(row, value),
        "levels": [write_percent(share) for share in row["shares"]],
    }
    return {
        "at": float(f"{row['budget']:.8g}"),
        **words,
        "say": _say(words, bool(row["own"])),
        "shares": [round(share, 4) for share in row["shares"]],
        "y": [_shorten(found.get(end)) for end in ("estimate", "low", "high")],
    }


def _judge_stop(row: Mapping[str, Any], numbers: Numbers) -> tuple[Any, Any, Any]:
    """Return value, gain and profit at a stop; those of the run where it is the run's plan."""
    if not row["own"]:
        return row["found"]["value"], row["found"]["gain"], row["found"]["profit"]
    versus, profit = numbers.get("versus") or [{}], numbers["profit"]
    return numbers["value"], versus[0].get("difference"), profit["own"] if profit else None


def write_budget(row: Mapping[str, Any], numbers: Numbers, units: Units) -> str:
    """Write the budget of a stop, per customer and in all."""
    people = finite(numbers["customers"])
    total = DASH if people is None else units.total(round(row["budget"] * people))
    return f"{units.cost(row['budget'])} per customer, {total} in all"


def _write_promise(value: Any, honest: Mapping[str, Any], units: Units) -> str:
    """Write what the model promises, to as many digits as the honest value beside it."""
    known = units.value_style(honest) if honest else units.response([value], abs(value) / 100 or None)
    return known.text(value)


def _write_how(row: Mapping[str, Any], value: Any) -> str:
    if value is None:
        return "this budget lies beyond those that were judged"
    if row["own"]:
        return "this plan, as judged"
    return "judged at this budget" if row["found"]["judged"] else "read between two judged budgets"


def _say(words: Mapping[str, Any], own: bool) -> str:
    """Say a stop aloud: the budget, what it brings, and what that gains."""
    plan = "This plan. " if own else ""
    value = f" Honest value {words['value']}." if words["value"] != DASH else ""
    gain = f" Gain over everyone the same {words['gain']}." if words["gain"] != DASH else ""
    return f"{plan}Budget {words['budget']}.{value}{gain}"


def _shorten(number: Any) -> float | None:
    known = finite(number)
    return None if known is None else float(f"{known:.6g}")


def write_scenarios(stops: Sequence[Mapping[str, Any]], numbers: Numbers, units: Units) -> list[dict[str, str]]:
    """Return three budgets in plain words, with honest values: this one, half of it, and as much as pays.

    That is until the next unit brings less than it costs, where a response has a value, or all that the model has a use for.
    """
    budget = finite(numbers["budget"]["average"])
    if budget is None or budget <= 0:
        return []
    others = [row for row in stops if not row["own"]] or stops
    half = others[_find_nearest(others, budget / 2)]
    last, most, more = _find_last(stops, numbers, units)
    profit = numbers["profit"]
    own = {"value": numbers["value"], "profit": profit["own"] if profit else None}
    scenarios = [
        (f"This budget, {units.cost(budget)} per customer", own, ""),
        (f"About half of it, {units.cost(half['budget'])}", half["found"], ""),
        (f"{last}, {units.cost(most['budget'])}", most["found"], more),
    ]
    return [
        {"title": title, "text": f"{_write_brings(found['value'], found['profit'], units)} {more}".strip()}
        for title, found, more in scenarios
        if found["value"] is not None
    ]


def _find_last(
    stops: Sequence[Mapping[str, Any]], numbers: Numbers, units: Units
) -> tuple[str, Mapping[str, Any], str]:
    """Return the name of the third scenario, its stop, and words to add to it."""
    pays = [k for k, row in enumerate(stops) if row["pays"]]
    if not numbers["profit"] or not pays:
        return "All that the model has a use for", stops[-1], MOST
    until = f"Until {units.one_more} brings back less than it costs"
    return until, stops[pays[-1]], "" if pays[-1] else NOTHING_PAYS


def _write_brings(value: Mapping[str, Any], left: Mapping[str, Any] | None, units: Units) -> str:
    text = units.value_style(value).both(value)
    brings = f"{text} of customers respond" if units.binary else f"{text} per customer"
    return f"{brings}." if left is None else f"{brings}; {units.profit.value_style(left).both(left)} left after costs."


def _find_nearest(stops: Sequence[Mapping[str, Any]], budget: Any) -> int:
    wanted = finite(budget)
    if wanted is None:
        return len(stops) - 1
    return min(range(len(stops)), key=lambda k: abs(stops[k]["budget"] - wanted))


UNLIKE = {"constraints": "your constraints", "exploration": "exploration"}  # topic of a warning → what was not judged


def view_frontier(numbers: Numbers, units: Units) -> Part:
    """Return the figure for a desk and for a phone, the key of its squares, and its table."""
    points, uniform = numbers["frontier"]["points"], numbers["uniform"]
    names = [row["name"] for row in uniform]
    labels = choose_labels(names)
    chart = _make_chart(numbers, units, labels)
    return {
        "desk": draw_frontier(chart, DESK),
        "phone": draw_frontier(chart, PHONE),
        "banded": any(finite(row["band"][0]) is not None for row in points),
        "key": list(zip(labels, names, strict=True)) if labels != names else [],
        "table": [_view_point(row, units) for row in points],
        "uniform": [_view_uniform(row, units) for row in uniform],
        "readout": _write_plan(numbers, units),
        "promise": describe_promises(points),
        "unlike": _describe_unlike(numbers),
        **view_slider(numbers, units),
    }


def _describe_unlike(numbers: Numbers) -> str:
    """Say by what the plans that were judged differ from those of the slider; nothing where they do not."""
    topics = {warning["topic"] for warning in numbers["warnings"]}
    without = next((words for topic, words in UNLIKE.items() if topic in topics), "")
    return f"Value and gain are those of plans without {without}." if without else ""


def describe_promises(points: Sequence[Mapping[str, Any]]) -> str:
    """Say at how many budgets the model's promise lies above the honest value."""
    pairs = [(finite(row["promise"]), finite(row["value"]["estimate"])) for row in points]
    known = [(promise, value) for promise, value in pairs if promise is not None and value is not None]
    above = sum(promise > value for promise, value in known)
    return f"above the honest value at {above} of {len(known)} budgets" if known else ""


def _make_chart(numbers: Numbers, units: Units, labels: list[str]) -> Chart:
    measure = (
        "response rate" if units.binary else f"mean response{', ' if units.response_unit else ''}{units.response_unit}"
    )
    return Chart(
        curve=[
            Point(
                row["budget"],
                row["value"],
                _write_readout(_view_point(row, units), units),
                band=dict(zip(("low", "high"), row["band"], strict=True)),
                beside=row["promise"],
            )
            for row in numbers["frontier"]["points"]
        ],
        summary=f"Value at each budget. {_write_plan(numbers, units)}",
        across_title=units.title_axis("budget per customer"),
        up_title=f"value per customer ({measure})",
        units=units,
        squares=[
            Point(
                row["spend"]["estimate"],
                row["value"],
                f"everyone gets {row['name']}: {_view_uniform(row, units)['value']}",
                label=label,
            )
            for row, label in zip(numbers["uniform"], labels, strict=True)
        ],
        chosen=Point(numbers["budget"]["average"], numbers["value"], "", label="this plan"),
    )


def _view_point(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    style = units.value_style(row["value"])
    return {
        "budget": units.cost(row["budget"]),
        "spend": units.cost(row["spend"]["estimate"]),
        "value": style.text(row["value"]["estimate"]),
        "interval": style.interval(row["value"]),
        "both": style.both(row["value"]),
        "band": style.interval(dict(zip(("low", "high"), row.get("band", ()), strict=False))),
        "promise": style.text(row["promise"]),
        "price": units.rate(row["price"]),
    }


def _view_uniform(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    style = units.value_style(row["value"])
    return {
        "name": row["name"],
        "spend": units.cost(row["spend"]["estimate"]),
        "value": style.text(row["value"]["estimate"]),
        "interval": style.interval(row["value"]),
    }


def _write_readout(row: Mapping[str, str], units: Units) -> str:
    more = f"; {units.one_more} buys {row['price']}" if row["price"] != DASH else ""
    return f"Budget {row['budget']} per customer: spend {row['spend']}, value {row['both']}{more}."


def _write_plan(numbers: Numbers, units: Units) -> str:
    row = {
        "budget": numbers["budget"]["average"],
        "value": numbers["value"],
        "spend": numbers["spend"],
        "promise": numbers["promise"],
        "price": numbers["planned"]["price"],
    }
    return f"This plan. {_write_readout(_view_point(row, units), units)}"


SECTION = Section("budget_frontier", view_frontier, "What each budget would bring")
