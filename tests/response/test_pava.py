"""The projection of any model's curves onto those that never fall."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from largesse.response.baselines.tlearner import TLearner
from largesse.response.linear import Linear
from largesse.response.pava import Pava
from largesse.response.steps import isotonic
from largesse.worlds.simulation import simulate


def test_each_customers_curve_is_the_nearest_that_never_falls() -> None:
    sim = simulate("averaged", n=400)
    free = TLearner(model=Linear(penalty=0.01))
    model = Pava(model=free).fit(sim.log)
    raw, curves = model.model_.predict(sim.features), model.predict(sim.features)
    assert (np.diff(raw, axis=1) < 0).any()
    assert (np.diff(curves, axis=1) >= 0).all()
    expected = np.array([isotonic_regression(row) for row in raw])
    np.testing.assert_allclose(curves, expected, atol=1e-12)


@given(seed=st.integers(0, 9999), K=st.integers(2, 7))
@settings(max_examples=50, deadline=None)
def test_no_curve_moves_away_from_a_truth_that_never_falls(seed: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    truth, found = np.sort(rng.normal(size=(20, K)), axis=1), rng.normal(size=(20, K))
    before, after = ((found - truth) ** 2).sum(axis=1), ((isotonic(found) - truth) ** 2).sum(axis=1)
    assert (after <= before + 1e-12).all()


def test_the_error_only_falls() -> None:
    sim = simulate("unit", n=800, seed=4)
    fresh = sim.draw(1000, seed=99)
    model = Pava(model=TLearner(model=Linear(penalty=0.01))).fit(sim.log)
    error = [np.sqrt(((m.predict(fresh.features) - fresh.truth) ** 2).mean()) for m in (model.model_, model)]
    assert error[1] < error[0]
    assert Pava().fit(sim.log).predict(fresh.features[:3]).shape == (3, 5)


def test_parameters_of_the_model_inside_can_be_set() -> None:
    model = Pava(model=Linear()).set_params(model__penalty=0.5)
    assert model.get_params()["model__penalty"] == pytest.approx(0.5)
