"""The paper's first table: rows, columns, and the paper's numbers beside."""

import json
from typing import Any

import pytest

from largesse.response import Linear
from largesse_lab.experiments.table1 import ROWS, TABLE, list_notes
from largesse_lab.page import tables
from largesse_lab.runner import measures, repeats
from largesse_lab.runner import methods as rows
from largesse_lab.runner.repeats import Row
from largesse_lab.runner.request import Request


def test_rows_and_groups_are_measured_with_their_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "TRAIN", 300)
    monkeypatch.setattr(measures, "FRESH", 300)
    monkeypatch.setattr(repeats, "FEW", 30)
    monkeypatch.setitem(ROWS, "logistic", Row(lambda: Linear(penalty=0.1), group="simple", small={"penalty": 0.5}))
    monkeypatch.setitem(ROWS, "additive", Row(lambda: Linear(penalty=0.1), group="simple"))
    found = TABLE.measure(Request(("averaged",), ("simple",), 1))
    assert [record["row"] for record in found] == [name for name, row in ROWS.items() if row.group == "simple"]
    summary = TABLE.summarise(found)
    assert summary["small"] == 1  # one row is smaller without a GPU
    assert rows.SMALL in list_notes(summary)
    assert summary["programme"]["n"] == len(found) - 2  # plans of all but the uniform and the random row
    assert "The paper plans by a dynamic programme" in TABLE.tabulate(found)


def test_the_seed_of_a_repeat_reaches_the_networks() -> None:
    assert repeats.list_fits(ROWS["CCPOvIRE"], repeats.simulate_unit("averaged", 1), {})[0].model.seed == 1


def record(row: str, repeat: int, **cells: Any) -> dict[str, Any]:
    return {"simulation": "averaged", "repeat": repeat, "row": row, **cells}


def test_a_summary_compares_rows_on_the_repeats_they_share() -> None:
    records = [record("CCPOvSIRE", i, rmse=0.1 + 0.01 * i) for i in range(3)]
    records += [record("CFRNet", i, rmse=0.2 + 0.01 * i + 0.001 * (-1) ** i) for i in range(2)]
    found = TABLE.summarise(records)["simulations"]["averaged"]
    assert found["CCPOvSIRE"]["cells"]["rmse"] == pytest.approx({"mean": 0.11, "sd": 0.01, "n": 3})
    against = found["CFRNet"]["against"]["rmse"]
    assert against["difference"] == pytest.approx(0.1)
    assert against["n"] == 2
    assert against["low"] < 0.1 < against["high"]
    assert found["CFRNet"]["cells"]["√pehe"] is None
    json.dumps(TABLE.summarise(records), allow_nan=False)


def test_the_search_of_a_grid_is_no_row_of_the_table() -> None:
    records = [record("CFRNet", 0, rmse=0.1), record("CFRNet grid", 0, losses={"levels": [1.0]})]
    assert list(TABLE.summarise(records)["simulations"]["averaged"]) == ["CFRNet"]


def test_the_papers_numbers_stand_beside() -> None:
    text = TABLE.tabulate([record("CCPOvIRE", 0, rmse=0.5), record("random", 0, rmse=None)])
    row = next(line for line in text.splitlines() if line.startswith("| CCPOvIRE |"))
    assert "0.5000" in row
    assert row.endswith("| 0.0385 ± 0.0011 | 0.1059 ± 0.0165 | 0.6074 ± 0.0011 |")
    assert tables.average([{"a": float("nan")}, {"a": 2.0}], "a") == {"mean": 2.0, "sd": None, "n": 1}
