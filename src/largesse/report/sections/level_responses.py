"""Section on the mean response at each level, for all customers and for groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from largesse.records import MIN_LEVEL_ROWS
from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_level_mean_strip, draw_tick_strip
from largesse.report.charts.small_multiples import draw_group_panel
from largesse.report.comparison_rows import FigureRow, FigureRows, describe_level_cost
from largesse.report.number_format import (
    MISSING_DASH,
    Numbers,
    Units,
    View,
    finite_or_none,
    list_estimate_and_ends,
    write_count,
)


@dataclass(frozen=True)
class LevelMean:
    """Mean response at one level: weighted by 1 / propensity, as logged, and predicted by the model."""

    name: str
    detail: str
    value: Numbers
    raw: Numbers
    model: float | None = None
    few: bool = False  # whether too few rows of the log had the level


def view_level_responses(numbers: Numbers, units: Units) -> View:
    """Return the template values of mean responses by level, and of groups' response curves."""
    overlap = numbers["support"]["overlap"]
    levels = [
        LevelMean(
            row["name"],
            describe_level_cost(numbers, units, k),
            row["value"],
            row["raw"],
            row["model"],
            k < len(overlap) and _has_few_rows(overlap[k]),
        )
        for k, row in enumerate(numbers["curve"]["levels"])
    ]
    names = [level.name for level in levels]
    features = [
        view_group_curves(feature, names, units)
        for feature in numbers["curve"]["features"]
        if all(len(group["levels"]) == len(names) for group in feature["groups"])
    ]
    return {
        "figure": view_level_means(levels, units),
        "features": features,
        "min_rows": MIN_LEVEL_ROWS,
        "few": any(level.few for level in levels),
        "few_groups": any(feature["few"] for feature in features),
    }


def _has_few_rows(level: Numbers) -> bool:
    sizes = map(finite_or_none, (level["rows"], level["effective"]))
    return any(size is not None and size < MIN_LEVEL_ROWS for size in sizes)


def view_level_means(levels: Sequence[LevelMean], units: Units) -> FigureRows:
    """Return figure rows of the mean response at each level on a common axis."""
    means = [
        number
        for level in levels
        for number in (*list_estimate_and_ends(level.value), level.model, level.raw["estimate"])
    ]
    axis = fit_axis(means, 4, snug=True, bounds=units.response_bounds)
    rows = []
    for level in levels:
        style = units.value_style(level.value)
        value, interval = style.text(level.value["estimate"]), style.interval(level.value)
        model, raw = style.text(level.model), style.text(level.raw["estimate"])
        label = f"{level.name}: {value}, interval {interval}; {f'model {model}, ' if model != MISSING_DASH else ''}raw {raw}"
        label += "; too few rows to say" if level.few else ""
        figure = draw_level_mean_strip(axis, level.value, level.raw, level.model, label, few=level.few)
        rows.append(FigureRow(level.name, figure, value, detail=level.detail, sub=interval))
    return FigureRows(rows, draw_tick_strip(axis, units.response(axis.ticks, axis.step, digits=1, short=True)))


def view_group_curves(feature: Numbers, names: Sequence[str], units: Units) -> View:
    """Return a chart and a row of numbers for each group of customers by a feature."""
    groups = [
        {**group, "levels": [{**point, "few": _has_few_rows(point)} for point in group["levels"]]}
        for group in feature["groups"]
    ]
    points = [point for group in groups for point in group["levels"]]
    means = [number for point in points if not point["few"] for number in list_estimate_and_ends(point["value"])]
    axis = fit_axis([*means, *(point["model"] for point in points)], 4, bounds=units.response_bounds)
    style = units.response(axis.ticks, axis.step, digits=1, short=True)
    views = []
    for group in groups:
        cells = [_write_level_estimate(point, units) for point in group["levels"]]
        words = "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
        figure = draw_group_panel(axis, style, group["levels"], f"{group['label']}. {words}")
        views.append({"label": group["label"], "rows": write_count(group["rows"]), "figure": figure, "cells": cells})
    return {"name": feature["feature"], "groups": views, "few": any(point["few"] for point in points), "names": names}


def _write_level_estimate(point: Numbers, units: Units) -> str:
    """Write an estimated response with its interval, or the model's mean if few rows had the level."""
    if not point["few"]:
        return units.value_style(point["value"]).with_interval(point["value"])
    rows = "1 row" if point["rows"] == 1 else f"{write_count(point['rows'])} rows"
    return f"model {units.response([point['model']]).text(point['model'])}, {rows}"
