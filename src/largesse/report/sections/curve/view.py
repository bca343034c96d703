"""One row per level: the estimated mean response with its interval, the model's mean and the raw one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from largesse.report.charts.scales import fit_axis
from largesse.report.charts.strips import draw_curve_strip, draw_tick_strip
from largesse.report.formats import DASH, Units, parts
from largesse.report.rows import Row, Rows, describe_cost
from largesse.report.section import Numbers, Part, Section
from largesse.report.sections.curve.numbers import describe_curve


@dataclass(frozen=True)
class Level:
    """The mean response at one level: estimated, as logged and as the model has it."""

    name: str
    detail: str
    value: Mapping[str, Any]
    raw: Mapping[str, Any]
    model: float | None = None


def view_curve(numbers: Numbers, units: Units) -> Part:
    """Return the rows of the figure."""
    both = zip(numbers["uniform"], numbers["curve"]["levels"], strict=True)
    levels = [
        Level(every["name"], describe_cost(numbers, units, k), every["value"], row["raw"], row["model"])
        for k, (every, row) in enumerate(both)
    ]
    return {"figure": view_levels(levels, units)}


def view_levels(levels: Sequence[Level], units: Units) -> Rows:
    """Return one row per level, all on one axis."""
    numbers = [number for level in levels for number in (*parts(level.value), level.model, level.raw["estimate"])]
    across = fit_axis(numbers, 4, snug=True)
    rows = []
    for level in levels:
        style = units.value_style(level.value)
        value, between = style.text(level.value["estimate"]), style.interval(level.value)
        model, raw = style.text(level.model), style.text(level.raw["estimate"])
        label = f"{level.name}: {value}, interval {between}; {f'model {model}, ' if model != DASH else ''}raw {raw}"
        figure = draw_curve_strip(across, level.value, level.raw, level.model, label)
        rows.append(Row(level.name, figure, value, detail=level.detail, sub=between))
    return Rows(rows, draw_tick_strip(across, units.response(across.ticks, across.step, digits=1, short=True)))


SECTION = Section("curve", view_curve, "What each level brings", study=describe_curve)
