"""Whether our own models are ahead of the paper's: of the best of its rows, and of every one, computed from a summary.

The paper's rows are those it printed numbers of; what counts is how they do here. The best is that of the best mean on a
simulation, which flatters it a little: it was chosen by the numbers it is then judged by.
"""

from __future__ import annotations

from collections.abc import Sequence

from largesse.experiments.compared import Compared, higher_is_better, plain, titled
from largesse.experiments.markdown import row_of, signed
from largesse.experiments.orderings import HOLDS, OPEN, OURS, REVERSED, Ordering, ordering
from largesse.report.formats import DASH

VERDICTS = {HOLDS: "ahead", REVERSED: "behind", OPEN: "cannot tell"}
SAID = {HOLDS: "ahead of every row of the paper's on", REVERSED: "behind one on", OPEN: "neither on"}
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
    columns = [column for column in _judged(found) if plain(column).startswith(kind)]
    told: dict[str, list[str]] = {word: [] for word in SAID}
    for simulation in found.simulations:
        mine: dict[str, list[str]] = {word: [] for word in SAID}
        for column in columns:
            duels = [ordering(found, simulation, name, row, column) for row in _rivals(found)]
            _place(mine, plain(column).removeprefix(kind), [duel for duel in duels if duel is not None])
        for verdict, places in mine.items():
            inside = ", ".join(filter(None, places))
            told[verdict] += [f"{simulation} ({inside})" if inside else simulation] if places else []
    parts = [f"{SAID[verdict]} {', '.join(places)}" for verdict, places in told.items() if places]
    return f"- {name}, {KINDS[kind]}: {'; '.join(parts)}." if parts else ""


def _place(mine: dict[str, list[str]], budget: str, duels: Sequence[Ordering]) -> None:
    """Put a budget (or nothing, of an error) where it belongs by its duels; where one is lost, with who has won."""
    worse = ", ".join(duel.second for duel in duels if duel.verdict == REVERSED)
    at = f"m = {budget}" if budget else ""
    if worse:
        mine[REVERSED].append(": ".join(filter(None, [at, worse])))
    elif duels:
        mine[HOLDS if all(duel.verdict == HOLDS for duel in duels) else OPEN].append(at)


def _ours(found: Compared) -> list[str]:
    return [name for name in OURS if name in found.rows]


def _rivals(found: Compared) -> list[str]:
    known = {row for row, _ in found.paper}
    return [row for row in found.rows if plain(row) in known]


def _judged(found: Compared) -> list[str]:
    return [column for column in found.columns if plain(column).startswith(tuple(KINDS))]
