from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.data.log_reader import log_from_arrays, read_log
from largesse.evaluation.crossfitted_scores import compute_scores, crossfit_scores
from largesse.evaluation.policy_estimates import estimate_each_level
from largesse.levels import Levels
from largesse.records import Array, HeldOutPredictions, Log, Propensities, Scores
from largesse.response.linear import Linear
from largesse.response.response_model import copy_unfitted
from largesse.response.stacking import Stack
from largesse.worlds.paper_simulations import simulate

# ---------------------------------------------------------------------------------------------- made-up models


class Recorder:
    """Remembers which rows each fit saw; feature x0 is the row's number. Predicts a constant."""

    fits: list[Array] = []  # noqa: RUF012 — shared by the copies that cross-fitting makes, on purpose
    predicted: list[tuple[Array, Array]] = []  # noqa: RUF012

    def __init__(self, *, level: float = 0.5) -> None:
        self.level = level

    def get_params(self, deep: bool) -> dict[str, Any]:
        return {} if deep else {"level": self.level}

    def fit(self, log: Log) -> "Recorder":
        self.rows = log.features.column("x0").to_numpy().astype(int)
        self.K = len(log.levels)
        Recorder.fits.append(self.rows)
        return self

    def predict(self, features: Any) -> Array:
        asked = features.column("x0").to_numpy().astype(int)
        Recorder.predicted.append((self.rows, asked))
        return np.full((len(asked), self.K), self.level)


def random_log(n: int = 60, K: int = 3, *, seed: int = 0, amounts: bool = False, **more: Any) -> Log:
    rng = np.random.default_rng(seed)
    level = rng.permutation(np.arange(n) % K)
    response = rng.normal(size=n) if amounts else rng.permutation(np.arange(n) % 2).astype(float)
    x = np.column_stack([np.arange(n), rng.normal(size=n)])
    return log_from_arrays(x, level, response, propensity=rng.uniform(0.1, 1, n), **more)


def slow_gamma(log: Log, curves: Array, propensity: Array) -> Array:
    gamma = np.empty(curves.shape)
    for i in range(len(log)):
        for k in range(curves.shape[1]):
            gamma[i, k] = curves[i, k]
            if log.level[i] == k:
                gamma[i, k] += (log.response[i] - curves[i, k]) / propensity[i]
    return gamma


def scored(log: Log, curves: Array) -> Scores:
    assert log.propensity is not None
    return compute_scores(
        log, HeldOutPredictions(curves, np.arange(len(log)) % 5), Propensities(log.propensity, "given")
    )


# ---------------------------------------------------------------------------------------------- the formula


@pytest.mark.parametrize("amounts", [False, True])
def test_scores_agree_with_a_slow_double_loop(amounts: bool) -> None:
    log = random_log(amounts=amounts)
    curves = np.random.default_rng(1).random((60, 3))
    kept = curves.copy()
    found = scored(log, curves)
    np.testing.assert_allclose(found.gamma, slow_gamma(log, curves, log.propensity), rtol=1e-12)  # type: ignore[arg-type]
    assert np.array_equal(curves, kept)
    assert np.array_equal(found.costs, np.tile([0.0, 1.0, 2.0], (60, 1)))
    assert np.array_equal(found.paid, log.level)


def test_costs_paid_on_redemption_are_scored_like_responses() -> None:
    log = random_log(levels=Levels(costs=[0, 5, 10], on_redemption=True))
    curves = np.random.default_rng(1).random((60, 3))
    found = scored(log, curves)
    np.testing.assert_allclose(found.costs, np.array([0, 5, 10]) * found.gamma, atol=1e-12)
    np.testing.assert_allclose(found.paid, np.array([0, 5, 10])[log.level] * log.response)
    np.testing.assert_allclose(found.expected_costs, np.array([0, 5, 10]) * curves)


def test_a_negative_response_pays_no_coupon_back() -> None:
    log = random_log(amounts=True, levels=Levels(costs=[1, 5, 10], on_redemption="per unit"))
    curves = np.random.default_rng(1).normal(size=(60, 3))
    face, rows = np.array([1.0, 5.0, 10.0]), np.arange(60)
    found = scored(log, curves)
    paid = face[log.level] * np.maximum(log.response, 0)
    expected = face * np.maximum(curves, 0)
    slow = expected.copy()
    slow[rows, log.level] += (paid - expected[rows, log.level]) / log.propensity
    np.testing.assert_allclose(found.costs, slow)
    np.testing.assert_allclose(found.paid, paid)


@pytest.mark.parametrize("redeemed", [False, True])
def test_each_customer_may_have_their_own_costs(redeemed: bool) -> None:
    rng = np.random.default_rng(2)
    n = 40
    own = np.sort(rng.random((n, 2)), axis=1)
    table = {"x": rng.normal(size=n), "y": np.arange(n) % 2, "r": (np.arange(n) // 2) % 2, "p": np.full(n, 0.5)}
    levels = Levels(costs=["a", "b"], on_redemption=redeemed)
    log = read_log({**table, "a": own[:, 0], "b": own[:, 1]}, level="y", response="r", propensity="p", levels=levels)
    curves = rng.random((n, 2))
    found = scored(log, curves)
    np.testing.assert_allclose(found.expected_costs, own * curves if redeemed else own)
    np.testing.assert_allclose(found.costs, own * found.gamma if redeemed else own, atol=1e-12)
    paid = own[np.arange(n), log.level] * (log.response if redeemed else 1)
    np.testing.assert_allclose(found.paid, paid)


def test_weights_have_mean_one() -> None:
    log = random_log(weight=np.linspace(1, 3, 60))
    assert scored(log, np.zeros((60, 3))).weight.mean() == pytest.approx(1)


# ---------------------------------------------------------------------------------------------- cross-fitting


@pytest.mark.parametrize("cluster", [None, np.arange(60) // 4])
def test_no_row_is_predicted_by_a_model_that_saw_it(cluster: Array | None) -> None:
    Recorder.fits, Recorder.predicted = [], []
    log = random_log(cluster=cluster)
    found = crossfit_scores(log, Recorder(level=0.3), folds=5)
    assert len(Recorder.fits) == 5
    assert sorted(np.concatenate([asked for _, asked in Recorder.predicted]).tolist()) == list(range(60))
    for seen, asked in Recorder.predicted:
        assert not set(seen) & set(asked)
        assert len(seen) + len(asked) == 60
        if log.cluster is not None:  # nor by one that saw another row of its cluster
            assert not set(log.cluster[seen]) & set(log.cluster[asked])
    assert (found.curves == 0.3).all()


def test_curves_of_a_row_do_not_depend_on_its_response() -> None:
    log = random_log(n=100)
    turned = log.response.copy()
    turned[7] = 1 - turned[7]
    for model in (None, Linear(penalty=0.1)):
        one, other = crossfit_scores(log, model), crossfit_scores(replace(log, response=turned), model)
        mates = one.fold == one.fold[7]
        assert np.array_equal(one.curves[mates], other.curves[mates])
        assert not np.array_equal(one.curves[~mates], other.curves[~mates])


def test_progress_goes_from_zero_to_one() -> None:
    heard: list[float] = []
    crossfit_scores(random_log(), Recorder(), folds=3, progress=lambda _stage, done: heard.append(done))
    assert heard == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_fresh_copies_nested_models_and_forgets_what_was_learnt() -> None:
    model = Linear(penalty=0.5, seed=3).fit(random_log())
    copy = copy_unfitted(model)
    assert not hasattr(copy, "coef_")
    assert copy.get_params() == model.get_params()
    assert isinstance(copy_unfitted(Stack(folds=3)), Stack)


# ---------------------------------------------------------------------------------------------- doubly robust


def misses(wrong: str, repeats: int = 30) -> Array:
    """Errors of the estimated mean response at each level (repeats, K) with one of the two parts wrong."""
    errors = []
    for seed in range(repeats):
        sim = simulate("averaged", n=600, seed=11, mix=0.3).draw(600, seed)
        log = sim.log
        curves = np.full(sim.truth.shape, 0.2) if "curves" in wrong else sim.truth
        if "propensities" in wrong:
            log = replace(log, propensity=np.where(sim.level > 2, 0.5, 0.1))
        errors.append(scored(log, curves).gamma.mean(axis=0) - sim.truth.mean(axis=0))
    return np.array(errors)


@pytest.mark.parametrize("wrong", ["curves", "propensities"])
def test_the_mean_is_unbiased_when_one_of_the_two_is_right(wrong: str) -> None:
    errors = misses(wrong)
    assert (np.abs(errors.mean(axis=0)) < 3 * errors.std(axis=0, ddof=1) / np.sqrt(len(errors))).all()


def test_the_mean_is_biased_when_both_are_wrong() -> None:
    errors = misses("curves and propensities")
    assert (np.abs(errors.mean(axis=0)) > 3 * errors.std(axis=0, ddof=1) / np.sqrt(len(errors))).any()


def test_right_curves_make_the_estimate_more_precise_than_wrong_ones() -> None:
    assert misses("").std() < 0.8 * misses("curves").std()


def test_in_a_randomised_log_scores_are_close_to_plain_means() -> None:
    sim = simulate("averaged", n=4000, seed=2, mix=1.0)
    log = sim.log
    found = crossfit_scores(replace(log, features=log.features.select(["x0", "x1", "x2", "x3"])))
    for k, (value, spend) in enumerate(estimate_each_level(found)):
        here = sim.level == k
        plain = sim.response[here].mean()
        assert value.estimate == pytest.approx(plain, abs=0.02)
        assert value.se < sim.response[here].std() / np.sqrt(here.sum()) * 1.05
        assert (spend.estimate, spend.se) == (k, 0.0)
