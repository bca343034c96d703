import numpy as np
import pytest

import largesse as lg
from largesse.errors import InputError
from largesse.evaluation import crossfit_scores
from largesse.exploration import ResponseVariance, find_confirmatory_exploration, plan_exploration
from largesse.policy import Policy
from largesse.records import Estimate, GainEvidence, Verdict


@pytest.fixture(scope="module")
def made() -> tuple[lg.Log, Policy]:
    log = lg.simulate("averaged", n=600, seed=2).log
    return log, Policy(lg.Linear(penalty=1.0).fit(log), log.levels)


def test_one_call_plans_explores_and_draws(made: tuple[lg.Log, Policy]) -> None:
    log, policy = made
    found = policy.explore(log, budget=1.5, seed=3)
    rows = np.arange(600)
    assert found.spend <= found.budget == 1.5
    assert np.allclose(found.decisions.propensity, found.probabilities[rows, found.decisions.levels])
    again = policy.explore(log, budget=1.5, seed=3)
    assert (again.decisions.levels == found.decisions.levels).all()
    assert (policy.explore(log, budget=1.5, seed=4).decisions.levels != found.decisions.levels).any()
    assert (found.decisions.levels == found.plan).mean() > 0.8
    names = [one.name for one in found.precisions]
    assert names == ["this exploration", "levels at random", "no exploration"]
    assert found.given_up == pytest.approx(found.precisions[1].given_up, rel=1e-5)
    assert found.this.money == pytest.approx(found.given_up / found.price)
    assert found.precisions[2].gain_se == np.inf


@pytest.mark.parametrize("budget", [0.1, 0.3, 0.7, 1.1, 2.3])
def test_the_spend_that_is_told_keeps_the_budget_even_where_all_levels_cost_it(
    made: tuple[lg.Log, Policy], budget: float
) -> None:
    log, policy = made
    alike = Policy(policy.model, lg.Levels(costs=[budget] * 5))
    assert alike.explore(log, budget=budget).spend <= budget


def test_more_exploring_gives_up_more_and_is_more_precise(made: tuple[lg.Log, Policy]) -> None:
    log, policy = made
    found = policy.explore(log, budget=1.5, rate=0.04)
    more = policy.explore(log, budget=1.5, rate=0.08)
    assert more.given_up > found.given_up
    assert more.this.gain_se < found.this.gain_se
    assert "levels at random" in found._repr_html_()
    assert found.to_arrow().column_names == ["customer", "level_number", "propensity", "planned_level"]
    assert "for evaluation" in repr(found)


def test_without_a_budget_the_policys_price_decides(made: tuple[lg.Log, Policy]) -> None:
    log, policy = made
    priced = policy.calibrate(log, 1.5)
    chosen = priced.decide(log)
    found = priced.explore(log)
    assert found.budget == pytest.approx(chosen.mean())
    assert (found.plan == chosen).mean() > 0.99


@pytest.mark.parametrize("form", ["levels", "probabilities", "policy"])
def test_the_plan_is_compared_with_what_is_given(made: tuple[lg.Log, Policy], form: str) -> None:
    log, policy = made
    ones = np.ones(600, dtype=np.int64)
    given = {"levels": ones, "probabilities": np.eye(5)[ones], "policy": policy.calibrate(log, 1.0)}[form]
    found = policy.explore(log, budget=1.5, incumbent=given)
    usual = policy.explore(log, budget=1.5)
    assert found.this.gain_se != usual.this.gain_se
    if form != "policy":  # the exploration has an eye on level 1
        assert found.probabilities[:, 1].sum() > usual.probabilities[:, 1].sum()


def test_only_eligible_levels_are_drawn_and_limits_are_refused_together(made: tuple[lg.Log, Policy]) -> None:
    log, policy = made
    eligible = np.ones((600, 5), dtype=bool)
    eligible[:300, 2:] = False
    found = policy.explore(log, budget=1.5, constraints=lg.Constraints(eligible=eligible))
    assert found.decisions.levels[:300].max() <= 1
    assert found.probabilities[:, 4].max() > 0
    limits = lg.Constraints(eligible=eligible, caps={4: 40}, least_return=0.01)
    with pytest.raises(InputError, match="caps, least_return") as caught:
        policy.explore(log, budget=1.5, rate=2, constraints=limits)
    assert len(caught.value.problems) == 2


def test_amounts_need_a_log_that_says_how_much_they_vary() -> None:
    log = lg.simulate("averaged", n=400, seed=1).log
    amounts = lg.log_from_arrays(
        np.column_stack([log.features.column(0).to_numpy()]),
        log.level,
        10 * log.response + log.level,
        levels=log.levels,
    )
    policy = Policy(lg.Linear(penalty=1.0).fit(amounts), log.levels)
    with pytest.raises(InputError, match="log=log"):
        policy.explore(amounts, budget=1.0)
    assert policy.explore(amounts, budget=1.0, log=amounts).this.plan_se > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"goal": "evaluating"}, "the goal is 'evaluating'"),
        ({"goal": np.array(["plan", "gain"])}, "the goal is array"),
        ({"log": {"coupon": [1]}}, "the log is {'coupon': "),
        ({"constraints": 5}, "the constraints are 5"),
        ({"rate": 0}, "the rate is 0"),
        ({"rate": 1.5}, "the rate is 1.5"),
        ({"seed": -1}, "seed"),
        ({"budget": -1.0}, "budget"),
        ({"incumbent": np.full(600, 7)}, "the incumbent has shape"),
    ],
)
def test_odd_wishes_are_refused(made: tuple[lg.Log, Policy], wrong: dict[str, object], words: str) -> None:
    log, policy = made
    with pytest.raises(InputError, match=words):
        policy.explore(log, **({"budget": 1.5} | wrong))  # type: ignore[arg-type]


# -- the log that settles a verdict -------------------------------------------------------------------------------------


def judge_gain(gain: float, grade: str = "best bet", recommended: str = "plan", se: float = 0.02) -> Verdict:
    found = Estimate(gain, se, gain - 2 * se, gain + 2 * se)
    needed = 600 * (2.8 * se / gain) ** 2
    return Verdict(recommended, grade, (GainEvidence("plan", found, 0.9, found, found),), needed_rows=needed)


def test_the_next_log_gives_up_at_most_half_of_the_gain_and_would_show_it(made: tuple[lg.Log, Policy]) -> None:
    log, _ = made
    scores = crossfit_scores(log, lg.Linear(penalty=1.0))
    rates = []
    for gain in (0.5, 0.002, 0.0005, 1e-6):
        found = find_confirmatory_exploration(scores, judge_gain(gain), 600, 1.5, ResponseVariance())
        assert found is not None
        rates.append(found.rate)
        explored, _ = plan_exploration(scores.curves, scores.expected_costs, 1.5, ResponseVariance(), rate=found.rate)
        assert found.given_up == pytest.approx(explored.given_up, rel=1e-3)
        assert found.given_up <= gain / 2 or found.rate == 0.01
        # The expected gain is 2.8 standard errors of such a log.
        assert 2.8 * explored.this.gain_se * np.sqrt(600 / found.customers) == pytest.approx(gain, rel=1e-3)
    assert rates[0] == 0.1
    assert sorted(rates, reverse=True) == rates
    assert len(set(rates)) > 2


def test_a_settled_verdict_and_one_for_another_option_need_no_exploration(made: tuple[lg.Log, Policy]) -> None:
    log, _ = made
    scores = crossfit_scores(log, lg.Linear(penalty=1.0))
    for verdict in (judge_gain(0.1, "proved"), judge_gain(0.1, recommended="rule"), Verdict(None, "cannot say")):
        assert find_confirmatory_exploration(scores, verdict, 600, 1.5, ResponseVariance()) is None
