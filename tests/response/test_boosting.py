import numpy as np

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
