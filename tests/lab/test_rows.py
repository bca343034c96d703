"""The rows that the paper's tables share."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from largesse.records import Log
from largesse.response.baselines.cfrnet import CFRNet
from largesse.response.linear import Linear
from largesse.worlds.simulation import simulate
from largesse_lab.bench import repeats, rows
from largesse_lab.experiments import table1, table2


def test_both_tables_have_the_same_rows_but_for_thresholds() -> None:
    assert [name for name in table2.ROWS if name != "Thresholds"] == list(table1.ROWS)
    for name in ("CCPOvSIRE", "CCPOvSIRE†", "CCPOvIRE", "CCPOvIRE†"):
        one, other = (book[name].make().get_params(deep=False) for book in (table1.ROWS, table2.ROWS))
        assert other == one | {"width": 1024}
    assert table1.ROWS["CFRNet"] == table2.ROWS["CFRNet"]
    assert set(table1.PUBLISHED) == set(table2.PUBLISHED) == set(list(table1.ROWS)[:8])


@pytest.mark.parametrize("book", [table1.ROWS, table2.ROWS])
def test_groups_hold_every_row_once(book: dict[str, rows.Row]) -> None:
    assert sorted(rows.named(book, rows.GROUPS)) == sorted(book)


def test_random_levels_spend_the_budget() -> None:
    for budget in (0.5, 1.5, 3.0):
        share = rows.proportions(np.arange(5.0), budget)
        assert share.sum() == pytest.approx(1)
        assert share @ np.arange(5) == pytest.approx(budget)


def test_the_grid_of_a_model_is_in_the_order_of_its_choices() -> None:
    log = simulate("averaged", n=300).log
    small = {"width": 4, "depth": 1, "head_width": 4, "head_depth": 1, "steps": 2, "ipm": "linear"}
    tried = CFRNet(alpha=rows.ALPHAS, **small).fit(log).choices_
    assert [c.name for c in tried] == [f"α {alpha:g}" for alpha in dict(table1.ROWS["CFRNet"].tuned)["alpha"]]


NETWORKS_ALONE = """
import sys
sys.modules["sklearn"] = sys.modules["stochtree"] = None
from largesse.experiments import measures, repeats, table1, table2
from largesse.response import IRE
measures.TRAIN, measures.FRESH, table2.GENERATED_ROWS = 300, 300, 300
row = repeats.Row(lambda: IRE(kappa=0.0, width=4, depth=1, epochs=2, folds=1, members=1, start=None), binary=False)
table1.ROWS["CCPOvIRE†"] = table2.ROWS["CCPOvIRE†"] = row
print(len(table1.table1(("averaged",), ("CCPOvIRE†",), repeats=1)))
print(len(table2.table2(("generated",), ("CCPOvIRE†",), repeats=2)))
"""


def test_networks_need_neither_scikit_learn_nor_stochtree() -> None:
    done = subprocess.run([sys.executable, "-c", NETWORKS_ALONE], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "2"], done.stderr


def test_without_a_gpu_networks_are_smaller_and_records_and_notes_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    row = rows.Row(lambda: Linear(penalty=0.1), small={"penalty": 0.5})
    monkeypatch.setitem(table1.ROWS, "logistic", row)
    [record] = table1.table1(["averaged"], ["logistic"], repeats=1)
    assert record["small"]
    assert rows.SMALL in table1.summary([record])["notes"]
    monkeypatch.setattr(repeats, "without_gpu", lambda _settings: {})
    [other] = table1.table1(["averaged"], ["logistic"], repeats=1)
    assert "small" not in other
    assert rows.SMALL not in table1.summary([other])["notes"]
    assert other["rmse"] != record["rmse"]


def test_few_repeats_take_what_a_search_found_before(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = (("penalty", (0.01, 3.0)),)
    found = {"averaged": {"levels": {"penalty": 3.0}, "binary": {"penalty": 0.01}}}
    monkeypatch.setitem(table1.ROWS, "logistic", rows.Row(Linear, tuned=grid, found=found))
    fitted: list[Linear] = []

    def fit(models: list[Linear], logs: list[Log]) -> None:
        fitted.extend(model.fit(log) for model, log in zip(models, logs, strict=True))

    monkeypatch.setattr(repeats, "fit_together", fit)
    table1.table1(["averaged", "unit"], ["logistic"], repeats=1)
    assert [model.penalty for model in fitted] == [3.0, 0.01, None, None]  # elsewhere the model's own


def test_few_repeats_without_a_gpu_have_settings_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table1.ROWS, "logistic", rows.Row(Linear, few={"penalty": 5.0}, binary=False))
    seen: list[float | None] = []
    inner = repeats.fit_together
    monkeypatch.setattr(repeats, "fit_together", lambda m, logs: seen.extend(o.penalty for o in m) or inner(m, logs))
    assert table1.table1(["averaged"], ["logistic"], repeats=1)[0]["small"]
    monkeypatch.setattr(repeats, "TUNED", 1)
    assert "small" not in table1.table1(["averaged"], ["logistic"], repeats=1)[0]
    assert seen == [5.0, None]


def test_what_a_small_model_left_is_measured_anew_by_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table1.ROWS, "logistic", rows.Row(Linear, few={"penalty": 5.0}, binary=False))
    out = tmp_path / "kept.jsonl"
    few = table1.table1(["averaged"], ["logistic"], repeats=1, out=out)
    assert table1.table1(["averaged"], ["logistic"], repeats=1, out=out) == few
    assert len(out.read_text().splitlines()) == 1  # gone on with, not measured twice
    monkeypatch.setattr(repeats, "TUNED", 1)
    whole = table1.table1(["averaged"], ["logistic"], repeats=1, out=out)
    assert whole[0]["rmse"] < few[0]["rmse"]
    assert table1.table1(["averaged"], ["logistic"], repeats=1, out=out) == whole
