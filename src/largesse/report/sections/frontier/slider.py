"""The budget slider: at every stop the sentences and shares that the page shows, ready to be put in place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from largesse.report.charts.strips import draw_swatch
from largesse.report.formats import DASH, Units, finite, write_percent
from largesse.report.section import Numbers, Part

MOST = "From more, it expects nothing."


def view_slider(numbers: Numbers, units: Units) -> Part:
    """Return the stops as JSON, where the slider begins, and the levels; nothing where there are too few stops."""
    stops = [row for row in numbers["frontier"].get("stops", []) if finite(row["budget"]) is not None]
    if len(stops) < 2:
        return {"stops": "", "start": 0, "last": 0, "now": {}, "levels": [], "scenarios": []}
    shown = [_view_stop(row, numbers, units) for row in stops]
    start = _find_nearest(stops, numbers["budget"]["average"])
    levels = [
        {"swatch": draw_swatch(k), "name": level["name"], "share": share}
        for k, (level, share) in enumerate(zip(numbers["levels"], shown[start]["levels"], strict=False))
    ]
    packed = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    fixed = {"start": start, "last": len(stops) - 1, "now": shown[start], "levels": levels}
    return {"stops": packed, **fixed, "scenarios": write_scenarios(stops, numbers, units)}


def _view_stop(row: Mapping[str, Any], numbers: Numbers, units: Units) -> dict[str, Any]:
    people = numbers["customers"]
    total = units.cost(round(row["budget"] * people)) if finite(people) is not None else DASH
    honest = interpolate(numbers["frontier"]["points"], row["budget"])
    return {
        "at": round(row["budget"], 6),
        "budget": f"{units.cost(row['budget'])} per customer, {total} in all",
        "spend": f"{units.cost(row['spend'])} per customer",
        "value": DASH if honest is None else units.value_style(honest).both(honest),
        "model": units.response([row["value"]], abs(row["value"]) / 100 or None).text(row["value"]),
        "price": units.rate(row["price"]),
        "levels": [write_percent(share) for share in row["shares"]],
        "shares": [round(share, 4) for share in row["shares"]],
    }


def write_scenarios(stops: Sequence[Mapping[str, Any]], numbers: Numbers, units: Units) -> list[dict[str, str]]:
    """Return three budgets in plain words, with honest values: this one, half of it, and all that the model has a use for."""
    budget = finite(numbers["budget"]["average"])
    if budget is None or budget <= 0:
        return []
    half, most = (stops[k]["budget"] for k in (_find_nearest(stops, budget / 2), -1))
    points = numbers["frontier"]["points"]
    found = [
        (f"This budget, {units.cost(budget)} per customer", numbers["value"], ""),
        (f"About half of it, {units.cost(half)}", interpolate(points, half), ""),
        (f"All that the model has a use for, {units.cost(most)}", interpolate(points, most), MOST),
    ]
    return [
        {"title": title, "text": f"{_write_brings(value, units)} {more}".strip()}
        for title, value, more in found
        if value is not None
    ]


def _write_brings(value: Mapping[str, Any], units: Units) -> str:
    text = units.value_style(value).both(value)
    return f"{text} of customers respond." if units.binary else f"{text} per customer."


def interpolate(points: Sequence[Mapping[str, Any]], budget: float) -> dict[str, float] | None:
    """Return the honest value at a budget between two of the frontier's, on the line between them; None beyond its ends."""
    for left, right in pairwise(points):
        a, b = finite(left["budget"]), finite(right["budget"])
        if a is None or b is None or not a <= budget <= b or a == b:
            continue
        part, found = (budget - a) / (b - a), {}
        for key in ("estimate", "low", "high"):
            low, high = finite(left["value"].get(key)), finite(right["value"].get(key))
            if low is None or high is None:
                return None
            found[key] = low + part * (high - low)
        return found
    return None


def _find_nearest(stops: Sequence[Mapping[str, Any]], budget: Any) -> int:
    wanted = finite(budget)
    if wanted is None:
        return len(stops) - 1
    return min(range(len(stops)), key=lambda k: abs(stops[k]["budget"] - wanted))
