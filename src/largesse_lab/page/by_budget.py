"""What was measured at many budgets: a table for each simulation or set with a column for each budget, and one figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from largesse.report import DASH
from largesse_lab.page.compared import Compared, plain
from largesse_lab.page.markdown import row_of

MANY = 2  # budgets; more than these make one table
# The rows that are drawn: more are not told apart.
LINES = ("Stack", "SIRE", "CCPOvSIRE", "CCPOvIRE", "CFRNet", "GANITE", "BART", "BanditNet")


def families(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each measure that was taken at many budgets, from the smallest budget to the largest.

    >>> families(["rmse", "skill 2", "skill 0.5", "skill 1", "value 1"])
    {'skill': ['skill 0.5', 'skill 1', 'skill 2']}
    """
    found: dict[str, list[str]] = {}
    for column in columns:
        if _budget(column) is not None:
            found.setdefault(re.sub(r"[\d.]+$", "", plain(column)), []).append(column)
    return {
        name: sorted(mine, key=lambda column: _budget(column) or 0.0)
        for name, mine in found.items()
        if len(mine) > MANY
    }


def _budget(column: str) -> float | None:
    at = re.fullmatch(r"(?:reward|skill)([\d.]+)", plain(column))
    return float(at[1]) if at else None


def budget_tables(found: Compared, columns: Sequence[str]) -> list[str]:
    """Return mean ± sd as Markdown, for each simulation its name and a table: a row per method, what the paper printed last."""
    parts: list[str] = []
    printed = [column for column in columns if found.best_printed(column) is not None]
    head = ["method", *(f"m = {_budget(c):g}" for c in columns), *(f"paper, m = {_budget(c):g}" for c in printed)]
    for name in found.simulations:
        lines = [row_of(head), "|---|" + "---:|" * (len(head) - 1)]
        for row in found.rows:
            cells = [found.cells.get((name, row, column)) for column in columns]
            if any(cells):
                ours = [DASH if cell is None else _shown(cell.mean, cell.sd) for cell in cells]
                paper = [_shown(*pair) if (pair := found.printed(row, column)) else DASH for column in printed]
                lines.append(row_of([row, *ours, *paper]))
        parts += [f"**{name}**", "\n".join(lines)]
    return parts


def _shown(mean: float, sd: float | None) -> str:
    return (f"{mean:.3f}" + ("" if sd is None else f" ± {sd:.3f}")).replace("-", "−")


def budget_series(found: Compared, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return a line for each simulation and main row: the means at every budget."""
    series = []
    for name in found.simulations:
        for row in (row for row in LINES if row in found.rows):
            cells = [found.cells.get((name, row, column)) for column in columns]
            means = [None if cell is None else cell.mean for cell in cells]
            x = [_budget(column) for column in columns]
            series.append({"panel": name, "label": row, "x": x, "mean": means, "sd": [None] * len(x)})
    return series
