import numpy as np
import pytest

from largesse.levels import Levels
from largesse.records import Array
from largesse.response.level_effects import TYPICAL_LOGIT, average_ladder, dose_shares, list_shapes


def even(K: int) -> Array:
    return np.arange(K) / max(K - 1, 1)


def ladder_of(effects: Array, variance: float | Array, doses: Array | None = None) -> Array:
    doses = even(len(effects) + 1) if doses is None else doses
    return average_ladder(effects, variance * np.eye(len(effects)), doses, TYPICAL_LOGIT)


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
        ladder = average_ladder(rng.normal(size=K - 1), covariance, doses, TYPICAL_LOGIT)
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
    shared = average_ladder(effects, own * np.eye(3) + 0.5, even(4), TYPICAL_LOGIT)
    np.testing.assert_allclose(np.diff(shared)[1:], [0.1, 0.3], atol=0.01)
    assert shared[1] < 0.4


def test_a_level_that_was_not_measured_lies_between_its_neighbours() -> None:
    ladder = ladder_of(np.array([0.3, -5.0, 0.6]), np.array([1e-6, 1e6, 1e-6]))
    assert 0.3 <= ladder[2] <= 0.6
    np.testing.assert_allclose(ladder[[1, 3]], [0.3, 0.6], atol=1e-3)


def test_few_levels_and_none_are_ladders() -> None:
    assert average_ladder(np.zeros(0), np.zeros((0, 0)), np.zeros(1), TYPICAL_LOGIT).tolist() == [0.0]
    np.testing.assert_allclose(ladder_of(np.array([0.7]), 1e-8), [0.0, 0.7], atol=1e-3)
    assert ladder_of(np.array([-0.7]), 1e-8).tolist() == [0.0, 0.0]


def test_units_do_not_matter() -> None:
    effects, covariance = np.array([0.2, 0.5, 0.55]), 0.01 * (np.eye(3) + 0.5)
    one = average_ladder(effects, covariance, even(4), 0.3)
    np.testing.assert_allclose(average_ladder(7 * effects, 49 * covariance, even(4), 2.1), 7 * one, rtol=1e-9)


@pytest.mark.parametrize("K", range(2, 13))
def test_shapes_rise_from_zero_to_one(K: int) -> None:
    for doses in (even(K), even(K) ** 3, np.sqrt(even(K))):
        shapes, prior = list_shapes(doses)
        assert shapes.shape == (len(prior), K - 1)
        assert (np.diff(shapes, axis=1) >= 0).all()
        assert (shapes >= 0).all()
        np.testing.assert_allclose(shapes[:, -1], 1.0)
        assert prior.sum() == pytest.approx(1)


# ---------------------------------------------------------------------------------------------- doses


def test_doses_are_those_of_the_levels_else_their_costs_else_their_numbers() -> None:
    assert dose_shares(Levels(costs=[0, 1, 4])).tolist() == [0, 0.25, 1]
    assert dose_shares(Levels(costs=[0, 1, 4], doses=[0, 20, 40])).tolist() == [0, 0.5, 1]
    assert dose_shares(Levels(costs=["a", "b", "c"])).tolist() == [0, 0.5, 1]
    assert dose_shares(Levels(costs=[2, 2, 2])).tolist() == [0, 0.5, 1]


def test_a_saturating_ladder_is_told_by_its_doses() -> None:
    """Of levels at doses 0, 1, 9 and 10, the second and the last two are alike."""
    doses = np.array([0.0, 0.1, 0.9, 1.0])
    steps = np.diff(ladder_of(np.zeros(3), 1e4, doses))
    assert steps[1] > steps[2]
