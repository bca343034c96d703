"""The common effects of levels: their fit to rows, and the prior on their shapes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binomtest

from largesse.data.log_reader import log_from_arrays
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response.level_effect_estimation import (
    TYPICAL_LOGIT,
    CoefficientPrior,
    Link,
    ScoredRows,
    average_level_effects,
    choose_link,
    fit_coefficients,
    fit_level_effects,
    make_scored_rows,
    measure_slope_noise,
    scale_doses,
)
from largesse.stats.link_functions import sigmoid

LADDER = np.array([0.0, 0.5, 0.6, 1.4])


def made(n: int, *, binary: bool = True, effects: Array = LADDER, seed: int = 0, **more: Any) -> tuple[Log, Array]:
    """A log whose scores are −0.5 + 1.5·base + the effect of the level, and the bases."""
    rng = np.random.default_rng(seed)
    base, level = rng.normal(size=n), rng.integers(0, len(effects), n)
    score = -0.5 + 1.5 * base + effects[level]
    response = rng.random(n) < sigmoid(score) if binary else score + rng.normal(size=n)
    levels = Levels(costs=np.arange(len(effects)))
    return log_from_arrays(base[:, None], level, response.astype(float), levels=levels, **more), base


def rows_of(log: Log) -> ScoredRows:
    return make_scored_rows(log, choose_link(log))


def test_scores_become_responses_and_scores_again() -> None:
    curves = np.sort(np.random.default_rng(0).random((20, 5)), axis=1)
    yes, amount = Link(True), Link(False, 12.0)
    np.testing.assert_allclose(yes.to_responses(yes.to_scores(curves)), curves)
    np.testing.assert_allclose(amount.to_responses(amount.to_scores(100 * curves)), 100 * curves)
    assert np.isfinite(yes.to_scores(np.array([[0.0, 1.0]]))).all()


# ---------------------------------------------------------------------------------------------- the solver


@pytest.mark.parametrize("binary", [True, False])
def test_the_fit_is_that_of_a_general_solver(binary: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(6):
        log, _ = made(300, binary=binary, weight=rng.random(300))
        rows, design, offset = rows_of(log), rng.normal(size=(300, 4)), rng.normal(size=300)
        prior = CoefficientPrior(rng.normal(size=4), rng.random(4), np.array([-np.inf, 0.0, 0.0, -np.inf]))
        noise = float(rng.uniform(0.3, 3))

        def objective(
            z: Array,
            rows: ScoredRows = rows,
            prior: CoefficientPrior = prior,
            noise: float = noise,
            given: tuple[Array, Array] = (design, offset),
        ) -> float:
            loss = rows.weight @ rows.row_losses(given[1] + given[0] @ z) / noise
            return float(loss + 0.5 * prior.precision @ (z - prior.mean) ** 2)

        found = fit_coefficients(rows, design, offset, prior, noise)
        assert (found[1:3] >= 0).all()
        bounds = [(-9, 9), (0, 9), (0, 9), (-9, 9)]
        slow = minimize(objective, np.zeros(4), method="SLSQP", bounds=bounds, options={"ftol": 1e-12})
        assert objective(found) <= slow.fun + 1e-5


# ---------------------------------------------------------------------------------------------- the common ladder


@pytest.mark.parametrize("binary", [True, False])
def test_a_known_intercept_slope_and_ladder_are_recovered(binary: bool) -> None:
    log, base = made(200_000, binary=binary)
    found, unit = fit_level_effects(rows_of(log), base), choose_link(log).unit
    np.testing.assert_allclose(unit * found.effects, LADDER, atol=0.05)
    assert unit * found.slope == pytest.approx(1.5, abs=0.03)
    assert unit * found.intercept == pytest.approx(-0.5, abs=0.05)


def test_a_base_of_slope_one_may_be_taken_as_it_is() -> None:
    log, base = made(50_000)
    found = fit_level_effects(rows_of(log), 1.5 * base, slope=False)
    assert found.slope == 1.0
    np.testing.assert_allclose(found.effects, LADDER, atol=0.1)
    flat = fit_level_effects(rows_of(log), np.zeros(len(log)))
    assert flat.slope == 1.0  # a base that is the same for all has no slope


STRANGE = {
    "two jumps": [-1.0, -0.2, -0.2, -0.2, 0.7, 0.7],
    "accelerating": [-1.0, -0.99, -0.95, -0.8, -0.3, 1.2],
    "rare, late": [-5.0, -5.0, -5.0, -5.0, -4.0, -4.0],
}


@pytest.mark.parametrize("name", STRANGE)
def test_many_rows_override_what_is_usual(name: str) -> None:
    rng = np.random.default_rng(4)
    chance, n = sigmoid(np.array(STRANGE[name])), 300_000
    level = rng.integers(0, 6, n)
    response = (rng.random(n) < chance[level]).astype(float)
    log = log_from_arrays(np.zeros((n, 1)), level, response, levels=Levels(costs=[0, 1, 2, 3, 4, 5]))
    found = fit_level_effects(rows_of(log), np.zeros(n))
    for k in range(6):
        mine = response[level == k]
        ends = binomtest(int(mine.sum()), len(mine)).proportion_ci(0.999)
        assert ends.low < sigmoid(found.intercept + found.effects[k]) < ends.high


def test_few_rows_leave_a_usual_ladder() -> None:
    for seed in range(5):
        log, base = made(200, effects=np.array([0.0, 0.0, 0.0, 0.5]), seed=seed)
        steps = np.diff(fit_level_effects(rows_of(log), base).effects)
        assert steps[2] < steps.sum() * 0.75  # the truth is all at the last step; so few rows do not show it


def test_levels_without_rows_and_levels_that_all_say_yes_are_harmless() -> None:
    log, base = made(4000)
    empty = log.take(log.level != 2)
    found = fit_level_effects(rows_of(empty), base[log.level != 2])
    assert found.effects[1] <= found.effects[2] <= found.effects[3]
    yes = np.where(log.level == 3, 1.0, log.response)
    sure = log_from_arrays(base[:, None], log.level, yes, levels=log.levels)
    top = fit_level_effects(rows_of(sure), base).effects
    assert np.isfinite(top).all()
    assert top[3] > 2.0
    np.testing.assert_allclose(top[1:3], fit_level_effects(rows_of(log), base).effects[1:3], atol=0.3)


def test_a_level_at_which_nearly_all_agree_is_known_as_well_as_its_rows_know_it() -> None:
    for yes in (0, 3, 997, 1000):
        level = np.repeat([0, 1, 2], 1000)
        response = np.concatenate([np.arange(1000) < 500, np.arange(1000) < 550, np.arange(1000) < yes]).astype(float)
        rows = ScoredRows(Link(True), level, response, np.ones(3000), None, np.array([0.0, 0.5, 1.0]))
        found = fit_level_effects(rows, np.zeros(3000))
        if yes > 500:
            assert abs(sigmoid(found.intercept + found.effects[2]) - yes / 1000) < 0.01
        else:  # a ladder never falls
            assert np.ptp(found.effects) < 0.01


@pytest.mark.parametrize("binary", [True, False])
def test_one_level_has_an_intercept_and_a_slope(binary: bool) -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=20_000)
    score = 1.5 * base - 0.5
    response = (rng.random(20_000) < sigmoid(score)).astype(float) if binary else score
    rows = ScoredRows(Link(binary), np.zeros(20_000, dtype=int), response, np.ones(20_000), None, np.zeros(1))
    found = fit_level_effects(rows, base)
    assert found.effects.tolist() == [0.0]
    assert found.slope == pytest.approx(1.5, abs=0.06)
    assert found.intercept == pytest.approx(-0.5, abs=0.06)


# ------------------------------------------------------------------------------- confounding that base scores miss


def make_confounded(n: int, follows: float, *, binary: bool = True, seed: int = 0) -> tuple[ScoredRows, Array]:
    """Rows whose levels follow half of the true base with the strength `follows`, and base scores that miss this half."""
    rng = np.random.default_rng(seed)
    known, missed = rng.normal(size=(2, n))
    place = np.linspace(-1.0, 1.0, len(LADDER))
    odds = np.exp(follows * missed[:, None] * place)
    chances = odds / odds.sum(axis=1, keepdims=True)
    level = (rng.random(n)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    score = -0.5 + known + 0.7 * missed + LADDER[level]
    response = (rng.random(n) < sigmoid(score)).astype(float) if binary else score + rng.normal(size=n)
    rows = ScoredRows(Link(binary), level, response, np.ones(n), None, np.arange(len(LADDER)) / (len(LADDER) - 1))
    return replace(rows, propensity=chances[np.arange(n), level]), known


@pytest.mark.parametrize("binary", [True, False])
def test_propensities_free_the_ladder_of_confounding(binary: bool) -> None:
    rows, base = make_confounded(40_000, 1.0, binary=binary)
    biased = fit_level_effects(replace(rows, propensity=None), base).effects
    # Not the true ladder: a missed part of the base pulls logits together a little.
    randomised = fit_level_effects(*make_confounded(40_000, 0.0, binary=binary, seed=1)).effects
    bias = np.abs(biased - randomised).max()
    assert bias > 0.3
    assert np.abs(fit_level_effects(rows, base).effects - randomised).max() < 0.5 * bias


@pytest.mark.parametrize("n", [500, 5_000])
@pytest.mark.parametrize("binary", [True, False])
def test_constant_propensities_leave_the_ladder_as_it_is(n: int, binary: bool) -> None:
    rows, base = make_confounded(n, 0.0, binary=binary)
    rows = replace(rows, propensity=np.array([0.1, 0.2, 0.3, 0.4])[rows.level])
    plain = fit_level_effects(replace(rows, propensity=None), base).effects
    np.testing.assert_allclose(fit_level_effects(rows, base).effects, plain, atol=0.02)


def test_corrections_are_small_where_inverse_weights_are_noisy() -> None:
    rows, base = make_confounded(300, 0.0)
    rng = np.random.default_rng(1)
    noisy = replace(rows, propensity=np.where(rng.random(300) < 0.03, 0.01, 0.3))
    plain = fit_level_effects(replace(rows, propensity=None), base).effects
    assert np.abs(fit_level_effects(noisy, base).effects - plain).max() < 0.3


@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_rows_that_all_say_the_same_are_fitted(answer: float) -> None:
    level = np.arange(40) % 4
    rows = ScoredRows(Link(True), level, np.full(40, answer), np.ones(40), None, np.arange(4) / 3)
    found = fit_level_effects(rows, np.zeros(40))
    assert np.isfinite([found.intercept, found.slope, *found.effects]).all()
    assert abs(sigmoid(found.intercept) - answer) < 0.1


def test_weights_count_as_repeated_rows_of_a_cluster_do() -> None:
    log, base = made(3000)
    times = np.random.default_rng(1).integers(1, 4, 3000)
    again = np.repeat(np.arange(3000), times)
    weighted = made(3000, weight=times.astype(float))[0]
    repeated = log_from_arrays(
        base[again, None], log.level[again], log.response[again], levels=log.levels, cluster=again
    )
    one, other = fit_level_effects(rows_of(weighted), base), fit_level_effects(rows_of(repeated), base[again])
    np.testing.assert_allclose(one.effects, other.effects, atol=2e-3)
    assert one.intercept == pytest.approx(other.intercept, abs=2e-3)
    assert one.slope == pytest.approx(other.slope, abs=2e-3)


def test_clusters_make_the_ladder_more_cautious() -> None:
    """Thirty copies of few rows seem to show a strange ladder; as clusters they show next to nothing."""
    log, base = made(300, effects=np.array([0.0, 0.0, 0.0, 2.0]), seed=3)
    again = np.repeat(np.arange(300), 30)
    parts = base[again, None], log.level[again], log.response[again]
    apart = fit_level_effects(rows_of(log_from_arrays(*parts, levels=log.levels)), base[again])
    together = fit_level_effects(rows_of(log_from_arrays(*parts, levels=log.levels, cluster=again)), base[again])
    once = fit_level_effects(rows_of(log), base)
    assert together.noise > 20 * apart.noise
    np.testing.assert_allclose(together.effects, once.effects, atol=0.02)
    assert np.abs(together.effects - apart.effects).max() > 0.05


# ---------------------------------------------------------------------------------------------- the noise


def test_independent_yes_and_no_have_a_noise_of_one() -> None:
    log, base = made(50_000)
    assert fit_level_effects(rows_of(log), base).noise == pytest.approx(1, abs=0.05)


def test_copies_in_clusters_are_noisier_and_exact_amounts_hardly_noisy() -> None:
    log, base = made(4000)
    again = np.repeat(np.arange(4000), 5)
    copies = log_from_arrays(base[again, None], log.level[again], log.response[again], cluster=again)
    assert fit_level_effects(rows_of(copies), base[again]).noise == pytest.approx(5, rel=0.1)
    exact = log_from_arrays(base[:, None], log.level, 3.0 * base + log.level, levels=log.levels)
    found = fit_level_effects(rows_of(exact), base)
    assert found.noise < 1e-3
    np.testing.assert_allclose(choose_link(exact).unit * found.effects, [0, 1, 2, 3], atol=0.02)


def test_the_noise_of_nothing_is_one() -> None:
    log, _ = made(100)
    assert measure_slope_noise(rows_of(log), np.zeros((100, 2)), np.zeros(100)) == 1.0


def even(K: int) -> Array:
    return np.arange(K) / max(K - 1, 1)


def ladder_of(effects: Array, variance: float | Array, doses: Array | None = None) -> Array:
    doses = even(len(effects) + 1) if doses is None else doses
    return average_level_effects(effects, variance * np.eye(len(effects)), doses, TYPICAL_LOGIT)


RISING = {
    "even": [0.1, 0.2, 0.3, 0.4],
    "saturating": [0.4, 0.5, 0.52, 0.53],
    "accelerating": [0.01, 0.05, 0.2, 0.9],
    "S-shaped": [0.02, 0.3, 0.6, 0.62],
    "two jumps": [0.3, 0.3, 0.3, 0.8],
    "late": [0.0, 0.0, 0.0, 0.5],
    "flat": [0.0, 0.0, 0.0, 0.0],
    "large": [3.0, 3.5, 6.0, 8.0],
}


@pytest.mark.parametrize("name", RISING)
def test_effects_that_are_known_exactly_are_returned(name: str) -> None:
    effects = np.array(RISING[name])
    np.testing.assert_allclose(ladder_of(effects, 1e-10), [0.0, *effects], atol=2e-4)


@pytest.mark.parametrize("K", range(3, 13))
@pytest.mark.parametrize("shape", ["even", "irregular", "equal"])
def test_a_log_that_says_nothing_gives_diminishing_steps(K: int, shape: str) -> None:
    doses = {"even": even(K), "irregular": even(K) ** 2, "equal": np.minimum(even(K), 0.5) * 2}[shape]
    steps, more = np.diff(ladder_of(np.zeros(K - 1), 1e4, doses)), np.diff(doses)
    assert (steps > 0).all()
    if shape == "irregular":
        assert (np.diff(steps / more) < 0).all()  # for the same dose, less and less
    else:
        assert steps[0] == steps.max()
    assert steps[: (K - 1) // 2].sum() > steps[K // 2 :].sum()
    assert 0.3 * TYPICAL_LOGIT < steps.sum() < 3 * TYPICAL_LOGIT


@pytest.mark.parametrize("K", range(2, 13))
def test_it_begins_at_zero_and_never_falls_whatever_was_measured(K: int) -> None:
    rng = np.random.default_rng(K)
    for _ in range(20):
        root = rng.normal(size=(K - 1, K - 1))
        covariance = 10.0 ** rng.uniform(-6, 2) * (root @ root.T + 0.01 * np.eye(K - 1))
        doses = np.sort(np.append(rng.random(K - 2), [0.0, 1.0])) if K > 2 else even(2)
        ladder = average_level_effects(rng.normal(size=K - 1), covariance, doses, TYPICAL_LOGIT)
        assert ladder.shape == (K,)
        assert ladder[0] == 0
        assert np.isfinite(ladder).all()
        assert (np.diff(ladder) >= 0).all()


@pytest.mark.parametrize("name", RISING)
def test_more_rows_bring_it_nearer_to_what_was_measured(name: str) -> None:
    effects = np.array(RISING[name])
    apart = [np.abs(ladder_of(effects, 20 / rows)[1:] - effects).max() for rows in (300, 30_000, 3_000_000)]
    assert apart[2] < 0.01
    assert apart[2] <= apart[0]
    for rows, most in zip((300, 30_000, 3_000_000), apart, strict=True):
        assert most < 3 * np.sqrt(20 / rows) + 1e-3  # never far outside what the rows allow


def test_it_lies_between_what_was_measured_and_what_is_usual() -> None:
    exact, vague = np.array([0.0, 0.1, 0.8]), ladder_of(np.zeros(3), 1e4)[1:]
    middle = ladder_of(exact, 0.03)[1:]
    assert np.abs(middle - exact).sum() < np.abs(vague - exact).sum()
    assert np.abs(middle - exact).max() > 0.01


def test_measurements_that_vary_together_are_read_as_such() -> None:
    """A first level that was measured badly moves all effects alike; the steps between the others remain known."""
    effects, own = np.array([0.5, 0.6, 0.9]), 1e-6
    shared = average_level_effects(effects, own * np.eye(3) + 0.5, even(4), TYPICAL_LOGIT)
    np.testing.assert_allclose(np.diff(shared)[1:], [0.1, 0.3], atol=0.01)
    assert shared[1] < 0.4


def test_a_level_that_was_not_measured_lies_between_its_neighbours() -> None:
    ladder = ladder_of(np.array([0.3, -5.0, 0.6]), np.array([1e-6, 1e6, 1e-6]))
    assert 0.3 <= ladder[2] <= 0.6
    np.testing.assert_allclose(ladder[[1, 3]], [0.3, 0.6], atol=1e-3)


def test_few_levels_and_none_are_ladders() -> None:
    assert average_level_effects(np.zeros(0), np.zeros((0, 0)), np.zeros(1), TYPICAL_LOGIT).tolist() == [0.0]
    np.testing.assert_allclose(ladder_of(np.array([0.7]), 1e-8), [0.0, 0.7], atol=1e-3)
    assert ladder_of(np.array([-0.7]), 1e-8).tolist() == [0.0, 0.0]


def test_units_do_not_matter() -> None:
    effects, covariance = np.array([0.2, 0.5, 0.55]), 0.01 * (np.eye(3) + 0.5)
    one = average_level_effects(effects, covariance, even(4), 0.3)
    np.testing.assert_allclose(average_level_effects(7 * effects, 49 * covariance, even(4), 2.1), 7 * one, rtol=1e-9)


# ---------------------------------------------------------------------------------------------- doses


def test_doses_are_those_of_the_levels_else_their_costs_else_their_numbers() -> None:
    assert scale_doses(Levels(costs=[0, 1, 4])).tolist() == [0, 0.25, 1]
    assert scale_doses(Levels(costs=[0, 1, 4], doses=[0, 20, 40])).tolist() == [0, 0.5, 1]
    assert scale_doses(Levels(costs=["a", "b", "c"])).tolist() == [0, 0.5, 1]
    assert scale_doses(Levels(costs=[2, 2, 2])).tolist() == [0, 0.5, 1]


def test_a_saturating_ladder_is_told_by_its_doses() -> None:
    """Of levels at doses 0, 1, 9 and 10, the second and the last two are alike."""
    doses = np.array([0.0, 0.1, 0.9, 1.0])
    steps = np.diff(ladder_of(np.zeros(3), 1e4, doses))
    assert steps[1] > steps[2]
