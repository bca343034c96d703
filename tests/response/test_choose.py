import numpy as np

from largesse.data.log import log_from_arrays
from largesse.records import Array
from largesse.response.base import own_level_loss
from largesse.response.boosting import Boosting
from largesse.response.choose import Choose
from largesse.response.linear import Linear


def test_losses_are_log_losses_of_answers_and_squared_errors_of_amounts() -> None:
    log = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])
    curves = np.tile([0.2, 0.9], (4, 1))
    np.testing.assert_allclose(own_level_loss(curves, log, True), -np.log([0.8, 0.9, 0.2, 0.1]))
    amounts = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 2, 1, 0])
    np.testing.assert_allclose(own_level_loss(curves, amounts, False), [0.02, 0.605, 0.32, 0.405])


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
