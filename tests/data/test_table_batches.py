"""Tables in batches: the rows, columns and types that reading them whole gives, and the same errors."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from largesse.data import (
    FilePiece,
    csv_reader,
    merge_schemas,
    open_batches,
    read_piece,
    read_table,
    split_into_pieces,
    table_batches,
)
from largesse.data.csv_reader import detect_text_format, infer_column_types, read_delimited_text
from largesse.errors import InputError

TABLE = pa.table(
    {
        "age": [*range(99), None],
        "city": ["Oslo", "Rome"] * 50,
        "id": [f"c{i}" for i in range(100)],
        "paid": [0.5] * 99 + [None],
        "none": pa.array([None] * 100, pa.string()),
    }
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_batches, "READ_BATCH_ROWS", 16)
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 300)


def packed(table: pa.Table, file: Path) -> None:
    sink = io.BytesIO()
    csv.write_csv(table, sink)
    file.write_bytes(gzip.compress(sink.getvalue()))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": lambda table, file: pq.write_table(table, file, row_group_size=7),
    "csv": csv.write_csv,
    "csv.gz": packed,
    "arrow": feather.write_feather,
}


def joined(found: table_batches.TableBatches, columns: list[str] | None = None) -> pa.Table:
    parts = list(found.read(columns))
    assert max(map(len, parts), default=0) <= 16
    schema = found.schema if columns is None else pa.schema([found.schema.field(name) for name in columns])
    assert all(part.schema.equals(schema) for part in parts)
    return pa.concat_tables([schema.empty_table(), *parts])


@pytest.mark.parametrize("kind", WRITERS)
def test_batches_hold_the_rows_of_the_table_in_order(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"t.{kind}"
    WRITERS[kind](TABLE, file)
    whole, found = read_table(file, plain=["id"]), open_batches(file, plain=["id"])
    assert found.rows == 100
    assert found.schema.types == whole.schema.types
    for _ in range(2):  # every pass gives the same
        assert joined(found).to_pydict() == whole.to_pydict()
    assert joined(found, ["paid", "city"]).to_pydict() == whole.select(["paid", "city"]).to_pydict()
    in_memory = open_batches(TABLE, plain=["id"])
    assert joined(in_memory).to_pydict() == TABLE.to_pydict()
    assert in_memory.schema.types == read_table(TABLE, plain=["id"]).schema.types


@pytest.mark.parametrize("kind", WRITERS)
def test_files_of_a_folder_get_the_types_that_they_have_together(kind: str, tmp_path: Path) -> None:
    first = TABLE.slice(0, 30).set_column(4, "none", pa.nulls(30, pa.string()))
    second = TABLE.slice(30, 0)
    third = (
        TABLE.slice(30).set_column(0, "age", pa.array(np.arange(70) + 0.5)).set_column(4, "none", pa.array(["x"] * 70))
    )
    third = third.select(["paid", "age", "city", "id", "none"])
    for k, table in enumerate((first, second, third)):
        WRITERS[kind](table, tmp_path / f"{k}.{kind}")
    whole, found = read_table(tmp_path, plain=["id"]), open_batches(tmp_path, plain=["id"])
    assert found.schema.types == whole.schema.types
    assert joined(found).to_pydict() == whole.to_pydict()
    assert found.rows == 100


SHOWN = ["", "1", "0", "-7", "true", "false", "2.5", "1e3", "2024-01-31", "10:30:00", "2024-01-31 10:00:00"]
SHOWN += ["2024-01-31T10:00:00.5", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00.25Z", "x", "it's", 'a "b"', "NA", "é"]


@pytest.mark.parametrize("seed", range(60))
def test_types_of_a_csv_are_those_that_arrow_finds_in_the_whole_file(seed: int) -> None:
    rng = np.random.default_rng(seed)
    used = rng.choice(SHOWN, size=int(rng.integers(1, 4)), replace=False)
    late = rng.choice(SHOWN)
    values = [*rng.choice(used, size=200), late, *rng.choice(used, size=100)]
    quoted = ['"' + value.replace('"', '""') + '"' if set(value) & set("\"'") else value for value in values]
    text = "k,x\n" + "".join(f"{i},{value}\n" for i, value in enumerate(quoted))
    written = detect_text_format(lambda: pa.BufferReader(text.encode()), text[:200], ())
    settled, whole = infer_column_types(written), read_delimited_text(written)
    assert settled.schema == whole.schema
    assert settled.rows == len(whole)
    assert pa.Table.from_batches(list(csv_reader.iterate_text_blocks(settled))).equals(whole)


def test_line_breaks_in_late_quotes_are_read(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n" + "1,x\n" * 500 + '2,"two\nlines"\n' + "3,y\n" * 500)
    assert joined(open_batches(file)).to_pydict() == read_table(file).to_pydict()


BAD: dict[str, Callable[[Path], Any]] = {
    "cut off": lambda folder: cut(folder / "b.parquet"),
    "ragged": lambda folder: (folder / "b.csv").write_text("age,city\n" + "1,x\n" * 300 + "1,x,y\n"),
    "no encoding": lambda folder: (folder / "b.csv").write_bytes(b"age,city\n" + b"1,x\n" * 300 + b"1,Z\x81\xfcrich\n"),
    "empty": lambda folder: (folder / "b.csv").write_text(""),
    "not gzip": lambda folder: (folder / "b.csv.gz").write_text("age,city\n1,x\n"),
    "other columns": lambda folder: (folder / "b.csv").write_text("age,town\n1,x\n"),
    "other types": lambda folder: (folder / "b.csv").write_text("age,city\nold,x\n"),
}


def cut(file: Path) -> None:
    pq.write_table(pa.table({"age": [1, 2], "city": ["x", "y"]}), file)
    file.write_bytes(file.read_bytes()[:-20])


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_in_the_middle_of_a_folder_is_refused_in_the_same_words(case: str, tmp_path: Path) -> None:
    for name in ("a", "c"):
        (tmp_path / f"{name}.csv").write_text("age,city\n" + "1,x\n" * 20)
    BAD[case](tmp_path)
    with pytest.raises(InputError) as whole:
        read_table(tmp_path, what="log")
    with pytest.raises(InputError) as found:
        list(open_batches(tmp_path, what="log").read())
    assert str(found.value) == str(whole.value)


def test_a_file_that_changes_between_two_passes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,2\n")
    found = open_batches(file, what="log")
    assert sum(map(len, found.read())) == 1
    file.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InputError, match="changed"):
        list(found.read())
    file.unlink()
    with pytest.raises(InputError, match="changed"):
        list(found.read())


@pytest.mark.parametrize("kind", WRITERS)
def test_few_values_are_known_without_reading_them(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"t.{kind}"
    WRITERS[kind](TABLE, file)
    max_cells, max_rows = table_batches.bound_value_and_row_counts(file)
    assert 500 <= max_cells < 100_000  # never less than it has
    assert 100 <= max_rows < 100_000
    assert (
        table_batches.bound_value_and_row_counts(TABLE)
        == table_batches.bound_value_and_row_counts(open_batches(TABLE))
        == (500, 100)
    )


# -- pieces --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [100, 30, 7])
@pytest.mark.parametrize("few", [1, 20, 1000])
def test_the_pieces_of_a_parquet_file_hold_its_rows_in_order(
    groups: int, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_batches, "MAX_PIECE_ROWS", few)
    file = tmp_path / "t.parquet"
    pq.write_table(TABLE, file, row_group_size=groups)
    found = split_into_pieces(file, "table")
    if few == 1:
        assert len(found) == -(-100 // groups)
    if few == 1000:
        assert len(found) == 1
    parts = [batch for piece in found for batch in read_piece(piece, "table", plain=["id"])]
    assert max(map(len, parts)) <= 16
    whole = read_table(file, plain=["id"])
    assert pa.concat_tables(parts).to_pydict() == whole.to_pydict()
    assert parts[0].schema.types == whole.schema.types


def test_other_files_and_files_without_rows_are_one_piece(tmp_path: Path) -> None:
    csv.write_csv(TABLE, file := tmp_path / "t.csv")
    assert split_into_pieces(file, "table") == [FilePiece(str(file))]
    parts = list(read_piece(FilePiece(str(file)), "table"))
    assert pa.concat_tables(parts).to_pydict() == read_table(file).to_pydict()
    for kind in ("parquet", "arrow"):
        WRITERS[kind](TABLE.slice(0, 0), tmp_path / f"t.{kind}")
        (piece,) = split_into_pieces(tmp_path / f"t.{kind}", "table")
        (table,) = read_piece(piece, "table")
        assert table.num_rows == 0
        assert table.column_names == TABLE.column_names


def test_a_page_that_is_damaged_is_refused_when_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(TABLE, file, compression="zstd")
    content = bytearray(file.read_bytes())
    content[40:90] = bytes(50)
    file.write_bytes(content)
    (piece,) = split_into_pieces(file, "log")
    with pytest.raises(InputError, match="damaged"):
        list(read_piece(piece, "log"))


def test_schemas_of_several_files_are_merged_or_refused() -> None:
    files = [Path("a.csv"), Path("b.csv")]
    first, second = pa.schema({"age": pa.int32()}), pa.schema({"age": pa.float64()})
    assert merge_schemas(files, [first, second], "log") == second
    with pytest.raises(InputError, match=r"'age' .*2 files"):
        merge_schemas(files, [first, pa.schema({"age": pa.string()})], "log")
    with pytest.raises(InputError, match=r"b.csv .*a.csv .*: city"):
        merge_schemas(files, [first, pa.schema({"age": pa.int32(), "city": pa.string()})], "log")
