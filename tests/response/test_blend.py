from typing import Any

import numpy as np
import pytest

from largesse.data.log import log_from_arrays
from largesse.levels import Levels
from largesse.records import Array
from largesse.response.blend import Blend, HeldOut, Members, choose_blend, fit_increments, link, unlink
from largesse.stats.folds import assign_folds
from largesse.stats.link import sigmoid


def logit(p: Array) -> Array:
    return np.log(p) - np.log1p(-p)


def rows_of(
    level: Array, response: Array, bases: Array, *, K: int, binary: bool, weight: Array | None = None
) -> HeldOut:
    weight = np.ones(len(level)) if weight is None else weight
    return HeldOut(bases, np.zeros(len(level)), level, response, weight / weight.sum(), K, binary)


def test_probabilities_come_back_from_logits() -> None:
    curves = np.sort(np.random.default_rng(0).random((20, 5)), axis=1)
    np.testing.assert_allclose(unlink(link(curves, True), True), curves)
    assert np.isfinite(link(np.array([[0.0, 1.0]]), True)).all()
    assert unlink(link(100 * curves, False), False).tobytes() == (100 * curves).tobytes()


# ---------------------------------------------------------------------------------------------- the fit of common increments


@pytest.mark.parametrize("binary", [True, False])
def test_known_increments_are_recovered_given_the_base(binary: bool) -> None:
    rng = np.random.default_rng(1)
    base, level, effects = rng.normal(size=200_000), rng.integers(0, 4, 200_000), np.array([-0.5, 0.0, 0.1, 0.9])
    score = base + effects[level]
    response = rng.random(len(score)) < 1 / (1 + np.exp(-score)) if binary else score + rng.normal(size=len(score))
    found = fit_increments(rows_of(level, response.astype(float), base[:, None], K=4, binary=binary), 0.0)
    np.testing.assert_allclose(np.cumsum(found[1:]), effects, atol=0.03)
    assert found[0] == pytest.approx(1, abs=0.02)


def test_the_fit_is_that_of_a_general_solver() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(2)
    for seed in range(8):
        level, bases, weight = rng.integers(0, 4, 400), rng.normal(size=(400, 3)), rng.random(400)
        slopes = rng.normal(size=3)  # some of them negative, so that weights and increments meet their bounds
        response = (rng.random(400) < 1 / (1 + np.exp(-bases @ slopes - 0.1 * level))).astype(float)
        rows = rows_of(level, response, bases, K=4, binary=True, weight=weight)
        stiffness = (0.0, 0.1)[seed % 2]

        def mean_loss(z: Array, rows: HeldOut = rows, stiffness: float = stiffness) -> float:
            uneven = z[4:] - z[4:].mean()
            return float(rows.weight @ rows.losses(rows.design() @ z) + 0.5 * stiffness * uneven @ uneven)

        found = fit_increments(rows, stiffness)
        assert (np.delete(found, 3) >= 0).all()
        bounds = [(0, 9)] * 3 + [(-9, 9)] + [(0, 9)] * 3
        start = np.array([1 / 3] * 3 + [0, 0.1, 0.1, 0.1])
        slow = minimize(mean_loss, start, method="SLSQP", bounds=bounds, options={"ftol": 1e-12})
        assert mean_loss(found) <= slow.fun + 1e-8


def test_increments_that_would_be_negative_are_zero_and_empty_levels_harmless() -> None:
    level = np.repeat([0, 1, 3], 100)
    response = np.concatenate([np.ones(60), np.zeros(40), np.ones(40), np.zeros(60), np.ones(60), np.zeros(40)])
    found = fit_increments(rows_of(level, response, np.empty((300, 0)), K=4, binary=True), 0.0)
    effects = np.cumsum(found)
    np.testing.assert_allclose(effects[[0, 1, 3]], [0.0, 0.0, logit(np.array(0.6))], atol=1e-5)
    assert (np.diff(effects) >= 0).all()


# ---------------------------------------------------------------------------------------------- base, increments, deviations


def test_the_whole_share_and_its_own_mean_reproduce_a_member() -> None:
    member = np.sort(np.random.default_rng(3).normal(size=(50, 4)), axis=1)
    centre = (member - member.mean(axis=1, keepdims=True)).mean(axis=0)
    made = Blend(np.ones(1), common=centre, leader=0, share=1.0, centre=centre)
    np.testing.assert_allclose(made.scores(member[None]), member)


def test_clusters_and_weights_count_in_the_choice() -> None:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    response = (rng.random(60) < sigmoid(0.5 * X[:, 0] - 0.6 + 0.4 * level * (1 + np.sign(X[:, 1])))).astype(float)
    copies = [np.repeat(part, 20, axis=0) for part in (X, level, response)]
    rng = np.random.default_rng(0)
    levels = Levels(costs=[0, 1, 2, 3])

    def chosen(**more: Any) -> float:
        log = log_from_arrays(*copies, levels=levels, **more)
        member = logit(np.clip(0.2 * copies[0][:, :1] + 0.4 + 0.01 * np.arange(4), 0.05, 0.95))
        member = member + 0.3 * np.repeat(rng.normal(size=(60, 4)), 20, axis=0)
        members = Members(["m"], [(0.0, 1.0)], member[None], member.mean(axis=1)[None])
        choices = choose_blend(members, log, assign_folds(log, 5))[1]
        return max(choice.se for choice in choices)  # the best one's is zero

    alone, together = chosen(), chosen(cluster=np.arange(1200) // 20)
    assert together > 2 * alone
