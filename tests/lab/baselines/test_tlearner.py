"""One model per level: what it shares (nothing), what it takes, what it does where rows are few."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from largesse.data.log_reader import log_from_arrays
from largesse.errors import InputError
from largesse.records import Array
from largesse.response.boosting import Boosting
from largesse.response.linear import Linear
from largesse.response.networks.sire import SIRE
from largesse.worlds.paper_simulations import simulate
from largesse_lab.baselines.tlearner import FEWEST, TLearner
from support.models import flat


def arrays(n: int = 300, *, amounts: bool = False) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % 3)
    score = X[:, 0] * (level - 1) + 0.5 * level
    return X, level, 10 * score + 3 if amounts else (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


def test_a_level_is_learnt_from_its_own_rows_alone() -> None:
    X, level, response = arrays()
    one = TLearner(model=Linear(penalty=0.01)).fit(X, level, response)
    other = TLearner(model=Linear(penalty=0.01)).fit(X, level, np.where(level == 2, 1 - response, response))
    assert np.array_equal(one.predict(X)[:, :2], other.predict(X)[:, :2])
    assert not np.allclose(one.predict(X)[:, 2], other.predict(X)[:, 2])


def test_it_is_the_regressor_fitted_to_each_levels_rows() -> None:
    X, level, response = arrays(amounts=True)
    model = TLearner(model=Ridge(alpha=2.0)).fit(X, level, response)
    Z = model.encode(X)
    for k in range(3):
        expected = Ridge(alpha=2.0).fit(Z[level == k], response[level == k]).predict(Z)
        np.testing.assert_allclose(model.predict(X)[:, k], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "inner", [Linear(penalty=0.01), Boosting(rounds=5), LogisticRegression(), RandomForestClassifier(5)]
)
def test_response_models_and_classifiers_give_shares(inner: object) -> None:
    X, level, response = arrays()
    curves = TLearner(model=inner).fit(X, level, response).predict(X)
    assert curves.shape == (300, 3)
    assert ((curves >= 0) & (curves <= 1)).all()
    slope = [np.corrcoef(X[:, 0], curves[:, k])[0, 1] for k in (0, 2)]
    assert slope[0] < -0.3 < 0.3 < slope[1]  # levels differ in the very sign


def test_weights_reach_the_model_inside() -> None:
    X, level, response = arrays(amounts=True)
    weight = np.where(X[:, 1] > 0, 5.0, 0.1)
    model = TLearner(model=Ridge(alpha=1.0)).fit(X, level, response + (X[:, 1] > 0), weight=weight)
    Z = model.encode(X)
    mine = level == 1
    target = (response + (X[:, 1] > 0))[mine]
    expected = Ridge(alpha=1.0).fit(Z[mine], target, sample_weight=weight[mine] / weight[mine].mean())
    np.testing.assert_allclose(model.predict(X)[:, 1], expected.predict(Z), rtol=1e-5)


def test_a_level_with_few_rows_is_predicted_from_all_rows() -> None:
    X, level, response = arrays()
    level = np.where(level == 2, np.where(np.cumsum(level == 2) < FEWEST, 2, 1), level)
    model = TLearner(model=Linear(penalty=0.01)).fit(X, level, response)
    assert model.own_.tolist() == [0, 1, 2]
    assert len(model.models_) == 3
    everyone = model.models_[2]._curves(model.encode(X))[:, 0]
    assert np.array_equal(model.predict(X)[:, 2], everyone)
    assert everyone.mean() == pytest.approx(response.mean(), abs=0.05)


def test_a_level_where_all_respond_alike_needs_no_second_class() -> None:
    X, level, response = arrays()
    response[level == 0] = 0
    curves = TLearner(model=LogisticRegression()).fit(X, level, response).predict(X)
    assert not curves[:, 0].any()


def test_what_pickle_alone_could_keep_is_not_kept() -> None:
    model = TLearner(model=Ridge()).fit(*arrays(amounts=True))
    with pytest.raises(InputError, match="Ridge"):
        model.state()


def test_a_kept_file_with_models_that_are_not_there_is_refused() -> None:
    state, parts = TLearner(model=Linear(penalty=0.1)).fit(*arrays()).state()
    with pytest.raises(ValueError, match="of 3"):
        TLearner.from_state(state, {**parts, "own_": np.array([0, 1, 7])}, {"Linear": Linear})


@pytest.mark.slow
def test_any_response_model_can_stand_inside() -> None:
    X, level, response = arrays(120)
    inner = flat(SIRE, kappa=0.0, shrinkage=0.1, width=4, epochs=2, batch=16, folds=2)
    assert TLearner(model=inner).fit(X, level, response).predict(X[:4]).shape == (4, 3)
    sim = simulate("averaged", n=300)
    log = log_from_arrays(sim.features, sim.level, sim.response)
    assert TLearner().fit(log).predict(log).shape == (300, 5)
