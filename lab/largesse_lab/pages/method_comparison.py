"""Comparison of methods: means, paired differences, tables and figures of experiment records.

A summary holds ``simulations`` {simulation: {method: {"cells": {column: {mean, sd, n}}, "against": {column: {difference, low,
high}}}}}, ``base`` (the method that differences are from, paired repeat by repeat) and ``paper`` {method: {column: [mean, sd]}}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from largesse.stats import t_estimate
from largesse_lab.pages.figures import FigureText, draw_intervals, draw_lines
from largesse_lab.pages.markdown import NUMBER_DASH, Section, format_mean, format_table
from largesse_lab.runner.experiment_request import Records

Summary = Mapping[str, Any]
NORMALISED = ", normalised"  # ends the name of a method that differs from another by its normalised penalty alone
MAX_BUDGET_COLUMNS = 2  # a measure at more budgets than these gets a table of its own
MEASURES = {  # the measures that are shown, in this order; records hold further ones
    "rmse": "RMSE",
    "√pehe": "√PEHE",
    "error": "RMSE (two levels: √PEHE)",
    "value": "Reward",
    "skill": "Skill",
    "increments": "Increments",
    "spend": "Spend",
    "seconds": "Seconds",
}
DRAWN_MEASURES = ("rmse", "√pehe", "value", "skill")
HIGHER_IS_BETTER = ("value", "skill")
# The methods that are drawn against the budget; more lines could not be distinguished.
DRAWN_METHODS = ("Stack", "SIRE", "CCPOvSIRE", "CCPOvIRE", "CFRNet", "GANITE", "BART", "BanditNet")


def make_column_title(column: str) -> str:
    """Return the display title of a measure's column.

    >>> make_column_title("rmse"), make_column_title("value 1.5")
    ('RMSE', 'Reward at a budget of 1.5')
    """
    measure, _, budget = column.partition(" ")
    return MEASURES[measure] + (f" at a budget of {budget}" if budget else "")


def is_higher_better(column: str) -> bool:
    """Return True if a larger value of a measure is better."""
    return column.startswith(HIGHER_IS_BETTER)


# -- records → summaries -----------------------------------------------------------------------------------------------


def list_distinct_values(records: Iterable[Mapping[str, Any]], field: str) -> list[Any]:
    """Return the distinct values of a field of records, in order of appearance."""
    return list(dict.fromkeys(record[field] for record in records if field in record))


def keep_latest_records(records: Sequence[dict[str, Any]], key: Sequence[str]) -> Records:
    """Return the latest record for each key.

    >>> keep_latest_records([{"a": 1, "x": 1}, {"a": 2, "x": 2}, {"a": 1, "x": 3}], ["a"])
    [{'a': 1, 'x': 3}, {'a': 2, 'x': 2}]
    """
    return list({tuple(record[field] for field in key): record for record in records}.values())


def average_column(records: Iterable[Mapping[str, Any]], column: str) -> dict[str, Any] | None:
    """Return the mean, deviation and count of a column of records; None without finite values."""
    values = np.array([record[column] for record in records if record.get(column) is not None], dtype=np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    sd = float(values.std(ddof=1)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "sd": sd, "n": len(values)}


def compare_paired_means(records: Records, base: Records, column: str) -> dict[str, Any] | None:
    """Return the mean paired difference of two methods' records over shared repeats, with its 95 % interval."""
    base_values = {record["repeat"]: record.get(column) for record in base}
    pairs = [(record.get(column), base_values.get(record["repeat"])) for record in records]
    differences = np.array([a - b for a, b in pairs if a is not None and b is not None], dtype=np.float64)
    differences = differences[np.isfinite(differences)]
    if len(differences) < 2:
        return None
    mean = t_estimate(differences)
    return {"difference": mean.estimate, "low": mean.low, "high": mean.high, "n": len(differences)}


def summarise_methods(records: Records, columns: Sequence[str], base: str) -> dict[str, Any]:
    """Return the means of all methods by simulation, and their differences from the base method."""
    simulations: dict[str, Any] = {}
    for name in list_distinct_values(records, "simulation"):
        in_simulation = [record for record in records if record["simulation"] == name]
        by_method = {
            method: [record for record in in_simulation if record["row"] == method]
            for method in list_distinct_values(in_simulation, "row")
        }
        simulations[name] = {
            method: {
                "cells": {column: average_column(rows, column) for column in columns},
                "against": {column: compare_paired_means(rows, by_method.get(base, []), column) for column in columns}
                if method != base
                else {},
            }
            for method, rows in by_method.items()
        }
    return simulations


# -- summaries → sections ----------------------------------------------------------------------------------------------


def add_method_comparison(section: Section, summary: Summary) -> None:
    """Add tables and figures that compare methods to a result section."""
    columns = _list_columns(summary)
    by_budget = group_columns_by_measure(columns)
    for measure in MEASURES:
        if measure in by_budget:
            _add_budget_tables(section, summary, measure, by_budget[measure])
            continue
        for column in (column for column in columns if column.split(" ")[0] == measure):
            section.add(f"## {make_column_title(column)}", tabulate_measure(summary, column))
            if measure in DRAWN_MEASURES:
                _add_difference_figure(section, summary, column)


def _find_mean(summary: Summary, simulation: str, method: str, column: str) -> Mapping[str, Any] | None:
    cell: Mapping[str, Any] | None = summary["simulations"][simulation].get(method, {}).get("cells", {}).get(column)
    return cell


def _list_methods(summary: Summary) -> list[str]:
    return list(dict.fromkeys(method for methods in summary["simulations"].values() for method in methods))


def _list_columns(summary: Summary) -> list[str]:
    """Return the columns that have a value for at least one method."""
    rows = [row for methods in summary["simulations"].values() for row in methods.values()]
    return list(dict.fromkeys(column for row in rows for column, cell in row["cells"].items() if cell is not None))


def tabulate_measure(summary: Summary, column: str) -> str:
    """Return a Markdown table of one measure's mean ± deviation: one row per method, the paper's number first."""
    table = {
        method: [_find_mean(summary, name, method, column) for name in summary["simulations"]]
        for method in _list_methods(summary)
    }
    table = {method: cells for method, cells in table.items() if any(cells)}
    columns = [i for i in range(len(summary["simulations"])) if any(cells[i] for cells in table.values())]
    with_paper = any(column in summary.get("paper", {}).get(method, {}) for method in table)
    digits = 1 if column == "seconds" else 4
    max_repeats = max(
        cell["n"]
        for methods in summary["simulations"].values()
        for row in methods.values()
        for cell in row["cells"].values()
        if cell
    )
    body = []
    for method, cells in table.items():
        repeats = min(cell["n"] for cell in cells if cell)
        label = method if repeats == max_repeats else f"{method} ({repeats} repeats)"
        means = [_write_mean(cells[i], digits) for i in columns]
        body.append([label, *([_write_published(summary, method, column, digits)] if with_paper else []), *means])
    names = list(summary["simulations"])
    return format_table(["method", *(["paper"] if with_paper else []), *(names[i] for i in columns)], body)


def _write_mean(cell: Mapping[str, Any] | None, digits: int) -> str:
    return NUMBER_DASH if cell is None else format_mean(cell["mean"], cell["sd"], digits)


def _write_published(summary: Summary, method: str, column: str, digits: int) -> str:
    mean, sd = summary.get("paper", {}).get(method, {}).get(column, (None, None))
    return format_mean(mean, sd, digits)


def group_columns_by_measure(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the reward and skill columns in groups of one measure, by increasing budget.

    >>> group_columns_by_measure(["rmse", "skill 2", "skill 0.5", "skill 1", "value 1"])
    {'skill': ['skill 0.5', 'skill 1', 'skill 2']}
    """
    groups = {
        measure: sorted((c for c in columns if c.startswith(f"{measure} ")), key=_read_budget)
        for measure in HIGHER_IS_BETTER
    }
    return {measure: group for measure, group in groups.items() if len(group) > MAX_BUDGET_COLUMNS}


def _read_budget(column: str) -> float:
    return float(column.split(" ")[1])


def _add_budget_tables(section: Section, summary: Summary, measure: str, columns: Sequence[str]) -> None:
    title = f"{MEASURES[measure]}, by budget"
    section.add(f"## {title}", *tabulate_methods_by_budget(summary, columns))
    if series := list_measure_lines_by_budget(summary, columns):
        note = "Means over repeats; standard deviations are in the tables."
        text = FigureText(title, "budget m: mean cost per customer", MEASURES[measure].lower(), note)
        section.add_figure(partial(draw_lines, series, text, log_x=True, share_y=True), title, measure)


def tabulate_methods_by_budget(summary: Summary, columns: Sequence[str]) -> list[str]:
    """Return one Markdown table per simulation with methods as rows and budgets as columns."""
    published = [c for c in columns if any(c in cells for cells in summary.get("paper", {}).values())]
    head = ["method", *(f"m = {_read_budget(c):g}" for c in columns)]
    head += [f"paper, m = {_read_budget(c):g}" for c in published]
    paragraphs: list[str] = []
    for name in summary["simulations"]:
        body = []
        for method in _list_methods(summary):
            cells = [_find_mean(summary, name, method, column) for column in columns]
            if any(cells):
                paper = [_write_published(summary, method, column, 3) for column in published]
                body.append([method, *(_write_mean(cell, 3) for cell in cells), *paper])
        paragraphs += [f"**{name}**", format_table(head, body)]
    return paragraphs


def list_measure_lines_by_budget(summary: Summary, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the figure's lines of a measure over budgets, one per simulation and main method.

    A method with the normalised penalty is drawn in place of one that was not measured.
    """
    methods = _list_methods(summary)
    labels = [next((m for m in (method, method + NORMALISED) if m in methods), None) for method in DRAWN_METHODS]
    budgets = [_read_budget(column) for column in columns]
    series = []
    for name in summary["simulations"]:
        for label in filter(None, labels):
            cells = [_find_mean(summary, name, label, column) for column in columns]
            means = [None if cell is None else cell["mean"] for cell in cells]
            series.append({"panel": name, "label": label, "x": budgets, "mean": means})
    return series


def _add_difference_figure(section: Section, summary: Summary, column: str) -> None:
    base = summary["base"]
    rows = [
        {"panel": simulation, "label": method, "estimate": gap["difference"], "low": gap["low"], "high": gap["high"]}
        for simulation, methods in summary["simulations"].items()
        for method, row in methods.items()
        # The oracle has no error; drawing that would squeeze all other rows.
        if (gap := row.get("against", {}).get(column)) and (method != "oracle" or is_higher_better(column))
    ]
    if not rows:
        return
    name, worse = make_column_title(column), "left" if is_higher_better(column) else "right"
    text = FigureText(
        f"{name}: difference from {base}",
        f"{name} minus that of {base}",
        note=f"On the same logs, with 95 % intervals; {worse} of the dashed line is worse. Filled dots: the interval excludes 0.",
    )
    section.add_figure(partial(draw_intervals, rows, text), text.title, column)
    drawn = {row["label"] for row in rows} | {base, "oracle"}
    unpaired = [
        method
        for method in _list_methods(summary)
        if method not in drawn and any(_find_mean(summary, name, method, column) for name in summary["simulations"])
    ]
    if unpaired:
        section.add(f"Not drawn because they share no repeats with {base}: {'; '.join(unpaired)}.")
