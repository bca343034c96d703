from dataclasses import replace

import numpy as np

from largesse.data.log_reader import log_from_arrays
from largesse.records import Array
from largesse.response.boosting import Boosting


def rows(n: int = 500, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, 4)).astype(np.float32), rng.integers(0, 3, n)
    return X, level, X[:, 0] * X[:, 1] + 0.5 * level + rng.normal(size=n)


def test_growing_stops_early_when_nothing_is_gained() -> None:
    X, level, _ = rows(1000)
    noise = np.random.default_rng(1).integers(0, 2, 1000)
    assert len(Boosting(rounds=300).fit(X, level, noise).trees_.trees.roots) < 100


def test_few_rows_are_all_used_for_growing() -> None:
    X, level, response = rows(150)
    assert len(Boosting(rounds=30).fit(X, level, response).trees_.trees.roots) == 30


def test_interactions_are_found() -> None:
    X, level, response = rows(4000)
    curves = Boosting(rounds=100).fit(X, level, response).predict(X)
    truth = (X[:, 0] * X[:, 1])[:, None] + 0.5 * np.arange(3)
    assert ((curves - truth) ** 2).mean() < 0.3 * truth.var()


def test_fold_models_grow_for_the_same_number_of_rounds() -> None:
    X, level, _ = rows(1000)
    response = (np.random.default_rng(1).random(1000) < 0.3).astype(float)
    log = log_from_arrays(X, level, response)
    fold = np.arange(1000) % 4
    model = Boosting()
    models = model.fold_models(model._fit_encoder(log, fold), log, fold)
    counts = {len(copy.trees_.trees.roots) for copy in models if isinstance(copy, Boosting)}
    alone = [len(Boosting().fit(log.take(fold != f)).trees_.trees.roots) for f in range(4)]
    # Only noise is left to learn, and 20 rounds without a smaller loss end the growth: they are cut off.
    assert len(models) == 4
    assert len(counts) == 1
    assert counts.pop() < min(alone)


def test_first_trees_predict_like_fewer_rounds() -> None:
    X, level, response = rows(150)
    grown = Boosting(rounds=30).fit(X, level, response).trees_
    fewer = Boosting(rounds=7).fit(X, level, response).trees_
    first = replace(grown, trees=grown.trees.take_first(7))
    first.trees.check(4)
    np.testing.assert_array_equal(first.scores(X, 3), fewer.scores(X, 3))
