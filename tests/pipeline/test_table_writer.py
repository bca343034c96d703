"""Tables read back as they were written; CSV for spreadsheets holds no formulas."""

import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.data import read_table
from largesse.pipeline import convert_plan_to_csv, plan
from largesse.pipeline.table_writer import escape_formulas, write_table

RISKY = ['=HYPERLINK("http://x")', "+1", "-5", "@SUM(A1)", "\t=1", "\r=1", "＝1"]
FINE = ["a", "", "1+1", "a=1", "'=1", None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_only_text_that_begins_a_formula_gets_an_apostrophe(kind: pa.DataType) -> None:
    numbers = pa.table({"n": [-5, 3], "x": [-0.5, 1.0]})
    assert escape_formulas(numbers).equals(numbers)
    words = pa.table({"id": pa.array(RISKY + FINE).cast(kind)})
    escaped = [f"'{word}" for word in RISKY] + FINE
    assert escape_formulas(words)["id"].to_pylist() == escaped
    plan, sink = io.BytesIO(), io.BytesIO()
    pq.write_table(words.append_column("n", pa.array(range(len(escaped)))), plan)
    convert_plan_to_csv(plan, sink)
    assert [row["n"] for row in csv.read_csv(io.BytesIO(sink.getvalue())).to_pylist()] == list(range(len(escaped)))
    assert sink.getvalue().count(b"\"'") == len(RISKY) + 1


@pytest.mark.parametrize("raw", [False, True])
def test_a_plan_in_csv_is_escaped_unless_ids_are_wanted_raw(raw: bool, run_copy: Path, tmp_path: Path) -> None:
    dates = pa.array([0, 1, 2], pa.date32())
    shop = pa.table({"id": ["=1+1", "b", "c"], "age": [30.0, 40, 50], "city": ["Oslo"] * 3, "since": dates})
    pq.write_table(shop, tmp_path / "customers.parquet")
    plan(run_copy, str(tmp_path / "customers.parquet"), out=tmp_path / "plan.csv", raw_ids=raw)
    assert csv.read_csv(tmp_path / "plan.csv")["customer"][0].as_py() == ("=1+1" if raw else "'=1+1")
    plan(run_copy, str(tmp_path / "customers.parquet"), out=tmp_path / "plan.parquet", raw_ids=raw)
    assert pq.read_table(tmp_path / "plan.parquet")["customer"][0].as_py() == "=1+1"


@pytest.mark.parametrize("ending", ["parquet", "pq", "csv", "feather", "arrow"])
def test_a_written_table_reads_back_the_same(ending: str, tmp_path: Path) -> None:
    table = pa.table({"customer": [1, 2], "expected_cost": [0.5, 1.5]})
    write_table(table, tmp_path / f"plan.{ending}")
    assert read_table(tmp_path / f"plan.{ending}").to_pydict() == table.to_pydict()
    odd = tmp_path / os.fsdecode(b"caf\xe9." + ending.encode())  # a name that is not UTF-8
    write_table(table, odd)
    assert odd.read_bytes() == (tmp_path / f"plan.{ending}").read_bytes()
