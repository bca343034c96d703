"""Files in pieces that several machines read at once: row groups of Parquet, other files as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from largesse.data.batches import BATCH, open_batches
from largesse.data.columns import is_text
from largesse.data.formats import check_file, checked, explain, kind_of_file, open_file
from largesse.data.read import encode_text

if TYPE_CHECKING:
    import pyarrow as pa

FEW_ROWS = 500_000  # row groups are put together up to this many rows


class Piece(NamedTuple):
    """A file, or some row groups of a Parquet file."""

    path: str
    first: int = 0  # row group
    groups: int = 0  # how many; 0: the whole file
    rows: int = -1  # −1: not known before it is read


def split_file(file: Path, what: str) -> list[Piece]:
    """Return the pieces of a file in the order of its rows; refuse a file that cannot be read."""
    import pyarrow.parquet as pq

    path = str(file.absolute())
    with explain(file, what):
        check_file(file, what)
        if kind_of_file(file, what) != "parquet":
            return [Piece(path)]
        with open_file(file) as stream, pq.ParquetFile(stream) as opened:
            sizes = [opened.metadata.row_group(k).num_rows for k in range(opened.metadata.num_row_groups)]
    if not sum(sizes):
        return [Piece(path, rows=0)]  # it has columns all the same
    pieces, first = [], 0
    for k in range(1, len(sizes) + 1):
        if k == len(sizes) or sum(sizes[first : k + 1]) > FEW_ROWS:
            pieces.append(Piece(path, first, k - first, sum(sizes[first:k])))
            first = k
    return pieces


def read_piece(piece: Piece, what: str, plain: Collection[str] = (), texts: Collection[str] = ()) -> Iterator[pa.Table]:
    """Give the rows of a piece in batches, as `read_table` gives those of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = Path(piece.path)
    if not piece.groups:
        batches = open_batches(piece.path, what=what, plain=plain, texts=texts)
        yield from batches.read() if batches.rows else [batches.schema.empty_table()]
        return
    with explain(file, what):
        with open_file(file) as stream, pq.ParquetFile(stream) as opened:
            words = [field.name for field in opened.schema_arrow if is_text(field.type) and field.name not in plain]
        groups = range(piece.first, piece.first + piece.groups)
        with open_file(file) as stream, pq.ParquetFile(stream, read_dictionary=words) as opened:
            for batch in opened.iter_batches(BATCH, row_groups=groups):
                yield encode_text(checked(pa.Table.from_batches([batch])), plain)
