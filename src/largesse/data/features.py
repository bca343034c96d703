"""Which columns of a log are learnt from, and what there is to say of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from largesse.data.checks import Check
from largesse.data.columns import as_plain, as_words, is_unusable, why_skip
from largesse.errors import join_some

if TYPE_CHECKING:
    import pyarrow as pa


def select_features(check: Check, listed: Sequence[str] | None, taken: set[str]) -> pa.Table:
    """Return the columns to learn from: those listed, or all that have no other role and can be used."""
    names = list(listed) if listed is not None else [n for n in check.table.column_names if n not in taken]
    kept = []
    for name in names:
        column = check.stand_ins.get(name, check.table.column(name))
        if listed is not None and is_unusable(column.type):
            hint = "features are numbers, booleans, text, dates or times"
            check.add_problem(f"the feature {name!r} holds {column.type}", hint)
        elif listed is None and (reason := why_skip(name, column)):
            check.notes.append(f"column {name!r} left out: {reason}")
        else:
            kept.append(name)
            check.notes += _describe(name, column)
    if not kept and not check.problems:
        check.add_problem("there is no column left to learn from", "the log needs at least one feature")
    return check.table.select(kept)


def _describe(name: str, column: pa.ChunkedArray) -> list[str]:
    """Mention a feature that says nothing."""
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return [f"column {name!r} is empty: it says nothing"]
    if reason := why_skip(name, column):
        return [f"column {name!r} is listed as a feature: {reason}"]
    if len(column) > 1 and all(len(pc.unique(part)) == 1 for part in (column.slice(0, 1000), column)):
        value = join_some(as_words(as_plain(column).slice(0, 1)))
        return [f"column {name!r} is {value} in every row: it says nothing"]
    return []
