from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression, Ridge

from largesse.allocation.plan_and_frontier import allocate
from largesse.errors import InputError
from largesse.records import Array
from largesse.response import linear
from largesse.response.linear import LINEAR_PENALTIES, Linear, RegressionRows, fit_regression
from largesse.stats.link_functions import sigmoid
from largesse.worlds.paper_simulations import simulate


def test_a_heavier_penalty_flattens_the_customers() -> None:
    sim = simulate("averaged", n=500, seed=2)
    spread = [Linear(penalty=p).fit(sim.log).predict(sim.features)[:, 0].std() for p in (0.001, 0.1, 10.0)]
    assert spread[0] > spread[1] > spread[2]


def test_it_finds_the_truth_of_averaged_better_than_level_means() -> None:
    sim = simulate("averaged", n=2000, seed=1)
    fresh = sim.draw(5000, seed=0)
    model = Linear().fit(sim.log)
    error = np.sqrt(((model.predict(fresh.features) - fresh.truth) ** 2).mean())
    flat = np.sqrt(((fresh.truth.mean(axis=0) - fresh.truth) ** 2).mean())
    assert error < 0.6 * flat
    assert model.penalty_ in (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)


def test_plans_for_a_truth_of_equal_steps_are_good_though_steps_are_expected_to_diminish() -> None:
    skills = []
    for seed in (1, 2, 3):
        sim = simulate("averaged", n=2000, seed=seed)
        fresh = sim.draw(3000, seed=0)
        curves = Linear(penalty=0.03).fit(sim.log).predict(fresh.features)
        skills.append(fresh.skill(allocate(curves, fresh.costs, budget=1.5).levels, budget=1.5))
    assert np.mean(skills) > 0.5
    assert min(skills) > 0.25


@pytest.mark.parametrize("response", ["gaussian", "noiseless"])
def test_amounts_are_fitted_on_their_own_scale(response: str) -> None:
    sim = simulate("averaged", n=1000, seed=4, response=response)
    model = Linear(penalty=0.001).fit(sim.log)
    assert not model.binary_
    assert np.sqrt(((model.predict(sim.features) - sim.truth) ** 2).mean()) < 0.08


@pytest.mark.parametrize("penalty", [None, "cv"])
def test_a_penalty_that_is_neither_a_number_nor_auto_is_refused(penalty: object) -> None:
    with pytest.raises(InputError, match="penalty='auto'"):
        Linear(penalty=penalty).fit(*rows(60))


# ---------------------------------------------------------------------------------------------- the solver


def rows(n: int = 400, K: int = 4, p: int = 3, *, binary: bool = True, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, p)), rng.integers(0, K, n)
    score = X @ np.linspace(1, -1, p) + 0.5 * level - 0.7
    response = (rng.random(n) < sigmoid(score)) if binary else score + rng.normal(size=n) / 2
    return X, level, response.astype(float)


def made(
    X: Array, level: Array, response: Array, binary: bool, weight: Array | None = None, K: int = 4
) -> RegressionRows:
    return RegressionRows(
        X, level, response, np.ones(len(X)) if weight is None else weight, K, binary, np.arange(K) / (K - 1)
    )


@pytest.mark.parametrize("binary", [False, True])
def test_slope_and_curvature_agree_with_finite_differences(binary: bool) -> None:
    rng = np.random.default_rng(1)
    part = made(*rows(60, binary=binary), binary, rng.random(60))
    ridge = linear._make_penalty_matrix(3, 4, penalty=0.3, stiffness=0.7)

    def slope(x: Array) -> Array:
        return linear._differentiate_penalised_loss(x, part, ridge)[0]

    for _ in range(5):
        at = rng.normal(size=3 + 4)
        assert optimize.check_grad(lambda x: linear._compute_penalised_loss(x, part, ridge), slope, at) < 1e-5
        curvature = optimize.approx_fprime(at, slope, 1e-6)
        np.testing.assert_allclose(linear._differentiate_penalised_loss(at, part, ridge)[1], curvature, atol=1e-4)


@pytest.mark.parametrize("binary", [False, True])
def test_the_minimum_is_as_low_as_another_method_finds(binary: bool) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        K = int(rng.integers(2, 7))
        X, level, response = rows(int(rng.integers(20, 200)), K=K, binary=binary, seed=seed)
        level = rng.permutation(K)[level]  # some increments would be negative, and are held at zero
        part = made(X, level, response, binary, rng.random(len(X)), K)
        penalty, stiffness = 10 ** rng.uniform(-4, 0), float(rng.choice([0, 0.1, 10]))
        ridge = linear._make_penalty_matrix(3, K, penalty, stiffness)
        peer = optimize.minimize(
            lambda x, part=part, ridge=ridge: (
                linear._compute_penalised_loss(x, part, ridge),
                linear._differentiate_penalised_loss(x, part, ridge)[0],
            ),
            np.zeros(3 + K),
            jac=True,
            method="L-BFGS-B",
            bounds=[(None, None)] * 3 + [(0, None)] * (K - 1) + [(None, None)],
            options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9},
        )
        found = linear._minimise_penalised_loss(part, penalty, stiffness)
        assert linear._compute_penalised_loss(found, part, ridge) <= peer.fun + 1e-8
        assert (found[3:-1] >= 0).all()


@pytest.mark.parametrize("penalty", [0.001, 0.1])
def test_equal_increments_are_the_logistic_regression_on_features_and_level(penalty: float) -> None:
    n = 2000
    X, level, response = rows(n)
    found = linear._minimise_penalised_loss(made(X, level, response, True), penalty, 1e5)
    # scikit-learn penalises the level too; a level written in large units hardly feels it.
    units = 1e-3
    peer = LogisticRegression(C=1 / (n * penalty), tol=1e-8, max_iter=2000)
    peer.fit(np.column_stack([X, level / units]), response)
    np.testing.assert_allclose(found[:3], peer.coef_[0, :3], atol=2e-3)
    np.testing.assert_allclose(found[3:6], peer.coef_[0, 3] / units, atol=2e-3)
    assert found[-1] == pytest.approx(peer.intercept_[0], abs=2e-3)


def test_free_increments_of_amounts_are_a_ridge_regression() -> None:
    n = 2000
    X, level, response = rows(n, binary=False)
    found = linear._minimise_penalised_loss(made(X, level, response, False), 0.05, 0.0)
    units = 1e-3
    reached = (level[:, None] >= np.arange(1, 4)) / units
    peer = Ridge(alpha=n * 0.05).fit(np.column_stack([X, reached]), response)
    np.testing.assert_allclose(found[:3], peer.coef_[:3], atol=2e-3)
    np.testing.assert_allclose(found[3:6], peer.coef_[3:] / units, atol=2e-3)


@pytest.mark.parametrize("binary", [False, True])
def test_a_known_truth_is_found(binary: bool) -> None:
    X, level, response = rows(20_000, binary=binary)
    fit = fit_regression(made(X, level, response, binary))
    np.testing.assert_allclose(fit.coef, [1, 0, -1], atol=0.08)
    np.testing.assert_allclose(fit.increments, 0.5, atol=0.05)
    assert fit.intercept == pytest.approx(-0.7, abs=0.06)
    assert fit.penalty in LINEAR_PENALTIES


def test_uneven_increments_are_found_when_the_data_show_them() -> None:
    rng = np.random.default_rng(3)
    X, level = rng.normal(size=(8000, 2)), rng.integers(0, 4, 8000)
    response = X[:, 0] + np.array([0, 2, 2, 3])[level] + rng.normal(size=8000)
    np.testing.assert_allclose(fit_regression(made(X, level, response, False)).increments, [2, 0, 1], atol=0.1)


def test_increments_are_those_of_a_usual_ladder_when_the_data_are_few() -> None:
    for seed in range(5):
        X, level, response = rows(200, seed=seed)
        increments = fit_regression(made(X, level, response, True)).increments
        assert (increments > 0).all()
        assert increments.max() < 0.6 * increments.sum()


def test_doses_tell_where_increments_are_to_be_expected() -> None:
    X, level, response = rows(200)
    even = fit_regression(made(X, level, response, True)).increments
    late = fit_regression(replace(made(X, level, response, True), doses=np.array([0, 0.05, 0.1, 1.0]))).increments
    assert late[2] > even[2]


def test_clusters_make_the_increments_more_cautious() -> None:
    X, level, response = rows(150)
    again = np.repeat(np.arange(150), 20)
    part = made(X[again], level[again], response[again], True)
    alone = fit_regression(made(X, level, response, True), penalty=0.01)
    together = fit_regression(replace(part, cluster=again), penalty=0.01)
    np.testing.assert_allclose(together.increments, alone.increments, atol=0.02)
    assert np.abs(fit_regression(part, penalty=0.01).increments - alone.increments).max() > 0.02


@pytest.mark.parametrize("name", ["jumps", "accelerating", "rare"])
@pytest.mark.parametrize("binary", [True, False])
def test_no_mean_of_a_level_lies_outside_its_interval_where_rows_are_many(name: str, binary: bool) -> None:
    """Levels drawn at random, steps as unequal as can be: the mean curve is that of the rows."""
    effects = {
        "jumps": [0, 0.9, 0.9, 0.9, 1.8],
        "accelerating": [0, 0.01, 0.05, 0.3, 1.2],
        "rare": [-4, -4, -3.2, -3.2, -3.1],
    }
    rng = np.random.default_rng(5)
    n = 120_000
    X, level = rng.normal(size=(n, 2)), rng.integers(0, 5, n)
    score = 0.7 * X[:, 0] - 1 + np.array(effects[name])[level]
    response = (rng.random(n) < sigmoid(score)).astype(float) if binary else score + rng.normal(size=n)
    model = Linear(penalty=0.001).fit(X, level, response)
    mean = model.predict(X).mean(axis=0)
    for k in range(5):
        mine = response[level == k]
        assert abs(mean[k] - mine.mean()) < 3.3 * mine.std() / np.sqrt(len(mine))


def test_scaling_and_shifting_amounts_scales_and_shifts_predictions() -> None:
    X, level, response = rows(500, binary=False)
    one = fit_regression(made(X, level, response, False))
    for factor in (1e-3, 1e3):
        other = fit_regression(made(X, level, factor * response, False))
        np.testing.assert_allclose(other.predict(X), factor * one.predict(X), rtol=1e-4, atol=factor * 1e-4)
        assert one.penalty == other.penalty
    one = fit_regression(made(X, level, response, False), penalty=0.01)
    other = fit_regression(made(X, level, response + 1000, False), penalty=0.01)
    np.testing.assert_allclose(other.predict(X), 1000 + one.predict(X), atol=0.01)


def test_scaling_weights_changes_nothing_and_zero_weights_leave_rows_out() -> None:
    X, level, response = rows(300)
    weight = np.where(np.arange(300) < 200, 1.0, 0.0)
    found = linear._minimise_penalised_loss(made(X, level, response, True, weight), 0.1, 0.1)
    same = linear._minimise_penalised_loss(made(X, level, response, True, 8 * weight), 0.1, 0.1)
    fewer = linear._minimise_penalised_loss(made(X[:200], level[:200], response[:200], True), 0.1, 0.1)
    np.testing.assert_allclose(found, same, atol=1e-4)
    np.testing.assert_allclose(found, fewer, atol=1e-4)


@pytest.mark.parametrize("binary", [False, True])
def test_tiny_and_one_sided_data_are_fitted(binary: bool) -> None:
    X, _, response = rows(6, binary=binary)
    for answers in (response, np.zeros(6), np.ones(6)):
        assert np.isfinite(fit_regression(made(X, np.arange(6) % 4, answers, binary)).predict(X)).all()


# ---------------------------------------------------------------------------------------------- many features


def wide(n: int, p: int, binary: bool, seed: int = 0) -> RegressionRows:
    """Correlated features, of which the longest axes drive the response."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, p)) @ (rng.normal(size=(p, p)) / np.arange(1, p + 1)[:, None] ** 0.7)).astype(np.float32)
    level = rng.integers(0, 3, n)
    score = 0.3 * X[:, 0] + 0.5 * level - 0.5
    response = (rng.random(n) < sigmoid(score)).astype(float) if binary else score + rng.normal(size=n)
    return made(X, level, response, binary, K=3)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("n", [400, 40])  # more rows than features, and fewer
def test_gradients_on_principal_axes_find_what_newton_finds(
    n: int, binary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = wide(n, 60, binary)
    for penalty in (0.3, 0.01, 0.03):
        newton = fit_regression(given, penalty=penalty)
        with monkeypatch.context() as patch:
            patch.setattr(linear, "MAX_NEWTON_FEATURES", 50)
            turned = fit_regression(given, penalty=penalty)
        np.testing.assert_allclose(turned.predict(given.X), newton.predict(given.X), atol=2e-3)
        np.testing.assert_allclose(turned.increments, newton.increments, atol=2e-3)
        assert (turned.increments >= 0).all()


def test_penalties_that_no_longer_gain_are_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    given, fold = wide(300, 60, True), np.arange(300) % 3
    slow = linear.compute_penalty_losses(given, fold)
    monkeypatch.setattr(linear, "MAX_NEWTON_FEATURES", 50)
    losses = linear.compute_penalty_losses(given, fold)
    made = np.isfinite(losses).all(axis=1)
    assert not made[0]
    assert made[-3:].all()
    np.testing.assert_allclose(losses[made], slow[made], atol=5e-3)
    assert np.argmin(losses.mean(axis=1)) == np.argmin(slow.mean(axis=1))


@pytest.mark.parametrize("binary", [True, False])
def test_fits_without_a_fold_are_those_of_the_other_rows(binary: bool) -> None:
    given, fold = made(*rows(300, binary=binary), binary), np.arange(300) % 3
    fits = linear.fit_regression_by_fold(given, fold, 0.01)
    assert len(fits) == 3
    for f, fit in enumerate(fits):
        alone = fit_regression(given.take_rows(fold != f), penalty=0.01)
        np.testing.assert_allclose(fit.predict(given.X), alone.predict(given.X), atol=0.02)


@pytest.mark.parametrize("n", [1, 30])
def test_a_part_without_weight_or_rows_is_no_trouble(n: int) -> None:
    X, level = np.random.default_rng(0).normal(size=(n, 2)), np.arange(n) % 2
    weight = np.zeros(n)
    weight[:2] = 1.0  # when a penalty is chosen, some parts are left without any weight
    rows = RegressionRows(X, level, (X[:, 0] > 0).astype(float), weight, 2, True, np.array([0.0, 1.0]))
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(fit_regression(rows).predict(X)).all()
