from typing import Any

import numpy as np
import pytest

from largesse.data.log import log_from_arrays
from largesse.records import Array, Log
from largesse.response.base import row_losses
from largesse.response.boosting import Boosting
from largesse.response.choose import Choose
from largesse.response.linear import Linear
from largesse.stats.choice import one_standard_error
from largesse.stats.mean import mean_estimate


def log_of(n: int, **more: Any) -> Log:
    return log_from_arrays(np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2, np.arange(n) // 2 % 2, **more)


def chosen(losses: Array, log: Log | None = None) -> str:
    names = [f"m{i}" for i in range(len(losses))]
    weight, cluster = (None, None) if log is None else (log.weight, log.cluster)
    choices = one_standard_error(names, losses, weight, cluster)
    (kept,) = [choice.name for choice in choices if choice.chosen]
    return kept


def test_a_clearly_better_candidate_wins() -> None:
    noise = np.random.default_rng(0).normal(size=100)
    assert chosen(np.array([noise + 1, noise])) == "m1"
    assert chosen(np.array([noise, noise + 1])) == "m0"


def test_the_simpler_one_wins_a_tie() -> None:
    same = np.random.default_rng(0).normal(size=100)
    assert chosen(np.array([same, same, same])) == "m0"


def test_the_simpler_one_wins_within_one_paired_standard_error() -> None:
    base, wobble = np.random.default_rng(1).normal(size=(2, 100))
    wobble -= wobble.mean()
    se = mean_estimate(wobble).se
    assert chosen(np.array([base + wobble + 0.99 * se, base])) == "m0"
    assert chosen(np.array([base + wobble + 1.01 * se, base])) == "m1"


def test_the_error_is_of_the_paired_difference_not_of_the_losses() -> None:
    wide = 100 * np.random.default_rng(2).normal(size=100)
    assert chosen(np.array([wide + 0.01, wide])) == "m1"


def test_a_worse_one_between_two_good_ones_is_passed_over() -> None:
    base = np.random.default_rng(3).normal(size=100)
    assert chosen(np.array([base + 1, base + 2, base])) == "m2"


def test_choices_tell_losses_differences_and_errors() -> None:
    losses = np.random.default_rng(4).normal(size=(2, 50)) + np.array([[1], [0]])
    first, second = one_standard_error(["a", "b"], losses)
    assert (first.name, first.loss) == ("a", pytest.approx(losses[0].mean()))
    difference = mean_estimate(losses[0] - losses[1])
    assert (first.difference, first.se) == (difference.estimate, difference.se)
    assert (second.difference, second.se, second.chosen) == (0, 0, True)


def test_weights_and_clusters_count_in_the_choice() -> None:
    losses = np.array([[0.0, 1.0] * 20, [1.0, 0.0] * 20])
    assert chosen(losses, log_of(40, weight=[9.0, 1.0] * 20)) == "m0"
    assert chosen(losses, log_of(40, weight=[1.0, 9.0] * 20)) == "m1"
    worse = np.random.default_rng(5).normal(0.12, 0.5, 10).repeat(10)  # ten clusters of ten alike rows
    both = np.array([worse, np.zeros(100)])
    assert chosen(both) == "m1"
    assert chosen(both, log_of(100, cluster=np.arange(100) // 10)) == "m0"


def test_losses_are_log_losses_of_answers_and_squared_errors_of_amounts() -> None:
    log = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])
    curves = np.tile([0.2, 0.9], (4, 1))
    np.testing.assert_allclose(row_losses(curves, log), -np.log([0.8, 0.9, 0.2, 0.1]))
    amounts = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 2, 1, 0])
    np.testing.assert_allclose(row_losses(curves, amounts), [0.02, 0.605, 0.32, 0.405])


def interactions(n: int, strength: float) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(6)
    X, level = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    score = strength * X[:, 0] * X[:, 1] + 0.3 * X[:, 0] + 0.4 * level
    return X, level, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


def test_linear_is_kept_when_the_truth_is_linear() -> None:
    model = Choose().fit(*interactions(800, strength=0))
    assert isinstance(model.model_, Linear)
    assert [choice.name for choice in model.choices_] == ["Linear", "Boosting"]


def test_boosting_is_kept_when_interactions_are_strong_and_rows_many() -> None:
    X, level, response = interactions(3000, strength=2)
    model = Choose().fit(X, level, response)
    assert isinstance(model.model_, Boosting)
    assert model.choices_[0].difference > model.choices_[0].se


def test_the_one_kept_is_fitted_on_the_whole_log() -> None:
    X, level, response = interactions(400, strength=0)
    kept = Choose(models=[Linear(penalty=0.1)]).fit(X, level, response)
    assert np.array_equal(kept.predict(X), Linear(penalty=0.1).fit(X, level, response).predict(X))
    assert kept.model_.fingerprint_ == kept.fingerprint_


def test_candidates_themselves_stay_unfitted() -> None:
    candidates = [Linear(penalty=0.1), Boosting(rounds=5)]
    Choose(models=candidates).fit(*interactions(200, strength=0))
    assert not any(hasattr(model, "encoder_") for model in candidates)
