"""What the balance penalty does, as the paper has it and normalised: tables and a sentence, all computed from a summary.

HSIC has the scale of the representation it is taken of. The paper's penalty can therefore be lowered by shrinking the
representation; a normalised one cannot, so that the difference between the two is what shrinking does.
"""

from __future__ import annotations

from dataclasses import dataclass

from largesse.report import DASH
from largesse_lab.page.compare import NORMALISED, WITHOUT, Comparison, Gap, compare_rows, title_column
from largesse_lab.page.tables import UNPAIRED, write_duel, write_table

PENALTIES = {"": "as in the paper", NORMALISED: "normalised"}  # how a row's name ends → its penalty
ERROR = "rmse"
TOLD = ("CCPOvIRE", "averaged")  # the row and the simulation that the page's summary mentions


def tabulate_gains(found: Comparison) -> str:
    """Return by how many per cent a penalty changes the RMSE of a model without one; "" where no such rows were measured."""
    body, paired = [], True
    for row in _list_models(found):
        for mark, words in PENALTIES.items():
            cells = [_find_change(found, name, row + mark) for name in found.simulations]
            if any(cells):
                paired &= all(cell is None or cell.paired for cell in cells)
                told = [DASH if cell is None else _write_change(cell) for cell in cells]
                printed = None if mark else find_printed_change(found, row)
                body.append([row, words, DASH if printed is None else _write_percent(printed), *told])
    head = ["model", "penalty", "paper", *found.simulations]
    return write_table(head, body, words=2) + ("" if paired else UNPAIRED) if body else ""


def _list_models(found: Comparison) -> list[str]:
    """Return the rows that were measured with a normalised penalty, by the names of those with the paper's."""
    return [row.removesuffix(NORMALISED) for row in found.rows if row.endswith(NORMALISED)]


def _list_plain(found: Comparison) -> list[str]:
    """Return the rows that were measured with both penalties."""
    return [row for row in found.rows if row + NORMALISED in found.rows and not row.endswith(NORMALISED)]


@dataclass(frozen=True)
class _Change:
    """The RMSE without a penalty and with one, the relative change, and whether it is paired."""

    before: float
    after: float
    share: Gap
    paired: bool


def _find_change(found: Comparison, simulation: str, row: str) -> _Change | None:
    """Return the change of RMSE from the row without a penalty to a row; None where either is missing."""
    without = row.removesuffix(NORMALISED) + WITHOUT
    duel = compare_rows(found, simulation, row, without, ERROR)
    mine, base = (found.cells.get((simulation, name, ERROR)) for name in (row, without))
    if duel is None or mine is None or base is None or not base.mean:
        return None
    # Of rows with different numbers of repeats, the shorter one has the repeats on which they were paired.
    before = mine.mean + duel.gain.estimate if mine.n < base.n else base.mean
    share = Gap(-duel.gain.estimate / before, -duel.gain.high / before, -duel.gain.low / before)
    return _Change(before, before - duel.gain.estimate, share, duel.paired)


def find_printed_change(found: Comparison, row: str) -> float | None:
    """Return the relative change of RMSE by the penalty in the paper's own numbers; None where it has none."""
    ends = [found.printed(name, ERROR) for name in (row, row + WITHOUT)]
    return None if ends[0] is None or ends[1] is None else ends[0][0] / ends[1][0] - 1


def _write_percent(share: float) -> str:
    """Return a change in per cent.

    >>> _write_percent(-0.1312), _write_percent(0.00001)
    ('−13.1 %', '+0.0 %')
    """
    return f"{round(100 * share, 1) + 0.0:+.1f} %".replace("-", "−")


def _write_change(change: _Change) -> str:
    ends = [_write_percent(end).removesuffix(" %") for end in (change.share.low, change.share.high)]
    mark = "" if change.paired else " \\*"
    return f"{_write_percent(change.share.estimate)} ({ends[0]} to {ends[1]}){mark}"


def tabulate_normalising(found: Comparison) -> str:
    """Return how the paper's penalty compares with the normalised one, in every column; "" where rows are missing."""
    body, paired = [], True
    for row in _list_plain(found):
        for column in found.columns:
            duels = [compare_rows(found, name, row, row + NORMALISED, column) for name in found.simulations]
            if any(duels):
                paired &= all(duel is None or duel.paired for duel in duels)
                cells = [_write_cell(write_duel(duel)) for duel in duels]
                body.append([row, title_column(column), *cells])
    head = ["row minus its normalised one", "column", *found.simulations]
    return write_table(head, body, words=len(head)) + ("" if paired else UNPAIRED) if body else ""


def _write_cell(parts: tuple[str, str, str]) -> str:
    difference, interval, verdict = parts
    return DASH if verdict == DASH else f"{verdict}: {difference} ({interval})"


def brief_penalties(found: Comparison) -> str:
    """Return a sentence on what the penalty does to free heads, in both forms; "" where they were not measured."""
    row, simulation = TOLD
    changes = [_find_change(found, simulation, row + mark) for mark in PENALTIES]
    if changes[0] is None:
        return ""
    printed = find_printed_change(found, row)
    ends = f"{changes[0].before:.4f} to {changes[0].after:.4f}"
    beside = "" if printed is None else f"; the paper: {_write_percent(printed)}"
    other = "" if changes[1] is None else f", normalised by {_write_percent(changes[1].share.estimate)}"
    told = f"The penalty as the paper has it changes the RMSE of {row} on {simulation} by"
    return f"{told} {_write_percent(changes[0].share.estimate)} ({ends}{beside}){other}."


def describe_missing(found: Comparison) -> str:
    """Return which rows were measured with the normalised penalty alone, and what cannot be judged without them."""
    missing = [row for row in _list_models(found) if row not in found.rows]
    if not missing:
        return ""
    named = " and ".join(missing)
    told = f"The paper's own penalty was not measured here for {named}: the rows “normalised” have another one."
    lacking = [row for row in missing if any(found.printed(row, column) for column in found.columns)]
    judged = " So the paper's orderings of these rows are not judged, and “every method of the paper” leaves them out."
    return told + (judged if lacking else "")
