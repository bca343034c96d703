"""BART: our trees compared with stochtree's own predictions, links, columns, weights, and invalid settings."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.data.log_reader import log_from_arrays
from largesse.errors import InputError, MissingPackageError, PolicyFileError
from largesse.records import Array
from largesse.response.stacking import Stack
from largesse.stats.link_functions import softmax
from largesse.worlds.paper_simulations import simulate
from largesse_lab.baselines import bart as module
from largesse_lab.baselines.bart import BART, _fit_level_regression, _repeat_rows_by_weight

SMALL = {"trees": 15, "draws": 12, "warm": 4}


@functools.cache
def arrays(amounts: bool = False, n: int = 300) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % 4)
    score = X[:, 0] + 0.5 * level * (X[:, 1] > 0) - 0.5
    return X, level, 40 + 10 * score if amounts else (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


@pytest.mark.parametrize("amounts", [False, True])
def test_our_walk_gives_what_stochtree_predicts(amounts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    take = module.extract_posterior_draws
    monkeypatch.setattr(module, "extract_posterior_draws", lambda model: kept.append(model) or take(model))
    X, level, response = arrays(amounts)
    model = BART(**SMALL).fit(X, level, response)
    Z = model.encode(X).astype(np.float64)
    curves = model.predict(X)
    for k in range(4):
        asked = np.column_stack([Z, np.full(len(Z), k)])
        scale = {} if amounts else {"scale": "probability"}
        theirs = kept[0].predict(asked, type="posterior", terms="y_hat", **scale)
        assert theirs.shape == (300, 12)
        np.testing.assert_allclose(curves[:, k], theirs.mean(axis=1), rtol=1e-9)


def test_probit_is_for_zero_and_one_and_identity_may_be_asked_for() -> None:
    X, level, response = arrays()
    assert BART(**SMALL).fit(X, level, response).probit_
    plain = BART(link="identity", **SMALL).fit(X, level, response)
    assert not plain.probit_
    assert ((plain.predict(X) >= 0) & (plain.predict(X) <= 1)).all()
    assert not BART(**SMALL).fit(*arrays(True)).probit_


def test_propensities_become_columns_and_are_kept() -> None:
    X, level, response = arrays()
    model = BART(propensity=True, **SMALL).fit(X, level, response)
    assert model.logging_ is not None
    shares = model._append_propensities(model.encode(X))[:, 3:]
    assert shares.shape == (300, 4)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(BART.from_state(*model.state()).predict(X), model.predict(X))


def test_propensities_of_two_levels_are_probabilities() -> None:
    X, level, response = arrays()
    given = (level + X[:, 2] > 2).astype(int)
    model = BART(propensity=True, **SMALL).fit(X, given, response)
    shares = model._append_propensities(model.encode(X))[:, 3:]
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares.mean(axis=0) == pytest.approx(np.bincount(given) / 300, abs=0.02)
    assert np.corrcoef(shares[:, 1], X[:, 2])[0, 1] > 0.5


def test_a_level_that_a_part_of_the_log_never_gave_has_no_propensity() -> None:
    X, level, response = arrays()
    log = log_from_arrays(X, level, response)
    for levels in ([0, 2], [1]):
        part = log.take(np.isin(level, levels))
        shares = softmax(_fit_level_regression(X[np.isin(level, levels)], part)[-1:])
        assert shares.sum() == pytest.approx(1.0)
        assert (np.delete(shares[0], levels) < 1e-9).all()


def test_a_heavier_level_weight_makes_trees_look_at_the_level_more() -> None:
    X, level, response = arrays()

    def share(weight: float) -> float:
        trees = BART(level_weight=weight, **SMALL).fit(X, level, response).draws_.trees
        return float((trees.feature[trees.left >= 0] == 3).mean())

    assert share(20.0) > 1.5 * share(1.0)


def test_weights_move_the_curves_towards_the_heavy_rows() -> None:
    X, level, response = arrays()
    heavy = np.where(response > 0.5, 5.0, 1.0)
    plain, weighted = (
        BART(trees=30, draws=40).fit(X, level, response, weight=w).predict(X).mean() for w in (np.ones(300), heavy)
    )
    assert weighted > plain + 0.1
    some = X[:, 0] > 0
    kept = BART(**SMALL).fit(X, level, np.where(some, response, 1 - response), weight=some.astype(float))
    other = BART(**SMALL).fit(X, level, response, weight=some.astype(float))
    assert np.array_equal(kept.predict(X), other.predict(X))  # rows that weigh nothing are not looked at
    one, other = (BART(**SMALL).fit(X, level, response, weight=w).predict(X) for w in (None, np.full(300, 3.0)))
    assert np.array_equal(one, other)  # equal weights are no weights


@given(seed=st.integers(0, 999), n=st.integers(1, 60))
@settings(max_examples=50, deadline=None)
def test_rows_are_taken_as_often_as_they_weigh(seed: int, n: int) -> None:
    weight = np.random.default_rng(seed).integers(0, 5, n) + np.eye(n)[0]
    often = np.bincount(_repeat_rows_by_weight(weight, seed), minlength=n)
    assert often.sum() == n
    assert np.abs(often - n * weight / weight.sum()).max() < 1 + 1e-9
    assert not often[weight == 0].any()


def test_one_response_in_a_part_of_the_log_is_one_number_for_all() -> None:
    X, level, response = arrays()
    log = log_from_arrays(X, level, response)
    model = BART(**SMALL).fit(log)
    for value in (0.0, 1.0):  # a fold of rare responses may hold none
        part = response == value
        model._learn(model.encode(log)[part], log.take(part))
        assert (model.predict(X) == value).all()


def test_without_stochtree_a_kept_model_predicts_and_a_new_one_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, level, response = arrays()
    model = BART(**SMALL).fit(X, level, response)
    monkeypatch.setitem(__import__("sys").modules, "stochtree", None)
    kept = BART.from_state(*model.state())
    assert np.array_equal(kept.predict(X), model.predict(X))
    with pytest.raises(MissingPackageError, match="stochtree"):
        BART(**SMALL).fit(X, level, response)


def test_trees_that_a_walk_could_leave_are_refused() -> None:
    state, parts = BART(**SMALL).fit(*arrays()).state()
    left, roots, value = (f"draws_/trees/{name}" for name in ("left", "roots", "value"))
    for name, bad in ((left, np.zeros_like(parts[left])), (roots, parts[roots][:-1])):
        with pytest.raises(ValueError, match=r"invalid links|announced as"):
            BART.from_state(state, {**parts, name: bad})
    with pytest.raises(ValueError, match="missing"):
        BART.from_state(state, {name: part for name, part in parts.items() if name != value})
    assert issubclass(PolicyFileError, ValueError)


def test_invalid_settings_are_named_together() -> None:
    with pytest.raises(InputError, match="3 things are wrong"):
        BART(trees=0, link="logit", level_weight=0).fit(*arrays())
    with pytest.raises(InputError, match="probit"):
        BART(link="probit").fit(*arrays(True))


@pytest.mark.slow
def test_on_a_rough_surface_it_clearly_beats_the_levels_means_when_shrunk() -> None:
    sim = simulate("unit", n=2000, seed=1)
    fresh = sim.draw(4000, seed=99)
    curves = Stack(models=[BART(draws=100)], folds=3).fit(sim.log).predict(fresh.features)
    means = np.bincount(sim.level, sim.response) / np.bincount(sim.level)
    assert np.sqrt(((curves - fresh.truth) ** 2).mean()) < 0.9 * np.sqrt(((means - fresh.truth) ** 2).mean())


@pytest.mark.parametrize("rows", [4, 9, 10, 11, 12])
def test_too_few_rows_for_a_tree_give_the_mean(rows: int) -> None:
    response = np.arange(rows) * 1.5
    model = BART(**SMALL).fit(log_from_arrays(np.arange(rows)[::-1, None] * 1.0, np.arange(rows) % 2, response))
    curves = model.predict(np.ones((3, 1)))
    assert np.isfinite(curves).all()
    if rows <= 10:
        np.testing.assert_allclose(curves, response.mean())
