"""Files in pieces: all rows, in order, as `read_table` reads them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from largesse.data import Piece, chunked, merge_schemas, read_piece, read_table, split_file
from largesse.errors import InputError

TABLE = pa.table({"age": list(range(100)), "city": ["Oslo", "Rome"] * 50, "id": [f"c{i}" for i in range(100)]})


@pytest.mark.parametrize("groups", [100, 30, 7])
@pytest.mark.parametrize("few", [1, 20, 1000])
def test_the_pieces_of_a_parquet_file_hold_its_rows_in_order(
    groups: int, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "PIECE_ROWS", few)
    monkeypatch.setattr(chunked, "BATCH_ROWS", 9)
    file = tmp_path / "t.parquet"
    pq.write_table(TABLE, file, row_group_size=groups)
    found = split_file(file, "table")
    if few == 1:
        assert len(found) == -(-100 // groups)
    if few == 1000:
        assert len(found) == 1
    parts = [batch for piece in found for batch in read_piece(piece, "table", plain=["id"])]
    assert max(map(len, parts)) <= 9
    whole = read_table(file, plain=["id"])
    assert pa.concat_tables(parts).to_pydict() == whole.to_pydict()
    assert parts[0].schema.types == whole.schema.types


def test_other_files_are_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "BATCH_ROWS", 9)
    file = tmp_path / "t.csv"
    csv.write_csv(TABLE, file)
    assert split_file(file, "table") == [Piece(str(file))]
    parts = list(read_piece(Piece(str(file)), "table"))
    assert pa.concat_tables(parts).to_pydict() == read_table(file).to_pydict()


def test_a_file_without_rows_is_a_piece_with_columns(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.arrow"):
        file = tmp_path / name
        (pq.write_table if name == "t.parquet" else feather.write_feather)(TABLE.slice(0, 0), file)
        (piece,) = split_file(file, "table")
        (table,) = read_piece(piece, "table")
        assert table.num_rows == 0
        assert table.column_names == TABLE.column_names


def test_a_file_that_is_cut_off_is_refused_as_it_is_in_one_piece(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(TABLE, file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError) as whole:
        read_table(file, what="log")
    with pytest.raises(InputError) as split:
        split_file(file, "log")
    assert str(split.value) == str(whole.value)


def test_a_page_that_is_damaged_is_refused_when_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(TABLE, file, compression="zstd")
    content = bytearray(file.read_bytes())
    content[40:90] = bytes(50)
    file.write_bytes(content)
    (piece,) = split_file(file, "log")
    with pytest.raises(InputError, match="is damaged or cut off"):
        list(read_piece(piece, "log"))


def test_schemas_of_several_files_are_merged_or_refused() -> None:
    files = [Path("a.csv"), Path("b.csv")]
    first, second = pa.schema({"age": pa.int32()}), pa.schema({"age": pa.float64()})
    assert merge_schemas(files, [first, second], "log") == second
    with pytest.raises(InputError, match="'age' has different types in the 2 files"):
        merge_schemas(files, [first, pa.schema({"age": pa.string()})], "log")
    with pytest.raises(InputError, match=r"b.csv and a.csv do not have the same columns: city"):
        merge_schemas(files, [first, pa.schema({"age": pa.int32(), "city": pa.string()})], "log")
