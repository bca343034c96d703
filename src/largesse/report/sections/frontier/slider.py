"""The budget slider: at every stop the sentences and shares that the page shows, ready to be put in place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.strips import draw_swatch
from largesse.report.formats import DASH, Units, finite, write_percent
from largesse.report.section import Numbers, Part
from largesse.report.sections.frontier.honest import Honest, interpolate, judge_budget, judge_own

MOST = "From more, it expects nothing."
NOTHING_PAYS = "The model expects that no step up pays."
NOTHING: Part = {"stops": "", "start": 0, "last": 0, "now": {}, "levels": [], "scenarios": [], "excuse": ""}


def view_slider(numbers: Numbers, units: Units) -> Part:
    """Return the stops as JSON, where the slider begins, and the levels; nothing where there are too few stops."""
    stops = list_stops(numbers)
    if len(stops) < 2:
        return {**NOTHING, "excuse": numbers["frontier"].get("excuse") or ""}
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
    """Return the stops whose budget is known."""
    return [row for row in numbers["frontier"].get("stops", []) if finite(row["budget"]) is not None]


def find_start(stops: Sequence[Mapping[str, Any]], budget: Any) -> int:
    """Return where the slider begins: at the plan itself, or as near to its budget as stops are."""
    own = [k for k, row in enumerate(stops) if row.get("own")]
    return own[0] if own else _find_nearest(stops, budget)


def _view_stop(row: Mapping[str, Any], numbers: Numbers, units: Units) -> dict[str, Any]:
    own = bool(row.get("own"))
    honest = judge_own(numbers) if own else judge_budget(numbers, row["budget"])
    found = honest.value or {}
    words = {
        "budget": write_budget(row, numbers, units),
        "spend": f"{units.cost(row['spend'])} per customer",
        "value": DASH if honest.value is None else units.value_style(found).both(found),
        "gain": DASH if honest.gain is None else units.gain_style(honest.gain).both(honest.gain, signed=True),
        "model": _write_promise(row["value"], found, units),
        **_write_left(row, numbers, units),
        "price": units.rate(row["price"]),
        "how": _write_how(honest, own),
        "levels": [write_percent(share) for share in row["shares"]],
    }
    return {
        "at": float(f"{row['budget']:.8g}"),
        **words,
        "say": _say(words, own),
        "shares": [round(share, 4) for share in row["shares"]],
        "y": [_shorten(found.get(end)) for end in ("estimate", "low", "high")],
    }


def _write_left(row: Mapping[str, Any], numbers: Numbers, units: Units) -> dict[str, str]:
    """Write what is left after costs, where a response has a value."""
    if "profit" not in numbers:
        return {}
    own = bool(row.get("own"))
    left = numbers["profit"]["own"] if own else _judge_at(numbers["frontier"]["points"], row["budget"])[1]
    return {"left": DASH if left is None else units.profit.value_style(left).both(left)}


def write_budget(row: Mapping[str, Any], numbers: Numbers, units: Units) -> str:
    """Write the budget of a stop, per customer and in all."""
    people = finite(numbers["customers"])
    total = DASH if people is None else units.total(round(row["budget"] * people))
    return f"{units.cost(row['budget'])} per customer, {total} in all"


def _write_promise(value: Any, honest: Mapping[str, Any], units: Units) -> str:
    """Write what the model promises, to as many digits as the honest value beside it."""
    known = units.value_style(honest) if honest else units.response([value], abs(value) / 100 or None)
    return known.text(value)


def _write_how(honest: Honest, own: bool) -> str:
    if honest.value is None:
        return "this budget lies beyond those that were judged"
    if own:
        return "this plan, as judged"
    return "read between two judged budgets" if honest.between else "judged at this budget"


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
    others = [row for row in stops if not row.get("own")] or stops
    half = others[_find_nearest(others, budget / 2)]["budget"]
    last, most, more = _find_last(stops, numbers, units)
    points, profit = numbers["frontier"]["points"], numbers.get("profit")
    found = [
        (f"This budget, {units.cost(budget)} per customer", numbers["value"], profit["own"] if profit else None, ""),
        (f"About half of it, {units.cost(half)}", *_judge_at(points, half), ""),
        (f"{last}, {units.cost(most)}", *_judge_at(points, most), more),
    ]
    return [
        {"title": title, "text": f"{_write_brings(value, left, units)} {more}".strip()}
        for title, value, left, more in found
        if value is not None
    ]


def _find_last(stops: Sequence[Mapping[str, Any]], numbers: Numbers, units: Units) -> tuple[str, float, str]:
    """Return what the third scenario is called, its budget, and what to add to it."""
    pays = [k for k, row in enumerate(stops) if row.get("pays")]
    if "profit" not in numbers or not pays:
        return "All that the model has a use for", stops[-1]["budget"], MOST
    until = f"Until {units.one_more} brings back less than it costs"
    return until, stops[pays[-1]]["budget"], "" if pays[-1] else NOTHING_PAYS


def _judge_at(points: Sequence[Mapping[str, Any]], budget: float) -> tuple[Any, Any]:
    """Return value and profit at a budget; None where the log does not say."""
    known = [row for row in points if "profit" in row]
    return interpolate(points, budget), interpolate(known, budget, "profit")


def _write_brings(value: Mapping[str, Any], left: Mapping[str, Any] | None, units: Units) -> str:
    text = units.value_style(value).both(value)
    brings = f"{text} of customers respond" if units.binary else f"{text} per customer"
    return f"{brings}." if left is None else f"{brings}; {units.profit.value_style(left).both(left)} left after costs."


def _find_nearest(stops: Sequence[Mapping[str, Any]], budget: Any) -> int:
    wanted = finite(budget)
    if wanted is None:
        return len(stops) - 1
    return min(range(len(stops)), key=lambda k: abs(stops[k]["budget"] - wanted))
