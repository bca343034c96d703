"""One table, every form: whatever a user has in hand reads as the same Arrow table."""

import datetime as dt
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from largesse.data import open_batches
from largesse.data.log_reader import read_log
from largesse.data.table_reader import read_table
from largesse.errors import InputError
from largesse.levels import Levels

TEXT = pa.dictionary(pa.int32(), pa.string())
CONTENT: dict[str, list[Any]] = {
    "age": [31, 44, 58, 29, 63],
    "income": [1.5, -2.25, None, 0.125, 1e6],
    "city": ["Oslo", "Rome", None, "Oslo", "São Paulo"],
    "loyal": [True, False, True, None, False],
    "since": [dt.date(2020, 1, 31), dt.date(2021, 2, 28), None, dt.date(1999, 12, 31), dt.date(2024, 2, 29)],
}
TYPES = {"age": pa.int64(), "income": pa.float64(), "city": pa.string(), "loyal": pa.bool_(), "since": pa.date32()}


def plain() -> pa.Table:
    return pa.table({name: pa.array(values, type=TYPES[name]) for name, values in CONTENT.items()})


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": CONTENT["age"],
            "income": CONTENT["income"],
            "city": CONTENT["city"],
            "loyal": pd.array(CONTENT["loyal"], dtype="boolean"),
            "since": pd.Series(CONTENT["since"], dtype=object),
        }
    )


def delimited(separator: str = ",", point: str = ".", end: str = "\n", mark: str = "") -> bytes:
    def cell(value: Any) -> str:
        if value is None:
            return ""
        return str(value).replace(".", point) if isinstance(value, float) else str(value)

    rows = zip(*CONTENT.values(), strict=True)
    lines = [separator.join(CONTENT), *(separator.join(map(cell, row)) for row in rows)]
    return (mark + end.join(lines) + end).encode()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def parquet(folder: Path) -> Path:
    pq.write_table(plain(), folder / "t.parquet")
    return folder / "t.parquet"


def without_ending(folder: Path) -> Path:
    return parquet(folder).rename(folder / "table")


def arrow_file(folder: Path) -> Path:
    with pa.OSFile(str(folder / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, plain().schema) as out:
        out.write_table(plain())
    return folder / "t.arrow"


def arrow_stream(folder: Path) -> Path:
    with pa.OSFile(str(folder / "t.arrow"), "wb") as sink, pa.ipc.new_stream(sink, plain().schema) as out:
        out.write_table(plain())
    return folder / "t.arrow"


def feather_file(folder: Path) -> Path:
    feather.write_feather(plain(), str(folder / "t.feather"))
    return folder / "t.feather"


def parts(folder: Path) -> Path:
    pq.write_table(plain().slice(0, 2), folder / "part-0.parquet")
    pq.write_table(plain().slice(2), folder / "part-1.parquet")
    write(folder / "_SUCCESS", b"")  # what Spark leaves beside its parts
    write(folder / ".part-0.parquet.crc", b"x")
    return folder


def parts_of_two_kinds(folder: Path) -> str:
    write(folder / "a.csv", delimited())
    pq.write_table(plain().slice(0, 0), folder / "b.parquet")
    return str(folder / "?.*")


def columns_in_another_order(folder: Path) -> str:
    pq.write_table(plain().slice(0, 2), folder / "0.parquet")
    pq.write_table(plain().slice(2).select(list(CONTENT)[::-1]), folder / "1.parquet")
    return str(folder / "*.parquet")


def numbers_as_names(_: Path) -> pd.DataFrame:
    return frame().set_axis([0, 1, 2, 3, 4], axis=1)


ENGINES: dict[str, Callable[[Path], Any]] = {
    "parquet": parquet,
    "parquet as text": lambda folder: str(parquet(folder)),
    "parquet without an ending": without_ending,
    "parquet with codes": lambda folder: (
        pq.write_table(read_table(plain()), folder / "d.parquet"),
        folder / "d.parquet",
    )[1],
    "csv": lambda folder: write(folder / "t.csv", delimited()),
    "csv in capitals": lambda folder: write(folder / "T.CSV", delimited()),
    "csv from Windows": lambda folder: write(folder / "t.csv", delimited(end="\r\n", mark="\ufeff")),
    "csv.gz": lambda folder: write(folder / "t.csv.gz", gzip.compress(delimited())),
    "CSV.GZ": lambda folder: write(folder / "T.CSV.GZ", gzip.compress(delimited())),
    "semicolons and decimal commas": lambda folder: write(folder / "t.csv", delimited(";", ",")),
    "semicolons and decimal commas from Excel": lambda folder: write(
        folder / "t.csv", delimited(";", ",", "\r\n", "\ufeff")
    ),
    "semicolons and decimal points": lambda folder: write(folder / "t.csv", delimited(";")),
    "tabs": lambda folder: write(folder / "t.tsv", delimited("\t")),
    "bars": lambda folder: write(folder / "t.txt", delimited("|")),
    "arrow file": arrow_file,
    "arrow stream": arrow_stream,
    "feather": feather_file,
    "folder": parts,
    "folder in capitals": lambda folder: write(folder / "T.CSV", delimited()).parent,
    "glob": lambda folder: str(parts(folder) / "part-*.parquet"),
    "glob of a folder": lambda folder: ((folder / "in").mkdir(), parts(folder / "in"), str(folder / "i*"))[2],
    "glob of two kinds": parts_of_two_kinds,
    "glob, columns in another order": columns_in_another_order,
    "pyarrow table": lambda _: plain(),
    "pyarrow table in chunks": lambda _: pa.concat_tables([plain().slice(0, 1), plain().slice(1)]),
    "pyarrow batch": lambda _: plain().to_batches()[0],
    "large strings": lambda _: plain().set_column(2, "city", plain()["city"].cast(pa.large_string())),
    "string views": lambda _: plain().set_column(2, "city", plain()["city"].cast(pa.string_view())),
    "dict": lambda _: CONTENT,
    "pandas": lambda _: frame(),
    "pandas with object columns": lambda _: frame().astype({"city": object}),
    "pandas with categories": lambda _: frame().astype({"city": "category", "age": "category"}),
    "pandas with nullable types": lambda _: frame().astype({"age": "Int64", "income": "Float64", "city": "string"}),
    "pandas with arrow types": lambda _: plain().to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with a shuffled index": lambda _: frame().set_axis([3, 1, 4, 0, 2], axis=0),
    "pandas with numbers as names": numbers_as_names,
    "pandas with a named index": lambda _: frame().set_index("age"),
    "polars": lambda _: pl.DataFrame(CONTENT, strict=False),
    "polars, lazy": lambda _: pl.LazyFrame(CONTENT, strict=False),
    "polars with categories": lambda _: pl.DataFrame(CONTENT, strict=False).with_columns(
        pl.col("city").cast(pl.Categorical)
    ),
    "polars with an enumeration": lambda _: pl.DataFrame(CONTENT, strict=False).with_columns(
        pl.col("city").cast(pl.Enum(["Rome", "Oslo", "São Paulo", "Bern"]))
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_form_of_source_gives_the_same_table(engine: str, tmp_path: Path) -> None:
    table = read_table(ENGINES[engine](tmp_path))
    if engine == "pandas with numbers as names":
        assert table.column_names == ["0", "1", "2", "3", "4"]
        table = table.rename_columns(list(CONTENT))
    assert table.column_names == list(CONTENT)
    assert table.to_pydict() == CONTENT
    assert table.schema.field("city").type == TEXT
    assert not any(pa.types.is_dictionary(table.schema.field(name).type) for name in CONTENT if name != "city")


def test_dates_with_times_and_zones_come_through_pandas_and_polars() -> None:
    stamps = [dt.datetime(2024, 5, 1, 12, 30), None]
    naive = read_table(pd.DataFrame({"at": pd.to_datetime(pd.Series(stamps))}))
    zoned = read_table(pd.DataFrame({"at": pd.to_datetime(pd.Series(stamps)).dt.tz_localize("Europe/Oslo")}))
    lazy = read_table(pl.LazyFrame({"at": stamps}))
    assert pa.types.is_timestamp(naive["at"].type)
    assert zoned["at"].type.tz == "Europe/Oslo"
    assert naive["at"].to_pylist() == lazy["at"].to_pylist() == stamps


def test_text_keeps_line_breaks_inside_quotes_however_late(tmp_path: Path) -> None:
    early = read_table(write(tmp_path / "early.csv", b'a,b\n1,"x\ny"\n2,z\n'))
    assert early["b"].to_pylist() == ["x\ny", "z"]
    # A break that falls on the border of two of Arrow's blocks of a megabyte.
    line = b"1," + b"x" * 97 + b"\n"
    body = line * 10485 + b'1,"' + (b"y" * 30 + b"\n") * 40 + b'"\n' + line * 20
    late = read_table(write(tmp_path / "late.csv", b"a,b\n" + body))
    assert late.num_rows == 10485 + 1 + 20


@pytest.mark.parametrize("place", ["header", "field"])
def test_a_line_may_be_longer_than_a_block(place: str, tmp_path: Path) -> None:
    path, long = tmp_path / "long.csv", "a" * 1_500_000
    header, field = (long, "b") if place == "header" else ("note", long)
    path.write_text(f"x,{header}\n1,{field}\n2,c\n")
    table = read_table(path)
    assert table.column_names == ["x", header]
    assert table[header].to_pylist() == [field, "c"]
    path.write_text("x,note\n1," + "a" * (1 << 27))
    with pytest.raises(InputError, match="64 MiB"):
        read_table(path)


def test_a_number_column_that_turns_to_text_late_is_text(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", b"a,b\n" + b"1,2\n" * 300_000 + b"x,2.5\n"))
    assert table.schema.field("a").type == TEXT
    assert table.schema.field("b").type == pa.float64()


def test_missing_words_odd_names_and_large_integers_are_kept(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", b"a,b\nNA,x\n,NULL\n3,\nnan,N/A\n"))
    assert table["a"].null_count == 3
    assert table["b"].to_pylist() == ["x", None, None, None]
    table = read_table(write(tmp_path / "t.csv", '"total, net",größe (m²), a \n1,2,3\n'.encode()))
    assert table.column_names == ["total, net", "größe (m²)", " a "]
    ids = [2**53 + 1, 2**53 + 3, -(2**62) - 1]
    text = "id\n" + "\n".join(map(str, ids)) + "\n"
    for source in (write(tmp_path / "t.csv", text.encode()), pd.DataFrame({"id": ids}), pl.DataFrame({"id": ids})):
        assert read_table(source)["id"].to_pylist() == ids


def test_files_share_one_dictionary(tmp_path: Path) -> None:
    for i, words in enumerate((["b", "a"], ["a", "c"])):
        pq.write_table(pa.table({"w": words}), tmp_path / f"{i}.parquet")
    table = read_table(tmp_path)
    assert table["w"].to_pylist() == ["b", "a", "a", "c"]
    assert len({tuple(chunk.dictionary.to_pylist()) for chunk in table["w"].chunks}) == 1


def test_a_column_that_one_file_leaves_empty_takes_its_type_from_the_others(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", b"x,y,z\n1,,\n")
    write(tmp_path / "b.csv", b"x,y,z\n1.5,b,2020-01-01\n")
    table = read_table(tmp_path)
    assert table.to_pydict() == {"x": [1.0, 1.5], "y": [None, "b"], "z": [None, dt.date(2020, 1, 1)]}


def test_the_source_table_is_left_as_it_was() -> None:
    given, before = frame(), frame()
    read_table(given)
    pd.testing.assert_frame_equal(given, before)


@pytest.mark.parametrize("ending", [".csv.gz", ".parquet", ".arrow"])
def test_a_table_larger_than_memory_is_refused(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.data.table_reader.read_memory_limit", lambda: 1_000_000)
    file, table = tmp_path / f"log{ending}", pa.table({"a": np.zeros(1_000_000), "b": pa.nulls(1_000_000, pa.string())})
    if ending == ".csv.gz":
        file.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    elif ending == ".parquet":
        pq.write_table(table, file)
    else:
        feather.write_feather(table, file, compression="zstd")
    assert file.stat().st_size < 1_000_000
    with pytest.raises(InputError, match=r"1\.0 MB"):
        read_table(file)
    if ending != ".arrow":
        assert open_batches(file).rows == 1_000_000


def test_a_name_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    write(tmp_path / "caf\udce9.csv", b"a\n1\n")
    with (tmp_path / "caf\udce9.parquet").open("wb") as stream:
        pq.write_table(pa.table({"a": [1]}), stream)
    for ending in (".csv", ".parquet"):
        assert read_table(tmp_path / f"caf\udce9{ending}").column("a").to_pylist() == [1]


def test_errors_are_short_and_without_control_characters() -> None:
    with pytest.raises(InputError, match="converted") as caught:
        read_table({"a": [1.5, "x" * 5000]}, what="log")
    assert len(str(caught.value)) < 500
    with pytest.raises(InputError) as caught:
        read_log({"a\x1b[2J": [1]}, level="\x1b]0;x\x07", response="a", levels=Levels(costs=[0, 1]))
    assert not {"\x1b", "\x07"} & set(str(caught.value))
