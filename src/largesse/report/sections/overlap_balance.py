"""Section on the log's validity: checks, overlap and balance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_balance_strip, draw_histogram_strip, draw_tick_strip
from largesse.report.comparison_rows import FigureRow, FigureRows
from largesse.report.number_format import (
    Numbers,
    NumberStyle,
    Units,
    View,
    choose_style,
    finite_or_none,
    write_count,
    write_two_digits,
)

MAX_BALANCED = 0.1  # larger standardised differences are usually called imbalance
DIFFERENCE_STYLE = NumberStyle(decimals=2)


def view_overlap_and_balance(numbers: Numbers, _units: Units) -> View:
    """Return the template values of the log's checks, overlap and balance."""
    support = numbers["support"]
    return {
        "checks": support["checks"],
        "overlap": [
            {
                "name": row["name"],
                "rows": write_count(row["rows"]),
                "effective": write_count(row["effective"]),
                "smallest": write_two_digits(row["smallest"]),
                "answer": row["answer"],
            }
            for row in support["overlap"]
        ],
        "propensities": _view_propensities(support),
        "balance": _view_balance(support["balance"]),
        "by_level": _view_balance_by_level(support["balance"]),
        "labels": [row["name"] for row in support["overlap"]],
        "sample": write_count(support["balance_sample"]) if support["balance_sample"] else "",
    }


def _view_propensities(support: Numbers) -> FigureRows:
    edges, known = support["propensities"]["edges"], []
    if not any(finite_or_none(edge) is not None for edge in edges):
        return FigureRows()
    for row, counts in zip(support["overlap"], support["propensities"]["counts"], strict=False):
        numbers = [finite_or_none(n) or 0.0 for n in counts]
        total = sum(numbers)
        known.append((row["name"], total, [n / total if total else 0.0 for n in numbers]))
    axis = fit_axis(edges, 5, snug=True)
    top = max((share for _, _, shares in known for share in shares), default=0.0) or 1.0
    rows = [
        FigureRow(name, draw_histogram_strip(axis, edges, shares, top, level), f"{write_count(total)} rows")
        for level, (name, total, shares) in enumerate(known)
    ]
    return FigureRows(rows, draw_tick_strip(axis, choose_style(axis.ticks, axis.step, digits=1)))


def _view_balance(features: Sequence[Numbers]) -> FigureRows:
    ends = [row[key] for row in features for key in ("before", "after")]
    axis = fit_axis([0.0, MAX_BALANCED * 1.5, *ends], 4, snug=True)
    rows = []
    for row in features:
        words = _write_balance_change(row["before"], row["after"])
        figure = draw_balance_strip(axis, row["before"], row["after"], MAX_BALANCED, f"{row['feature']}: {words}")
        mark = f"above {MAX_BALANCED:g}" if _is_imbalanced(row["after"]) else ""
        rows.append(FigureRow(row["feature"], figure, words, mark=mark))
    return FigureRows(rows, draw_tick_strip(axis, choose_style(axis.ticks, axis.step, digits=1)))


def _view_balance_by_level(features: Sequence[Numbers]) -> list[View]:
    """Return table rows of each feature's imbalance by level, before and after weighting."""
    return [
        {
            "feature": row["feature"],
            "cells": [
                {"text": _write_balance_change(before, after), "off": _is_imbalanced(after)}
                for before, after in zip(row["levels_before"], row["levels_after"], strict=True)
            ],
        }
        for row in features
    ]


def _write_balance_change(before: Any, after: Any) -> str:
    return f"{DIFFERENCE_STYLE.text(before)} → {DIFFERENCE_STYLE.text(after)}"


def _is_imbalanced(after: Any) -> bool:
    return abs(finite_or_none(after) or 0.0) > MAX_BALANCED
