"""What monotonicity is worth as levels grow in number: the paper's Proposition 3, measured.

Every level has n rows with noise σ, so the free least squares estimate is the K level means, off by s = σ/√n each, and the
monotone one is their projection onto curves that never fall. The mean squared error over levels, divided by s², depends on
the truth only through its gaps in units of s: that is all that is drawn here, and n and σ need no values.

The proposition promises the monotone estimate log(K)/K for every non-falling truth, and the free one 1. For k constant
pieces that lie far apart the error is the sum over pieces of the harmonic number of their length, over K: about
k log(eK/k)/K, so the promise is right, up to k. A truth that rises at every level has K pieces: with gaps far above s
nothing is pooled and the error is 1 whatever K is. With gaps below s pooling pays, by a share that does not depend on K; if
the whole rise is fixed, gaps shrink as levels grow in number and the error falls as K^(−2/3), slower than promised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from largesse.errors import Problem, nearest, refuse
from largesse.records import Array
from largesse.response import isotonic
from largesse_lab.bench.kept import Kept

LEVELS = (2, 5, 10, 20, 50, 100)
CURVES = 200  # drawn and projected together; one repeat is their mean
APART, CLOSE, RISE = 10.0, 0.2, 10.0  # in units of the standard error of a level's mean
PIECES = 5
SEED = 32
TRUTHS: dict[str, Callable[[int], Array]] = {
    "constant": lambda K: np.zeros(K),
    "2 pieces": lambda K: pieces(K, 2),
    f"{PIECES} pieces": lambda K: pieces(K, PIECES),
    f"rise of {RISE:g} s in all": lambda K: np.linspace(0.0, RISE, K),
    f"gaps of {CLOSE:g} s": lambda K: CLOSE * np.arange(K),
    f"gaps of {APART:g} s": lambda K: APART * np.arange(K),
}
ESTIMATES = ("free", "monotone")


def rates(
    truths: Sequence[str] = tuple(TRUTHS),
    levels: Sequence[int] = LEVELS,
    *,
    repeats: int = 100,
    out: str | Path | None = None,
    tell: Callable[[str, float], None] = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per truth, number of levels and repeat: mean squared errors in units of σ²/n."""
    _check(truths, levels)
    kept = Kept(out, ("truth", "levels", "repeat"))
    todo = [(truth, K, repeat) for truth in truths for K in levels for repeat in range(repeats)]
    for done, key in enumerate(todo):
        tell(f"{key[0]}, {key[1]} levels", done / len(todo))
        if key not in kept.found:
            kept.add(_measured(*key))
    return [kept.found[key] for key in todo]


def _check(truths: Sequence[str], levels: Sequence[int]) -> None:
    problems = [Problem(f"truth {name!r} is not known", nearest(name, TRUTHS)) for name in truths if name not in TRUTHS]
    problems += [
        Problem(f"{K} levels were asked for", "give two levels or more: one has nothing to be monotone in")
        for K in levels
        if K < 2
    ]
    refuse("experiment", problems)


def pieces(K: int, k: int) -> Array:
    """Return a truth (K,) of k constant pieces of about equal length, far apart; every level its own where K < k.

    >>> pieces(5, 2)
    array([ 0.,  0.,  0., 10., 10.])
    """
    return APART * np.floor(np.arange(K) * min(k, K) / K)


def _measured(truth: str, K: int, repeat: int) -> dict[str, Any]:
    rng = np.random.default_rng((SEED, list(TRUTHS).index(truth), K, repeat))
    curve = TRUTHS[truth](K)
    means = curve + rng.standard_normal((CURVES, K))
    found = {"free": means, "monotone": isotonic(means)}
    errors = {name: float(np.mean((estimate - curve) ** 2)) for name, estimate in found.items()}
    return {"truth": truth, "levels": K, "repeat": repeat, **errors}


# -- what it comes to ------------------------------------------------------------------------------------------------


def promised(K: int) -> float:
    """Return what the proposition promises every non-falling truth, in units of σ²/n."""
    return float(np.log(K) / K)


def known(truth: str, K: int) -> float:
    """Return the error of the monotone estimate once unequal levels lie far apart: piece by piece, harmonic numbers.

    >>> known("gaps of 10 s", 7)
    1.0
    """
    _, lengths = np.unique(TRUTHS[truth](K), return_counts=True)
    return float(sum(np.sum(1.0 / np.arange(1, m + 1)) for m in lengths) / K)


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return mean, standard deviation over repeats and standard error of both errors, with what was promised and is known."""
    cells: dict[str, Any] = {}
    for truth, K in dict.fromkeys((record["truth"], record["levels"]) for record in records):
        mine = [record for record in records if (record["truth"], record["levels"]) == (truth, K)]
        cell: dict[str, Any] = {name: moments([record[name] for record in mine]) for name in ESTIMATES}
        cells.setdefault(truth, {})[str(K)] = {**cell, "promised": promised(K), "known": known(truth, K)}
    return {"cells": cells, "curves": CURVES}


def moments(values: Sequence[float]) -> dict[str, Any]:
    """Return mean, standard deviation, standard error and count; None where there are too few values to tell."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    se = None if sd is None else sd / len(values) ** 0.5
    return {"mean": float(np.mean(values)) if values else None, "sd": sd, "se": se, "n": len(values)}


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table: the monotone estimate's error in units of σ²/n, and how often what was promised that is."""
    return summary_table(summary(records))


def summary_table(found: dict[str, Any]) -> str:
    """Return the same from a summary."""
    levels = list(dict.fromkeys(K for row in found["cells"].values() for K in row))
    lines = ["| truth | " + " | ".join(f"K = {K}" for K in levels) + " |", "|---|" + "---:|" * len(levels)]
    lines.append("| promised, log(K)/K | " + " | ".join(f"{promised(int(K)):.4f}" for K in levels) + " |")
    for truth, row in found["cells"].items():
        lines.append(f"| {truth} | " + " | ".join(_cell(row.get(K)) for K in levels) + " |")
    return "\n".join(lines) + "\n"


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "–"
    mean, se = cell["monotone"]["mean"], cell["monotone"]["se"]
    words = f"{mean:.4f}" if se is None else f"{mean:.4f} ± {se:.4f}"
    return f"{words} ({mean / cell['promised']:.1f} ×)"


def series(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return lines to draw over the number of levels: a panel per truth, both estimates, and what was promised."""
    return summary_series(summary(records))


def summary_series(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the same from a summary."""
    lines = []
    for truth, row in found["cells"].items():
        levels = [int(K) for K in row]
        for name in ESTIMATES:
            cells = [cell[name] for cell in row.values()]
            drawn = {"mean": [cell["mean"] for cell in cells], "sd": [cell["sd"] for cell in cells]}
            lines.append({"panel": truth, "label": name, "x": levels, **drawn})
        none = [None] * len(levels)
        lines.append(
            {"panel": truth, "label": "promised", "x": levels, "mean": [promised(K) for K in levels], "sd": none}
        )
    return lines
