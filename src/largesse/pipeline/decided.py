"""Tables of decisions, of a plan or a ledger, which are joined by the customers' ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from largesse.errors import Problem, fail
from largesse.pipeline.planned import Target
from largesse.pipeline.writing import open_writer

if TYPE_CHECKING:
    import pyarrow as pa

PROPENSITY, REQUEST, CUSTOMER = "propensity", "request", "customer"


def join_ids(table: pa.Table, key: str, *, requests: bool) -> pa.ChunkedArray:
    """Return the ids of a table as text; with `requests`, each begins with the id of the request."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def as_text(name: str) -> pa.ChunkedArray:
        if table.column_names.count(name) > 1:
            fail("tables", Problem(f"a table has two columns {name!r}", "rename one of them"))
        try:
            return pc.cast(table[name], pa.string())
        except pa.ArrowException:
            hint = "give ids as text or whole numbers"
            fail("tables", Problem(f"the column {name!r} holds no ids, but {table[name].type}", hint))

    ids = as_text(key)
    return pc.binary_join_element_wise(as_text(REQUEST), ids, "\x1f") if requests else ids


def come_once(table: pa.Table, key: str = CUSTOMER) -> bool:
    """Whether no customer has two rows."""
    import pyarrow.compute as pc

    return int(pc.count_distinct(table[key]).as_py()) == len(table)


def write_table(table: pa.Table, out: Path) -> None:
    """Write a table to a file, in the format that its name says."""
    with open_writer(Target(out)) as writer:
        writer.write(table)
