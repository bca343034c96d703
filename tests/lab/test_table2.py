"""Nested labels on the engine of Table 1. Tiny models stand in for the real ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.policy.banditnet import BanditNet
from largesse.response.baselines.cfrnet import CFRNet
from largesse.response.linear import Linear
from largesse_lab.bench import repeats
from largesse_lab.bench.repeats import Row
from largesse_lab.experiments import table2
from largesse_lab.nested.labelled import nested_here

BUDGETS = table2.BUDGETS
FAST = (
    *("logistic", "Thresholds", "per-level mean", "per-level mean + PAVA"),
    *("uniform level", "random", "oracle"),
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table2, "GENERATED_ROWS", 600)
    monkeypatch.setattr(repeats, "TUNED", 2)


def run(*rows: str, **other: Any) -> list[dict[str, Any]]:
    return table2.table2(["generated"], rows, **({"repeats": 2} | other))


def test_one_record_per_set_repeat_and_row_and_the_oracle_is_perfect() -> None:
    records = run(*FAST)
    assert [(r["repeat"], r["row"]) for r in records] == [(repeat, row) for repeat in (0, 1) for row in FAST]
    by = {(r["row"], r["repeat"]): r for r in records}
    assert by["oracle", 0]["rmse"] == 0
    fresh = table2.unit("generated", 1).fresh
    for budget in BUDGETS:
        lost = fresh.oracle_value(budget) - by["oracle", 1][f"value {budget:g}"]
        assert -1e-9 <= lost < 1 / len(fresh)  # one customer, who is whole in a plan
        assert by["uniform level", 0][f"skill {budget:g}"] == 0
        assert by["random", 0][f"value {budget:g}"] <= by["uniform level", 0][f"value {budget:g}"] + 1e-9
    assert "rmse" not in by["random", 0]
    assert "√pehe" not in by["oracle", 0]
    assert by["Thresholds", 0]["rmse"] < by["per-level mean", 0]["rmse"]
    assert by["logistic", 0]["rmse"] != by["logistic", 1]["rmse"]


def test_a_repeat_is_another_split_and_log_and_the_seed_of_the_models() -> None:
    found, one = run("logistic")[1], table2.unit("generated", 1)
    error = Linear(seed=1).fit(one.log).predict(one.fresh.features) - one.fresh.truth
    assert found["rmse"] == pytest.approx(float((error**2).mean() ** 0.5))
    assert repeats._jobs(table2.ROWS["CCPOvIRE"], one, {})[0][1].seed == 1
    assert (table2.unit("generated", 0).fresh.rows != one.fresh.rows).any()  # type: ignore[union-attr]


def test_the_repeats_of_a_chunk_are_fitted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    inner = repeats.fit_together
    monkeypatch.setattr(repeats, "fit_together", lambda models, logs: asked.append(len(logs)) or inner(models, logs))
    run("logistic", repeats=3, chunk=2)
    assert asked == [2, 1]


def test_a_policy_is_trained_for_each_budget_and_has_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    make = lambda budget: BanditNet(budget=budget, width=4, steps=20, translations=[0.3])  # noqa: E731
    monkeypatch.setitem(table2.ROWS, "BanditNet", Row(make, policy=True))
    [record] = run("BanditNet", repeats=1)
    assert "rmse" not in record
    assert all(record[f"spend {budget:g}"] <= budget + 1e-9 for budget in BUDGETS)
    assert len({record[f"spend {budget:g}"] for budget in BUDGETS}) == len(BUDGETS)


def test_a_grid_is_searched_where_there_is_no_binary_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = {"width": 4, "depth": 1, "head_width": 4, "head_depth": 1, "steps": 2, "ipm": "linear"}
    monkeypatch.setitem(table2.ROWS, "CFRNet", Row(lambda: CFRNet(**small), tuned=(("alpha", (0.1, 1.0)),)))
    out = tmp_path / "t.jsonl"
    found = run("CFRNet", repeats=3, out=out)
    grids = [r for r in map(json.loads, out.read_text().splitlines()) if r["row"] == "CFRNet grid"]
    assert [list(r["losses"]) for r in grids] == [["levels"]] * 2
    means = [sum(r["losses"]["levels"][k] for r in grids) for k in (0, 1)]
    assert {r["alpha"] for r in found} == {str((0.1, 1.0)[means.index(min(means))])}


def test_a_run_goes_on_where_it_was_and_parts_make_the_whole(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    first = run("logistic", repeats=1, out=out)
    again = run("logistic", "oracle", repeats=1, out=out)
    assert again[0] == first[0]  # kept, its seconds too
    whole = run("per-level mean", repeats=3)
    parts = [record for i in range(2) for record in run("per-level mean", repeats=3, part=(i, 2))]
    assert sorted(r["rmse"] for r in parts) == sorted(r["rmse"] for r in whole)
    assert table2.table(parts + parts) == table2.table(whole)


def test_without_the_files_a_generated_set_stands_in_and_the_table_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    records = table2.table2(rows=("oracle", "per-level mean"), repeats=2)
    assert {r["simulation"] for r in records} == {"generated"}
    assert len(records) == 4  # once for both
    shown = table2.table(records)
    assert "say nothing about images or text" in shown
    assert "Compare rows with each other" in shown


def test_a_summary_has_means_pairs_and_the_papers_numbers_beside() -> None:
    records = [
        {"simulation": "images", "repeat": i, "row": row, "rmse": mean + 0.1 * i, "value 1": 0.05, "skill 1": None}
        for row, mean in (("CFRNet", 0.2), ("Stack", 0.1), ("CCPOvSIRE", 0.3))
        for i in range(2)
    ]
    found = table2.summary(records)
    mine = found["simulations"]["images"]
    assert list(mine) == ["CCPOvSIRE", "CFRNet", "Stack"]  # as in the table
    assert mine["CFRNet"]["cells"]["rmse"] == pytest.approx({"mean": 0.25, "sd": 0.0707, "n": 2}, abs=1e-4)
    assert mine["CFRNet"]["against"]["rmse"]["difference"] == pytest.approx(-0.1)
    pairs = {(p["first"], p["second"], p["column"]): p["estimate"] for p in found["pairs"]}
    assert pairs["Stack", "CFRNet", "rmse"] == pytest.approx(0.1)
    assert not any("generated" in note for note in found["notes"])
    row = next(line for line in table2.table(records).splitlines() if line.startswith("| CFRNet |"))
    assert row.startswith(
        "| CFRNet | 0.2500 ± 0.0707 | – | – | – | – | 0.0500 ± 0.0000 | – |"
    )  # rewards at six budgets
    assert row.endswith("| 0.2480 ± 0.0168 | 0.0861 ± 0.0220 | 0.1335 ± 0.0197 |")


def test_unknown_sets_rows_and_parts_are_refused_together() -> None:
    with pytest.raises(InputError, match="3 things are wrong") as refused:
        table2.table2(["image"], ["BARD"], part=(1, 1))
    assert "set 'image' is not known" in str(refused.value)
    assert "did you mean 'images'?" in str(refused.value)
    assert "did you mean 'BART'?" in str(refused.value)


@pytest.mark.skipif(not nested_here("text"), reason="the real data are not here: set LARGESSE_DATA")
def test_on_real_text_thresholds_are_ahead_of_a_plain_regression() -> None:
    rows = ("Thresholds", "logistic", "per-level mean")
    records = table2.table2(["text"], rows, repeats=3)
    rmse, skill = (
        [np.mean([record[what] for record in records if record["row"] == row]) for row in rows]
        for what in ("rmse", "skill 0.05")
    )
    assert rmse[0] < rmse[1] < rmse[2]
    assert skill[0] > skill[1]
