"""Which of the paper's orderings hold on our numbers: computed from a summary, never typed.

An ordering holds when the 95 % interval of the difference lies on its side of zero, is reversed when it lies on the other,
and is not told apart otherwise. Differences are paired, repeat by repeat, wherever the summary has them: from its base row,
and of the rows in ``pairs``, which `pairs` makes from records. Where it has none the interval is made of the two spreads, as
if the repeats had nothing in common: wider than a paired one as a rule, and marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.stats import mean_estimate
from largesse_lab.page.compared import Compared, Gap, compared, higher_is_better, plain, titled

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
OURS = ("Stack", "SIRE")  # the default, and the network within it
HOLDS, REVERSED, OPEN = "holds", "reversed", "not told apart"


@dataclass(frozen=True)
class Ordering:
    """One of the paper's orderings, on one simulation: how much better the first row is, and what that comes to."""

    first: str
    second: str
    simulation: str
    column: str
    gain: Gap  # of the first over the second, positive when the first is better
    paired: bool

    @property
    def verdict(self) -> str:
        """Whether it holds, is reversed, or cannot be told."""
        return HOLDS if self.gain.low > 0 else REVERSED if self.gain.high < 0 else OPEN


def orderings(summary: Mapping[str, Any]) -> list[Ordering]:
    """Return every ordering of the paper that the summary can speak about, in the columns the paper printed."""
    found = compared(summary)
    return [] if found is None else orderings_of(found)


def orderings_of(found: Compared) -> list[Ordering]:
    """Return the same from the record of a summary."""
    made = []
    for simulation in found.simulations:
        for first, second in claimed_rows(found.rows):
            for column in found.columns:
                claimed = _claimed(found, first, second, column)
                one = ordering(found, simulation, first, second, column) if claimed else None
                made += [] if one is None else [one]
    return made


def claimed_rows(rows: Sequence[str], claims: Sequence[tuple[str, str]] = CLAIMS) -> list[tuple[str, str]]:
    """Return the pairs that are claimed, in our own spelling, of which there are both rows."""
    spelled = {plain(row): row for row in rows}
    pairs = [(plain(first), plain(second)) for first, second in claims]
    return [(spelled[first], spelled[second]) for first, second in pairs if first in spelled and second in spelled]


def _claimed(found: Compared, first: str, second: str, column: str) -> bool:
    """Return whether the paper printed both numbers, the first the better."""
    ends = found.printed(first, column), found.printed(second, column)
    if ends[0] is None or ends[1] is None:
        return False
    return ends[0][0] > ends[1][0] if higher_is_better(column) else ends[0][0] < ends[1][0]


def ordering(found: Compared, simulation: str, first: str, second: str, column: str) -> Ordering | None:
    """Return by how much the first row is better than the second; None where a number is missing."""
    minus = found.pairs.get((simulation, first, second, column))
    if minus is None and first == found.base:
        minus = found.differences.get((simulation, second, column))
    gap = minus if minus is not None else _unpaired(found, simulation, first, second, column)
    if gap is None:
        return None
    if higher_is_better(column):
        gap = Gap(-gap.estimate, -gap.high, -gap.low)
    return Ordering(first, second, simulation, column, gap, paired=minus is not None)


def _unpaired(found: Compared, simulation: str, first: str, second: str, column: str) -> Gap | None:
    """Return second minus first with an interval from the two spreads; None where either has none."""
    a, b = found.cells.get((simulation, first, column)), found.cells.get((simulation, second, column))
    if a is None or b is None or a.sd is None or b.sd is None or min(a.n, b.n) < 2:
        return None
    from scipy.stats import t  # slow to import

    # as many degrees of freedom as the smaller sample has
    half = float(t.ppf(0.975, min(a.n, b.n) - 1) * np.hypot(a.sd / a.n**0.5, b.sd / b.n**0.5))
    return Gap(b.mean - a.mean, b.mean - a.mean - half, b.mean - a.mean + half)


# -- from records ------------------------------------------------------------------------------------------------------


def pairs(
    records: Sequence[Mapping[str, Any]], columns: Sequence[str], claims: Sequence[tuple[str, str]] = CLAIMS
) -> list[dict[str, Any]]:
    """Return the paired differences, second minus first, of every claim: what a summary keeps as ``pairs``.

    Records have ``simulation``, ``repeat`` and ``row``; differences are over the repeats that both rows have.
    """
    found = []
    for simulation in dict.fromkeys(record["simulation"] for record in records):
        mine = {(r["row"], r["repeat"]): r for r in records if r["simulation"] == simulation}
        for first, second in claimed_rows(list(dict.fromkeys(row for row, _ in mine)), claims):
            both = [(mine[first, k], mine[second, k]) for row, k in mine if row == first and (second, k) in mine]
            for column in columns:
                gap = _paired_gap([(a.get(column), b.get(column)) for a, b in both])
                name = {"simulation": simulation, "first": first, "second": second, "column": column}
                found += [] if gap is None else [{**name, **gap}]
    return found


def _paired_gap(values: Sequence[tuple[Any, Any]]) -> dict[str, float | int] | None:
    each = np.array([b - a for a, b in values if a is not None and b is not None], dtype=np.float64)
    each = each[np.isfinite(each)]
    if len(each) < 2:
        return None
    made = mean_estimate(each)
    return {"estimate": made.estimate, "low": made.low, "high": made.high, "n": len(each)}


# -- in words ----------------------------------------------------------------------------------------------------------


def count_verdicts(found: Sequence[Ordering]) -> str:
    """Say in a sentence how many orderings hold.

    >>> count_verdicts([Ordering("a", "b", "s", "RMSE", Gap(1.0, 0.5, 1.5), True)])
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

    >>> everywhere([Ordering("a", "b", "s", "RMSE", Gap(1.0, 0.5, 1.5), True)])
    'On every simulation there holds: a before b (RMSE). Reversed on some: none.'
    """
    claims: dict[str, list[str]] = {}
    for one in found:
        claims.setdefault(f"{one.first} before {one.second} ({titled(one.column)})", []).append(one.verdict)
    holding = [claim for claim, verdicts in claims.items() if set(verdicts) == {HOLDS}]
    turned = [claim for claim, verdicts in claims.items() if REVERSED in verdicts]
    return f"On every simulation there holds: {_list(holding)}. Reversed on some: {_list(turned)}."


def _list(names: Sequence[str]) -> str:
    return "; ".join(names) or "none"
