"""Text that a spreadsheet would take for a formula, made harmless for a CSV file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

BEGINNINGS = "=+-@\t\r\n＝＋－＠"  # what a formula can begin with


def escape_formulas(table: pa.Table) -> pa.Table:
    """Return a table whose text never begins a formula: an apostrophe is put before it. Numbers stay as they are.

    >>> import pyarrow as pa
    >>> escape_formulas(pa.table({"id": ["=1+1", "a"], "n": [-5, 5]})).to_pylist()
    [{'id': "'=1+1", 'n': -5}, {'id': 'a', 'n': 5}]
    """
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            table = table.set_column(place, field.name, _escape(table.column(place).cast(pa.large_string())))
    return table


def _escape(words: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    risky = pc.fill_null(pc.is_in(pc.utf8_slice_codeunits(words, 0, 1), pa.array(list(BEGINNINGS), words.type)), False)
    mark, nothing = pa.scalar("'", words.type), pa.scalar("", words.type)
    return pc.if_else(risky, pc.binary_join_element_wise(mark, words, nothing), words)
