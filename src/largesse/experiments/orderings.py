"""Which of the paper's orderings hold on our numbers: computed from a summary, never typed.

An ordering holds when the 95 % interval of the difference lies on its side of zero, is reversed when it lies on the other,
and is not told apart otherwise. Differences are paired, repeat by repeat, wherever the summary has them: against
CCPOvSIRE in ``differences`` (row minus CCPOvSIRE), of any two rows in ``pairs``. Where it has none the interval is made of
the two spreads, as if the repeats had nothing in common: wider than a paired one, and marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.errors import Problem, refuse
from largesse.experiments.published import plain, printed, titled
from largesse.report.formats import finite

BASE = "CCPOvSIRE"
CLAIMS = (  # the first is better than the second
    ("CCPOvSIRE", "CCPOvIRE"),
    ("CCPOvSIRE", "CCPOvSIRE†"),
    ("CCPOvIRE", "CCPOvIRE†"),
    ("CCPOvSIRE", "CFRNet"),
    ("CFRNet", "BART"),
    ("CFRNet", "GANITE"),
    ("CCPOvSIRE", "BanditNet"),
    ("CCPOvSIRE, linear", "CCPOvSIRE, RBF"),
    ("CCPOvIRE, linear", "CCPOvIRE, RBF"),
    ("CCPOvSIRE, RBF", "CCPOvIRE, RBF"),
)
HIGHER = ("reward", "skill")  # columns that should be large; all others are errors
HOLDS, REVERSED, OPEN = "holds", "reversed", "not told apart"


@dataclass(frozen=True)
class Ordering:
    """One of the paper's orderings, on one simulation: how much better the first row is, and what that comes to."""

    first: str
    second: str
    simulation: str
    column: str
    gain: float  # of the first over the second, positive when the first is better
    low: float
    high: float
    paired: bool

    @property
    def verdict(self) -> str:
        """Whether it holds, is reversed, or cannot be told."""
        return HOLDS if self.low > 0 else REVERSED if self.high < 0 else OPEN


def higher_is_better(column: str) -> bool:
    """Return whether a column should be large.

    >>> higher_is_better("Reward (m = 3)"), higher_is_better("RMSE")
    (True, False)
    """
    return plain(column).startswith(HIGHER)


def orderings(summary: Mapping[str, Any], experiment: str = "table1") -> list[Ordering]:
    """Return every ordering of the paper that the summary can speak about, in the paper's columns."""
    _check(summary)
    found = []
    for simulation, rows in summary["cells"].items():
        for first, second in _claims(rows):
            for column in rows[first]:
                if column in rows[second] and _claimed(experiment, first, second, column):
                    made = _ordering(summary, simulation, first, second, column)
                    found += [] if made is None else [made]
    return found


def _claims(rows: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the paper's pairs, in the summary's own spelling, that it has both rows of."""
    spelled = {plain(row): row for row in rows}
    pairs = [(plain(first), plain(second)) for first, second in CLAIMS]
    return [(spelled[first], spelled[second]) for first, second in pairs if first in spelled and second in spelled]


def _claimed(experiment: str, first: str, second: str, column: str) -> bool:
    """Return whether the paper printed both numbers, the first the better."""
    cells = printed(experiment, first, column), printed(experiment, second, column)
    if cells[0] is None or cells[1] is None:
        return False
    return cells[0][0] > cells[1][0] if higher_is_better(column) else cells[0][0] < cells[1][0]


def _ordering(summary: Mapping[str, Any], simulation: str, first: str, second: str, column: str) -> Ordering | None:
    """Return the ordering; None where the summary lacks a number."""
    minus = _paired(summary, simulation, first, second, column)
    spread = minus if minus is not None else _unpaired(summary["cells"][simulation], first, second, column)
    if spread is None:
        return None
    estimate, low, high = spread
    if higher_is_better(column):
        estimate, low, high = -estimate, -high, -low
    return Ordering(first, second, simulation, column, estimate, low, high, paired=minus is not None)


def _paired(
    summary: Mapping[str, Any], simulation: str, first: str, second: str, column: str
) -> tuple[float, float, float] | None:
    """Return second minus first with its interval, repeat by repeat."""
    for row in summary.get("pairs", []):
        if (row["simulation"], row["first"], row["second"], row["column"]) == (simulation, first, second, column):
            return _interval(row)
    if plain(first) != plain(BASE):
        return None
    return _interval(summary.get("differences", {}).get(simulation, {}).get(second, {}).get(column, {}))


def _interval(row: Mapping[str, Any]) -> tuple[float, float, float] | None:
    estimate, low, high = (finite(row.get(key)) for key in ("estimate", "low", "high"))
    return None if estimate is None or low is None or high is None else (estimate, low, high)


def _unpaired(rows: Mapping[str, Any], first: str, second: str, column: str) -> tuple[float, float, float] | None:
    cells = [rows[row][column] for row in (first, second)]
    means = [finite(cell.get("mean")) for cell in cells]
    errors = [_error(cell) for cell in cells]
    if means[0] is None or means[1] is None or errors[0] is None or errors[1] is None:
        return None
    half = _quantile(min(cell["n"] for cell in cells)) * float(np.hypot(errors[0], errors[1]))
    return means[1] - means[0], means[1] - means[0] - half, means[1] - means[0] + half


def _quantile(n: int) -> float:
    """Return what a standard error is multiplied by for 95 %, with as many degrees of freedom as the smaller sample has."""
    from scipy.stats import t  # slow to import

    return float(t.ppf(0.975, max(n - 1, 1)))


def _error(cell: Mapping[str, Any]) -> float | None:
    sd, n = finite(cell.get("sd")), finite(cell.get("n"))
    return None if sd is None or not n else sd / n**0.5


def _check(summary: Mapping[str, Any]) -> None:
    """Refuse differences that run the other way than the means: every verdict would be turned round."""
    problems = []
    for simulation, rows in summary.get("differences", {}).items():
        cells = summary["cells"].get(simulation, {})
        base: Mapping[str, Any] = next((cells[row] for row in cells if plain(row) == plain(BASE)), {})
        for row, columns in rows.items():
            for column, found in columns.items():
                means = [finite(cell.get(column, {}).get("mean")) for cell in (cells.get(row, {}), base)]
                if _turned(finite(found.get("estimate")), means):
                    what = f"the difference of {row} in {column} on {simulation} has the sign of {BASE} minus {row}"
                    problems.append(Problem(what, f"write differences as the row minus {BASE}"))
    refuse("summary", problems)


def _turned(estimate: float | None, means: Sequence[float | None]) -> bool:
    if estimate is None or means[0] is None or means[1] is None:
        return False
    apart = means[0] - means[1]
    return abs(apart) > 1e-9 and abs(estimate + apart) < 0.1 * abs(apart)


def count_verdicts(found: Sequence[Ordering]) -> str:
    """Say in a sentence how many orderings hold.

    >>> count_verdicts([Ordering("a", "b", "s", "RMSE", 1.0, 0.5, 1.5, True)])
    'Of 1 ordering, 1 holds, 0 are reversed and 0 are not told apart.'
    """
    number = {verdict: sum(one.verdict == verdict for one in found) for verdict in (HOLDS, REVERSED, OPEN)}

    def are(count: int, one: str, many: str) -> str:
        return f"{count} {one if count == 1 else many}"

    head = are(len(found), "ordering", "orderings")
    holds, turned = are(number[HOLDS], "holds", "hold"), are(number[REVERSED], "is reversed", "are reversed")
    return f"Of {head}, {holds}, {turned} and {are(number[OPEN], 'is', 'are')} not told apart."


def everywhere(found: Sequence[Ordering]) -> str:
    """Say which orderings hold on every simulation, and which are reversed on any.

    >>> everywhere([Ordering("a", "b", "s", "RMSE", 1.0, 0.5, 1.5, True)])
    'On every simulation there holds: a before b (RMSE). Reversed on some: none.'
    """
    claims: dict[str, list[str]] = {}
    for one in found:
        claims.setdefault(f"{one.first} before {one.second} ({titled(one.column)})", []).append(one.verdict)
    holding = [claim for claim, verdicts in claims.items() if set(verdicts) == {HOLDS}]
    turned = [claim for claim, verdicts in claims.items() if REVERSED in verdicts]
    return f"On every simulation there holds: {_list(holding)}. Reversed on some: {_list(turned)}."


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
