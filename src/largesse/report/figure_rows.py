"""Rows of a figure, and what several sections show: comparisons with a plan, and the legend of the levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_gain_strip, draw_swatch, draw_tick_strip
from largesse.report.number_format import THIN, Style, Units, finite, label_interval, parts
from largesse.report.section import Numbers

MOST = 4  # decimals that tell a small number from zero


@dataclass(frozen=True)
class Row:
    """One row of a figure: label with detail, SVG strip, number with sub-label and mark."""

    label: str
    figure: str
    number: str = ""
    detail: str = ""
    sub: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Rows:
    """The rows of a figure, and the strip with the ticks of the axis they share."""

    rows: Sequence[Row] = ()
    ticks: str = ""


def view_gains(references: Sequence[Mapping[str, Any]], units: Units, gained: Units | None = None) -> Rows:
    """Return one row per comparison, all on one axis that is symmetric around zero; differences may have their own units."""
    gained = gained or units
    ends = [finite(number) for row in references for number in parts(row["difference"])]
    reach = max((abs(end) for end in ends if end is not None), default=1.0)
    across = fit_axis([reach, -reach], 4, snug=True)
    rows = []
    for row in references:
        style = tell_from_zero(gained.gain_style(row["difference"]), row["difference"])
        big = style.text(row["difference"]["estimate"], signed=True)
        between = style.interval(row["difference"], signed=True)
        figure = draw_gain_strip(
            across, row["difference"], f"Gain against {row['name']}: {big}, {label_interval(between)}"
        )
        words = {"detail": _describe_reference(row, units), "sub": between, "mark": _judge_sign(row["difference"])}
        rows.append(Row(row["name"], figure, big, **words))
    ticks = gained.difference(across.ticks, across.step, digits=1, short=True)
    return Rows(rows, draw_tick_strip(across, ticks, signed=True))


def view_legend(numbers: Numbers, units: Units) -> list[dict[str, str]]:
    """Return swatch, name and cost of every level, cheapest first."""
    return [
        {"swatch": draw_swatch(k), "name": row["name"], "cost": describe_cost(numbers, units, k)}
        for k, row in enumerate(numbers["levels"])
    ]


def describe_cost(numbers: Numbers, units: Units, level: int) -> str:
    """Say what a level costs; nothing when costs are each customer's own, or when its name says it: "€5"."""
    if level >= len(numbers["levels"]) or finite(numbers["levels"][level]["cost"]) is None:
        return ""
    own = numbers["levels"][level]
    whole = replace(units.money([own["cost"]]), decimals=0 if own["cost"] == int(own["cost"]) else 2)
    if own["name"] == whole.text(own["cost"]).replace(THIN, " "):
        return ""
    style = units.money([row["cost"] for row in numbers["levels"]])
    return f"costs {style.text(own['cost'])}"


def _describe_reference(row: Mapping[str, Any], units: Units) -> str:
    value = units.value_style(row["value"]).text(row["value"]["estimate"])
    spend = units.spend_style(row["spend"]).text(row["spend"]["estimate"])
    numbers = f"value {value}, spend {spend}"
    return f"{row['detail']}; {numbers}" if row.get("detail") else numbers


def tell_from_zero(style: Style, difference: Mapping[str, Any]) -> Style:
    """Return a style with enough digits that an end of an interval close to zero is not written as zero."""
    ends = [abs(end) for end in map(finite, (difference.get("low"), difference.get("high"))) if end]
    while any(not any(c in "123456789" for c in style.bare(end)) for end in ends) and style.decimals < MOST:
        style = replace(style, decimals=style.decimals + 1)
    return style


def _judge_sign(difference: Mapping[str, Any]) -> str:
    """Say in words what an interval says about the sign."""
    low, high = finite(difference.get("low")), finite(difference.get("high"))
    if low is None or high is None:
        return "not known"
    if low > 0 or high < 0:
        return "clearly more" if low > 0 else "clearly less"
    return "could be no loss" if (finite(difference.get("estimate")) or 0.0) < 0 else "could be no gain"
