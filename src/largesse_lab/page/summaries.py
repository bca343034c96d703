"""Records of many repeats → means, standard deviations and paired differences; dict → Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from largesse.stats import mean_estimate

Records = Sequence[dict[str, Any]]
Paper = Mapping[str, Mapping[str, tuple[float, float]]]  # row → column → mean, standard deviation
DIGITS = 4


def names(records: Records, field: str) -> list[Any]:
    """Return what a field of the records holds, each once, in order."""
    return list(dict.fromkeys(record[field] for record in records if field in record))


def latest(records: Records, key: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records that differ in a key: of those that do not, the latest.

    >>> latest([{"a": 1, "x": 1}, {"a": 2, "x": 2}, {"a": 1, "x": 3}], ["a"])
    [{'a': 1, 'x': 3}, {'a': 2, 'x': 2}]
    """
    return list({tuple(record[word] for word in key): record for record in records}.values())


def cell(records: Records, column: str) -> dict[str, Any] | None:
    """Return mean, standard deviation over repeats and number of repeats of one column; None where there is nothing."""
    values = [record[column] for record in records if record.get(column) is not None]
    found = np.array([value for value in values if np.isfinite(value)])
    if not len(found):
        return None
    sd = float(found.std(ddof=1)) if len(found) > 1 else None
    return {"mean": float(found.mean()), "sd": sd, "n": len(found)}


def difference(mine: Records, base: Records, column: str) -> dict[str, Any] | None:
    """Return the mean difference from another row on the repeats both have, with its 95 % interval."""
    theirs = {record["repeat"]: record.get(column) for record in base}
    pairs = [(record.get(column), theirs.get(record["repeat"])) for record in mine]
    each = np.array([a - b for a, b in pairs if a is not None and b is not None])
    each = each[np.isfinite(each)]
    if len(each) < 2:
        return None
    found = mean_estimate(each)
    return {"difference": found.estimate, "low": found.low, "high": found.high, "n": len(each)}


def by_row(records: Records, columns: Sequence[str], base: str) -> dict[str, Any]:
    """Return {row: {"cells": {column: …}, "against": {column: …}}}; `against` the base row, on the same repeats."""
    own = {row: [record for record in records if record["row"] == row] for row in names(records, "row")}
    return {
        row: {
            "cells": {column: cell(mine, column) for column in columns},
            "against": {column: difference(mine, own.get(base, []), column) for column in columns if row != base},
        }
        for row, mine in own.items()
    }


def shown(mean: float | None, sd: float | None) -> str:
    """Return a mean ± a standard deviation as text.

    >>> shown(0.097, 0.0038), shown(0.5, None), shown(None, None)
    ('0.0970 ± 0.0038', '0.5000', '–')
    """
    if mean is None:
        return "–"
    return f"{mean:.{DIGITS}f}" + ("" if sd is None else f" ± {sd:.{DIGITS}f}")


def lines(found: Mapping[str, Any], columns: Mapping[str, str], paper: Paper) -> list[str]:
    """Return a Markdown table of what `by_row` found; `columns` give their headings, the paper's numbers stand beside."""
    beside = [column for column in columns if any(column in theirs for theirs in paper.values())]
    heads = [*columns.values(), *(f"{columns[column]}, paper" for column in beside)]
    text = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for row, mine in found.items():
        cells = [mine["cells"][column] or {"mean": None, "sd": None} for column in columns]
        told = [shown(one["mean"], one["sd"]) for one in cells]
        told += [shown(*paper.get(row, {}).get(column, (None, None))) for column in beside]
        text.append(f"| {row} | " + " | ".join(told) + " |")
    return text


def programme_told(found: Mapping[str, Any]) -> str:
    """Say how far the paper's dynamic programme is from our plans."""
    return (
        f"On the first 500 customers the paper's dynamic programme and our plans, made from the same curves, predict values "
        f"at most {found['most predicted lost']:.1e} apart ({found['n']:,} plans); true values differ by "
        f"{found['mean true difference']:+.1e} on average.".replace("-", "−")
    )
