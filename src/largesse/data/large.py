"""Logs that are too large for memory: all of their rows, but features of a sample alone.

Three passes over the files. The first keeps the columns that have a role (some bytes of every row) and glances at the
features, so that rules and messages are those of `read_log`. A sample is drawn at random from every level, or whole clusters
are; the second pass reads its features. Later passes, through `Sample.batches`, score the rows outside of the sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.batches import Batches, most_cells, open_batches
from largesse.data.checks import Check
from largesse.data.columns import kind_of
from largesse.data.glance import Glance, Outcome, conclude, convert, stand_in
from largesse.data.memory import memory_limit
from largesse.data.notation import parse_problems, read_notation
from largesse.data.read import check_size
from largesse.data.roles import Asked, read_roles
from largesse.errors import Problem, fail, join_some, plural, refuse, repr_short
from largesse.progress import advance
from largesse.records import Array, Log, Sample
from largesse.stats import draw_clusters, draw_rows

if TYPE_CHECKING:
    import pyarrow as pa

CELL = 64  # bytes of memory that a fit takes for every number of the encoded log
WIDTHS = {"text": 12, "date": 5}  # numbers that a value is encoded by, usually; others by one
MEMORY = 0.5  # share of the memory that a fit may take
OUTSIDE = 6  # at least one row of so many is outside of the sample


def read_large(source: Any, asked: Asked, most_rows: int | str, seed: int = 0) -> Log | None:
    """Read a log that has more rows than `most_rows`, or than fit into memory if that is "auto"; None if it has not."""
    refuse("log", limit_problems(most_rows, "most_rows"))
    cells = MEMORY * memory_limit() / CELL
    bound, columns = most_cells(source, "log")
    if bound <= (cells / max(WIDTHS.values()) if isinstance(most_rows, str) else most_rows * columns):
        return None
    batches = open_batches(source, what="log", plain=asked.coded, texts=asked.texts)
    width = sum(WIDTHS.get(kind_of(field.type), 1) for field in batches.schema)
    most = int(cells / max(width, 1)) if isinstance(most_rows, str) else int(most_rows)
    if batches.rows <= most:
        return None
    check_size(batches.schema.names, batches.rows, "log")
    found = _look(batches, asked)
    log = _check(batches, asked, found)
    return _draw(log, batches, found, most, seed)


def limit_problems(most_rows: Any, name: str) -> list[Problem]:
    """Return what is wrong with the most rows that a log may have in memory, if anything."""
    whole = isinstance(most_rows, int | np.integer) and not isinstance(most_rows, bool) and most_rows >= 1
    if whole or most_rows == "auto":
        return []
    return [Problem(f"{name} is {repr_short(most_rows)}", 'give a whole number of rows, or "auto"')]


# -- the first pass ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Found:
    """What the first pass leaves."""

    roles: pa.Table  # (n rows) the columns that have a role
    glances: dict[str, Glance]  # of those that may be features
    outcomes: dict[str, Outcome]


def _look(batches: Batches, asked: Asked) -> _Found:
    """Go through all rows once."""
    import pyarrow as pa

    names = batches.schema.names
    paid = asked.levels.cost_columns or ()
    taken = {*asked.named.values(), *paid}
    kept = [name for name in names if name in taken]
    strata = asked.named.get("propensity_strata")
    may = [n for n in names if n not in taken or n == strata] if asked.features is None else asked.features
    may = [*may, *(name for name in asked.parse if name not in taken)]
    glances = {
        name: Glance(name, batches.schema.field(name).type, batches.rows, asked.parse.get(name), name in asked.coded)
        for name in names
        if name in may
    }
    parts, done = [], 0
    for batch in batches.read([name for name in names if name in taken or name in glances]):
        parts.append(batch.select(kept))
        for name, glance in glances.items():
            glance.look(batch.column(name))
        done += len(batch)
        advance(done / batches.rows)
    roles = pa.concat_tables(parts).unify_dictionaries()
    return _Found(roles, glances, {name: conclude(glance) for name, glance in glances.items()})


def _check(batches: Batches, asked: Asked, found: _Found) -> Log:
    """Apply every rule of a log; its features are only named."""
    import pyarrow as pa

    names = batches.schema.names
    problems, columns = parse_problems(asked.parse, names), []
    notes: list[str] = []
    for name in names:
        if name in found.roles.column_names:
            reading = read_notation(found.roles.select([name]), asked.parse, skip=asked.coded)
            notes += reading.notes
            problems += reading.problems
            columns.append(reading.table.column(0))
        else:
            if name in found.outcomes:
                notes += found.outcomes[name].notes
                problems += found.outcomes[name].problems
            columns.append(pa.chunked_array([pa.nulls(batches.rows)]))
    stand_ins = {name: stand_in(glance, found.outcomes[name]) for name, glance in found.glances.items()}
    check = Check(pa.Table.from_arrays(columns, names=names), problems, notes, stand_ins)
    log = read_roles(check, asked)
    refuse("log", check.problems)
    return log


# -- the sample ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Features:
    """The features of the rows that have a response, batch by batch."""

    batches: Batches
    found: _Found
    names: Sequence[str]
    known: Array  # (rows of the table,) which have a response

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Give some features, or all, of all rows in order."""
        start, all_known = 0, bool(self.known.all())
        for batch in self.batches.read(self.names if columns is None else columns):
            here = self.known[start : start + len(batch)]
            start += len(batch)
            yield self._convert(batch if all_known else batch.filter(here))

    def take(self, rows: Array) -> pa.Table:
        """Return the features of some rows, which rise, of those that have a response."""
        import pyarrow as pa

        parts, start = [], 0
        for batch in self.read():
            here = rows[slice(*np.searchsorted(rows, [start, start + len(batch)]))] - start
            start += len(batch)
            parts.append(batch.take(here))
            advance(start / len(self.known))
        return pa.concat_tables(parts).unify_dictionaries().combine_chunks()

    def _convert(self, batch: pa.Table) -> pa.Table:
        import pyarrow as pa

        columns = [
            convert(column, self.found.glances[name], self.found.outcomes[name])
            for name, column in zip(batch.column_names, batch.columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, names=batch.column_names)

    @property
    def digest(self) -> str:
        """A digest of all values."""
        found = hashlib.blake2b(digest_size=16)
        for name in self.names:
            found.update(f"{self.found.glances[name].digest} {self.found.outcomes[name].way}\0".encode())
        return found.hexdigest()


def _draw(log: Log, batches: Batches, found: _Found, most: int, seed: int) -> Log:
    """Return the log with a sample of its rows that have a response."""
    known = np.isfinite(log.response)
    read = replace(
        found, roles=found.roles.schema.empty_table()
    )  # their columns are in the log: nobody needs them twice
    features = _Features(batches, read, log.features.column_names, known)
    log = log if known.all() else log.take(known)
    m = min(most, len(log) - len(log) // OUTSIDE)
    rows, stand_for = _draw_rows(log, m, seed)
    note = f"models learn from a random sample of {len(rows):,} of {len(log):,} rows; all rows judge them"
    log = replace(log, features=log.features.select([]), notes=(*log.notes, note))
    part = log.take(rows)
    weight = part.weight if stand_for is None else part.weights * stand_for / stand_for.mean()
    part = replace(part, features=features.take(rows), weight=weight)
    return replace(log, sample=Sample(part, rows, features.read, features.digest, most))


def _draw_rows(log: Log, most: int, seed: int) -> tuple[Array, Array | None]:
    """Return the rows of the sample, and how many rows each stands for, if they differ; every level must be among them."""
    K = len(log.levels)
    rows, stand_for = (
        draw_rows(log.level, K, most, seed) if log.cluster is None else (draw_clusters(log.cluster, most, seed), None)
    )
    empty = [log.levels.labels[k] for k in np.flatnonzero(np.bincount(log.level[rows], minlength=K) == 0)]
    if empty:
        whole = "" if log.cluster is None else " in whole clusters"
        got = f"a sample of {plural(most, 'row')}{whole} has no row with level {join_some(empty)}"
        fail("log", Problem(got, "raise most_rows under [data]"))
    return rows, stand_for
