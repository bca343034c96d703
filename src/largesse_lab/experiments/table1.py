"""The paper's Table 1, with our own models, the simple ones and the truth beside it, on five simulations.

Each model learns from 2,000 rows (what it holds out is of these: the paper's 60 % + 20 % of 2,500) and is judged on 10,000
fresh customers. The binary problem is drawn anew with the first two levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from largesse_lab.bench import rows as books
from largesse_lab.bench.repeats import Row, Tell, repeated
from largesse_lab.page import summaries
from largesse_lab.page.layout import Layout

WORLDS = ("literal", "averaged", "unit", "instrument", "confounded")
COLUMNS = {
    "√pehe": "√PEHE",
    "rmse": "RMSE",
    "value 3": "reward, m = 3",
    "skill 1.5": "skill, m = 1.5",
    "skill 3": "skill, m = 3",
}
PUBLISHED: summaries.Paper = {  # mean, standard deviation; the paper has no skill
    "CCPOvSIRE": {"rmse": (0.0970, 0.0038), "value 3": (0.6082, 0.0013)},
    "CCPOvSIRE†": {"rmse": (0.1115, 0.0135), "value 3": (0.6069, 0.0020)},
    "CCPOvIRE": {"√pehe": (0.0385, 0.0011), "rmse": (0.1059, 0.0165), "value 3": (0.6074, 0.0011)},
    "CCPOvIRE†": {"√pehe": (0.0404, 0.0011), "rmse": (0.1238, 0.0132), "value 3": (0.6061, 0.0009)},
    "GANITE": {"√pehe": (0.1077, 0.0086), "rmse": (0.2263, 0.0394), "value 3": (0.5964, 0.0054)},
    "BART": {"√pehe": (0.0674, 0.0026), "rmse": (0.2057, 0.0027), "value 3": (0.6002, 0.0001)},
    "CFRNet": {"√pehe": (0.0447, 0.0004), "rmse": (0.1069, 0.0060), "value 3": (0.5958, 0.0010)},
    "BanditNet": {"value 3": (0.5899, 0.0076)},
}
NOTES = (
    "Mean ± standard deviation over repeats; each repeat is another world, log and start of the networks.",
    *books.NOTES,
    "√PEHE is of the binary problem.",
)
ROWS: dict[str, Row] = books.rows_of(books.LITERAL)
LAYOUT = Layout(WORLDS, ROWS, COLUMNS, PUBLISHED)


def table1(
    simulations: Sequence[str] = WORLDS,
    rows: Sequence[str] = tuple(ROWS),
    *,
    repeats: int = 100,
    part: tuple[int, int] = (0, 1),
    chunk: int = 100,
    out: str | Path | None = None,
    tell: Tell = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per simulation, repeat and row.

    `rows` are names of rows or of groups of them: "networks" (JAX alone; for a GPU), "trees" (BART, boosting and what
    contains them), "simple". `part` (i, n) takes every n-th repeat; `chunk` logs are fitted together. Files of several runs
    are joined by putting one below the other.
    """
    names = books.named(ROWS, rows)
    return repeated(ROWS, simulations, names, repeats=repeats, part=part, chunk=chunk, out=out, tell=tell)


def summary(records: summaries.Records) -> dict[str, Any]:
    """Return means, deviations, paired differences, and how far the dynamic programme is from our plans."""
    programme = _agreement(LAYOUT.in_order(records))
    found = LAYOUT.summary(records)
    return {**found, "programme": programme, "notes": [*NOTES, *books.small_note(found)]}


def _agreement(records: summaries.Records) -> dict[str, Any] | None:
    """Return how far the paper's dynamic programme is from our plan: predicted value lost at most, true value on average."""
    both = [r for r in records if "few programme predicted" in r]
    if not both:
        return None
    lost = np.array([r["few programme predicted"] - r["few ours predicted"] for r in both])
    true = np.array([r["few programme value"] - r["few ours value"] for r in both])
    return {"n": len(both), "most predicted lost": float(lost.max()), "mean true difference": float(true.mean())}


def table(records: summaries.Records) -> str:
    """Return the table as Markdown, one per simulation, the paper's own numbers beside."""
    found = summary(records)
    programme = found["programme"]
    return LAYOUT.table(found) + (f"- {summaries.programme_told(programme)}\n" if programme else "")
