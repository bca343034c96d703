"""Whether our own models are ahead of the paper's: of the best of its rows, and of every one, computed from a summary.

The paper's rows are those it printed numbers of; what counts is how they do here. The best is that of the best mean on a
simulation, which flatters it a little: it was chosen by the numbers it is then judged by.
"""

from __future__ import annotations

from collections.abc import Sequence

from largesse.report import DASH
from largesse_lab.page.compared import Compared, higher_is_better, plain, titled
from largesse_lab.page.markdown import row_of, signed
from largesse_lab.page.orderings import HOLDS, OPEN, OURS, REVERSED, Ordering, ordering

VERDICTS = {HOLDS: "ahead", REVERSED: "behind", OPEN: "cannot tell"}
SAID = {HOLDS: "ahead of every row of the paper's on", REVERSED: "behind one or more on", OPEN: "neither on"}
MANY = 3  # rows that are not named one by one
KINDS = {"rmse": "RMSE", "skill": "skill"}  # how a column begins → what it is called


def best_table(found: Compared) -> str:
    """Return as Markdown, for each simulation and column, the paper's best row and how far ours are from it."""
    ours = _ours(found)
    duels = [
        mine
        for simulation in found.simulations
        for column in _judged(found)
        if any(mine := [_against_best(found, simulation, name, column) for name in ours])
    ]
    if not duels:
        return ""
    head = ["on", "column", "the paper's best"]
    head += [cell for name in ours for cell in (f"{name} minus it", "95 % interval", "verdict")]
    lines = [row_of(head), "|---|---|---|" + "---:|---|---|" * len(ours), *map(_row, duels)]
    alone = any(one is not None and not one.paired for mine in duels for one in mine)
    return "\n".join(lines) + ("\n\n\\* from the two spreads, not paired." if alone else "")


def _against_best(found: Compared, simulation: str, name: str, column: str) -> Ordering | None:
    best = best_rival(found, simulation, column)
    return None if best is None else ordering(found, simulation, name, best, column)


def _row(duels: Sequence[Ordering | None]) -> str:
    first = next(duel for duel in duels if duel is not None)
    cells = [cell for duel in duels for cell in _cells(duel)]
    return row_of([first.simulation, titled(first.column), first.second, *cells])


def _cells(duel: Ordering | None) -> Sequence[str]:
    """Return difference, interval and verdict; a difference is ours minus theirs, whichever way is better."""
    if duel is None:
        return DASH, DASH, DASH
    sign = 1 if higher_is_better(duel.column) else -1
    ends = sorted((sign * duel.gain.low, sign * duel.gain.high))
    mark = "" if duel.paired else " \\*"
    return signed(sign * duel.gain.estimate), f"{signed(ends[0])} to {signed(ends[1])}{mark}", VERDICTS[duel.verdict]


def best_rival(found: Compared, simulation: str, column: str) -> str | None:
    """Return the row of the paper's that has the best mean; None where none has any."""
    means = {row: cell.mean for row in _rivals(found) if (cell := found.cells.get((simulation, row, column)))}
    return (max if higher_is_better(column) else min)(means, key=lambda row: means[row], default=None)


def ahead_told(found: Compared) -> str:
    """Say for each of ours where it is ahead of every row of the paper's, where behind which, and where neither."""
    return "\n".join(line for name in _ours(found) for kind in KINDS if (line := _line(found, name, kind)))


def _line(found: Compared, name: str, kind: str) -> str:
    told: dict[str, list[str]] = {verdict: [] for verdict in SAID}
    for simulation in found.simulations:
        for verdict, places in _places(found, simulation, name, kind).items():
            inside = ", ".join(filter(None, places))
            budgets = "m = " if kind == "skill" else ""
            told[verdict].append(f"{simulation} ({budgets}{inside})" if inside else simulation)
    parts = [f"{SAID[verdict]} {', '.join(places)}" for verdict, places in told.items() if places]
    return f"- {name}, {KINDS[kind]}: {'; '.join(parts)}." if parts else ""


def _places(found: Compared, simulation: str, name: str, kind: str) -> dict[str, list[str]]:
    """Return the budgets (of an error, nothing) by what one of ours comes to there against all rows of the paper's."""
    told: dict[str, list[str]] = {}
    for column in [column for column in _judged(found) if plain(column).startswith(kind)]:
        made = [ordering(found, simulation, name, row, column) for row in _rivals(found)]
        duels = [duel for duel in made if duel is not None]
        worse = [duel.second for duel in duels if duel.verdict == REVERSED]
        verdict = REVERSED if worse else HOLDS if all(duel.verdict == HOLDS for duel in duels) else OPEN
        words = [plain(column).removeprefix(kind), ", ".join(worse) if len(worse) < MANY else f"{len(worse)} rows"]
        if duels:
            told.setdefault(verdict, []).append(": ".join(filter(None, words)) if worse else words[0])
    return told


def _ours(found: Compared) -> list[str]:
    return [name for name in OURS if name in found.rows]


def _rivals(found: Compared) -> list[str]:
    known = {row for row, _ in found.paper}
    return [row for row in found.rows if plain(row) in known]


def _judged(found: Compared) -> list[str]:
    return [column for column in found.columns if plain(column).startswith(tuple(KINDS))]
