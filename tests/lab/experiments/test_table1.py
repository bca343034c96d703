"""The paper's first table: rows, columns, and the paper's numbers beside."""

import json
from typing import Any

import pytest

from largesse.response import Linear
from largesse_lab.bench import measures, repeats, rows
from largesse_lab.bench.repeats import Row
from largesse_lab.bench.request import Request
from largesse_lab.experiments.table1 import EXPERIMENT, ROWS, TABLE, list_notes
from largesse_lab.page import tables
from largesse_lab.page.sections import Result, write_section


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


def test_a_summary_pairs_the_rows_that_are_to_be_ordered_the_latest_of_each_repeat() -> None:
    records = [record("Stack", i, rmse=0.1 + 0.1 * i) for i in range(3)]
    records += [record("CFRNet", i, rmse=9.0) for i in range(3)]  # measured again below
    records += [record("CFRNet", i, rmse=0.2 + 0.1 * i) for i in range(3)]
    records += [record("BART", i, rmse=0.25 + 0.1 * i) for i in range(3)]
    found = {(p["first"], p["second"]): p for p in TABLE.summarise(records)["pairs"]}
    assert set(found) == {("Stack", "CFRNet"), ("Stack", "BART"), ("CFRNet", "BART")}
    assert found["Stack", "CFRNet"]["estimate"] == pytest.approx(0.1)
    assert found["CFRNet", "BART"]["estimate"] == pytest.approx(0.05)
    assert TABLE.summarise(records + records) == TABLE.summarise(records)


def test_an_earlier_default_is_named_and_the_later_one_stands_beside_it() -> None:
    found = TABLE.summarise([record("Stack", i, **{"rmse": 0.07, "skill 3": 0.8}) for i in range(2)])
    for summary, told in ((found, False), ({**found, "stack": "0.1"}, True)):
        text = "\n".join(write_section(Result("table1", {}, summary, "table1.json"), EXPERIMENT.chapter, ".").parts)
        assert (f"- {rows.EARLIER_STACK}" in text) is told
        assert ("default of version 0.1, not today's." in EXPERIMENT.chapter.brief(summary)) is told
        assert ("| averaged | 0.0700 | 0.0670 | – | 0.683 | 0.800 | 0.770 |" in text) is told
