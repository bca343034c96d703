from pathlib import Path

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.policy.banditnet import BanditNet
from largesse.worlds.simulation import simulate
from largesse_lab.bench.measures import two_levels
from largesse_lab.experiments.simulation import POLICIES, simulation, summary, table
from largesse_lab.page.sections import section


def test_every_table_has_the_simple_rows_and_the_oracle_is_perfect() -> None:
    records = simulation(["averaged"], ["linear"], seeds=2)
    assert [r["model"] for r in records[:4]] == ["level means", "uniform", "oracle", "linear"]
    by = {(r["model"], r["seed"]): r for r in records}
    assert by["oracle", 0]["rmse"] == 0.0
    assert by["oracle", 0]["skill 1.5"] == pytest.approx(1.0, abs=1e-3)
    assert by["uniform", 1]["skill 3"] == 0.0
    assert by["linear", 0]["rmse"] < by["level means", 0]["rmse"]
    assert by["linear", 0]["rmse"] != by["linear", 1]["rmse"]
    shown = table(records)
    assert "### averaged" in shown
    assert "| linear | 0.0" in shown


def test_a_run_that_was_killed_while_writing_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    first = simulation(["unit"], ["linear"], seeds=1, out=out)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:-1]) + lines[-1][:20])
    again = simulation(["unit"], ["linear"], seeds=1, out=out)
    assert [r["rmse"] for r in again] == [r["rmse"] for r in first]
    assert again[0]["seconds"] == first[0]["seconds"]  # kept, not measured again
    assert len(out.read_text().splitlines()) == 4


def test_unknown_names_are_refused_together() -> None:
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        simulation(["avraged"], ["liner"])
    assert "did you mean 'averaged'?" in str(refused.value)
    assert "did you mean 'linear'?" in str(refused.value)


def test_the_binary_problem_has_the_first_two_levels_in_the_odds_they_had() -> None:
    sim = simulate("averaged", n=2000, seed=1)
    log = two_levels(sim)
    assert len(log) == 1000
    assert len(log.levels) == 2
    assert log.propensity is not None
    odds = sim.propensities[:1000, 1] / sim.propensities[:1000, :2].sum(axis=1)
    assert log.propensity == pytest.approx(np.where(log.level == 1, odds, 1 - odds))
    assert log.level.mean() == pytest.approx(odds.mean(), abs=0.05)
    expected = sim.truth[np.arange(1000), log.level].mean()
    assert log.response.mean() == pytest.approx(expected, abs=0.05)
    assert np.array_equal(two_levels(sim).response, log.response)


def test_the_effect_of_the_binary_problem_is_judged_against_the_truth() -> None:
    records = {r["model"]: r for r in simulation(["averaged"], ["t-learner"], seeds=1)}
    assert records["oracle"]["√pehe"] == 0.0
    assert records["uniform"]["√pehe"] is None
    sim = simulate("averaged", n=2000, seed=0)
    log, fresh = two_levels(sim), sim.draw(10_000, seed=99)
    effect = log.response[log.level == 1].mean() - log.response[log.level == 0].mean()
    error = effect - (fresh.truth[:, 1] - fresh.truth[:, 0])
    assert records["level means"]["√pehe"] == pytest.approx(np.sqrt((error**2).mean()))
    assert 0 < records["t-learner"]["√pehe"] < 0.5
    assert "| uniform | 0." in table(list(records.values()))


def test_a_policy_has_plans_within_its_budget_and_no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"width": 4, "steps": 20, "translations": [0.3, 0.6]}
    monkeypatch.setitem(POLICIES, "small net", lambda budget: BanditNet(budget=budget, **small))
    records = simulation(["averaged"], ["small net"], seeds=1)
    mine = records[-1]
    assert "rmse" not in mine
    for budget in (1.5, 3):
        assert mine[f"spend {budget:g}"] <= budget
        assert mine[f"expected spend {budget:g}"] <= budget + 1e-9
    assert "| small net | – | – | – |" in table(records)


def test_a_summary_has_means_and_differences_from_level_means_and_makes_a_section() -> None:
    records = simulation(["averaged", "unit"], ["linear"], seeds=2)
    found = summary(records)
    mine = [r["rmse"] for r in records if (r["simulation"], r["model"]) == ("averaged", "linear")]
    means = [r["rmse"] for r in records if (r["simulation"], r["model"]) == ("averaged", "level means")]
    linear = found["simulations"]["averaged"]["linear"]
    assert linear["cells"]["rmse"]["mean"] == pytest.approx(np.mean(mine))
    assert linear["against"]["rmse"]["difference"] == pytest.approx(np.mean(mine) - np.mean(means))
    made = section({"experiment": "simulation", "summary": found, "file": "simulation.json"}, "results")
    assert "simulation-rmse.svg" in made.figures
    assert any(part.startswith("| method | averaged | unit |") for part in made.parts)
