"""Error and reward against κ."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.response import Linear
from largesse.worlds import simulate
from largesse_lab.experiments import kappa, table2
from largesse_lab.experiments.kappa import Task
from largesse_lab.nested import generate_nested
from largesse_lab.page.sections import Result, write_section
from largesse_lab.runner import measures
from largesse_lab.runner.request import Request


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "TRAIN", 300)
    monkeypatch.setattr(measures, "FRESH", 300)
    monkeypatch.setitem(kappa.ROWS, "CCPOvIRE", lambda strength: Linear(penalty=0.1 + strength))


def other(repeat: int) -> Task:
    """A problem from outside: three customers whose truth is known."""
    sim = simulate("averaged", n=300, seed=repeat)
    return Task(sim.log, sim.features[:3], sim.truth[:3], sim.costs, (1.0, 2.0))


def test_every_problem_is_learnt_at_every_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kappa, "KAPPAS", (0.0, 30.0))
    monkeypatch.setitem(kappa.PROBLEMS, "other", other)
    found = kappa.measure(Request(["averaged, binary", "other"], ("CCPOvIRE",), 2))
    assert len(found) == 2 * 2 * 2
    by = {(r["problem"], r["repeat"], r["kappa"]): r for r in found}
    assert "value 1" in by["other", 0, 30.0]
    assert set(by["averaged, binary", 0, 0.0]) == {"problem", "repeat", "row", "kappa", "error"}
    alone = Linear(penalty=30.1, seed=1).fit(other(1).log)
    assert by["other", 1, 30.0]["error"] == pytest.approx(kappa.judge_model(alone, other(1))["error"])


class Wide(Linear):
    """A stand-in that has a width."""

    def set_params(self, network__width: int = 512, **params: Any) -> "Wide":
        self.width = network__width
        super().set_params(**params)
        return self


@pytest.mark.parametrize(("gpu", "width"), [(True, 1024), (False, 256)])
def test_problems_are_asked_for_by_name_and_sets_have_the_networks_of_their_table(
    gpu: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kappa, "without_gpu", lambda settings: {} if gpu else settings)
    made: list[Wide] = []
    monkeypatch.setitem(kappa.ROWS, "CCPOvIRE", lambda _strength: made.append(Wide()) or made[-1])
    monkeypatch.setattr(table2, "read_nested", lambda _name: generate_nested(300))
    monkeypatch.setattr(kappa, "KAPPAS", (0.0,))
    found = kappa.measure(Request(["text", "averaged binary"], ("CCPOvIRE",), 1))
    assert [r["problem"] for r in found] == ["text", "averaged, binary"]  # a command line has no comma in a name
    assert {"value 1", "value 2"} < set(found[0])
    assert [one.width for one in made] == [width, 512]


def test_problems_that_are_not_known_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        kappa.measure(Request(["imges", "averaged"], ("CCPOvIR",)))
    assert "problem 'imges' is not known" in str(refused.value)
    assert "did you mean 'images'?" in str(refused.value)


def test_sets_are_problems_only_where_their_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path))
    (tmp_path / "nested_text_4608.npz").touch()
    assert kappa.list_present() == ["averaged, binary", "averaged", "instrument, binary", "instrument", "text"]


def records() -> list[dict[str, Any]]:
    """Three repeats whose error falls with κ and whose value does not move."""
    return [
        {"problem": "averaged", "repeat": i, "row": row, "kappa": k, "error": 0.3 - 0.01 * k + 0.1 * i, "value 3": 0.6}
        for row in ("CCPOvSIRE", "CCPOvIRE")
        for i in range(3)
        for k in (10.0, 0.0)
    ]


def test_strengths_are_given_not_chosen() -> None:
    for name, row in kappa.ROWS.items():
        strengths = kappa.list_strengths(name)
        assert strengths[0] == 0
        if name != "CCPOvIRE":  # a stand-in here
            assert [row(strength).kappa for strength in strengths] == list(strengths)
            assert (row(1.0).balance.normalise is False) == (not name.endswith("normalised"))
    assert max(kappa.list_strengths("CCPOvIRE")) > 1000 > max(kappa.list_strengths("CCPOvIRE, normalised"))


def test_a_series_is_what_a_figure_needs() -> None:
    found = kappa.draw_series(records())
    assert [(one["panel"], one["label"]) for one in found] == [
        ("averaged: error", "CCPOvSIRE"),
        ("averaged: error", "CCPOvIRE"),
        ("averaged: value 3", "CCPOvSIRE"),
        ("averaged: value 3", "CCPOvIRE"),
    ]
    assert found[0]["x"] == [0.0, 10.0]
    assert found[0]["mean"] == pytest.approx([0.4, 0.3])
    assert found[0]["sd"] == pytest.approx([0.1, 0.1])
    assert found[0]["n"] == [3, 3]


def test_strengths_are_compared_with_none_on_the_same_repeats() -> None:
    found = kappa.summarise(records())
    against = found["against"][0]
    assert (against["panel"], against["kappa"], against["n"]) == ("averaged: error", 10.0, 3)
    assert [against[word] for word in ("difference", "low", "high")] == pytest.approx([-0.1] * 3)
    json.dumps(found, allow_nan=False)
    text = kappa.tabulate(records())
    assert "|  | κ = 0 | κ = 10 |" in text
    assert "| averaged: error, CCPOvSIRE | 0.4000 ± 0.1000 | 0.3000 ± 0.1000 |" in text
    assert np.isfinite(found["series"][0]["mean"]).all()
    again = [{**record, "error": 9.0} for record in records()] + records()
    assert kappa.summarise(again) == found  # the latest wins
    assert kappa.tabulate(again) == text


def test_strengths_of_balance_are_judged_against_none() -> None:
    rows = [
        {"panel": panel, "label": "CCPOvIRE", "kappa": strength, "low": low, "high": low + 0.02}
        for panel in ("unit: rmse", "unit: value 3")
        for strength, low in ((0.1, -0.01), (3.0, -0.05), (30.0, 0.01))
    ]
    assert kappa.tabulate_against(rows).splitlines()[2:4] == [
        "| unit | RMSE | CCPOvIRE | 3 | 30 | 0.1 |",
        "| unit | Reward at a budget of 3 | CCPOvIRE | 30 | 3 | 0.1 |",
    ]


def test_the_page_says_which_penalty_was_measured() -> None:
    found = kappa.summarise([{**record, "row": f"{record['row']}, normalised"} for record in records()])
    made = write_section(Result("kappa", {}, found, "kappa.json"), kappa.CHAPTER, ".")
    assert kappa.ONLY_NORMALISED in made.parts
    plain = kappa.summarise(records())
    assert (
        kappa.ONLY_NORMALISED not in write_section(Result("kappa", {}, plain, "kappa.json"), kappa.CHAPTER, ".").parts
    )
