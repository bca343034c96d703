import numpy as np
import pytest
from scipy.stats import norm

import largesse as lg
from largesse.errors import InputError
from largesse.evaluation import crossfit_scores
from largesse.monitoring import PowerSettings, broadcast_probabilities, compute_test_sizes, make_test_arms
from largesse.records import Log, Scores

N = 4000


@pytest.fixture(scope="module")
def scored() -> tuple[Log, Scores]:
    log = lg.simulate("averaged", n=N, seed=3, mix=1.0).log
    return log, crossfit_scores(log, lg.Linear(penalty=1.0))


def _plan(log: Log, share: float) -> np.ndarray:
    """Return level 3 for a share of the rows, level 0 for the others."""
    return np.where(np.arange(len(log)) < share * len(log), 3, 0)


def test_a_test_among_switchers_needs_the_textbooks_number(scored: tuple[Log, Scores]) -> None:
    log, scores = scored
    arms = make_test_arms(scores, broadcast_probabilities(_plan(log, 1.0), scores), "0", log.levels)
    found = compute_test_sizes(scores, arms, PowerSettings(gain=0.05), log).value
    assert found.sd[0] < 0.51
    z = norm.ppf(0.975) + norm.ppf(0.8)
    plain = 2 * z**2 * (found.sd[0] ** 2 + found.sd[1] ** 2) / 0.05**2  # two arms
    assert found.expected.switchers == pytest.approx(plain)
    assert found.expected.traffic == pytest.approx(found.expected.switchers)
    assert found.expected.diluted == pytest.approx(found.expected.traffic)


def test_traffic_grows_with_the_share_of_switchers_and_dilution_with_its_square(scored: tuple[Log, Scores]) -> None:
    log, scores = scored
    sizes = []
    for share in (1.0, 0.1):
        arms = make_test_arms(scores, broadcast_probabilities(_plan(log, share), scores), "0", log.levels)
        found = compute_test_sizes(
            scores, arms, PowerSettings(gain=0.1 * share), log
        )  # the same gain for every switcher
        assert found.switchers == pytest.approx(share)
        sizes.append(found.value.expected)
    assert sizes[1].switchers == pytest.approx(sizes[0].switchers, rel=0.15)
    assert sizes[1].traffic / sizes[0].traffic == pytest.approx(10, rel=0.15)
    assert sizes[1].diluted / sizes[0].diluted == pytest.approx(100, rel=0.15)


@pytest.mark.parametrize("incumbent", ["before", "uniform", "0"])
def test_tests_of_the_stated_size_have_the_stated_power(incumbent: str) -> None:
    made = lg.simulate("averaged", n=N, seed=5, mix=1.0)
    log, truth, rng = made.log, made.truth, np.random.default_rng(0)
    scores = crossfit_scores(log, lg.Linear(penalty=1.0))
    plan = _plan(log, 0.6)
    arms = make_test_arms(scores, broadcast_probabilities(plan, scores), incumbent, log.levels)
    before = np.full((N, 5), 0.2) if arms.incumbent is None else arms.incumbent
    gain = float((truth[np.arange(N), plan] - (before * truth).sum(axis=1)).mean())
    size = compute_test_sizes(scores, arms, PowerSettings(gain=abs(gain), power=0.8), log).value.expected
    away = before * (np.arange(5) != plan[:, None])  # whoever would get the same level is not tested
    chances = [
        float((away * rate).sum() / away.sum()) for rate in (truth[np.arange(N), plan][:, None], truth)
    ]  # of a response, in both arms
    many = int(size.switchers / 2)
    one, two = (rng.binomial(many, chance, 4000) / many for chance in chances)
    apart = np.abs(one - two) > 1.96 * np.sqrt((one * (1 - one) + two * (1 - two)) / many)
    assert apart.mean() == pytest.approx(0.8, abs=0.05)


def test_the_lower_end_of_the_gain_needs_more_and_none_where_it_is_below_zero(scored: tuple[Log, Scores]) -> None:
    log, _ = scored
    found = lg.power(log, _plan(log, 1.0), np.zeros(N, dtype=np.int64), per_day=100)
    value = found.value
    assert value.gain.low > 0
    assert value.expected.traffic < value.least.traffic < np.inf
    assert value.expected.days == pytest.approx(value.expected.traffic / 100)
    unclear = lg.power(log, _plan(log, 0.002), np.zeros(N, dtype=np.int64))
    assert unclear.value.least.traffic == np.inf
    assert "does not show" in unclear.notes[0]
    assert "no number" in unclear._repr_html_()
    assert found.to_arrow().num_rows == 2
    assert "switchers" in repr(found)


def test_a_plan_that_changes_nothing_has_no_test(scored: tuple[Log, Scores]) -> None:
    log, _ = scored
    found = lg.power(log, np.ones(N, dtype=np.int64), np.ones(N, dtype=np.int64))
    assert found.cases == ()
    assert "nothing to test" in found.notes[0]
    assert "nothing to test" in repr(found)
    assert found.to_arrow().num_rows == 0


def test_savings_are_tested_for_being_no_worse_and_profit_where_a_response_has_a_value(
    scored: tuple[Log, Scores],
) -> None:
    from dataclasses import replace

    log, scores = scored
    arms = make_test_arms(scores, broadcast_probabilities(_plan(log, 0.5), scores), "3", log.levels)
    found = compute_test_sizes(scores, arms, PowerSettings(), log, price=0.2)
    assert [case.name for case in found.cases] == ["value", "value less cost", "not worse"]
    assert found.value.expected.traffic == np.inf  # it brings less
    assert found.cases[2].expected.traffic < np.inf
    worth = compute_test_sizes(scores, arms, PowerSettings(), replace(log, response_value=10.0), price=0.2)
    assert worth.cases[1].name == "profit"
    assert worth.cases[1].gain.estimate == pytest.approx(10 * found.value.gain.estimate - (_plan(log, 0.5) - 3).mean())


@pytest.mark.parametrize(
    "wrong", [{"power": 0.3}, {"coverage": 1.0}, {"gain": -1.0}, {"per_day": 0}, {"other": "nobody"}]
)
def test_odd_wishes_are_refused(scored: tuple[Log, Scores], wrong: dict[str, object]) -> None:
    log, _ = scored
    with pytest.raises(InputError, match="power"):
        lg.power(log, _plan(log, 1.0), **wrong)  # type: ignore[arg-type]
