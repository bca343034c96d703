import numpy as np
import pytest
from scipy import stats

from largesse.errors import InputError
from largesse.response import Linear
from largesse.worlds import simulate
from largesse_lab.experiments import coverage
from largesse_lab.runner.request import Request

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
    """A short version of `largesse experiment coverage --repeats 500`.

    All cases together must cover at least .93; each alone, what 93 % intervals would cover in 999 of 1,000 such tests.
    """
    records = coverage.measure(Request(("averaged", "confounded"), repeats=100))
    cases = ("fixed given", "learnt given", "fixed estimated", "learnt estimated")
    kinds = [f"{case} {paid}" for case in cases for paid in ("always", "redeemed")]
    shares = np.array([[record[kind]["hit"] for record in records] for kind in kinds]).mean(axis=1)  # (kinds, 2)
    assert shares.mean() >= 0.93
    assert shares.min() >= stats.binom.ppf(0.001, len(records), 0.93) / len(records)
    bands = [record["band given"]["hit"] for record in records if "band given" in record]
    assert np.mean(bands) > 0.85
