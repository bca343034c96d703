"""The paper's tables: their methods, settings, records, notes, and the paper's numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.response import Balance, Linear
from largesse_lab.experiments import table1, table2
from largesse_lab.experiments.table2 import TABLE2_BUDGETS
from largesse_lab.runner import method_measurement
from largesse_lab.runner.experiment_request import Request
from largesse_lab.runner.method_measurement import Method
from largesse_lab.runner.paper_methods import CPU_NOTE, METHOD_GROUPS, match_methods

FAST = ("Thresholds", "per-level mean", "per-level mean + PAVA", "uniform level", "random", "oracle")


# -- the methods -------------------------------------------------------------------------------------------------------


def test_both_tables_have_the_same_methods_except_thresholds() -> None:
    assert [name for name in table2.TABLE2_METHODS if name != "Thresholds"] == list(table1.TABLE1_METHODS)
    for name in [name for name in table1.TABLE1_METHODS if name.startswith("CCPO")]:
        narrow, wide = (methods[name].make() for methods in (table1.TABLE1_METHODS, table2.TABLE2_METHODS))
        assert wide.get_params() == narrow.set_params(network__width=1024).get_params()
    assert table1.TABLE1_METHODS["CFRNet"] == table2.TABLE2_METHODS["CFRNet"]
    assert set(table1.TABLE1_PUBLISHED) == set(table2.TABLE2_PUBLISHED) == set(list(table1.TABLE1_METHODS)[:8])
    for methods in (table1.TABLE1_METHODS, table2.TABLE2_METHODS):
        assert sorted(match_methods(methods, METHOD_GROUPS)) == sorted(methods)  # groups hold every method once


@pytest.mark.parametrize("name", ["CCPOvSIRE", "CCPOvIRE"])
def test_the_papers_methods_have_its_penalty_and_differ_from_the_normalised_ones_by_that_alone(name: str) -> None:
    plain, normalised, without = (table1.TABLE1_METHODS[name + mark].make() for mark in ("", ", normalised", "†"))
    assert (plain.balance.normalise, plain.kappa) == (False, "auto")
    assert normalised.get_params() == plain.set_params(balance__normalise="auto").get_params()
    assert without.get_params() == normalised.set_params(kappa=0.0).get_params()
    assert table1.TABLE1_METHODS["SIRE"].make().balance == Balance()


# -- table 1 -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_logs")
def test_groups_are_measured_with_their_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    linear = Method(lambda: Linear(penalty=0.1), group="simple", small={"penalty": 0.5})
    monkeypatch.setitem(table1.TABLE1_METHODS, "logistic", linear)
    monkeypatch.setitem(table1.TABLE1_METHODS, "additive", Method(lambda: Linear(penalty=0.1), group="simple"))
    records = table1.TABLE1_SETUP.measure(Request(("averaged",), ("simple",), 1))
    simple = [name for name, method in table1.TABLE1_METHODS.items() if method.group == "simple"]
    assert [record["row"] for record in records] == simple
    summary = table1.TABLE1_SETUP.summarise(records)
    assert summary["small"] == 1  # one method is smaller without a GPU
    assert CPU_NOTE in table1.list_notes(summary)
    assert summary["programme"]["n"] == len(records) - 2  # plans of all except the uniform and the random method
    assert (
        "The paper plans by a dynamic programme"
        in table1.TABLE1_EXPERIMENT.make_result_section(summary).join_paragraphs()
    )
    by_name = {record["row"]: record for record in records}
    mean, rising, uniform, oracle = (by_name[n] for n in (*FAST[1:4], "oracle"))
    assert oracle["rmse"] == oracle["√pehe"] == 0.0
    assert oracle["skill 3"] == pytest.approx(1.0, abs=0.02)
    assert uniform["skill 1.5"] == 0.0
    assert rising["rmse"] <= mean["rmse"]
    assert mean["value 3"] <= oracle["value 3"] + 1e-9
    assert by_name["random"]["value 3"] < uniform["value 3"]
    assert "rmse" not in by_name["random"]


def record(method: str, repeat: int, **cells: Any) -> dict[str, Any]:
    return {"simulation": "averaged", "repeat": repeat, "row": method, **cells}


def test_the_page_has_the_papers_numbers_and_no_row_for_the_search_of_a_grid() -> None:
    records = [record("CCPOvIRE", 0, rmse=0.5), record("random", 0, rmse=None), record("CFRNet grid", 0, losses={})]
    summary = table1.TABLE1_SETUP.summarise(records)
    assert list(summary["simulations"]["averaged"]) == ["CCPOvIRE", "random"]
    json.dumps(summary, allow_nan=False)
    text = table1.TABLE1_EXPERIMENT.make_result_section(summary).join_paragraphs()
    assert "| CCPOvIRE | 0.1059 ± 0.0165 | 0.5000 |" in text


# -- table 2 -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def _small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table2, "GENERATED_ROWS", 600)


@pytest.mark.usefixtures("_small_sets")
def test_one_record_per_set_repeat_and_method_and_the_oracle_is_perfect() -> None:
    records = table2.measure(Request(["generated"], FAST, 2))
    assert [(r["repeat"], r["row"]) for r in records] == [(repeat, name) for repeat in (0, 1) for name in FAST]
    by_key = {(r["row"], r["repeat"]): r for r in records}
    assert by_key["oracle", 0]["rmse"] == 0
    fresh = table2.draw_nested_repeat("generated", 1).fresh
    for budget in TABLE2_BUDGETS:
        lost = fresh.oracle_value(budget) - by_key["oracle", 1][f"value {budget:g}"]
        assert -1e-9 <= lost < 1 / len(fresh)  # one customer, who is whole in a plan
        assert by_key["uniform level", 0][f"skill {budget:g}"] == 0
        assert by_key["random", 0][f"value {budget:g}"] <= by_key["uniform level", 0][f"value {budget:g}"] + 1e-9
    assert "rmse" not in by_key["random", 0]
    assert "√pehe" not in by_key["oracle", 0]
    assert by_key["Thresholds", 0]["rmse"] < by_key["per-level mean", 0]["rmse"]


@pytest.mark.usefixtures("_small_sets")
def test_a_repeat_is_another_split_and_log_and_the_seed_of_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table2.TABLE2_METHODS, "logistic", Method(lambda: Linear(penalty=0.1)))
    (_, second), data = (
        table2.measure(Request(["generated"], ["logistic"], 2)),
        table2.draw_nested_repeat("generated", 1),
    )
    error = Linear(penalty=0.1, seed=1).fit(data.log).predict(data.fresh.features) - data.fresh.truth
    assert second["rmse"] == pytest.approx(float((error**2).mean() ** 0.5))
    assert method_measurement.list_model_fits(table2.TABLE2_METHODS["CCPOvIRE"], data, {})[0].model.seed == 1
    assert (table2.draw_nested_repeat("generated", 0).fresh.rows != data.fresh.rows).any()  # type: ignore[union-attr]
    assert [fit.problem for fit in method_measurement.list_model_fits(table2.TABLE2_METHODS["CFRNet"], data, {})] == [
        "levels"
    ]
    policies = method_measurement.list_model_fits(table2.TABLE2_METHODS["BanditNet"], data, {})  # one for each budget
    assert [fit.problem for fit in policies] == [fit.model.budget for fit in policies] == list(TABLE2_BUDGETS)


@pytest.mark.usefixtures("_small_sets")
def test_without_the_files_a_generated_set_replaces_them_and_the_notes_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path / "nowhere"))
    records = table2.measure(Request(models=("oracle", "per-level mean"), repeats=2))
    assert {r["simulation"] for r in records} == {"generated"}
    assert len(records) == 4  # once for both
    notes = table2.list_notes(table2.TABLE2_SETUP.summarise(records))
    assert table2.GENERATED_NOTE in notes
    assert table2.OTHER_DATA in notes


def test_methods_of_table2_are_sorted_and_compared_with_the_papers_first() -> None:
    records = [
        {"simulation": "images", "repeat": i, "row": name, "rmse": mean + 0.1 * i, "value 1": 0.05, "skill 1": None}
        for name, mean in (("CFRNet", 0.2), ("Stack", 0.1), ("CCPOvSIRE", 0.3))
        for i in range(2)
    ]
    summary = table2.TABLE2_SETUP.summarise(records)
    images = summary["simulations"]["images"]
    assert list(images) == ["CCPOvSIRE", "CFRNet", "Stack"]  # as in the table
    assert images["CFRNet"]["cells"]["rmse"] == pytest.approx({"mean": 0.25, "sd": 0.0707, "n": 2}, abs=1e-4)
    assert images["CFRNet"]["against"]["rmse"]["difference"] == pytest.approx(-0.1)
    assert table2.GENERATED_NOTE not in table2.list_notes(summary)
    text = table2.TABLE2_EXPERIMENT.make_result_section(summary).join_paragraphs()
    assert "| CFRNet | 0.2480 ± 0.0168 | 0.2500 ± 0.0707 |" in text


@pytest.mark.usefixtures("real_data")
@pytest.mark.slow
def test_on_real_text_thresholds_are_better_than_a_plain_regression() -> None:
    names = ("Thresholds", "logistic", "per-level mean")
    records = table2.measure(Request(["text"], names, 3))
    rmse, skill = (
        [np.mean([record[column] for record in records if record["row"] == name]) for name in names]
        for column in ("rmse", "skill 0.05")
    )
    assert rmse[0] < rmse[1] < rmse[2]
    assert skill[0] > skill[1]
