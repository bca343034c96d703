from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from largesse.records import Array
from largesse.response.boosting import Boosting
from largesse.stats import tree_arrays
from largesse.stats.link_functions import sigmoid
from largesse.stats.tree_arrays import Trees, extract_boosted_trees


def rows(n: int = 500, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, 4)).astype(np.float32), rng.integers(0, 3, n)
    return X, level, X[:, 0] * X[:, 1] + 0.5 * level + rng.normal(size=n)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("rounds", [1, 40])
def test_trees_predict_what_scikit_learn_predicts(binary: bool, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_arrays, "TREE_BLOCK_ROWS", 30)
    X, level, response = rows()
    kind = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
    grown = kind(max_iter=rounds, max_leaf_nodes=7, early_stopping=False)
    grown.fit(np.column_stack([X, level]), response > 0 if binary else response)
    scores = extract_boosted_trees(grown).scores(X, 3)
    for k in range(3):
        asked = np.column_stack([X, np.full(len(X), k)])
        found = sigmoid(scores[:, k]) if binary else scores[:, k]
        expected = grown.predict_proba(asked)[:, 1] if binary else grown.predict(asked)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def whole() -> Trees:
    X, level, response = rows()
    return Boosting(rounds=3).fit(X, level, response).trees_.trees


@pytest.mark.parametrize(
    ("field", "value"), [("left", 10**6), ("right", 0), ("feature", 5), ("feature", -1), ("roots", 10**6)]
)
def test_trees_that_a_walk_could_leave_or_never_end_are_refused(field: str, value: int) -> None:
    grown = whole()
    spoilt = getattr(grown, field).copy()
    spoilt[0] = value
    with pytest.raises(ValueError, match="invalid links"):
        replace(grown, **{field: spoilt}).check(features=4)
