"""Records of many repeats → summaries of means and paired differences; summaries → tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.stats import mean_estimate
from largesse_lab.page.comparison import BASE, NORMALISED, Comparison
from largesse_lab.runner.repeats import KEY
from largesse_lab.runner.request import Records, simplify

DASH = "–"  # a missing number
Paper = Mapping[str, Mapping[str, tuple[float, float]]]  # row → column → mean, standard deviation
MANY = 2  # budgets; a measure at more budgets than these gets a table of its own
# The rows that are drawn against the budget; more lines could not be distinguished.
DRAWN_ROWS = ("Stack", "SIRE", "CCPOvSIRE", "CCPOvIRE", "CFRNet", "GANITE", "BART", "BanditNet")


# -- Markdown ----------------------------------------------------------------------------------------------------------


def write_row(cells: Iterable[str]) -> str:
    r"""Return a row of a Markdown table; a bar within a cell does not end it.

    >>> write_row(["a", "b|c"])
    '| a | b\\|c |'
    """
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a Markdown table; the first `words` columns are text, the others numbers.

    >>> print(write_table(["a", "b"], [["x", "1"]]))
    | a | b |
    |---|---:|
    | x | 1 |
    """
    rule = "|" + "---|" * words + "---:|" * (len(head) - words)
    return "\n".join([write_row(head), rule, *map(write_row, rows)])


def write_number(number: float, digits: int = 4) -> str:
    """Return a number with a proper minus.

    >>> write_number(-0.25, 2)
    '−0.25'
    """
    return f"{number:.{digits}f}".replace("-", "−")


def write_mean(mean: float | None, spread: float | None = None, digits: int = 4) -> str:
    """Return a mean ± a standard deviation or error; a dash where there is no mean.

    >>> write_mean(0.097, 0.0038), write_mean(-0.5), write_mean(None)
    ('0.0970 ± 0.0038', '−0.5000', '–')
    """
    if mean is None:
        return DASH
    return write_number(mean, digits) + ("" if spread is None else f" ± {write_number(spread, digits)}")


# -- records → summaries -----------------------------------------------------------------------------------------------


def list_values(records: Iterable[Mapping[str, Any]], field: str) -> list[Any]:
    """Return the values of a field, each once, in order."""
    return list(dict.fromkeys(record[field] for record in records if field in record))


def keep_latest(records: Sequence[dict[str, Any]], key: Sequence[str]) -> Records:
    """Return one record for each key: the latest.

    >>> keep_latest([{"a": 1, "x": 1}, {"a": 2, "x": 2}, {"a": 1, "x": 3}], ["a"])
    [{'a': 1, 'x': 3}, {'a': 2, 'x': 2}]
    """
    return list({tuple(record[word] for word in key): record for record in records}.values())


def average(records: Iterable[Mapping[str, Any]], column: str) -> dict[str, Any] | None:
    """Return mean, standard deviation and number of repeats of one column; None where it has no finite value."""
    values = [record[column] for record in records if record.get(column) is not None]
    found = np.array([value for value in values if np.isfinite(value)])
    if not len(found):
        return None
    sd = float(found.std(ddof=1)) if len(found) > 1 else None
    return {"mean": float(found.mean()), "sd": sd, "n": len(found)}


def subtract(mine: Records, base: Records, column: str, name: str = "difference") -> dict[str, Any] | None:
    """Return the mean difference from other records on the repeats that both have, with its 95 % interval."""
    theirs = {record["repeat"]: record.get(column) for record in base}
    pairs = [(record.get(column), theirs.get(record["repeat"])) for record in mine]
    each = np.array([a - b for a, b in pairs if a is not None and b is not None], dtype=np.float64)
    each = each[np.isfinite(each)]
    if len(each) < 2:
        return None
    found = mean_estimate(each)
    return {name: found.estimate, "low": found.low, "high": found.high, "n": len(each)}


def summarise_rows(records: Records, columns: Sequence[str], base: str) -> dict[str, Any]:
    """Return {simulation: {row: {"cells": {column: …}, "against": {column: difference from the base row}}}}."""
    found: dict[str, Any] = {}
    for name in list_values(records, "simulation"):
        mine = [record for record in records if record["simulation"] == name]
        own = {row: [record for record in mine if record["row"] == row] for row in list_values(mine, "row")}
        found[name] = {
            row: {
                "cells": {column: average(some, column) for column in columns},
                "against": {column: subtract(some, own.get(base, []), column) for column in columns if row != base},
            }
            for row, some in own.items()
        }
    return found


@dataclass(frozen=True)
class Layout:
    """A table of methods: rows in their order, columns with their headings, the base row, and the paper's numbers."""

    simulations: Sequence[str]
    rows: Mapping[str, Any]
    columns: Mapping[str, str]
    paper: Paper
    base: str = BASE

    def sort(self, records: Records) -> Records:
        """Return the latest record of each simulation, repeat and row, in the order of the table."""
        mine = [record for record in keep_latest(records, KEY) if record["row"] in self.rows]
        names, rows = list(self.simulations), list(self.rows)
        return sorted(mine, key=lambda r: (names.index(r["simulation"]), rows.index(r["row"]), r["repeat"]))

    def summarise(self, records: Records) -> dict[str, Any]:
        """Return means, standard deviations, and paired differences from the base row and of the rows to be ordered."""
        mine, columns = self.sort(records), list(self.columns)
        return {
            "base": self.base,
            "simulations": summarise_rows(mine, columns, self.base),
            "paper": {row: {column: list(pair) for column, pair in cells.items()} for row, cells in self.paper.items()},
            "small": sum(bool(record.get("small")) for record in mine),  # records of networks that had no GPU
        }

    def tabulate(self, summary: Mapping[str, Any], notes: Sequence[str]) -> str:
        """Return a summary as Markdown: one table for each simulation, with the paper's numbers, and the notes."""
        text: list[str] = []
        for name, rows in summary["simulations"].items():
            repeats = max((cell["n"] for row in rows.values() for cell in row["cells"].values() if cell), default=0)
            text += [f"### {name}, {repeats} repeats", "", self._tabulate_simulation(rows), ""]
        return "\n".join([*text, *(f"- {note}" for note in notes)]) + "\n"

    def _tabulate_simulation(self, found: Mapping[str, Any]) -> str:
        beside = [column for column in self.columns if any(column in theirs for theirs in self.paper.values())]
        head = ["", *self.columns.values(), *(f"{self.columns[column]}, paper" for column in beside)]
        rows = []
        for row, mine in found.items():
            cells = [mine["cells"][column] or {"mean": None, "sd": None} for column in self.columns]
            paper = [self.paper.get(row, {}).get(column, (None, None)) for column in beside]
            rows.append([row, *(write_mean(c["mean"], c["sd"]) for c in cells), *(write_mean(*pair) for pair in paper)])
        return write_table(head, rows)


# -- summaries → Markdown ----------------------------------------------------------------------------------------------


def tabulate_measure(found: Comparison, column: str) -> str:
    """Return mean ± sd of one column: a row per method, first the paper's number, then that of each simulation."""
    rows = [row for row in found.rows if any((name, row, column) in found.cells for name in found.simulations)]
    names = [name for name in found.simulations if any((name, row, column) in found.cells for row in rows)]
    beside = any(found.printed(row, column) for row in rows)
    digits = 1 if simplify(column) == "seconds" else 4
    most = max((cell.n for cell in found.cells.values()), default=0)
    body = []
    for row in rows:
        cells = [found.cells.get((name, row, column)) for name in names]
        fewest = min(cell.n for cell in cells if cell is not None)
        label = row if fewest == most else f"{row} ({fewest} repeats)"
        ours = [DASH if cell is None else write_mean(cell.mean, cell.sd, digits) for cell in cells]
        body.append([label, *([_write_printed(found, row, column, digits)] if beside else []), *ours])
    return write_table(["method", *(["paper"] if beside else []), *names], body)


def _write_printed(found: Comparison, row: str, column: str, digits: int) -> str:
    pair = found.printed(row, column)
    return DASH if pair is None else write_mean(pair[0], pair[1], digits)


def group_budgets(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each measure that was taken at more than two budgets, by rising budget.

    >>> group_budgets(["rmse", "skill 2", "skill 0.5", "skill 1", "value 1"])
    {'skill': ['skill 0.5', 'skill 1', 'skill 2']}
    """
    found: dict[str, list[str]] = {}
    for column in columns:
        if _read_budget(column) is not None:
            found.setdefault(re.sub(r"[\d.]+$", "", simplify(column)), []).append(column)
    return {
        name: sorted(mine, key=lambda column: _read_budget(column) or 0.0)
        for name, mine in found.items()
        if len(mine) > MANY
    }


def _read_budget(column: str) -> float | None:
    at = re.fullmatch(r"(?:reward|skill)([\d.]+)", simplify(column))
    return float(at[1]) if at else None


def tabulate_budgets(found: Comparison, columns: Sequence[str]) -> list[str]:
    """Return, for each simulation, its name and a table of mean ± sd: a row per method, a column per budget."""
    parts: list[str] = []
    printed = [column for column in columns if found.best_printed(column) is not None]
    head = ["method", *(f"m = {_read_budget(c):g}" for c in columns)]
    head += [f"paper, m = {_read_budget(c):g}" for c in printed]
    for name in found.simulations:
        body = []
        for row in found.rows:
            cells = [found.cells.get((name, row, column)) for column in columns]
            if any(cells):
                ours = [DASH if cell is None else write_mean(cell.mean, cell.sd, 3) for cell in cells]
                paper = [_write_printed(found, row, column, 3) for column in printed]
                body.append([row, *ours, *paper])
        parts += [f"**{name}**", write_table(head, body)]
    return parts


def draw_budgets(found: Comparison, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return a line for each simulation and main row: its means over the budgets."""
    series = []
    drawn = [next((name for name in (row, row + NORMALISED) if name in found.rows), None) for row in DRAWN_ROWS]
    for name in found.simulations:
        for row in filter(None, drawn):
            cells = [found.cells.get((name, row, column)) for column in columns]
            means = [None if cell is None else cell.mean for cell in cells]
            x = [_read_budget(column) for column in columns]
            series.append({"panel": name, "label": row, "x": x, "mean": means, "sd": [None] * len(x)})
    return series
