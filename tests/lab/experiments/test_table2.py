"""Nested labels on the engine of the paper's tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.response import Linear
from largesse_lab.experiments import table2
from largesse_lab.experiments.table2 import BUDGETS, ROWS, TABLE
from largesse_lab.runner import repeats
from largesse_lab.runner.repeats import Row
from largesse_lab.runner.request import Request

FAST = ("Thresholds", "per-level mean", "per-level mean + PAVA", "uniform level", "random", "oracle")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table2, "GENERATED_ROWS", 600)


def run(*rows: str, **other: Any) -> list[dict[str, Any]]:
    return table2.measure(Request(["generated"], rows, **({"repeats": 2} | other)))


def test_one_record_per_set_repeat_and_row_and_the_oracle_is_perfect() -> None:
    records = run(*FAST)
    assert [(r["repeat"], r["row"]) for r in records] == [(repeat, row) for repeat in (0, 1) for row in FAST]
    by = {(r["row"], r["repeat"]): r for r in records}
    assert by["oracle", 0]["rmse"] == 0
    fresh = table2.draw_unit("generated", 1).fresh
    for budget in BUDGETS:
        lost = fresh.oracle_value(budget) - by["oracle", 1][f"value {budget:g}"]
        assert -1e-9 <= lost < 1 / len(fresh)  # one customer, who is whole in a plan
        assert by["uniform level", 0][f"skill {budget:g}"] == 0
        assert by["random", 0][f"value {budget:g}"] <= by["uniform level", 0][f"value {budget:g}"] + 1e-9
    assert "rmse" not in by["random", 0]
    assert "√pehe" not in by["oracle", 0]
    assert by["Thresholds", 0]["rmse"] < by["per-level mean", 0]["rmse"]


def test_a_repeat_is_another_split_and_log_and_the_seed_of_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "logistic", Row(lambda: Linear(penalty=0.1)))
    found, one = run("logistic")[1], table2.draw_unit("generated", 1)
    error = Linear(penalty=0.1, seed=1).fit(one.log).predict(one.fresh.features) - one.fresh.truth
    assert found["rmse"] == pytest.approx(float((error**2).mean() ** 0.5))
    assert repeats.list_fits(ROWS["CCPOvIRE"], one, {})[0].model.seed == 1
    assert (table2.draw_unit("generated", 0).fresh.rows != one.fresh.rows).any()  # type: ignore[union-attr]


def test_a_row_has_no_binary_problem_and_a_policy_is_trained_for_each_budget() -> None:
    one = table2.draw_unit("generated", 0)
    assert [fit.what for fit in repeats.list_fits(ROWS["CFRNet"], one, {})] == ["levels"]
    assert [fit.what for fit in repeats.list_fits(ROWS["BanditNet"], one, {})] == list(BUDGETS)
    assert [fit.model.budget for fit in repeats.list_fits(ROWS["BanditNet"], one, {})] == list(BUDGETS)


def test_without_the_files_a_generated_set_replaces_them_and_the_table_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path / "nowhere"))
    records = table2.measure(Request(rows=("oracle", "per-level mean"), repeats=2))
    assert {r["simulation"] for r in records} == {"generated"}
    assert len(records) == 4  # once for both
    shown = TABLE.tabulate(records)
    assert "say nothing about images or text" in shown
    assert "Compare rows with each other" in shown


def test_a_summary_has_means_pairs_and_the_papers_numbers_beside() -> None:
    records = [
        {"simulation": "images", "repeat": i, "row": row, "rmse": mean + 0.1 * i, "value 1": 0.05, "skill 1": None}
        for row, mean in (("CFRNet", 0.2), ("Stack", 0.1), ("CCPOvSIRE", 0.3))
        for i in range(2)
    ]
    found = TABLE.summarise(records)
    mine = found["simulations"]["images"]
    assert list(mine) == ["CCPOvSIRE", "CFRNet", "Stack"]  # as in the table
    assert mine["CFRNet"]["cells"]["rmse"] == pytest.approx({"mean": 0.25, "sd": 0.0707, "n": 2}, abs=1e-4)
    assert mine["CFRNet"]["against"]["rmse"]["difference"] == pytest.approx(-0.1)
    assert not any("generated" in note for note in table2.list_notes(found))
    row = next(line for line in TABLE.tabulate(records).splitlines() if line.startswith("| CFRNet |"))
    assert row.startswith("| CFRNet | 0.2500 ± 0.0707 | – | – | – | – | 0.0500 ± 0.0000 | – |")  # six budgets
    assert row.endswith("| 0.2480 ± 0.0168 | 0.0861 ± 0.0220 | 0.1335 ± 0.0197 |")


def test_unknown_sets_are_refused_as_sets() -> None:
    with pytest.raises(InputError, match="set 'image' is not known") as refused:
        table2.measure(Request(["image"], ["BART"]))
    assert "did you mean 'images'?" in str(refused.value)


@pytest.mark.usefixtures("real_data")
@pytest.mark.slow
def test_on_real_text_thresholds_are_ahead_of_a_plain_regression() -> None:
    rows = ("Thresholds", "logistic", "per-level mean")
    records = table2.measure(Request(["text"], rows, 3))
    rmse, skill = (
        [np.mean([record[what] for record in records if record["row"] == row]) for row in rows]
        for what in ("rmse", "skill 0.05")
    )
    assert rmse[0] < rmse[1] < rmse[2]
    assert skill[0] > skill[1]
