"""A plan as CSV holds no text that a spreadsheet would compute; numbers stay numbers, other formats hold the ids as they are."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.data import read_table
from largesse.pipeline import plan
from largesse.pipeline.table_writer import escape_formulas, write_table

RISKY = ['=HYPERLINK("http://x")', "+1", "-5", "@SUM(A1)", "\t=1", "\r=1", "＝1"]
FINE = ["a", "", "1+1", "a=1", "'=1", None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_only_text_that_begins_a_formula_gets_an_apostrophe(kind: pa.DataType) -> None:
    found = escape_formulas(pa.table({"id": pa.array(RISKY + FINE).cast(kind)}))["id"].to_pylist()
    assert found == [f"'{word}" for word in RISKY] + FINE


def test_numbers_stay_numbers() -> None:
    table = pa.table({"id": [-5, 3], "x": [-0.5, 1.0]})
    assert escape_formulas(table).equals(table)


@pytest.mark.parametrize(("raw", "expected"), [(False, "'=1+1"), (True, "=1+1")])
def test_a_plan_in_csv_is_escaped_unless_ids_are_wanted_raw(
    raw: bool, expected: str, run_copy: Path, tmp_path: Path
) -> None:
    shop = pa.table(
        {
            "id": ["=1+1", "b", "c"],
            "age": [30.0, 40, 50],
            "city": ["Oslo"] * 3,
            "since": pa.array([0, 1, 2], pa.date32()),
        }
    )
    pq.write_table(shop, tmp_path / "customers.parquet")
    plan(run_copy, str(tmp_path / "customers.parquet"), out=tmp_path / "plan.csv", raw_ids=raw)
    assert csv.read_csv(tmp_path / "plan.csv")["customer"][0].as_py() == expected
    assert pq.read_table(run_copy / "plan.parquet")["customer"][0].as_py() == "=1+1"


@pytest.mark.parametrize("ending", ["parquet", "pq", "csv", "feather", "arrow"])
def test_a_written_table_reads_back_the_same(ending: str, tmp_path: Path) -> None:
    table = pa.table({"customer": [1, 2], "expected_cost": [0.5, 1.5]})
    write_table(table, tmp_path / f"plan.{ending}")
    assert read_table(tmp_path / f"plan.{ending}").to_pydict() == table.to_pydict()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".feather"])
def test_a_table_is_written_under_a_name_that_is_not_utf8(tmp_path: Path, ending: str) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9" + ending.encode())
    write_table(pa.table({"age": [31, 44]}), path)
    write_table(pa.table({"age": [31, 44]}), tmp_path / f"plain{ending}")
    assert path.read_bytes() == (tmp_path / f"plain{ending}").read_bytes()
