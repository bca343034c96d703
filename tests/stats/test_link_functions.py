"""Links and losses against their definitions and against finite differences."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from largesse.stats.link_functions import (
    compute_loss,
    compute_loss_curvature,
    compute_loss_slope,
    logit,
    sigmoid,
    softmax,
)

SCORES = np.array([-800.0, -30.0, -1.5, 0.0, 0.7, 30.0, 800.0])


def test_the_sigmoid_does_not_overflow_and_the_logit_undoes_it() -> None:
    np.testing.assert_allclose(sigmoid(SCORES), expit(SCORES), atol=1e-15)
    inner = np.linspace(-10, 10, 41)
    np.testing.assert_allclose(logit(sigmoid(inner)), inner, rtol=1e-9, atol=1e-12)


def test_logits_of_certainty_stay_finite() -> None:
    assert np.isfinite(logit(np.array([0.0, 1.0]))).all()
    np.testing.assert_allclose(logit(np.array([0.0, 1.0]), inside=0.01), [np.log(1 / 99), np.log(99)])


def test_softmax_rows_are_probabilities_also_of_huge_scores() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 4)) * np.repeat([1, 10, 100, 1000, 1e5], 10)[:, None]
    found = softmax(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found, np.exp(log_softmax(scores, axis=1)), atol=1e-12)
    np.testing.assert_allclose(softmax(scores + 7.0), found, atol=1e-9)


@pytest.mark.parametrize("binary", [False, True])
def test_slope_and_curvature_are_the_derivatives_of_the_loss(binary: bool) -> None:
    rng = np.random.default_rng(1)
    score = rng.normal(size=40)
    response = rng.integers(0, 2, 40).astype(float) if binary else rng.normal(size=40)
    step = 1e-5
    up, down = (compute_loss(score + sign * step, response, binary) for sign in (1, -1))
    np.testing.assert_allclose(compute_loss_slope(score, response, binary), (up - down) / (2 * step), atol=1e-8)
    up, down = (compute_loss_slope(score + sign * step, response, binary) for sign in (1, -1))
    np.testing.assert_allclose(compute_loss_curvature(score, binary), (up - down) / (2 * step), atol=1e-8)


def test_the_loss_of_a_score_is_the_loss_of_its_response() -> None:
    score, answers = np.linspace(-10, 10, 21), np.arange(21) % 2.0
    np.testing.assert_allclose(
        compute_loss(score, answers, binary=True),
        -np.log(np.where(answers == 1, expit(score), expit(-score))),
        rtol=1e-9,
    )
    np.testing.assert_array_equal(compute_loss(score, answers, binary=False), (score - answers) ** 2 / 2)


def test_losses_of_certainty_are_finite() -> None:
    assert np.isfinite(compute_loss(SCORES, np.ones(7), binary=True)).all()
