"""The paper's tables: rows, columns, what is kept, how parts make up a whole. Tiny models stand in for the real ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import InputError
from largesse.policy.banditnet import BanditNet
from largesse.records import Array, Choice, Log
from largesse.response.linear import Linear
from largesse.worlds.simulation import simulate
from largesse_lab.bench import measures, repeats
from largesse_lab.bench.repeats import Row
from largesse_lab.experiments import hsic_kernels as kernels
from largesse_lab.experiments import table1
from largesse_lab.page import summaries


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "TRAIN", 400)
    monkeypatch.setattr(measures, "FRESH", 600)
    monkeypatch.setattr(repeats, "TUNED", 2)
    monkeypatch.setattr(repeats, "FEW", 60)


def run(*rows: str, simulations: tuple[str, ...] = ("averaged",), **other: Any) -> list[dict[str, Any]]:
    return table1.table1(simulations, rows, **({"repeats": 2, "chunk": 2} | other))


# ---------------------------------------------------------------------------------------------- rows without a model


def test_simple_rows_are_judged_against_the_truth() -> None:
    found = {
        (r["row"], r["repeat"]): r
        for r in run("per-level mean", "per-level mean + PAVA", "uniform level", "random", "oracle")
    }
    assert found["oracle", 0]["rmse"] == found["oracle", 0]["√pehe"] == 0.0
    assert found["oracle", 1]["skill 3"] == pytest.approx(1.0, abs=0.02)
    assert found["uniform level", 0]["skill 1.5"] == 0.0
    for repeat in (0, 1):
        fresh = simulate("averaged", n=400, seed=repeat).draw(600, seed=measures.FRESH_SEED)
        mean, rising = (found[name, repeat] for name in ("per-level mean", "per-level mean + PAVA"))
        assert rising["rmse"] <= mean["rmse"]
        assert mean["value 3"] <= found["oracle", repeat]["value 3"] + 1e-9
        assert found["random", repeat]["value 3"] < found["uniform level", repeat]["value 3"]
        assert found["uniform level", repeat]["value 3"] == pytest.approx(fresh.truth[:, 3].mean(), abs=0.005)


def test_where_nothing_can_be_gained_there_is_no_skill() -> None:
    found = run("per-level mean", simulations=("literal",), repeats=1)[0]
    assert found["skill 3"] is None
    assert found["value 3"] > 0.6


def test_the_dynamic_programme_is_never_beaten_and_hardly_better() -> None:
    for record in run("per-level mean", "oracle"):
        lost = record["few programme predicted"] - record["few ours predicted"]
        assert -1e-9 <= lost < 2e-3  # at most one of sixty customers is a level short


# ---------------------------------------------------------------------------------------------- rows with a model


def test_each_repeat_is_a_log_and_a_seed_of_its_own() -> None:
    found = run("logistic")
    made = simulate("averaged", n=400, seed=1)
    fresh = made.draw(600, seed=measures.FRESH_SEED)
    error = Linear(seed=1).fit(made.log).predict(fresh.features) - fresh.truth
    assert found[1]["rmse"] == pytest.approx(measures.root_mean_square(error))
    pehe = measures.effect_error(Linear(seed=1).fit(measures.two_levels(made)).predict(fresh.features), fresh.truth)
    assert found[1]["√pehe"] == pytest.approx(pehe)
    assert found[0]["rmse"] != found[1]["rmse"]
    assert repeats._jobs(table1.ROWS["CCPOvIRE"], repeats.unit("averaged", 1), {})[0][1].seed == 1


def test_a_policy_has_one_network_for_each_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    make = lambda budget: BanditNet(budget=budget, width=4, steps=20, translations=[0.3])  # noqa: E731
    monkeypatch.setitem(table1.ROWS, "BanditNet", Row(make, policy=True))
    found = run("BanditNet", repeats=1)[0]
    assert found["spend 1.5"] <= 1.5
    assert 1.5 < found["spend 3"] <= 3
    assert "rmse" not in found


class Graded:
    """A stand-in with a grid: α is best at 2 in the first repeat, at 3 in the second, and at 2 on average."""

    def __init__(self, alpha: Any = 1.0, seed: int = 0) -> None:
        self.alpha, self.seed = alpha, seed

    def get_params(self, deep: bool) -> dict[str, Any]:  # noqa: ARG002
        return {"alpha": self.alpha, "seed": self.seed}

    def set_params(self, **params: Any) -> "Graded":
        return Graded(**(self.get_params(deep=False) | params))

    def fit(self, log: Log) -> None:
        self.inner, self.alpha_ = Linear(penalty=1.0).fit(log), self.alpha
        losses = [[3.0, 1.0, 2.0], [3.0, 2.5, 2.0]][min(self.seed, 1)]
        self.choices_ = [Choice("", loss, 0.0, 0.0) for loss in losses]

    def predict(self, customers: Any) -> Array:
        return self.inner.predict(customers)


def test_a_grid_is_searched_on_the_first_repeats_and_its_best_used_for_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(table1.ROWS, "CFRNet", Row(Graded, tuned=(("alpha", (1.0, 2.0, 3.0)),)))
    out = tmp_path / "t.jsonl"
    found = run("CFRNet", repeats=3, out=out)
    assert [r["alpha"] for r in found] == ["2.0"] * 3
    grids = [r for r in map(json.loads, out.read_text().splitlines()) if r["row"] == "CFRNet grid"]
    assert [r["repeat"] for r in grids] == [0, 1]
    assert set(grids[0]["losses"]) == {"levels", "binary"}
    assert "CFRNet grid" not in table1.table(list(map(json.loads, out.read_text().splitlines())))


# ---------------------------------------------------------------------------------------------- keeping and parts


def test_parts_and_groups_make_up_the_whole(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.jsonl" for i in range(3)]
    for i in (0, 1):
        run("per-level mean", "oracle", repeats=3, part=(i, 2), out=files[i])
    run("uniform level", repeats=3, out=files[2])
    joined = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    whole = run("per-level mean", "oracle", "uniform level", repeats=3)
    assert table1.table(joined) == table1.table(whole)
    assert [r["repeat"] for r in map(json.loads, files[1].read_text().splitlines())] == [1, 1]
    assert table1.summary(joined + joined) == table1.summary(joined)


def test_a_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "t.jsonl"
    first = run("oracle", repeats=1, out=out)
    asked = []
    inner = repeats.units
    monkeypatch.setattr(repeats, "units", lambda keys, source: asked.extend(keys) or inner(keys, source))
    assert run("oracle", repeats=2, out=out)[0] == first[0]
    assert asked == [("averaged", 1)]


def test_unknown_names_and_parts_are_refused_together() -> None:
    with pytest.raises(InputError, match="3 things are wrong") as refused:
        run("CCPOvSIR", simulations=("avraged",), part=(2, 2))
    assert "did you mean 'CCPOvSIRE'?" in str(refused.value)


# ---------------------------------------------------------------------------------------------- summaries


def record(row: str, repeat: int, **cells: Any) -> dict[str, Any]:
    return {"simulation": "averaged", "repeat": repeat, "row": row, **cells}


def test_a_summary_compares_rows_on_the_repeats_they_share() -> None:
    records = [record("CCPOvSIRE", i, rmse=0.1 + 0.01 * i) for i in range(3)]
    records += [record("CFRNet", i, rmse=0.2 + 0.01 * i + 0.001 * (-1) ** i) for i in range(2)]
    found = table1.summary(records)["simulations"]["averaged"]
    assert found["CCPOvSIRE"]["cells"]["rmse"] == pytest.approx({"mean": 0.11, "sd": 0.01, "n": 3})
    against = found["CFRNet"]["against"]["rmse"]
    assert against["difference"] == pytest.approx(0.1)
    assert against["n"] == 2
    assert against["low"] < 0.1 < against["high"]
    assert found["CFRNet"]["cells"]["√pehe"] is None
    json.dumps(table1.summary(records), allow_nan=False)


def test_the_paper_s_numbers_stand_beside() -> None:
    text = table1.table([record("CCPOvIRE", 0, rmse=0.5), record("random", 0, rmse=None)])
    row = next(line for line in text.splitlines() if line.startswith("| CCPOvIRE |"))
    assert "0.5000" in row
    assert row.endswith("| 0.0385 ± 0.0011 | 0.1059 ± 0.0165 | 0.6074 ± 0.0011 |")
    assert summaries.cell([{"a": float("nan")}, {"a": 2.0}], "a") == {"mean": 2.0, "sd": None, "n": 1}


def test_a_summary_pairs_the_rows_that_are_to_be_ordered_the_latest_of_each_repeat() -> None:
    records = [record("Stack", i, rmse=0.1 + 0.1 * i) for i in range(3)]
    records += [record("CFRNet", i, rmse=9.0) for i in range(3)]  # measured again below
    records += [record("CFRNet", i, rmse=0.2 + 0.1 * i) for i in range(3)]
    records += [record("BART", i, rmse=0.25 + 0.1 * i) for i in range(3)]
    found = {(p["first"], p["second"]): p for p in table1.summary(records)["pairs"]}
    assert set(found) == {("Stack", "CFRNet"), ("Stack", "BART"), ("CFRNet", "BART")}
    assert found["Stack", "CFRNet"]["estimate"] == pytest.approx(0.1)
    assert found["CFRNet", "BART"]["estimate"] == pytest.approx(0.05)


def test_kernels_are_compared_on_the_same_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row.make().kernel for row in kernels.ROWS.values()] == ["linear", "linear", "rbf", "rbf", "rff", "rff"]
    for name, penalty in (("CCPOvIRE, linear", 0.1), ("CCPOvIRE, RBF", 1.0)):
        monkeypatch.setitem(kernels.ROWS, name, Row(lambda p=penalty: Linear(penalty=p), binary=False))
    found = kernels.kernels(rows=("CCPOvIRE, linear", "CCPOvIRE, RBF"), repeats=2)
    assert len(found) == 4
    assert "√pehe" not in found[0]
    text = kernels.table(found)
    assert "| CCPOvIRE, RBF | 0." in text
    assert "0.1205 ± 0.1063 | 0.6000 ± 0.0004 |" in text
    assert kernels.summary([*found, *found]) == kernels.summary(found)
    (pair,) = {(p["first"], p["second"]) for p in kernels.summary(found)["pairs"]}
    assert pair == ("CCPOvIRE, linear", "CCPOvIRE, RBF")
