"""Files of other kinds read as the same table; several tables need a query; missing libraries are named."""

import json
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.campaign import parse_campaign
from largesse.data import QueriedFile, list_reading_notes, open_batches, read_table
from largesse.data.log_reader import read_log
from largesse.errors import InputError, MissingPackageError
from largesse.levels import Levels
from largesse.pipeline import plan, run

CONTENT: dict[str, list[Any]] = {
    "age": [31, 44, 58, 29] * 5,
    "city": ["Graz", "Köln", "Wien", "Graz"] * 5,
    "coupon": [0, 5, 0, 5] * 5,
    "bought": [0, 1, 1, 0] * 5,
}


def write_excel(folder: Path) -> Path:
    pd.DataFrame(CONTENT).to_excel(folder / "log.xlsx", index=False)
    return folder / "log.xlsx"


def write_json_lines(folder: Path) -> Path:
    pd.DataFrame(CONTENT).to_json(folder / "log.jsonl", orient="records", lines=True, force_ascii=False)
    return folder / "log.jsonl"


def write_json(folder: Path) -> Path:
    (folder / "log.json").write_text(json.dumps(pd.DataFrame(CONTENT).to_dict("records")), encoding="utf-8")
    return folder / "log.json"


def write_stata(folder: Path) -> Path:
    pd.DataFrame(CONTENT).to_stata(folder / "log.dta", write_index=False, version=118)
    return folder / "log.dta"


def write_spss(folder: Path) -> Path:
    import pyreadstat

    pyreadstat.write_sav(pd.DataFrame(CONTENT), str(folder / "log.sav"))
    return folder / "log.sav"


def write_sqlite(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "shop.sqlite")) as database:
        pd.DataFrame(CONTENT).to_sql("log", database, index=False)
    return folder / "shop.sqlite"


def write_duckdb(folder: Path) -> Path:
    with duckdb.connect(str(folder / "shop.duckdb")) as database:
        database.register("given", pa.table(CONTENT))
        database.execute("CREATE TABLE log AS SELECT * FROM given")
    return folder / "shop.duckdb"


def write_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "log.zip", "w") as archive:
        archive.writestr("export/log.csv", pd.DataFrame(CONTENT).to_csv(index=False, sep=";"))
        archive.writestr("__MACOSX/export/._log.csv", "x")
    return folder / "log.zip"


def write_western(folder: Path) -> Path:
    (folder / "log.csv").write_bytes(pd.DataFrame(CONTENT).to_csv(index=False, sep=";").encode("cp1252"))
    return folder / "log.csv"


def write_late_western(folder: Path) -> Path:
    rows = pd.concat([pd.DataFrame({**CONTENT, "city": "Graz"})] * 900)
    rows.iloc[-20:, 1] = CONTENT["city"]
    (folder / "late.csv").write_bytes(rows.to_csv(index=False).encode("cp1252"))
    return folder / "late.csv"


def write_utf16(folder: Path) -> Path:
    (folder / "log.txt").write_bytes(pd.DataFrame(CONTENT).to_csv(index=False, sep="\t").encode("utf-16"))
    return folder / "log.txt"


WRITERS = [
    *(write_excel, write_json_lines, write_json, write_stata, write_spss, write_sqlite, write_duckdb, write_zip),
    *(write_western, write_late_western, write_utf16),
]


@pytest.mark.parametrize("write", WRITERS)
def test_every_kind_reads_as_the_same_table_whole_and_in_batches(write: Callable[[Path], Path], tmp_path: Path) -> None:
    file = write(tmp_path)
    for table in (read_table(file), open_batches(file).read_all()):
        columns = {name: table[name].to_pylist()[-20:] for name in table.column_names}
        assert columns == CONTENT
    log = read_log(file, level="coupon", response="bought", levels=Levels([0, 5]))
    assert len(log) == len(read_table(file))


@pytest.mark.parametrize("write", [write_western, write_late_western, write_utf16])
def test_a_guessed_encoding_is_noted(write: Callable[[Path], Path], tmp_path: Path) -> None:
    for most_rows in (None, 10):
        log = read_log(write(tmp_path), level="coupon", response="bought", levels=Levels([0, 5]), most_rows=most_rows)
        assert sum("not UTF-8" in note for note in log.notes) == 1


def test_a_damaged_utf8_file_is_not_taken_for_western(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes("city,n\nKöln,1\n".encode() + b"K\xf6ln,2\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_table(tmp_path / "log.csv")


def test_a_query_selects_rows_and_a_sheet(tmp_path: Path) -> None:
    query = "SELECT age, coupon, bought FROM log WHERE age > 30"
    for path in (write_sqlite(tmp_path), write_duckdb(tmp_path)):
        settings = {"log": str(path), "query": query, "columns": {"level": "coupon", "response": "bought"}}
        campaign = parse_campaign({**settings, "levels": {"costs": [0, 5]}, "plan": {"budget": 1}})
        assert set(read_table(campaign.source)["age"].to_pylist()) == {31, 44, 58}
        assert f"query = {json.dumps(query)}" in campaign.text
        assert campaign.with_log("log.parquet").source == "log.parquet"
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        pd.DataFrame(CONTENT).to_excel(book, sheet_name="May", index=False)
        pd.DataFrame(CONTENT).head(3).to_excel(book, sheet_name="June", index=False)
    assert len(read_table(QueriedFile(str(tmp_path / "book.xlsx"), "June"))) == 3


def many_tables(folder: Path) -> Path:
    path = write_sqlite(folder)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE other (x)")
    return path


def two_sheets(folder: Path) -> Path:
    with pd.ExcelWriter(folder / "book.xlsx") as book:
        pd.DataFrame(CONTENT).to_excel(book, sheet_name="May", index=False)
        pd.DataFrame(CONTENT).to_excel(book, sheet_name="June", index=False)
    return folder / "book.xlsx"


def two_in_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "two.zip", "w") as archive:
        archive.writestr("a.csv", "x\n1\n")
        archive.writestr("b.csv", "x\n1\n")
    return folder / "two.zip"


def write_garbage(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(b"PK\x03\x04 no such thing")
        return folder / name

    return write


def parquet_with_query(folder: Path) -> QueriedFile:
    pq.write_table(pa.table({"x": [1]}), folder / "log.parquet")
    return QueriedFile(str(folder / "log.parquet"), "SELECT 1")


def wrong_query(folder: Path) -> QueriedFile:
    return QueriedFile(str(write_sqlite(folder)), "SELECT nothing FROM nowhere")


GARBAGE = [f"t.{ending}" for ending in ("xlsx", "json", "dta", "sav", "sqlite", "duckdb", "zip")]


@pytest.mark.parametrize(
    "make", [many_tables, two_sheets, two_in_zip, parquet_with_query, wrong_query, *map(write_garbage, GARBAGE)]
)
def test_what_cannot_be_read_is_refused_by_name(make: Callable[[Path], Any], tmp_path: Path) -> None:
    source = make(tmp_path)
    name = Path(source.path if isinstance(source, QueriedFile) else source).name
    with pytest.raises(InputError, match=name):
        read_table(source)


def test_the_command_that_installs_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for write, module in ((write_excel, "openpyxl"), (write_spss, "pyreadstat"), (write_duckdb, "duckdb")):
        path = write(tmp_path)
        with monkeypatch.context() as context:
            context.setitem(sys.modules, module, None)
            with pytest.raises(MissingPackageError, match="pip install"):
                read_table(path)


def test_a_spreadsheet_column_of_numbers_and_words_is_text(tmp_path: Path) -> None:
    pd.DataFrame({"n": [1, None, 2.5, "unknown"]}).to_excel(tmp_path / "t.xlsx", index=False)
    assert read_table(tmp_path / "t.xlsx")["n"].to_pylist() == ["1", None, "2.5", "unknown"]


def test_a_named_encoding_is_used_for_the_log_and_the_customers(tmp_path: Path) -> None:
    cities = ["Москва", "Казань", "Уфа"] * 40
    rows = {"город": cities, "coupon": [0, 5] * 60, "bought": [0, 1, 1, 0] * 30}
    for name in ("log.csv", "list.csv"):
        pd.DataFrame(rows).to_csv(tmp_path / name, index=False, encoding="cp1251")
    settings: dict[str, Any] = {
        "log": str(tmp_path / "log.csv"),
        "customers": str(tmp_path / "list.csv"),
        "encoding": "cp1251",
    }
    settings |= {"columns": {"level": "coupon", "response": "bought", "features": ["город"]}}
    campaign = parse_campaign(
        {**settings, "levels": {"costs": [0, 5]}, "plan": {"budget": 1}, "model": {"name": "linear"}}
    )
    assert 'encoding = "cp1251"' in campaign.text
    for source in (campaign.source, campaign.customers_source):
        table = read_table(source)
        assert set(table["город"].to_pylist()) == set(cities)
        assert list_reading_notes(table.schema) == []
    log = read_log(campaign.source, level="coupon", response="bought", levels=Levels([0, 5]))
    assert log.features.column_names == ["город"]
    with pytest.raises(InputError, match="klingon"):
        parse_campaign({**settings, "encoding": "klingon", "levels": {"costs": [0, 5]}, "plan": {"budget": 1}})


def test_a_query_selects_the_customers_of_a_run(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as database:
        frame = pd.DataFrame(
            {"age": np.arange(300) % 50 + 20, "coupon": np.arange(300) % 2 * 5, "bought": np.arange(300) % 3 % 2}
        )
        frame.to_sql("log", database, index=False)
        frame[["age"]].head(40).to_sql("people", database, index=False)
    shop = str(tmp_path / "shop.sqlite")
    settings: dict[str, Any] = {
        "log": shop,
        "query": "SELECT * FROM log",
        "customers": shop,
        "customers_query": "SELECT age FROM people WHERE age < 50",
    }
    settings |= {"columns": {"level": "coupon", "response": "bought"}, "levels": {"costs": [0, 5]}}
    settings |= {"plan": {"budget": 1}, "model": {"name": "linear"}}
    run(parse_campaign(settings), tmp_path / "run")
    assert pq.read_table(tmp_path / "run" / "plan.parquet").num_rows == 30
    plan(tmp_path / "run", budget=2)
    assert pq.read_table(tmp_path / "run" / "plan.parquet").num_rows == 30
    with pytest.raises(InputError, match="customers_query"):
        parse_campaign({**settings, "customers": ""})
