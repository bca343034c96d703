"""Rows that compare a plan with its alternatives, and the legend of the levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_gain_strip, draw_swatch, draw_tick_strip
from largesse.report.number_format import (
    THIN_SPACE,
    Numbers,
    NumberStyle,
    Units,
    add_interval_label,
    finite_or_none,
    is_zero_text,
    list_estimate_and_ends,
)

MAX_NONZERO_DECIMALS = 4


@dataclass(frozen=True)
class FigureRow:
    """One row of a figure: label, SVG strip, number and mark."""

    label: str
    figure: str
    number: str = ""
    detail: str = ""
    sub: str = ""
    mark: str = ""


@dataclass(frozen=True)
class FigureRows:
    """Rows of a figure and the ticks of their common axis."""

    rows: Sequence[FigureRow] = ()
    ticks: str = ""


def view_gain_rows(references: Sequence[Numbers], units: Units, gain_units: Units | None = None) -> FigureRows:
    """Return figure rows of the plan's gain over each alternative, on one axis symmetric around zero."""
    gain_units = gain_units or units
    ends = [finite_or_none(number) for row in references for number in list_estimate_and_ends(row["difference"])]
    reach = max((abs(end) for end in ends if end is not None), default=1.0)
    axis = fit_axis([reach, -reach], 4, snug=True)
    rows = []
    for row in references:
        gain = row["difference"]
        style = add_decimals_for_nonzero_ends(gain_units.gain_style(gain), gain)
        number, interval = style.text(gain["estimate"], signed=True), style.interval(gain, signed=True)
        figure = draw_gain_strip(axis, gain, f"Gain against {row['name']}: {number}, {add_interval_label(interval)}")
        words = view_value_and_spend(row, units)
        detail = "; ".join(filter(None, (words["detail"], f"value {words['value']}, spend {words['spend']}")))
        rows.append(FigureRow(row["name"], figure, number, detail, interval, _describe_gain_sign(gain)))
    ticks = gain_units.difference(axis.ticks, axis.step, digits=1, short=True)
    return FigureRows(rows, draw_tick_strip(axis, ticks, signed=True))


def view_value_and_spend(row: Numbers, units: Units) -> dict[str, str]:
    """Return the name, value and spend of a plan or an alternative as text."""
    value, spend = units.value_style(row["value"]), units.spend_style(row["spend"])
    return {
        "name": row["name"],
        "detail": row.get("detail", ""),
        "value": value.text(row["value"]["estimate"]),
        "interval": value.interval(row["value"]),
        "spend": spend.text(row["spend"]["estimate"]),
    }


def view_level_legend(numbers: Numbers, units: Units) -> list[dict[str, str]]:
    """Return the colour square, name and cost of every level, cheapest first."""
    return [
        {"swatch": draw_swatch(k), "name": row["name"], "cost": describe_level_cost(numbers, units, k)}
        for k, row in enumerate(numbers["levels"])
    ]


def describe_level_cost(numbers: Numbers, units: Units, level: int) -> str:
    """Describe the cost of a level as text.

    Empty if costs differ between customers, or if the name is the cost: "€5".
    """
    if level >= len(numbers["levels"]) or finite_or_none(numbers["levels"][level]["cost"]) is None:
        return ""
    name, cost = (numbers["levels"][level][key] for key in ("name", "cost"))
    whole = replace(units.money([cost]), decimals=0 if cost == int(cost) else 2)
    if name == whole.text(cost).replace(THIN_SPACE, " "):
        return ""
    return f"costs {units.money([row['cost'] for row in numbers['levels']]).text(cost)}"


def add_decimals_for_nonzero_ends(style: NumberStyle, difference: Numbers) -> NumberStyle:
    """Add decimals to a number style until no nonzero end of an interval is written as zero."""
    ends = [abs(end) for end in map(finite_or_none, (difference.get("low"), difference.get("high"))) if end]
    while style.decimals < MAX_NONZERO_DECIMALS and any(is_zero_text(style.bare(end)) for end in ends):
        style = replace(style, decimals=style.decimals + 1)
    return style


def _describe_gain_sign(difference: Numbers) -> str:
    low, high = finite_or_none(difference.get("low")), finite_or_none(difference.get("high"))
    if low is None or high is None:
        return "not known"
    if low > 0 or high < 0:
        return "clearly more" if low > 0 else "clearly less"
    return "could be no loss" if (finite_or_none(difference.get("estimate")) or 0.0) < 0 else "could be no gain"
