"""Section with the frontier, and the budget slider with its plans and estimates."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from largesse.report.charts.bars import draw_swatch
from largesse.report.charts.frontier import DESK, PHONE, Chart, Point, choose_labels, draw_frontier
from largesse.report.numbers import DASH, Units, finite, write_percent
from largesse.report.section import Numbers, Part, Section

ENDS = ("estimate", "low", "high")


@dataclass(frozen=True)
class Honest:
    """Value and gain over giving everyone the same at one budget; None where the log does not say."""

    value: Mapping[str, Any] | None
    gain: Mapping[str, Any] | None
    between: bool = True  # whether the budget lies between two that were judged


def judge_own(numbers: Numbers) -> Honest:
    """Return value and gain of the plan itself."""
    versus = numbers.get("versus") or [{}]
    return Honest(numbers["value"], versus[0].get("difference"), between=False)


def judge_budget(numbers: Numbers, budget: float) -> Honest:
    """Return value and gain at a budget."""
    points = numbers["frontier"]["points"]
    value = interpolate(points, budget)
    return Honest(value, _judge_gain(numbers, budget, value), not is_judged(points, budget))


def is_judged(points: Sequence[Mapping[str, Any]], budget: float) -> bool:
    """Whether a budget is one of those that were judged."""
    judged = (finite(row["budget"]) for row in points)
    return any(one is not None and math.isclose(one, budget, rel_tol=1e-9) for one in judged)


def interpolate(points: Sequence[Mapping[str, Any]], budget: float, key: str = "value") -> dict[str, float] | None:
    """Return the estimate at a budget between two of the points', on the line between them; None beyond their ends."""
    for left, right in pairwise(points):
        a, b = finite(left.get("budget")), finite(right.get("budget"))
        if a is None or b is None or not a <= budget <= b * (1 + 1e-9) or a == b:
            continue
        part, found = min((budget - a) / (b - a), 1.0), {}
        for end in ENDS:
            low, high = finite(left[key].get(end)), finite(right[key].get(end))
            if low is None or high is None:
                return None
            found[end] = low + part * (high - low)
        return found
    return None


def _judge_gain(numbers: Numbers, budget: float, value: Mapping[str, float] | None) -> dict[str, float] | None:
    """Return the value less that of the best mix of levels at the same spend; as uncertain as beside it.

    The best mix bends where it reaches a level, so it is computed at the spend itself, not on a line.
    """
    spend = interpolate(numbers["frontier"]["points"], budget, "spend")
    width = interpolate(numbers["targeting"]["points"], budget, "difference")
    mix = None if spend is None else value_best_mix(numbers["uniform"], spend["estimate"])
    if value is None or mix is None or width is None:
        return None
    gain = value["estimate"] - mix
    return {"estimate": gain, **{end: gain + width[end] - width["estimate"] for end in ("low", "high")}}


def value_best_mix(uniform: Sequence[Mapping[str, Any]], spend: float) -> float | None:
    """Return the largest value of a random mix of levels, the same for everybody, at an average spend.

    >>> levels = [{"spend": {"estimate": s}, "value": {"estimate": v}} for s, v in ((0, 1), (1, 2), (2, 4))]
    >>> value_best_mix(levels, 1.0), value_best_mix(levels, 3.0)
    (2.5, 4.0)
    """
    both = ((finite(row["spend"]["estimate"]), finite(row["value"]["estimate"])) for row in uniform)
    known = sorted((max(cost, 0.0), value) for cost, value in both if cost is not None and value is not None)
    within = [(cost, value) for cost, value in known if cost <= spend * (1 + 1e-12)]
    if not within:
        return known[0][1] if known else None
    best = max(value for _, value in within)
    for cost, value in within:
        for dear, more in known:
            if dear > spend * (1 + 1e-12):
                best = max(best, value + (more - value) * (spend - cost) / (dear - cost))
    return best


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
    """Return the stops whose budget is known."""
    return [row for row in numbers["frontier"]["stops"] if finite(row["budget"]) is not None]


def find_start(stops: Sequence[Mapping[str, Any]], budget: Any) -> int:
    """Return where the slider begins: at the plan itself, or as near to its budget as stops are."""
    own = [k for k, row in enumerate(stops) if row["own"]]
    return own[0] if own else _find_nearest(stops, budget)


def _view_stop(row: Mapping[str, Any], numbers: Numbers, units: Units) -> dict[str, Any]:
    own = bool(row["own"])
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
    if not numbers["profit"]:
        return {}
    own = bool(row["own"])
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
    others = [row for row in stops if not row["own"]] or stops
    half = others[_find_nearest(others, budget / 2)]["budget"]
    last, most, more = _find_last(stops, numbers, units)
    points, profit = numbers["frontier"]["points"], numbers["profit"]
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
    pays = [k for k, row in enumerate(stops) if row["pays"]]
    if not numbers["profit"] or not pays:
        return "All that the model has a use for", stops[-1]["budget"], MOST
    until = f"Until {units.one_more} brings back less than it costs"
    return until, stops[pays[-1]]["budget"], "" if pays[-1] else NOTHING_PAYS


def _judge_at(points: Sequence[Mapping[str, Any]], budget: float) -> tuple[Any, Any]:
    """Return value and profit at a budget; None where the log does not say."""
    known = [row for row in points if row["profit"]]
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


SECTION = Section("frontier", view_frontier, "What each budget would bring")
