"""Arrange each section: from the dict's numbers to rows of words and figures the template only has to place.

Every function takes the cleaned dict (and how to write its numbers) and returns a plain dict. Words are plain strings,
escaped by the template; figures are strings of SVG that escaped their own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from largesse.evaluation import ESTIMATORS
from largesse.report.charts.frontier import DESK, PHONE, Chart, Point, choose_labels, draw_frontier
from largesse.report.charts.scales import Axis, fit_axis
from largesse.report.charts.strips import (
    draw_balance_strip,
    draw_curve_strip,
    draw_gain_strip,
    draw_histogram_strip,
    draw_spend_strip,
    draw_stacked_strip,
    draw_swatch,
    draw_tick_strip,
)
from largesse.report.formats import (
    DASH,
    Style,
    Units,
    choose_style,
    finite,
    half_width,
    parts,
    write_count,
    write_percent,
)

Numbers: TypeAlias = Mapping[str, Any]
BALANCED = 0.1  # standardised differences below this are usually taken as balanced
URGENT = ("no", "careful")


@dataclass(frozen=True)
class Row:
    """One row of a figure: a name and what is said about it, a strip, a number and what is said about that."""

    label: str
    figure: str
    number: str = ""
    detail: str = ""
    sub: str = ""
    mark: str = ""


def answer_section(numbers: Numbers, units: Units) -> dict[str, Any]:
    """Return the big numbers, the comparisons and the warnings that belong at the top."""
    answer = numbers["answer"]
    return {
        "brings": _brings(numbers, units),
        "costs": _costs(numbers, units),
        "price": _price(numbers, units),
        "gains": _gains(answer["versus"], units),
        "urgent": sorted(
            (w for w in numbers["warnings"] if w["severity"] in URGENT), key=lambda w: URGENT.index(w["severity"])
        ),
        "notes": [w for w in numbers["warnings"] if w["severity"] not in URGENT],
    }


def _brings(numbers: Numbers, units: Units) -> dict[str, str]:
    value, promise = numbers["answer"]["value"], numbers["answer"]["promise"]
    style = units.response(parts(value), half_width(value))
    total = {key: _times(value.get(key), numbers["customers"]) for key in ("estimate", "low", "high")}
    whole = _total_style(total)
    return {
        "big": style.text(value["estimate"]),
        "interval": style.interval(value),
        "total": whole.both(total),
        "promise": style.text(promise),
    }


def _costs(numbers: Numbers, units: Units) -> dict[str, str]:
    spend, budget, people = numbers["answer"]["spend"], numbers["budget"], numbers["customers"]
    style = units.money([*parts(spend), budget["average"]], half_width(spend))
    reach = fit_axis([*parts(spend), budget["average"]], snug=True)
    label = f"Spend {style.text(spend['estimate'])} per customer, budget {style.text(budget['average'])}"
    return {
        "big": style.text(spend["estimate"]),
        "interval": style.interval(spend),
        "budget": style.text(budget["average"]),
        "total": units.cost(_times(spend["estimate"], people)),
        "budget_total": units.cost(budget["total"]),
        "figure": draw_spend_strip(reach, spend, budget["average"], label),
    }


def _price(numbers: Numbers, units: Units) -> dict[str, str]:
    price = finite(numbers["answer"]["price"])
    style = choose_style([price], abs(price) if price else None)
    rate = units.cost(1 / price) if price and price > 0 else DASH
    gain = numbers["answer"].get("gain_per_spend") or {}
    each = choose_style(parts(gain), half_width(gain)).both(gain) if finite(gain.get("estimate")) is not None else ""
    return {"big": style.text(price, signed=True), "rate": rate, "spent": "yes" if price == 0 else "", "each": each}


def _gains(versus: Sequence[Mapping[str, Any]], units: Units) -> dict[str, Any]:
    """Return one row per comparison, all on one axis that is symmetric around zero."""
    reach = [abs(number) for row in versus for number in map(finite, parts(row["difference"])) if number is not None]
    across = fit_axis([max(reach, default=1.0), -max(reach, default=1.0)], 4, snug=True)
    rows = []
    for row in versus:
        style = units.difference(parts(row["difference"]), half_width(row["difference"]))
        big = style.text(row["difference"]["estimate"], signed=True)
        between = style.interval(row["difference"], signed=True)
        label = f"Gain against {row['name']}: {big}, interval {between}"
        figure = draw_gain_strip(across, row["difference"], label)
        words = {"detail": _versus_detail(row, units), "sub": between, "mark": _sign_words(row["difference"])}
        rows.append(Row(row["name"], figure, big, **words))
    ticks = units.difference(across.ticks, across.step, digits=1, short=True)
    return {"rows": rows, "ticks": draw_tick_strip(across, ticks, signed=True)}


def _versus_detail(row: Mapping[str, Any], units: Units) -> str:
    value = units.response(parts(row["value"]), half_width(row["value"])).text(row["value"]["estimate"])
    spend = units.money(parts(row["spend"]), half_width(row["spend"])).text(row["spend"]["estimate"])
    numbers = f"value {value}, spend {spend}{units.spelled if spend != DASH else ''}"
    return f"{row['detail']}; {numbers}" if row.get("detail") else numbers


def _sign_words(difference: Mapping[str, Any]) -> str:
    """Say in words what an interval says about the sign."""
    low, high = finite(difference.get("low")), finite(difference.get("high"))
    if low is None or high is None:
        return "not known"
    return "clearly more" if low > 0 else "clearly less" if high < 0 else "could be no gain"


def frontier_section(numbers: Numbers, units: Units) -> dict[str, Any]:
    """Return the frontier figure in both sizes, its key and the numbers behind it."""
    names = [row["name"] for row in numbers["uniform"]]
    marks = choose_labels(names)
    chart = _chart(numbers, units, marks)
    return {
        "desk": draw_frontier(chart, DESK),
        "phone": draw_frontier(chart, PHONE),
        "key": list(zip(marks, names, strict=True)) if marks != names else [],
        "table": [_frontier_row(row, units) for row in numbers["frontier"]],
        "uniform": [_uniform_row(row, units) for row in numbers["uniform"]],
        "readout": _chosen_words(numbers, units),
    }


def _chart(numbers: Numbers, units: Units, marks: list[str]) -> Chart:
    value = numbers["answer"]["value"]
    measure = "response rate" if units.binary else f"mean {_cut(numbers['response']['name'])}"
    return Chart(
        curve=[
            Point(
                row["budget"],
                _as_estimate(row),
                _readout(_frontier_row(row, units), units),
                band={"low": row.get("band_low"), "high": row.get("band_high")},
                beside=row["promise"],
            )
            for row in numbers["frontier"]
        ],
        summary=f"Value at each budget. {_chosen_words(numbers, units)}",
        across_title=f"budget per customer ({units.budget_unit})",
        up_title=f"value per customer ({measure})",
        units=units,
        squares=[
            Point(
                row["spend"],
                _as_estimate(row),
                f"everyone gets {row['name']}: {_uniform_row(row, units)['value']}",
                label=mark,
            )
            for row, mark in zip(numbers["uniform"], marks, strict=True)
        ],
        chosen=Point(numbers["budget"]["average"], value, "", label="this plan"),
    )


def _as_estimate(row: Mapping[str, Any], key: str = "value") -> dict[str, Any]:
    return {"estimate": row.get(key), "low": row.get("low"), "high": row.get("high")}


def _frontier_row(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    style = units.response([row["value"]], half_width(row))
    return {
        "budget": units.cost(row["budget"]),
        "spend": units.cost(row["spend"]),
        "value": style.text(row["value"]),
        "interval": style.interval(row),
        "both": style.both(row, "value"),
        "band": style.interval({"low": row.get("band_low"), "high": row.get("band_high")}),
        "promise": style.text(row["promise"]),
        "price": _rate(row["price"]),
    }


def _uniform_row(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    style = units.response([row["value"]], half_width(row))
    words = {"value": style.text(row["value"]), "interval": style.interval(row)}
    return {"name": row["name"], "spend": units.cost(row["spend"]), **words}


def _readout(row: Mapping[str, str], units: Units) -> str:
    things = " responses" if units.binary else ""
    more = f"; {units.one} more buys {row['price']}{things}" if row["price"] != DASH else ""
    return f"Budget {row['budget']}{units.spelled} per customer: spend {row['spend']}, value {row['both']}{more}."


def _chosen_words(numbers: Numbers, units: Units) -> str:
    answer = numbers["answer"]
    row = {"budget": numbers["budget"]["average"], "spend": answer["spend"]["estimate"], **_ends(answer["value"])}
    row |= {"value": answer["value"]["estimate"], "promise": answer["promise"], "price": answer["price"]}
    return f"This plan. {_readout(_frontier_row(row, units), units)}"


def targeting_section(numbers: Numbers, units: Units) -> dict[str, Any]:
    """Return what choosing gains over all budgets: the cost curve, its area in words, and gains over every level."""
    found = numbers.get("qini")
    against = numbers.get("versus_uniform") or []
    gains = _gains(against, units) if against else {"rows": [], "ticks": ""}
    if not found:
        return {"desk": "", "phone": "", "area": "", "gains": gains}
    chart = Chart(
        curve=[
            Point(row["spend"], _as_estimate(row), _gain_readout(row, units), beside=row["uniform"])
            for row in found["points"]
        ],
        summary=f"Gain over the cheapest plan at each spend. {_area_words(found['area'], units)}",
        across_title=f"spend per customer ({units.budget_unit})",
        up_title="gain over the cheapest plan",
        units=units,
    )
    drawn = {"desk": draw_frontier(chart, DESK), "phone": draw_frontier(chart, PHONE)}
    return {**drawn, "area": _area_words(found["area"], units), "gains": gains}


def _gain_readout(row: Mapping[str, Any], units: Units) -> str:
    style = units.difference([row["value"]], half_width(row))
    same = units.difference([row["uniform"]], half_width(row)).text(row["uniform"], signed=True)
    return f"Spend {units.cost(row['spend'])}: gain {style.both(row, 'value')}; everyone the same would gain {same}."


def _area_words(area: Mapping[str, Any], units: Units) -> str:
    """Say in words whether choosing pays on average over all budgets."""
    style = units.difference(parts(area), half_width(area))
    told = f"{style.text(area['estimate'], signed=True)} ({style.interval(area, signed=True)})"
    low, high = finite(area.get("low")), finite(area.get("high"))
    if low is not None and low > 0:
        return f"On average over all budgets, choosing who gets what gains {told} over treating everyone alike."
    if high is not None and high < 0:
        return f"On average over all budgets, choosing who gets what loses: {told} against treating everyone alike."
    return f"On average over all budgets, the log does not show that choosing who gets what gains anything: {told}."


CURVE_KEYS = ("value", "low", "high", "model", "model_low", "model_high", "raw")


def curve_section(numbers: Numbers, units: Units) -> dict[str, Any]:
    """Return one row per level: the honest mean response with its interval, the model's mean and the raw one."""
    rows = numbers["curve"]
    across = fit_axis([row[key] for row in rows for key in CURVE_KEYS], 4, snug=True)
    shown = []
    for level, row in enumerate(rows):
        style = units.response([row["value"]], half_width(row))
        label = (
            f"{row['name']}: {style.text(row['value'])}, interval {style.interval(row)}; "
            f"model {style.text(row['model'])}, raw {style.text(row['raw'])}"
        )
        words = {"detail": _level_cost(numbers, units, level), "sub": style.interval(row)}
        shown.append(Row(row["name"], _curve_figure(across, row, label), style.text(row["value"]), **words))
    reach = any(finite(row["model_low"]) is not None for row in rows)
    return {
        "rows": shown,
        "reach": reach,
        "ticks": draw_tick_strip(across, units.response(across.ticks, across.step, digits=1, short=True)),
    }


def _curve_figure(across: Axis, row: Mapping[str, Any], label: str) -> str:
    model = {"estimate": row.get("model"), "low": row.get("model_low"), "high": row.get("model_high")}
    return draw_curve_strip(across, _as_estimate(row), {"estimate": row["raw"]}, model, label)


def raw_section(numbers: Numbers, units: Units) -> dict[str, Any]:
    """Return one row per level of a log that was only examined: its mean weighted by propensity, and as logged."""
    rows = [{**row, "model": None} for row in numbers["curve"]]
    across = fit_axis([row[key] for row in rows for key in ("value", "low", "high", "raw")], 4, snug=True)
    shown = []
    for row in rows:
        style = units.response([row["value"]], half_width(row))
        label = (
            f"{row['name']}: {style.text(row['value'])}, interval {style.interval(row)}; raw {style.text(row['raw'])}"
        )
        words = {"detail": f"{write_count(row['rows'])} rows", "sub": style.interval(row)}
        shown.append(Row(row["name"], _curve_figure(across, row, label), style.text(row["value"]), **words))
    return {
        "rows": shown,
        "ticks": draw_tick_strip(across, units.response(across.ticks, across.step, digits=1, short=True)),
    }


def who_section(numbers: Numbers, units: Units) -> dict[str, Any]:
    """Return, for each telling feature, one stacked bar per group."""
    names = [level["name"] for level in numbers["levels"]]
    features = []
    for feature in numbers["who"]:
        costs = units.money([group["average_cost"] for group in feature["groups"]])
        rows = [_group(group, names, costs) for group in feature["groups"]]
        features.append({"name": feature["feature"], "explains": write_percent(feature["explains"]), "rows": rows})
    return {"features": features}


def _group(group: Mapping[str, Any], names: Sequence[str], costs: Style) -> Row:
    told = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, group["shares"], strict=False))
    figure = draw_stacked_strip(group["shares"], names, f"{group['label']}: {told}")
    words = {"detail": f"{write_count(group['customers'])} customers", "sub": "average cost"}
    return Row(group["label"], figure, costs.text(group["average_cost"]), **words)


def money_section(numbers: Numbers, units: Units) -> dict[str, Any]:
    """Return two bars, customers and spend by level, and the table behind them."""
    rows, names = numbers["money"], [row["name"] for row in numbers["money"]]
    bars = []
    for label, key in (("customers", "share"), ("spend", "spend_share")):
        told = ", ".join(f"{row['name']} {write_percent(row[key])}" for row in rows)
        figure = draw_stacked_strip([row[key] for row in rows], names, f"Share of {label} by level: {told}")
        bars.append(Row(label.capitalize(), figure))
    spends = units.money([row["spend"] for row in rows])
    return {"bars": bars, "table": [_money_row(level, row, spends, units) for level, row in enumerate(rows)]}


def _money_row(level: int, row: Mapping[str, Any], spends: Style, units: Units) -> dict[str, str]:
    return {
        "swatch": draw_swatch(level),
        "name": row["name"],
        "customers": write_count(row["customers"]),
        "share": write_percent(row["share"]),
        # in one style where sums are small; large ones each in their own, so that nothing reads 0.000 million
        "spend": units.cost(row["spend"]) if spends.unit > 1 else spends.text(row["spend"]),
        "spend_share": write_percent(row["spend_share"]),
        "extra": write_count(row["extra"]),
        "cost_per_extra": units.cost(row["cost_per_extra"]),
    }


def support_section(numbers: Numbers) -> dict[str, Any]:
    """Return what tells whether the log can answer the question: overlap, propensities, balance."""
    overlap = [
        {
            "name": row["name"],
            "rows": write_count(row["rows"]),
            "effective": write_count(row["effective"]),
            "smallest": _rate(row["smallest"]),
            "verdict": row["verdict"],
        }
        for row in numbers["overlap"]
    ]
    return {
        "overlap": overlap,
        "propensities": _propensities(numbers),
        "balance": _balance(numbers["balance"]),
        "by_level": _by_level(numbers["balance"]),
        "checks": numbers.get("doctor") or [],
    }


def _by_level(features: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each feature's differences at every level, before and after weighting; large ones are marked."""
    style = Style(decimals=2)
    rows = []
    for row in features:
        if row.get("levels_after"):
            pairs = zip(row["levels_before"], row["levels_after"], strict=True)
            cells = [
                {"text": f"{style.text(b)} → {style.text(a)}", "off": abs(finite(a) or 0.0) > BALANCED}
                for b, a in pairs
            ]
            rows.append({"feature": row["feature"], "cells": cells})
    return rows


def _propensities(numbers: Numbers) -> dict[str, Any]:
    edges, counts = numbers["propensities"]["edges"], numbers["propensities"]["counts"]
    across = fit_axis(edges, 5, snug=True)
    shares = [_shares(row) for row in counts]
    top = max((share for row in shares for share in row), default=0.0) or 1.0
    names = [row["name"] for row in numbers["overlap"]] or [level["name"] for level in numbers["levels"]]
    rows = []
    for level, (name, row, tally) in enumerate(zip(names, shares, counts, strict=False)):
        figure = draw_histogram_strip(across, edges, row, top, level)
        total = sum(finite(n) or 0 for n in tally)
        rows.append(Row(name, figure, f"{write_count(total)} rows"))
    if not any(finite(edge) is not None for edge in edges):
        rows = []
    return {"rows": rows, "ticks": draw_tick_strip(across, choose_style(across.ticks, across.step, digits=1))}


def _balance(features: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    across = fit_axis(
        [0.0, BALANCED * 1.5, *(row[key] for row in features for key in ("before", "after"))], 4, snug=True
    )
    style = Style(decimals=2)
    rows = []
    for row in features:
        words = f"{style.text(row['before'])} → {style.text(row['after'])}"
        figure = draw_balance_strip(across, row["before"], row["after"], BALANCED, f"{row['feature']}: {words}")
        rows.append(Row(row["feature"], figure, words, mark=_balance_words(row["after"])))
    return {"rows": rows, "ticks": draw_tick_strip(across, choose_style(across.ticks, across.step, digits=1))}


def _balance_words(after: Any) -> str:
    number = finite(after)
    return "" if number is None or number <= BALANCED else f"above {BALANCED:g}"


def method_section(numbers: Numbers) -> dict[str, Any]:
    """Return every choice that was made: its candidates, with losses written alike and drawn against the best."""
    tried = numbers["model"]["tried"]
    groups = {
        row.get("of", ""): [other for other in tried if other.get("of", "") == row.get("of", "")] for row in tried
    }
    found = [{"title": title or "model", "rows": _candidates(rows)} for title, rows in groups.items()]
    return {"groups": found, "ways": _ways(numbers), "way": numbers.get("estimator", "dr")}


def _candidates(tried: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    losses = choose_style([row["loss"] for row in tried], _smallest_step(tried), digits=1)
    rows = [{"estimate": row["difference"], **_one_error(row)} for row in tried]
    across = fit_axis([0.0, *(row[key] for row in rows for key in ("estimate", "low", "high"))], 3)
    return [
        {
            "name": row["name"],
            "loss": losses.text(row["loss"]),
            "difference": losses.text(row["difference"], signed=True),
            "se": losses.text(row["se"]),
            "strip": draw_gain_strip(
                across, drawn, f"{row['name']}: worse than the best by {losses.text(row['difference'])}"
            ),
            "chosen": row["chosen"],
        }
        for row, drawn in zip(tried, rows, strict=True)
    ]


def _one_error(row: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the ends of one standard error around a difference; none for the best, which is exact by definition."""
    middle, se = finite(row["difference"]), finite(row["se"])
    if middle is None or not se:
        return {"low": None, "high": None}
    return {"low": middle - se, "high": middle + se}


def _describe(estimator: str) -> str:
    """Return what an estimator does; nothing for one that this version does not know."""
    return ESTIMATORS[estimator].description if estimator in ESTIMATORS else ""


def _ways(numbers: Numbers) -> list[dict[str, str]]:
    """Return the plan's value by every estimator, in words and numbers."""
    units = Units(numbers["response"]["kind"], numbers["unit"])
    rows = []
    for row in numbers.get("ways") or []:
        style = units.response(parts(row), half_width(row))
        told = {"value": style.text(row["estimate"]), "interval": style.interval(row)}
        used = " (used above)" if row["name"] == numbers.get("estimator", "dr") else ""
        rows.append({"name": row["name"], "words": _describe(row["name"]) + used, **told})
    return rows


def legend(numbers: Numbers, units: Units) -> list[dict[str, str]]:
    """Return draw_swatch, name and cost of every level, cheapest first."""
    levels = enumerate(numbers["levels"])
    return [
        {"swatch": draw_swatch(k), "name": row["name"], "cost": _level_cost(numbers, units, k)} for k, row in levels
    ]


def _level_cost(numbers: Numbers, units: Units, level: int) -> str:
    """Say what a level costs; nothing when costs are each customer's own."""
    if level >= len(numbers["levels"]) or finite(numbers["levels"][level]["cost"]) is None:
        return ""
    style = units.money([row["cost"] for row in numbers["levels"]])
    return f"costs {style.text(numbers['levels'][level]['cost'])}"


def _smallest_step(tried: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the smallest standard error above zero: the difference in loss that should be visible."""
    steps = [number for number in (finite(row["se"]) for row in tried) if number]
    return min(steps, default=None)


def _rate(value: Any) -> str:
    """Write a number of any size with two digits that count."""
    number = finite(value)
    return choose_style([number], abs(number) if number else None).text(number)


def _shares(tally: Sequence[Any]) -> list[float]:
    numbers = [finite(n) or 0.0 for n in tally]
    total = sum(numbers)
    return [n / total if total else 0.0 for n in numbers]


def _total_style(total: Mapping[str, Any]) -> Style:
    style = choose_style(parts(total), half_width(total))
    return style if style.unit > 1 else Style(decimals=0)


def _times(value: Any, factor: Any) -> float | None:
    first, second = finite(value), finite(factor)
    return None if first is None or second is None else first * second


def _ends(estimate: Mapping[str, Any]) -> dict[str, Any]:
    return {"low": estimate.get("low"), "high": estimate.get("high")}


def _cut(name: str) -> str:
    """Shorten a name that stands in a figure, where it cannot wrap."""
    return name if len(name) <= 18 else name[:17] + "…"
