import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.errors import InputError
from largesse.evaluation.crossfitted_scores import compute_scores as scored
from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.estimators import (
    ESTIMATORS,
    EstimatorRows,
    _drop_large_ratios,
    _shrink_large_ratios,
    make_cost_rows,
    make_estimator_rows,
    measure_influence,
    tune_ratio_bound,
)
from largesse.evaluation.influence_functions import estimate_with_every_estimator
from largesse.evaluation.policy_estimates import (
    compare_with_each_level,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    estimate_ratio,
    measure_level_influence,
    measure_policy_influence,
)
from largesse.evaluation.policy_evaluation import compare, evaluate
from largesse.levels import Levels
from largesse.records import Array, HeldOutPredictions, Log, Propensities, Scores
from largesse.worlds.paper_simulations import Simulation, simulate


def drawn(seed: int, n: int = 60, K: int = 3) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    curves = rng.random((n, K))
    level = rng.integers(0, K, n)
    return {
        "curves": curves,
        "level": level,
        "outcome": rng.normal(size=n),
        "propensity": rng.uniform(0.1, 0.9, n),
        "policy": rng.dirichlet(np.ones(K), n),
        "weight": rng.uniform(0.5, 2.0, n),
    }


def slow(log: dict[str, Array], estimator: str) -> float:
    """The estimate, row by row and as it is written in books; `switch` and `dros` with nothing held back are `dr`."""
    top = bottom = direct = whole = corrected = 0.0
    for x, y, r, p, pi, v in zip(
        *(log[k] for k in ("curves", "level", "outcome", "propensity", "policy", "weight")), strict=True
    ):
        w, q = pi[y] / p, float(pi @ x)
        whole += v
        direct += v * q
        bottom += v * w
        top += v * w * (r if "ips" in estimator else r - x[y])
        corrected += v * (q + w * (r - x[y]))
    return {
        "direct": direct / whole,
        "ips": top / whole,
        "snips": top / bottom,
        "dr": corrected / whole,
        "sndr": direct / whole + top / bottom,
    }[estimator]


@pytest.mark.parametrize("estimator", ["direct", "ips", "snips", "dr", "sndr"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_every_estimator_is_its_formula(estimator: str, seed: int) -> None:
    log = drawn(seed)
    assert estimate_with_every_estimator(make_estimator_rows(**log))[estimator].estimate == pytest.approx(
        slow(log, estimator), rel=1e-9, abs=1e-12
    )


def test_levels_probabilities_and_common_shares_agree() -> None:
    log = drawn(1)
    levels = np.arange(60) % 3
    for one, other in itertools.pairwise((levels, np.eye(3)[levels])):
        a, b = (
            estimate_with_every_estimator(make_estimator_rows(**{**log, "policy": policy})) for policy in (one, other)
        )
        assert [e.estimate for e in a.values()] == pytest.approx([e.estimate for e in b.values()])
    shares = np.array([0.2, 0.3, 0.5])
    a, b = (
        estimate_with_every_estimator(make_estimator_rows(**{**log, "policy": p}))
        for p in (shares, np.tile(shares, (60, 1)))
    )
    assert [e.se for e in a.values()] == pytest.approx([e.se for e in b.values()])


@pytest.mark.parametrize("name", ["direct", "ips", "snips", "dr", "sndr"])
def test_influence_predicts_what_leaving_a_row_out_does(name: str) -> None:
    """The mean moves by minus the row's influence over n, up to terms of the next order."""
    log = drawn(2, n=2000)
    rows = make_estimator_rows(**{**log, "weight": np.ones(2000)})
    whole = estimate_with_every_estimator(rows)[name].estimate
    scores = measure_influence(ESTIMATORS[name].terms(rows), rows.weight)
    for i in (3, 77, 500):
        rest = np.arange(2000) != i
        part = EstimatorRows(*(values[rest] for values in (rows.direct, rows.ratio, rows.residual, rows.outcome)))
        assert estimate_with_every_estimator(part)[name].estimate - whole == pytest.approx(
            -(scores[i] - whole) / 1999, rel=0.02, abs=1e-7
        )


def test_self_normalised_estimates_do_not_mind_the_unit_of_propensities() -> None:
    log = drawn(3)
    halved = {**log, "propensity": log["propensity"] / 2}
    for name in ("snips", "sndr"):
        a, b = (estimate_with_every_estimator(make_estimator_rows(**one))[name] for one in (log, halved))
        assert (a.estimate, a.se) == pytest.approx((b.estimate, b.se))


def test_a_shift_of_the_response_shifts_what_it_should() -> None:
    log = drawn(4)
    moved = {**log, "outcome": log["outcome"] + 10, "curves": log["curves"] + 10}
    for name in ("direct", "snips", "dr", "sndr", "switch", "dros"):
        assert estimate_with_every_estimator(make_estimator_rows(**moved))[
            name
        ].estimate - estimate_with_every_estimator(make_estimator_rows(**log))[name].estimate == pytest.approx(10)


def test_great_weights_are_held_back_where_that_pays() -> None:
    """A few rows of enormous weight and good curves: both constants come down, and the standard error with them."""
    rng = np.random.default_rng(5)
    n = 5000
    ratio = np.where(rng.random(n) < 0.005, 200.0, 1.0)
    rows = EstimatorRows(rng.random(n), ratio, rng.normal(size=n), rng.normal(size=n), np.ones(n))
    assert tune_ratio_bound(rows, _drop_large_ratios) < 200
    assert tune_ratio_bound(rows, _shrink_large_ratios) < 200**2 * 10
    found = estimate_with_every_estimator(rows)
    assert found["switch"].se < 0.6 * found["dr"].se
    assert found["dros"].se < 0.6 * found["dr"].se


def test_nothing_is_held_back_where_curves_are_wrong_and_rows_many() -> None:
    rng = np.random.default_rng(6)
    n = 20_000
    ratio = rng.uniform(0, 5, n)
    rows = EstimatorRows(np.zeros(n), ratio, 1 + ratio, 1 + ratio, np.ones(n))  # great weights miss most
    assert tune_ratio_bound(rows, _drop_large_ratios) == np.inf
    found = estimate_with_every_estimator(rows)
    assert found["switch"].estimate == pytest.approx(found["dr"].estimate)
    assert abs(found["dros"].estimate / found["dr"].estimate - 1) < 0.02


def test_a_policy_nobody_ever_got_has_no_self_normalised_value() -> None:
    log = drawn(7)
    log["level"][:] = 0
    found = estimate_with_every_estimator(make_estimator_rows(**{**log, "policy": np.full(60, 2)}))
    assert np.isnan(found["snips"].estimate)
    assert found["dr"].estimate == pytest.approx(found["direct"].estimate)


@pytest.fixture(scope="module")
def sim() -> Simulation:
    return simulate("averaged", n=2000, seed=4, mix=0.3)


@pytest.fixture(scope="module")
def log(sim: Simulation) -> Log:
    """The log with a few of its features: quicker to fit, and no less true."""
    return replace(sim.log, features=sim.log.features.select([f"x{j}" for j in range(6)]))


@pytest.fixture(scope="module")
def scores(log: Log) -> Scores:
    return crossfit_scores(log)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_finds_the_truth(sim: Simulation, scores: Scores, estimator: str) -> None:
    levels = (sim.features[:, 0] > 5).astype(int) * 3
    value, spend = estimate_policy_value_and_spend(scores, levels, estimator)
    reach = 4 * value.se + (0.02 if estimator in ("direct", "switch", "dros") else 0.0)  # these may be biased
    assert abs(value.estimate - sim.value(levels)) < reach
    assert spend.estimate == pytest.approx(levels.mean())  # costs are known, whichever way values are estimated


def test_spend_on_redemption_is_judged_like_the_response(sim: Simulation, log: Log, scores: Scores) -> None:
    redeemed = replace(log, levels=Levels(costs=[0, 1, 2, 3, 4], on_redemption=True))
    assert log.propensity is not None
    made = scored(redeemed, HeldOutPredictions(scores.curves, scores.fold), Propensities(log.propensity, "given"))
    levels = np.full(2000, 3)
    true = 3 * sim.truth[:, 3].mean()
    for estimator in ("ips", "snips", "dr", "sndr"):
        _, spend = estimate_policy_value_and_spend(made, levels, estimator)
        assert abs(spend.estimate - true) < 4 * spend.se
    own = estimate_with_every_estimator(make_cost_rows(made, levels))["dr"]
    assert own.estimate == pytest.approx(estimate_policy_value_and_spend(made, levels)[1].estimate)


def test_value_per_unit_spent_is_a_ratio_with_an_interval(scores: Scores) -> None:
    levels = np.full(2000, 2)
    policy = measure_policy_influence(scores, levels)
    each, gain = (
        estimate_ratio(scores, *policy),
        estimate_ratio(scores, *policy.minus(measure_level_influence(scores, 0))),
    )
    value, _ = estimate_policy_value_and_spend(scores, levels)
    assert each.estimate == pytest.approx(value.estimate / 2)
    assert each.se == pytest.approx(value.se / 2)  # the spend is the same for all
    more, _ = estimate_policy_difference(scores, levels, np.zeros(2000, dtype=int))
    assert (gain.estimate, gain.se) == pytest.approx((more.estimate / 2, more.se / 2))
    assert np.isnan(estimate_ratio(scores, *measure_level_influence(scores, 0)).estimate)


def test_two_policies_are_compared_row_by_row(sim: Simulation, log: Log, scores: Scores) -> None:
    one, other = np.full(2000, 3), np.where(sim.features[:, 1] > 5, 3, 2)
    value, spend = compare(log, one, other)
    alone = estimate_policy_value_and_spend(scores, one)[0]
    assert value.estimate == pytest.approx(alone.estimate - estimate_policy_value_and_spend(scores, other)[0].estimate)
    assert value.se < alone.se  # half of the rows agree
    assert spend.estimate == pytest.approx(3 - other.mean())
    assert compare(log, one, one).value.se == 0


def test_every_uniform_level_is_compared_with(log: Log, scores: Scores) -> None:
    found = compare_with_each_level(
        scores, measure_level_influence(scores, 2), measure_level_influence(scores, 0), log.levels
    )
    assert [r.name for r in found] == ["level 0", "level 1", "level 2", "level 3", "level 4"]
    assert (found[2].difference.estimate, found[2].difference.se) == (0, 0)
    assert found[0].difference.estimate == pytest.approx(found[2].value.estimate - found[0].value.estimate)


def test_unknown_estimators_and_intervals_are_refused_together(log: Log) -> None:
    with pytest.raises(InputError, match="did you mean 'snips'") as caught:
        evaluate(log, np.zeros(2000, dtype=int), estimator="snip", interval="bootstap")
    assert "did you mean 'bootstrap'" in str(caught.value)
