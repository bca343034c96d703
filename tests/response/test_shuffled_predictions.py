"""Held-out rows with shuffled features: one feature at a time, among the rows of a fold, by what did not see them."""

import numpy as np
import pyarrow as pa
import pytest

from largesse.data import Encoder
from largesse.records import Array
from largesse.response import Additive, Boosting, Linear, ResponseModel, Stack, fit_out_of_fold
from largesse.response import shuffled_predictions as shuffling
from largesse.response.shuffled_predictions import predict_shuffled_features
from largesse.stats import assign_folds
from largesse.worlds import simulate

LOG = simulate("averaged", n=300, seed=1).log
FOLD = assign_folds(LOG, 3, 0)


def test_a_feature_is_shuffled_alone_and_within_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffling, "MAX_SHUFFLED_ROWS", 60)
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=120), "b": np.array(["x", "y", "z"])[rng.integers(0, 3, 120)]})
    encoder, fold = Encoder(), np.arange(120) % 4
    X = encoder.fit_transform(table, rng.normal(size=120))
    seen: list[tuple[Array, int]] = []

    def predict(rows: Array, place: int) -> Array:
        seen.append((rows, place))
        return rows[:, :1] + np.array([[0.0, 10.0 * place]])

    found = predict_shuffled_features(predict, encoder, X, fold)
    assert found is not None
    assert found.features == ("a", "b")
    assert found.rows.tolist() == list(range(0, 120, 2))
    assert found.curves.shape == (2, 60, 2)
    sources = np.array(encoder.sources)
    for number, (rows, place) in enumerate(seen):
        feature = found.features[number // 2]  # rows 0, 2, 4, … have the folds 0 and 2
        mine = found.rows[fold[found.rows] == [0, 2][number % 2]]
        assert place == [0, 2][number % 2]
        own, others = sources == feature, sources != feature
        np.testing.assert_array_equal(rows[:, others], X[mine][:, others])
        assert not np.array_equal(rows[:, own], X[mine][:, own])
        np.testing.assert_array_equal(np.sort(rows[:, own], axis=0), np.sort(X[mine][:, own], axis=0))


@pytest.mark.parametrize(
    "model",
    [Linear(), Stack(models=[Additive(), Boosting(rounds=10)], folds=3), Stack(models=[Boosting(rounds=10)], folds=3)],
    ids=["linear", "stack", "shrunk"],
)
def test_what_predicts_without_a_fold_predicts_its_rows_as_they_were_held_out(model: ResponseModel) -> None:
    held = fit_out_of_fold(model, LOG, FOLD)
    assert held.shuffled is not None
    assert held.shuffled.curves.shape == (LOG.features.num_columns, 300, 5)
    X = model.encode(LOG.features)
    for place in range(3):
        mine = place == FOLD
        np.testing.assert_allclose(model.predict_without_fold(X[mine], place), held.curves[mine], rtol=1e-5, atol=1e-6)


def test_without_features_there_is_nothing_to_shuffle() -> None:
    encoder = Encoder()
    X = encoder.fit_transform(pa.table({"same": [1.0, 1.0, 1.0]}), np.zeros(3))
    found = predict_shuffled_features(lambda rows, _: np.zeros((len(rows), 2)), encoder, X[:0], np.zeros(0))
    assert found is None
