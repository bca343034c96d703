"""Models in scikit-learn's hands: scores, folds, searches."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn import config_context, exceptions
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score

from largesse.data import log_from_arrays
from largesse.errors import InputError
from largesse.records import Log
from largesse.response import Linear, list_model_classes
from largesse.response.response_model import compute_r_squared
from largesse.worlds import simulate


@pytest.fixture(scope="module")
def log() -> Log:
    return simulate("averaged", n=400, seed=1).log


def test_every_model_is_a_regressor() -> None:
    for kind in list_model_classes().values():
        assert is_regressor(kind())
        assert not is_classifier(kind())


def test_the_score_is_r2_at_own_levels_with_weights(log: Log) -> None:
    weight = np.arange(len(log)) % 3 + 1.0
    weighted = log_from_arrays(log.features, log.level, log.response, weight=weight)
    model = Linear(penalty=0.01).fit(weighted)
    own = model.predict(log)[np.arange(len(log)), log.level]
    assert model.score(weighted) == pytest.approx(r2_score(log.response, own, sample_weight=weight))
    target = np.column_stack([log.level, log.response])
    assert model.score(log.features, log.level, log.response) == pytest.approx(r2_score(log.response, own))
    assert model.score(log.features, target, weight=weight) == pytest.approx(model.score(weighted))


def test_folds_of_a_log_are_scored_as_folds_of_its_arrays_and_by_hand(log: Log) -> None:
    model = Linear(penalty=0.01)
    found = cross_val_score(model, log, cv=KFold(3))
    by_hand = [
        Linear(penalty=0.01).fit(log.take(train)).score(log.take(test)) for train, test in KFold(3).split(log.level)
    ]
    np.testing.assert_allclose(found, by_hand)
    target = np.column_stack([log.level, log.response])
    np.testing.assert_allclose(cross_val_score(model, log.features.to_pandas(), target, cv=KFold(3)), by_hand)


def test_a_grid_search_prefers_the_penalty_that_fits_held_out_rows(log: Log) -> None:
    groups = np.arange(len(log)) // 4
    search = GridSearchCV(Linear(), {"penalty": [1e-6, 1.0]}, cv=GroupKFold(3)).fit(log, groups=groups)
    assert search.best_params_ == {"penalty": 1.0}
    assert search.best_estimator_.predict(log).shape == (len(log), len(log.levels))
    assert search.score(log) == search.best_estimator_.score(log)


def test_rows_of_a_log_are_taken_by_slices_indices_and_masks(log: Log) -> None:
    np.testing.assert_array_equal(log[2:5].response, log.response[2:5])
    np.testing.assert_array_equal(log[[5, -1]].level, log.level[[5, -1]])
    np.testing.assert_array_equal(log[log.level == 2].level, np.full((log.level == 2).sum(), 2))
    assert len(log[0]) == 1
    assert log.shape == (400, log.features.num_columns)
    with pytest.raises(IndexError):
        log[400]


@pytest.mark.parametrize(
    ("level", "response", "weight", "words"),
    [
        (None, None, None, "no level or response"),
        ([0, 1], None, None, "no level or response"),
        ([0, 2], [0, 1], None, "level holds 2"),
        ([0, 0.5], [0, 1], None, "level holds 0.5"),
        ([0], [0, 1], None, r"level has shape \(1,\)"),
        ([0, 1], [0, np.nan], None, "response holds values that are missing"),
        ([0, 1], ["yes", "no"], None, "does not hold numbers"),
        ([0, 1], [0, 1], [0, 0], "no rows with weight"),
        ([0, 1], [0, 1], [2, -1], "no rows with weight"),
    ],
)
def test_rows_that_cannot_be_scored_are_refused(level: object, response: object, weight: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        compute_r_squared(np.zeros((2, 2)), level, response, weight)


def test_responses_that_are_all_alike_have_nothing_to_explain() -> None:
    assert compute_r_squared(np.ones((2, 2)), [0, 1], [1, 1]) == 1.0
    assert compute_r_squared(np.zeros((2, 2)), [0, 1], [1, 1]) == 0.0


def test_scikit_learn_finds_its_own_error_attributes_and_weights() -> None:
    rng = np.random.default_rng(0)
    X, level, weight = rng.normal(size=(200, 2)), np.arange(200) % 2, rng.uniform(0.5, 2, 200)
    target = np.column_stack([level, X[:, 0] + level])
    with pytest.raises(exceptions.NotFittedError, match="Linear"):
        Linear().predict(X)
    assert not hasattr(Linear(), "n_features_in_")
    model = Linear().fit(X, target, sample_weight=weight)
    assert np.array_equal(model.predict(X), Linear().fit(X, target, weight=weight).predict(X))
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (2, ["x0", "x1"])
    assert model.score(X, target, sample_weight=weight) == model.score(X, target, weight=weight)
    with pytest.raises(InputError, match="sample_weight"):
        Linear().fit(X, target, weight=weight, sample_weight=weight)
    with pytest.raises(InputError, match="toarray"):
        Linear().fit(csr_matrix(X), target)


def test_scikit_learn_routes_weights_that_were_requested() -> None:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(200, 2)), np.arange(200) % 2
    target, weight = np.column_stack([level, X[:, 0] + level]), rng.uniform(0, 2, 200) ** 4
    plain = cross_val_score(Linear(), X, target)
    assert not np.array_equal(cross_val_score(Linear(), X, target, params={"sample_weight": weight}), plain)
    with config_context(enable_metadata_routing=True):
        asked = Linear().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        routed = cross_val_score(asked, X, target, params={"sample_weight": weight})
        both = asked.set_score_request(sample_weight=True)
        scored = cross_val_score(both, X, target, params={"sample_weight": weight})
    assert np.array_equal(routed, cross_val_score(Linear(), X, target, params={"sample_weight": weight}))
    assert not np.array_equal(scored, routed)
