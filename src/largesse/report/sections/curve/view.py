"""One row per level: the estimated mean response with its interval, the model's mean and the raw one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from largesse.records import FEW_ROWS
from largesse.report.charts.scales import fit_axis
from largesse.report.charts.strips import draw_curve_strip, draw_tick_strip
from largesse.report.formats import DASH, Units, finite, parts
from largesse.report.rows import Row, Rows, describe_cost
from largesse.report.section import Numbers, Part, Section
from largesse.report.sections.curve.groups import view_groups
from largesse.report.sections.curve.numbers import describe_curve


@dataclass(frozen=True)
class Level:
    """The mean response at one level: estimated, as logged and as the model has it."""

    name: str
    detail: str
    value: Mapping[str, Any]
    raw: Mapping[str, Any]
    model: float | None = None
    few: bool = False  # whether too few rows of the log had it


def view_curve(numbers: Numbers, units: Units) -> Part:
    """Return the rows of the figure, and the curves of groups."""
    both = zip(numbers["uniform"], numbers["curve"]["levels"], strict=True)
    levels = [
        Level(
            every["name"],
            describe_cost(numbers, units, k),
            every["value"],
            row["raw"],
            row["model"],
            _is_few(numbers, k),
        )
        for k, (every, row) in enumerate(both)
    ]
    names = [level.name for level in levels]
    features = [
        view_groups(feature, names, units)
        for feature in numbers["curve"].get("features", [])
        if all(len(group["levels"]) == len(names) for group in feature["groups"])
    ]
    few = {"few": any(level.few for level in levels), "few_groups": any(feature["few"] for feature in features)}
    return {"figure": view_levels(levels, units), "features": features, "least": FEW_ROWS, **few}


def _is_few(numbers: Numbers, level: int) -> bool:
    """Whether too few rows of the log had a level, or are worth too few after weighting."""
    known = numbers["support"]["overlap"]
    sizes = (known[level]["rows"], known[level]["effective"]) if level < len(known) else ()
    return any(size is not None and size < FEW_ROWS for size in map(finite, sizes))


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
        label += "; too few rows to say" if level.few else ""
        figure = draw_curve_strip(across, level.value, level.raw, level.model, label, few=level.few)
        rows.append(Row(level.name, figure, value, detail=level.detail, sub=between))
    return Rows(rows, draw_tick_strip(across, units.response(across.ticks, across.step, digits=1, short=True)))


SECTION = Section("curve", view_curve, "What each level brings", study=describe_curve)
