"""Section with the mean response at each level, of all customers and of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from largesse.records import FEW_ROWS
from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_curve_strip, draw_tick_strip
from largesse.report.charts.small_multiples import draw_panel
from largesse.report.figure_rows import Row, Rows, describe_cost
from largesse.report.number_format import DASH, Units, finite, parts, write_count
from largesse.report.section import Numbers, Part, Section


def view_groups(feature: Mapping[str, Any], names: Sequence[str], units: Units) -> Part:
    """Return a chart and a row of numbers for each group of a feature."""
    known = [
        {**group, "levels": [{**point, "few": _has_few_rows(point)} for point in group["levels"]]}
        for group in feature["groups"]
    ]
    points = [point for group in known for point in group["levels"]]
    shown = [number for point in points if not point["few"] for number in parts(point["value"])]
    axis = fit_axis([*shown, *(point["model"] for point in points)], 4)
    style = units.response(axis.ticks, axis.step, digits=1, short=True)
    groups = [
        {
            "label": group["label"],
            "rows": write_count(group["rows"]),
            "figure": draw_panel(axis, style, group["levels"], _describe_group(group, names, units)),
            "cells": [_write_point(point, units) for point in group["levels"]],
        }
        for group in known
    ]
    return {
        "name": feature["feature"],
        "groups": groups,
        "few": any(point["few"] for point in points),
        "names": names,
    }


def _has_few_rows(point: Mapping[str, Any]) -> bool:
    """Whether too few rows of a group had a level, or are worth too few after weighting."""
    return any(size is not None and size < FEW_ROWS for size in (point["rows"], finite(point["effective"])))


def _describe_group(group: Mapping[str, Any], names: Sequence[str], units: Units) -> str:
    """Say what a chart shows, for those who cannot see it."""
    words = (f"{name}: {_write_point(point, units)}" for name, point in zip(names, group["levels"], strict=True))
    return f"{group['label']}. {'; '.join(words)}"


def _write_point(point: Mapping[str, Any], units: Units) -> str:
    """Write an estimate with its interval; where too few rows had the level, what the model says, and how many they are."""
    if not point["few"]:
        return units.value_style(point["value"]).both(point["value"])
    rows = "1 row" if point["rows"] == 1 else f"{write_count(point['rows'])} rows"
    return f"model {units.response([point['model']]).text(point['model'])}, {rows}"


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
        for feature in numbers["curve"]["features"]
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


SECTION = Section("level_responses", view_curve, "What each level brings")
