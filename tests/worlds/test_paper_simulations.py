import math
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.records import Array
from largesse.worlds.paper_simulations import SIMULATIONS, Simulation, simulate

NON_DEGENERATE = [name for name in SIMULATIONS if name != "literal"]
ARRAYS = ("features", "level", "response", "propensity", "propensities", "truth", "costs")


def same(one: Simulation, other: Simulation) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ARRAYS)


def slow_height(x: Array, surface: Any) -> float:
    """The double sum of the definition, one term at a time; b holds s and both lie as (feature, term)."""
    total = 0.0
    for i in range(50):
        exponent = 0.0
        for j in range(50):
            exponent += surface.b[j, i] * abs(x[j] - surface.c[j, i])
        total += surface.a[i] * math.exp(-exponent)
    return total


@pytest.mark.parametrize("name", SIMULATIONS)
def test_shapes_and_types(name: str) -> None:
    sim = simulate(name, n=120)
    assert sim.name == name
    assert len(sim) == 120
    assert sim.features.shape == (120, 50)
    assert sim.level.shape == sim.response.shape == sim.propensity.shape == (120,)
    assert sim.propensities.shape == sim.truth.shape == (120, 5)
    assert sim.level.dtype == np.int64
    assert all(getattr(sim, array).dtype == np.float64 for array in ARRAYS if array != "level")
    assert sim.costs.tolist() == [0, 1, 2, 3, 4]
    assert sim.features.min() >= 0
    assert sim.features.max() <= (1 if name == "unit" else 10)
    assert set(sim.response.tolist()) == {0.0, 1.0}
    assert repr(sim) == f"Simulation({name!r}, 120 customers)"


@pytest.mark.parametrize("name", SIMULATIONS)
def test_height_agrees_with_the_plain_double_sum(name: str) -> None:
    sim = simulate(name, n=5)
    for surface in sim.world.surfaces:
        expected = [slow_height(x, surface) for x in sim.features]
        np.testing.assert_allclose(surface.evaluate(sim.features), expected, rtol=1e-12)


@pytest.mark.parametrize(("name", "scale"), [("literal", 1), ("averaged", 1 / 50), ("confounded", 1 / 50)])
def test_surfaces_are_uniform_up_to_their_scale(name: str, scale: float) -> None:
    for surface in simulate(name, n=1).world.surfaces:
        assert surface.b.max() == pytest.approx(scale, rel=0.01)
        assert surface.b.mean() == pytest.approx(scale / 2, rel=0.05)
        assert surface.c.mean() == pytest.approx(0.5, rel=0.05)


def test_instrument_separates_what_drives_log_and_response() -> None:
    surface = simulate("instrument", n=1).world.surfaces[0]
    assert not surface.b[:10].any()
    assert surface.b[10:].max() == pytest.approx(1 / 40, rel=0.01)


def test_same_seed_same_arrays_other_seed_other_arrays() -> None:
    assert same(simulate("averaged", n=50, seed=0), simulate("averaged", n=50, seed=0))
    one, other = simulate("averaged", n=50, seed=0), simulate("averaged", n=50, seed=1)
    assert not np.array_equal(one.features, other.features)
    assert not np.array_equal(one.world.surfaces[0].b, other.world.surfaces[0].b)


def test_first_customers_do_not_depend_on_how_many_follow() -> None:
    few, many = simulate("averaged", n=40), simulate("averaged", n=90)
    assert all(np.array_equal(getattr(few, name), getattr(many, name)[:40]) for name in ARRAYS if name != "costs")


@pytest.mark.parametrize("name", SIMULATIONS)
@pytest.mark.parametrize("mix", [0.0, 0.2])
def test_propensities_sum_to_one_and_match_the_logged_level(name: str, mix: float) -> None:
    sim = simulate(name, mix=mix)
    np.testing.assert_allclose(sim.propensities.sum(axis=1), 1)
    np.testing.assert_array_equal(sim.propensity, sim.propensities[np.arange(len(sim)), sim.level])
    assert sim.propensities.min() >= mix / 5


@pytest.mark.parametrize("name", SIMULATIONS)
def test_propensities_follow_the_definition(name: str) -> None:
    sim = simulate(name, n=30)
    x, k = sim.features, np.arange(5)
    if name == "instrument":
        odds = np.exp(1.5 * ((x[:, :10].mean(axis=1) - 5) / 0.9)[:, None] * (k - 2))
    elif name == "confounded":
        odds = np.exp(sim.world.surfaces[0].compute_standardised_values(x)[:, None] * (k - 2) / 2)
    else:
        odds = x[:, :5]
    np.testing.assert_allclose(sim.propensities, odds / odds.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", SIMULATIONS)
def test_truth_follows_the_definition(name: str) -> None:
    sim = simulate(name, n=30)
    t, *u = (surface.compute_standardised_values(sim.features)[:, None] for surface in sim.world.surfaces)
    k = np.arange(5)
    z = t + k / 4 * np.exp(0.8 * u[0]) - 0.5 if u else t + (k + 1) / 5
    np.testing.assert_allclose(sim.truth, 1 / (1 + np.exp(-z)))


@pytest.mark.parametrize("name", SIMULATIONS)
def test_logged_levels_follow_the_propensities(name: str) -> None:
    sim = simulate(name, n=20_000)
    expected = sim.propensities.sum(axis=0)
    variance = (sim.propensities * (1 - sim.propensities)).sum(axis=0)
    counts = np.bincount(sim.level, minlength=5)
    assert (np.abs(counts - expected) < 4.5 * np.sqrt(variance)).all()
    # Within rows too: 1/ρ weighting the logged level brings every level back to its share of one.
    mixed = simulate(name, n=20_000, mix=0.5)
    weights = np.bincount(mixed.level, weights=1 / mixed.propensity, minlength=5) / 20_000
    np.testing.assert_allclose(weights, 1, atol=0.1)


@pytest.mark.parametrize("name", NON_DEGENERATE)
def test_surfaces_are_standardised_on_fresh_customers(name: str) -> None:
    fresh = simulate(name, n=1).draw(20_000, seed=1)
    for surface in fresh.world.surfaces:
        t = surface.compute_standardised_values(fresh.features)
        assert t.mean() == pytest.approx(0, abs=0.04)
        assert t.std() == pytest.approx(1, abs=0.06)


def test_literal_is_degenerate() -> None:
    truth = simulate("literal").truth
    far = np.abs(truth - np.median(truth, axis=0)).max(axis=1) > 0.01
    assert far.mean() < 0.01
    np.testing.assert_allclose(truth.mean(axis=0), [0.545, 0.594, 0.641, 0.685, 0.727], atol=0.01)


def test_responses_follow_the_truth_in_every_kind() -> None:
    kinds = {kind: simulate("averaged", n=20_000, response=kind) for kind in ("bernoulli", "noiseless", "gaussian")}
    exact = kinds["noiseless"].response
    np.testing.assert_array_equal(exact, kinds["noiseless"].truth[np.arange(20_000), kinds["noiseless"].level])
    assert (kinds["gaussian"].response - exact).std() == pytest.approx(0.1, rel=0.03)
    assert (kinds["bernoulli"].response - exact).mean() == pytest.approx(0, abs=0.015)
    assert all(np.array_equal(sim.level, kinds["bernoulli"].level) for sim in kinds.values())


def test_draw_gives_fresh_customers_of_the_same_world() -> None:
    sim = simulate("confounded", n=200, response="gaussian", mix=0.1)
    fresh = sim.draw(200, seed=5)
    assert same(fresh, sim.draw(200, seed=5))
    assert same(fresh, fresh.draw(200, seed=5))
    assert not same(fresh, sim.draw(200, seed=6))
    assert not np.isin(fresh.features, sim.features).any()
    assert fresh.world is sim.world
    assert (fresh.noise, fresh.mix) == ("gaussian", 0.1)
    scores = [surface.compute_standardised_values(sim.features) for surface in fresh.world.surfaces]
    np.testing.assert_array_equal(fresh.world.compute_true_responses(scores), sim.truth)


def test_log_carries_the_arrays() -> None:
    sim = simulate("averaged", n=60)
    log = sim.log
    assert len(log) == 60
    assert log.features.num_columns == 50
    assert list(log.levels.costs) == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(log.level, sim.level)
    np.testing.assert_array_equal(log.response, sim.response)
    np.testing.assert_array_equal(log.propensity, sim.propensity)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "avaraged"}, "did you mean 'averaged'"),
        ({"name": "xyz"}, "known: literal, unit"),
        ({"name": "unit", "response": "bernouli"}, "did you mean 'bernoulli'"),
        ({"name": "unit", "n": 0}, "n = 0"),
        ({"name": "unit", "seed": -1}, "seed = -1"),
        ({"name": "unit", "mix": 1.5}, "mix = 1.5"),
        ({"name": "unit", "mix": math.nan}, "mix = nan"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(**arguments)


def test_no_customers_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="n = 0"):
        simulate("averaged", n=10).draw(0, seed=1)
