import numpy as np
import pytest

from largesse.allocation.plan import allocate
from largesse.response.linear import Linear
from largesse.response.regression import fit_steps
from largesse.worlds.simulation import simulate


def test_it_is_the_plain_regression_on_encoded_features() -> None:
    sim = simulate("averaged", n=300, seed=1)
    model = Linear(penalty=0.1).fit(sim.log)
    X = model.encode(sim.features)
    fit = fit_steps(X, sim.level, sim.response, K=5, binary=True, penalty=0.1)
    assert np.array_equal(model.fit_.coef, fit.coef)
    assert np.array_equal(model.fit_.steps, fit.steps)
    assert (model.fit_.intercept, model.penalty_) == (fit.intercept, 0.1)
    assert np.array_equal(model.predict(sim.features), fit.predict(X))


def test_steps_are_common_on_the_logit_scale() -> None:
    sim = simulate("averaged", n=300, seed=1)
    curves = Linear(penalty=0.1).fit(sim.log).predict(sim.features)
    logits = np.log(curves / (1 - curves))
    np.testing.assert_allclose(np.diff(logits, axis=1), np.diff(logits[:1], axis=1).repeat(300, axis=0), atol=1e-9)


def test_weights_count_like_repeated_rows_when_the_penalty_is_given() -> None:
    sim = simulate("averaged", n=400, seed=3)
    times = np.random.default_rng(0).integers(1, 4, 400)
    X = sim.features[:, :4]
    one = Linear(penalty=0.01).fit(X, sim.level, sim.response, weight=times.astype(float)).predict(X)
    many = Linear(penalty=0.01).fit(*(np.repeat(part, times, axis=0) for part in (X, sim.level, sim.response)))
    np.testing.assert_allclose(one, many.predict(X), atol=0.03)


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
    levels = allocate(model.predict(fresh.features), fresh.costs, budget=1.5).levels
    assert fresh.skill(levels, budget=1.5) > 0.5


def test_repr_shows_what_was_changed() -> None:
    assert repr(Linear()) == "Linear()"
    assert repr(Linear(penalty=0.5)) == "Linear(penalty=0.5)"


@pytest.mark.parametrize("response", ["gaussian", "noiseless"])
def test_amounts_are_fitted_on_their_own_scale(response: str) -> None:
    sim = simulate("averaged", n=1000, seed=4, response=response)
    model = Linear(penalty=0.001).fit(sim.log)
    assert not model.binary_
    assert np.sqrt(((model.predict(sim.features) - sim.truth) ** 2).mean()) < 0.08
