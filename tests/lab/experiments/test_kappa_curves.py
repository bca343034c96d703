"""Error and reward against κ."""

import json
from pathlib import Path
from typing import Any

import pytest

from largesse.response import Linear
from largesse.worlds import simulate
from largesse_lab.experiments import kappa_curves, table2
from largesse_lab.experiments.kappa_curves import BalanceTask
from largesse_lab.nested_label_logs import generate_labelled_rows
from largesse_lab.pages.markdown import Section
from largesse_lab.runner.experiment_request import Request


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, small_logs: None) -> None:
    monkeypatch.setitem(kappa_curves.KAPPA_MODELS, "CCPOvIRE", lambda strength: Linear(penalty=0.1 + strength))


def small_task(repeat: int) -> BalanceTask:
    """A problem with three customers whose truth is known."""
    sim = simulate("averaged", n=300, seed=repeat)
    return BalanceTask(sim.log, sim.features[:3], sim.truth[:3], sim.costs, (1.0, 2.0))


def test_every_problem_is_learnt_at_every_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kappa_curves, "TRIED_KAPPAS", (0.0, 30.0))
    monkeypatch.setitem(kappa_curves.PROBLEMS, "small", small_task)
    records = kappa_curves.measure(Request(["averaged, binary", "small"], ("CCPOvIRE",), 2))
    assert len(records) == 2 * 2 * 2
    by_key = {(r["problem"], r["repeat"], r["kappa"]): r for r in records}
    assert "value 1" in by_key["small", 0, 30.0]
    assert set(by_key["averaged, binary", 0, 0.0]) == {"problem", "repeat", "row", "kappa", "error"}
    alone = Linear(penalty=30.1, seed=1).fit(small_task(1).log)
    assert by_key["small", 1, 30.0]["error"] == pytest.approx(
        kappa_curves.measure_model_against_truth(alone, small_task(1))["error"]
    )


class WideLinear(Linear):
    """A stand-in that has a width."""

    def set_params(self, network__width: int = 512, **params: Any) -> "WideLinear":
        self.width = network__width
        super().set_params(**params)
        return self


@pytest.mark.parametrize(("gpu", "width"), [(True, 1024), (False, 256)])
def test_names_need_no_commas_and_data_sets_have_the_networks_of_their_table(
    gpu: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kappa_curves, "select_settings_without_gpu", lambda settings: {} if gpu else settings)
    models: list[WideLinear] = []
    monkeypatch.setitem(
        kappa_curves.KAPPA_MODELS, "CCPOvIRE", lambda _strength: models.append(WideLinear()) or models[-1]
    )
    monkeypatch.setattr(table2, "read_labelled_rows", lambda _name: generate_labelled_rows(300))
    monkeypatch.setattr(kappa_curves, "TRIED_KAPPAS", (0.0,))
    records = kappa_curves.measure(Request(["text", "averaged binary"], ("CCPOvIRE",), 1))
    assert [record["problem"] for record in records] == ["text", "averaged, binary"]
    assert {"value 1", "value 2"} < set(records[0])
    assert [model.width for model in models] == [width, 512]


def test_data_sets_are_problems_only_if_their_files_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path))
    (tmp_path / "nested_text_4608.npz").touch()
    assert kappa_curves.list_available_problems() == [
        "averaged, binary",
        "averaged",
        "instrument, binary",
        "instrument",
        "text",
    ]


def test_strengths_are_given_not_chosen() -> None:
    for name, model in kappa_curves.KAPPA_MODELS.items():
        strengths = kappa_curves.list_kappas(name)
        assert strengths[0] == 0
        if name != "CCPOvIRE":  # a stand-in here
            assert [model(strength).kappa for strength in strengths] == list(strengths)
            assert (model(1.0).balance.normalise is False) == (not name.endswith("normalised"))
    assert max(kappa_curves.list_kappas("CCPOvIRE")) > 1000 > max(kappa_curves.list_kappas("CCPOvIRE, normalised"))


def make_records(mark: str = "") -> list[dict[str, Any]]:
    """Three repeats whose error falls with κ and whose value is constant."""
    return [
        {"problem": "averaged", "repeat": i, "row": row, "kappa": k, "error": 0.3 - 0.01 * k + 0.1 * i, "value 3": 0.6}
        for row in (f"CCPOvSIRE{mark}", f"CCPOvIRE{mark}")
        for i in range(3)
        for k in (10.0, 0.0)
    ]


def page_text(records: list[dict[str, Any]]) -> str:
    section = Section("kappa")
    kappa_curves.fill(section, kappa_curves.summarise(records))
    return section.join_paragraphs()


def test_a_line_for_each_problem_measure_and_model_and_differences_from_no_balance_on_the_same_repeats() -> None:
    summary = kappa_curves.summarise(make_records())
    lines = summary["series"]
    panels = [(line["panel"], line["label"]) for line in lines]
    assert panels == [(f"averaged: {c}", m) for c in ("error", "value 3") for m in ("CCPOvSIRE", "CCPOvIRE")]
    assert (lines[0]["x"], lines[0]["n"]) == ([0.0, 10.0], [3, 3])
    assert lines[0]["mean"] == pytest.approx([0.4, 0.3])
    assert lines[0]["sd"] == pytest.approx([0.1, 0.1])
    difference = summary["against"][0]
    assert (difference["panel"], difference["kappa"], difference["n"]) == ("averaged: error", 10.0, 3)
    assert [difference[key] for key in ("difference", "low", "high")] == pytest.approx([-0.1] * 3)
    json.dumps(summary, allow_nan=False)
    text = page_text(make_records())
    assert "| κ = 0 | κ = 10 |" in text
    assert "| averaged: error, CCPOvSIRE | 0.4000 ± 0.1000 | 0.3000 ± 0.1000 |" in text
    again = [{**record, "error": 9.0} for record in make_records()] + make_records()
    assert kappa_curves.summarise(again) == summary  # the latest record counts


def test_strengths_are_better_worse_or_undecided() -> None:
    rows = [
        {"panel": panel, "label": "CCPOvIRE", "kappa": strength, "low": low, "high": low + 0.02}
        for panel in ("unit: rmse", "unit: value 3")
        for strength, low in ((0.1, -0.01), (3.0, -0.05), (30.0, 0.01))
    ]
    assert kappa_curves.tabulate_kappa_comparisons(rows).splitlines()[2:4] == [
        "| unit | RMSE | CCPOvIRE | 3 | 30 | 0.1 |",
        "| unit | Reward at a budget of 3 | CCPOvIRE | 30 | 3 | 0.1 |",
    ]


def test_the_page_names_the_measured_penalty() -> None:
    assert kappa_curves.ONLY_NORMALISED in page_text(make_records(", normalised"))
    assert kappa_curves.ONLY_NORMALISED not in page_text(make_records())
