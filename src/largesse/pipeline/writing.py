"""Plans written batch by batch: Parquet, CSV or Feather, all of a table or nothing."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from largesse.evaluation import PlanTally, Shown, choose_shown, code_groups, number_groups, tally_codes
from largesse.io import atomic_file
from largesse.pipeline.ahead import read_ahead, write_behind
from largesse.pipeline.planned import Planned, Target
from largesse.pipeline.scored import LocalScored
from largesse.pipeline.spreadsheets import escape_formulas
from largesse.progress import advance

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = 1 << 20  # rows of a group of a Parquet file


def write_batches(planned: Planned, targets: Sequence[Target]) -> tuple[Sequence[Shown], PlanTally]:
    """Write the plan of customers of one machine, and count who gets what."""
    scored = cast(LocalScored, planned.scored)
    shown = choose_features(planned)
    with ExitStack() as stack:
        writers = [stack.enter_context(open_writer(target)) for target in targets]

        def write(table: pa.Table) -> None:
            for writer in writers:
                writer.write(table)

        add = stack.enter_context(write_behind(write))
        tally = functools.reduce(operator.add, _write(planned, scored, shown, add))
    return shown, tally


def choose_features(planned: Planned) -> tuple[Shown, ...]:
    """Return the features that explain most of the plan, going by a sample of the customers."""
    scored = cast(LocalScored, planned.scored)
    sample = scored.sampled
    levels = np.concatenate([planned.decide(*batch)[0] for batch in scored.pick(sample.rows)])
    return choose_shown(sample.features, levels)


def _write(
    planned: Planned, scored: LocalScored, shown: Sequence[Shown], add: Callable[[pa.Table], None]
) -> Iterator[PlanTally]:
    """Write the plan batch by batch, and count each batch."""
    import pyarrow as pa

    start = 0
    for part in read_ahead(scored.source.read([one.feature for one in shown])):
        rows, curves, costs = scored.batch(start, len(part))
        start += len(part)
        decided = planned.decide(rows, curves, costs)
        paid = planned.show_costs(curves, costs)
        customer = pa.array(rows) if part.customer is None else part.customer
        table = planned.tabulate(customer, decided, curves, paid)
        add(table)
        codes = code_groups(shown, part.features)
        stops = planned.count_stops((rows, curves, costs), *number_groups(shown, codes, len(rows)))
        yield tally_codes(shown, codes, decided[0], curves, paid, stops)
        advance(start / scored.n)


@dataclass(eq=False)
class Writer:
    """An open table: rows are put together up to the size of a group, then written."""

    sink: IO[bytes]
    ending: str
    escaped: bool
    waiting: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    inner: Any = None

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        self.waiting.append(escape_formulas(table) if self.escaped else table)
        self.rows += len(table)
        while self.rows >= GROUP:
            whole = self._join()
            self._flush(whole.slice(0, GROUP))
            rest = whole.slice(GROUP)
            self.waiting, self.rows = [rest], len(rest)

    def close(self) -> None:
        """Write what is left."""
        self._flush(self._join())
        self.inner.close()
        self.inner = None

    def release(self) -> None:
        """Let go of a table that could not be finished, while its file is still open."""
        if self.inner is not None:
            with suppress(Exception):
                self.inner.close()

    def _join(self) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables(self.waiting)

    def _flush(self, table: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.csv as csv
        import pyarrow.parquet as pq

        if self.inner is None:
            if self.ending == ".csv":
                self.inner = csv.CSVWriter(self.sink, table.schema)
            elif self.ending in (".feather", ".arrow"):
                packed = pa.ipc.IpcWriteOptions(compression="lz4")
                self.inner = pa.ipc.new_file(self.sink, table.schema, options=packed)
            else:
                # Levels and costs are few; a dictionary of ids or responses would be as long as they are.
                few = ["level", "level_number", "expected_cost"]
                self.inner = pq.ParquetWriter(self.sink, table.schema, use_dictionary=few)
        if self.ending in (".csv", ".feather", ".arrow"):
            self.inner.write_table(table, 1 << 16)
        else:
            self.inner.write_table(table, row_group_size=GROUP)


@contextmanager
def open_writer(target: Target) -> Iterator[Writer]:
    """Give a table to write, in the format that the ending of the path names; it is there when the block ends well."""
    # Arrow takes only names that are UTF-8; an open file has none.
    with atomic_file(target.path) as part, part.open("wb") as sink:
        writer = Writer(sink, target.path.suffix.lower(), target.escaped)
        try:
            yield writer
            writer.close()
        finally:
            writer.release()
