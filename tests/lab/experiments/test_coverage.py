import numpy as np
import pytest

from largesse.errors import InputError
from largesse.response import Linear
from largesse.worlds import simulate
from largesse_lab.bench.request import Request
from largesse_lab.experiments import coverage

CASE = ("error", "se", "reach", "hit", "truth")


def test_a_log_is_judged_in_every_case_against_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRESH", "LEARNT_FRESH", "BAND_FRESH"):
        monkeypatch.setattr(coverage, name, 2000)
    monkeypatch.setattr(coverage, "ROWS", 301)
    monkeypatch.setattr(coverage, "MODEL", lambda: Linear(penalty=0.1))
    made = coverage.measure(Request(("averaged",), repeats=1))
    cases = [key for key in made[0] if isinstance(made[0][key], dict) and "hit" in made[0][key]]
    assert len(cases) == 3 * 2 * 2 + 2
    case = made[0]["fixed given always"]
    for error, se, reach, hit, truth in zip(*(case[word] for word in CASE), strict=True):
        assert hit == (abs(error) <= reach)
        assert 1.967 * se < reach < 2.3 * se  # 300 degrees of freedom, or fewer where few rows carry the error
        assert 0 < truth < 4
    assert made[0]["learnt given always"]["truth"][1] == pytest.approx(1.5, abs=0.3)
    assert made[0]["highest given always"]["error"][1] == 0
    told = coverage.tabulate(made)
    assert "### averaged, 1 logs of 301 rows, 20% randomised" in told
    assert "| learnt | estimated | redeemed |" in told


def test_the_fixed_rule_does_not_depend_on_who_is_drawn() -> None:
    for name in ("unit", "averaged"):
        some, many = (simulate(name, n=n, seed=1).features for n in (50, 2000))
        np.testing.assert_array_equal(coverage.apply_fixed_rule(some), coverage.apply_fixed_rule(many)[:50])


def test_unknown_simulations_and_several_models_are_refused_together() -> None:
    with pytest.raises(InputError, match="3 things are wrong") as refused:
        coverage.measure(Request(("average",), ("linear", "liner"), 1))
    for said in ("did you mean 'averaged'", "did you mean 'linear'", "2 models"):
        assert said in str(refused.value)


@pytest.mark.slow
def test_intervals_contain_the_truth_as_often_as_they_promise() -> None:
    """A short version of `largesse experiment coverage --repeats 500`."""
    records = coverage.measure(Request(("averaged", "confounded"), repeats=100))
    for case in ("fixed given", "learnt given", "fixed estimated", "learnt estimated"):
        for paid in ("always", "redeemed"):
            hits = np.array([record[f"{case} {paid}"]["hit"] for record in records])
            assert (hits.mean(axis=0) > 0.9).all()
    bands = [record["band given"]["hit"] for record in records if "band given" in record]
    assert np.mean(bands) > 0.85
