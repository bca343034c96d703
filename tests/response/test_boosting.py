from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from largesse.records import Array
from largesse.response.boosting import Boosting
from largesse.response.trees import Trees, trees_of
from largesse.stats.link import sigmoid


def rows(n: int = 500, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, 4)).astype(np.float32), rng.integers(0, 3, n)
    return X, level, X[:, 0] * X[:, 1] + 0.5 * level + rng.normal(size=n)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("rounds", [1, 40])
def test_trees_predict_what_scikit_learn_predicts(binary: bool, rounds: int) -> None:
    X, level, response = rows()
    kind = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
    grown = kind(max_iter=rounds, max_leaf_nodes=7, early_stopping=False)
    grown.fit(np.column_stack([X, level]), response > 0 if binary else response)
    scores = trees_of(grown).scores(X, 3)
    for k in range(3):
        asked = np.column_stack([X, np.full(len(X), k)])
        found = sigmoid(scores[:, k]) if binary else scores[:, k]
        expected = grown.predict_proba(asked)[:, 1] if binary else grown.predict(asked)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_model_predicts_what_its_trees_do() -> None:
    X, level, response = rows()
    model = Boosting(rounds=10).fit(X, level, response)
    assert np.array_equal(model.predict(X), model.trees_.scores(model.encode(X), 3))
    assert len(model.trees_.roots) <= 10


def test_growing_stops_early_when_nothing_is_gained() -> None:
    X, level, _ = rows(1000)
    noise = np.random.default_rng(1).integers(0, 2, 1000)
    assert len(Boosting(rounds=300).fit(X, level, noise).trees_.roots) < 100


def test_few_rows_are_all_used_for_growing() -> None:
    X, level, response = rows(150)
    assert len(Boosting(rounds=30).fit(X, level, response).trees_.roots) == 30


def test_interactions_are_found() -> None:
    X, level, response = rows(4000)
    curves = Boosting(rounds=100).fit(X, level, response).predict(X)
    truth = (X[:, 0] * X[:, 1])[:, None] + 0.5 * np.arange(3)
    assert ((curves - truth) ** 2).mean() < 0.3 * truth.var()


def whole() -> Trees:
    X, level, response = rows()
    return Boosting(rounds=3).fit(X, level, response).trees_


def test_whole_trees_pass_the_check() -> None:
    whole().check(features=4)


@pytest.mark.parametrize(
    ("field", "value"), [("left", 10**6), ("right", 0), ("feature", 5), ("feature", -1), ("roots", 10**6)]
)
def test_trees_that_a_walk_could_leave_or_never_end_are_refused(field: str, value: int) -> None:
    trees = whole()
    spoilt = getattr(trees, field).copy()
    spoilt[0] = value
    with pytest.raises(ValueError, match="not trees"):
        replace(trees, **{field: spoilt}).check(features=4)
