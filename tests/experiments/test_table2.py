import sys
from pathlib import Path

import numpy as np
import pytest

from largesse.banditnet import BanditNet
from largesse.data import generated_nested, nested_bandit
from largesse.data.labelled import nested_here
from largesse.errors import InputError
from largesse.experiments.table2 import BUDGETS, POLICIES, ROWS, measured, summary, table, table2

module = sys.modules["largesse.experiments.table2"]  # the room gives the function that name
FAST = ("logistic", "Thresholds", "level means", "level means + PAVA", "uniform level", "random", "oracle")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GENERATED_ROWS", 600)


def test_one_record_per_set_repeat_and_row_and_the_oracle_is_perfect() -> None:
    records = table2(["generated"], FAST, repeats=2)
    assert [(r["repeat"], r["row"]) for r in records] == [(repeat, row) for repeat in (0, 1) for row in FAST]
    by = {(r["row"], r["repeat"]): r for r in records}
    assert by["oracle", 0]["rmse"] == 0
    for budget in BUDGETS:
        assert by["oracle", 1][f"skill {budget:g}"] == pytest.approx(1)
        assert by["uniform level", 0][f"skill {budget:g}"] == pytest.approx(0)
        assert by["random", 0][f"reward {budget:g}"] <= by["oracle", 0][f"reward {budget:g}"]
    assert "rmse" not in by["random", 0]
    assert by["Thresholds", 0]["rmse"] < by["level means", 0]["rmse"]
    assert by["logistic", 0]["rmse"] != by["logistic", 1]["rmse"]


def test_a_plan_at_random_spends_what_it_may() -> None:
    made = nested_bandit(*(lambda g: (g.features, g.nested_level))(generated_nested(600)))
    for budget in (0.5, 1.0, 2.0):
        levels = module._spent_at_random(made, budget, 0)
        assert budget - 3 / len(made) <= made.costs[levels].mean() <= budget


def test_a_policy_is_trained_for_each_budget_and_has_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def net(budget: float) -> BanditNet:
        asked.append(budget)
        return BanditNet(budget=budget, width=4, steps=20, translations=[0.3])

    monkeypatch.setitem(POLICIES, "BanditNet", net)
    monkeypatch.setattr(module, "BUDGETS", (0.1, 2.0))
    generated = generated_nested(300)
    record = measured("BanditNet", nested_bandit(generated.features, generated.nested_level))
    assert asked == [0.1, 2.0]
    assert "rmse" not in record
    assert all(record[f"spend {budget:g}"] <= budget + 1e-9 for budget in asked)


def test_a_run_goes_on_where_it_was_and_parts_make_the_whole(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    first = table2(["generated"], ("logistic",), repeats=1, out=out)
    again = table2(["generated"], ("logistic", "oracle"), repeats=1, out=out)
    assert again[0] == first[0]  # kept, its seconds too
    rows = ("level means",)
    whole = table2(["generated"], rows, repeats=3)
    parts = [record for i in range(2) for record in table2(["generated"], rows, repeats=3, part=(i, 2))]
    assert sorted(r["rmse"] for r in parts) == sorted(r["rmse"] for r in whole)


def test_without_the_files_a_generated_set_stands_in_and_the_table_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    records = table2(rows=("oracle", "logistic"), repeats=2)
    assert {r["set"] for r in records} == {"generated"}
    assert len(records) == 4  # once for both
    shown = table(records)
    assert "these rows are generated" in shown
    assert "Compare rows with each other" in shown


def test_the_table_has_the_published_numbers_beside_and_summaries_are_means() -> None:
    records = [
        {"set": "images", "repeat": i, "row": "CFRNet", "rmse": 0.2 + 0.1 * i, "reward 1": 0.05, "reward 2": 0.07}
        for i in range(2)
    ]
    [one] = summary(records)
    assert one["rmse"] == pytest.approx(0.25)
    assert one["rmse sd"] == pytest.approx(np.std([0.2, 0.3], ddof=1))
    assert "| CFRNet | 0.2500 ± 0.0707 | 0.2480 | 0.0500 ± 0.0000 | 0.0861 |" in table(records)


def test_unknown_sets_rows_and_parts_are_refused_together() -> None:
    with pytest.raises(InputError, match="3 things are wrong") as refused:
        table2(["image"], ["BARD"], part=(1, 1))
    assert "did you mean 'images'?" in str(refused.value)
    assert "did you mean 'BART'?" in str(refused.value)


def test_the_rows_are_those_of_the_paper_ours_and_the_simple_ones() -> None:
    assert set(module.PUBLISHED) <= set(ROWS)
    assert {"SIRE", "Stack", "oracle", "random", "uniform level", "level means"} <= set(ROWS)


@pytest.mark.skipif(not nested_here("text"), reason="the real data are not here: set LARGESSE_DATA")
def test_on_real_text_thresholds_learn_what_level_means_cannot() -> None:
    mine, means = table2(["text"], ("Thresholds", "level means"), repeats=1)
    assert mine["rmse"] < 0.14 < means["rmse"]
    assert mine["skill 0.05"] > 0.5 > means["skill 0.05"]
