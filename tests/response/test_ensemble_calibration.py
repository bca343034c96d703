from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.records import Array
from largesse.response.ensemble_calibration import (
    MAX_SLOPE,
    MIN_SLOPE,
    HeldOutScores,
    ScoreCalibration,
    fit_calibration_slope,
    fit_score_calibration,
)


def held_out(scores: Array, place: Array, response: Array, *, binary: bool = True) -> HeldOutScores:
    return HeldOutScores(scores, place, response, binary, np.ones(len(scores)))


def case(n: int = 20_000, slope: float = 1.0, *, binary: bool = True, seed: int = 0) -> tuple[Array, Array, Array]:
    """Scores whose true base is `slope` times theirs, the rows' places, and their responses."""
    rng = np.random.default_rng(seed)
    base, level = rng.normal(size=n), rng.integers(0, 3, n)
    scores = base[:, None] + np.array([-0.4, 0.0, 0.4])
    place = np.eye(3)[level]
    truth = slope * base + 0.3 * level
    response = (rng.random(n) < 1 / (1 + np.exp(-truth))).astype(float) if binary else truth + rng.normal(size=n)
    return scores, place, response


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("slope", [0.7, 1.0, 1.4])
def test_the_slope_of_held_out_rows_is_found(slope: float, binary: bool) -> None:
    scores, place, response = case(slope=slope, binary=binary)
    assert fit_calibration_slope(held_out(scores, place, response, binary=binary)) == pytest.approx(slope, abs=0.05)


def test_weights_count_as_rows() -> None:
    scores, place, response = case(3000)
    weight = np.random.default_rng(1).integers(1, 4, 3000)
    many = [np.repeat(part, weight, axis=0) for part in (scores, place, response)]
    weighed = fit_calibration_slope(replace(held_out(scores, place, response), weight=weight.astype(float)))
    assert weighed == pytest.approx(fit_calibration_slope(held_out(*many)), abs=1e-4)


def test_a_mean_of_models_that_disagree_is_stretched_to_the_truth() -> None:
    """Ten models are the truth plus noise of their own: one has slope 1/2, their mean 1/1.1 on the truth's scale."""
    rng = np.random.default_rng(2)
    n, M = 20_000, 10
    truth, level = rng.normal(size=n), rng.integers(0, 2, n)
    models = truth + rng.normal(size=(M, n))
    response = truth + rng.normal(size=n)
    held, together = (np.repeat(base[:, None], 2, axis=1) for base in (models[0], models.mean(axis=0)))
    found = fit_score_calibration(held_out(held, np.eye(2)[level], response, binary=False), together)
    assert found.slope == pytest.approx(1 / 1.1, abs=0.03)


def test_increments_stay_as_they_are() -> None:
    scores = np.random.default_rng(0).normal(size=(7, 4))
    moved = ScoreCalibration(1.7, 0.3)(scores)
    np.testing.assert_allclose(np.diff(moved, axis=1), np.diff(scores, axis=1))
    np.testing.assert_allclose(moved.mean(axis=1) - 0.3, 1.7 * (scores.mean(axis=1) - 0.3))
    assert ScoreCalibration()(scores) is scores


@pytest.mark.parametrize("flat", ["held", "together", "both"])
def test_models_that_are_the_same_for_everybody_are_left_alone(flat: str) -> None:
    scores, place, response = case(500)
    same: Any = np.zeros_like(scores)
    held, together = (same if flat in (name, "both") else scores for name in ("held", "together"))
    assert fit_score_calibration(held_out(held, place, response), together) == ScoreCalibration()


def test_a_wild_slope_is_kept_in_bounds() -> None:
    scores, place, _ = case(200)
    apart = (scores[:, 1] > 0).astype(float)
    assert fit_score_calibration(held_out(scores, place, apart), scores).slope == MAX_SLOPE
    assert fit_score_calibration(held_out(scores, place, 1 - apart), scores).slope == MIN_SLOPE
