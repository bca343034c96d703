from pathlib import Path

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.records import Array
from largesse.response.linear import Linear
from largesse.worlds.simulation import simulate
from largesse_lab.bench.kept import Kept
from largesse_lab.experiments import coverage
from largesse_lab.experiments import false_alarms as lots
from largesse_lab.experiments import real_logs as real

CASE = ("error", "se", "reach", "hit", "truth")


def test_a_log_is_judged_in_every_case_against_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRESH", "LEARNT_FRESH", "BAND_FRESH"):
        monkeypatch.setattr(coverage, name, 2000)
    out = tmp_path / "coverage.jsonl"
    made = coverage.coverage(("averaged",), logs=1, rows=301, model=lambda: Linear(penalty=0.1), out=out)
    cases = [key for key in made[0] if isinstance(made[0][key], dict) and "hit" in made[0][key]]
    assert len(cases) == 3 * 2 * 2 + 2
    case = made[0]["fixed given always"]
    for error, se, reach, hit, truth in zip(*(case[word] for word in CASE), strict=True):
        assert hit == (abs(error) <= reach)
        assert 1.967 * se < reach < 2.3 * se  # 300 degrees of freedom, or fewer where few rows carry the error
        assert 0 < truth < 4
    assert made[0]["learnt given always"]["truth"][1] == pytest.approx(1.5, abs=0.3)
    assert made[0]["highest given always"]["error"][1] == 0
    again = coverage.coverage(("averaged",), logs=1, rows=301, model=lambda: Linear(penalty=0.1), out=out)
    assert again == made
    told = coverage.table(made)
    assert "### averaged, 1 logs of 301 rows, 20% lots" in told
    assert "| learnt | estimated | redeemed |" in told


def test_the_fixed_rule_does_not_depend_on_who_is_drawn() -> None:
    for name in ("unit", "averaged"):
        some, many = (simulate(name, n=n, seed=1).features for n in (50, 5000))
        np.testing.assert_array_equal(coverage.fixed_rule(some), coverage.fixed_rule(many)[:50])


def test_unknown_simulations_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'averaged'"):
        coverage.coverage(("average",), logs=1)


def test_results_survive_a_killed_run(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.jsonl"
    kept = Kept(path, ("a",))
    kept.add({"a": 1, "b": 2})
    path.write_text(path.read_text() + '{"a": 2, "b')  # killed while writing
    assert Kept(path, ("a",)).found == {(1,): {"a": 1, "b": 2}}
    assert path.read_text() == '{"a": 1, "b": 2}\n'


def test_the_doctor_is_put_to_the_test() -> None:
    found = lots.lots(logs=1)
    assert [record["case"] for record in found] == list(lots.CASES)
    told = lots.table(found)
    assert "| a planted leak | names it first | 100.0% |" in told
    assert "| confounded | not randomised | 100.0% |" in told


def slow_mean(response: Array, own: Array, strata: Array) -> float:
    return float(sum((strata == s).mean() * response[own & (strata == s)].mean() for s in np.unique(strata)))


def test_a_stratified_mean_counts_strata_by_their_size() -> None:
    rng = np.random.default_rng(0)
    strata, own, response = rng.integers(0, 3, 300), rng.random(300) < 0.5, rng.normal(size=300)
    assert real.stratified_mean(response, own, strata) == pytest.approx(slow_mean(response, own, strata))


@pytest.mark.slow
@pytest.mark.skipif(real.data_folder() is None, reason="the real data are not here: set LARGESSE_DATA")
def test_uniform_levels_of_real_logs_are_worth_what_a_calculation_by_hand_gives() -> None:
    found = real.real()
    for row in found:
        assert abs(row["estimate"] - row["by_hand"]) < row["se"]
    villages = [row for row in found if row["cluster_se"] is not None]
    assert np.mean([row["cluster_se"] / row["se"] for row in villages]) > 1.05
    assert all(row["cluster_reach"] > row["reach"] for row in villages)


@pytest.mark.slow
def test_intervals_hold_and_the_doctor_does_not_cry_wolf() -> None:
    """A short version of `largesse experiment coverage --seeds 500` and `largesse experiment lots --seeds 200`."""
    records = coverage.coverage(("averaged", "confounded"), logs=100)
    for case in ("fixed given", "learnt given", "fixed estimated", "learnt estimated"):
        for paid in ("always", "redeemed"):
            hits = np.array([record[f"{case} {paid}"]["hit"] for record in records])
            assert (hits.mean(axis=0) > 0.9).all()
    bands = [record["band given"]["hit"] for record in records if "band given" in record]
    assert np.mean(bands) > 0.85
    false = [not record["randomised"] for record in lots.lots(logs=60) if record["case"] == "randomised"]
    assert np.mean(false) <= 0.06
