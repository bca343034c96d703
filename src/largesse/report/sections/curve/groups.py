"""The curves of groups of customers: one small chart for each group, all on one axis, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.panels import draw_panel
from largesse.report.charts.scales import fit_axis
from largesse.report.formats import Units, parts, write_count
from largesse.report.section import Part


def view_groups(feature: Mapping[str, Any], names: Sequence[str], units: Units) -> Part:
    """Return a chart and a row of numbers for each group of a feature."""
    points = [point for group in feature["groups"] for point in group["levels"]]
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
        for group in feature["groups"]
    ]
    return {"name": feature["feature"], "groups": groups, "few": any(point["few"] for point in points), "names": names}


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
