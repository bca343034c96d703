"""Section with the checks of the log, its overlap and its balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_balance_strip, draw_histogram_strip, draw_tick_strip
from largesse.report.figure_rows import Row, Rows
from largesse.report.number_format import Style, Units, choose_style, finite, write_count, write_rate
from largesse.report.section import Numbers, Part, Section

BALANCED = 0.1  # standardised differences below this are usually taken as balanced
DIFFERENCE = Style(decimals=2)


def view_support(numbers: Numbers, _units: Units) -> Part:
    """Return the checks, the table of overlap, and the rows of the figures."""
    support = numbers["support"]
    return {
        "checks": support["checks"],
        "overlap": [_view_overlap(row) for row in support["overlap"]],
        "propensities": _view_propensities(support),
        "balance": _view_balance(support["balance"]),
        "by_level": _view_balance_of_levels(support["balance"]),
        "labels": [row["name"] for row in support["overlap"]],
        "sample": write_count(support["balance_sample"]) if support["balance_sample"] else "",
    }


def _view_overlap(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": row["name"],
        "rows": write_count(row["rows"]),
        "effective": write_count(row["effective"]),
        "smallest": write_rate(row["smallest"]),
        "answer": row["answer"],
    }


def _view_propensities(support: Mapping[str, Any]) -> Rows:
    edges, counts = support["propensities"]["edges"], support["propensities"]["counts"]
    if not any(finite(edge) is not None for edge in edges):
        return Rows()
    across = fit_axis(edges, 5, snug=True)
    shares = [_find_shares(row) for row in counts]
    top = max((share for row in shares for share in row), default=0.0) or 1.0
    rows = []
    for level, (row, share, tally) in enumerate(zip(support["overlap"], shares, counts, strict=False)):
        figure = draw_histogram_strip(across, edges, share, top, level)
        total = sum(finite(n) or 0 for n in tally)
        rows.append(Row(row["name"], figure, f"{write_count(total)} rows"))
    return Rows(rows, draw_tick_strip(across, choose_style(across.ticks, across.step, digits=1)))


def _find_shares(tally: Sequence[Any]) -> list[float]:
    numbers = [finite(n) or 0.0 for n in tally]
    total = sum(numbers)
    return [n / total if total else 0.0 for n in numbers]


def _view_balance(features: Sequence[Mapping[str, Any]]) -> Rows:
    ends = [row[key] for row in features for key in ("before", "after")]
    across = fit_axis([0.0, BALANCED * 1.5, *ends], 4, snug=True)
    rows = []
    for row in features:
        words = _write_change(row["before"], row["after"])
        figure = draw_balance_strip(across, row["before"], row["after"], BALANCED, f"{row['feature']}: {words}")
        mark = f"above {BALANCED:g}" if _is_off(row["after"]) else ""
        rows.append(Row(row["feature"], figure, words, mark=mark))
    return Rows(rows, draw_tick_strip(across, choose_style(across.ticks, across.step, digits=1)))


def _view_balance_of_levels(features: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each feature's differences at every level, before and after weighting; large ones are marked."""
    return [
        {
            "feature": row["feature"],
            "cells": [
                {"text": _write_change(before, after), "off": _is_off(after)}
                for before, after in zip(row["levels_before"], row["levels_after"], strict=True)
            ],
        }
        for row in features
    ]


def _write_change(before: Any, after: Any) -> str:
    return f"{DIFFERENCE.text(before)} → {DIFFERENCE.text(after)}"


def _is_off(after: Any) -> bool:
    return abs(finite(after) or 0.0) > BALANCED


SECTION = Section("log_checks", view_support, "Can the log answer this?")
