"""Methods of other packages give curves of the right shape, learn what is there, and name the package that is missing."""

import importlib.util
import sys

import numpy as np
import pytest

from largesse.errors import MissingPartError
from largesse.records import Array
from largesse.worlds import Simulation, simulate
from largesse_lab.peers import CausalMLLearner, EconMLLearner, LevelBooster, PeerModel
from largesse_lab.runner.simple_models import make_competitor

NAMES = {
    "sklearn S-learner": "sklearn",
    "sklearn T-learner": "sklearn",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "econml DRLearner": "econml",
    "econml LinearDRLearner": "econml",
    "econml CausalForestDML": "econml",
    "causalml X-learner": "causalml",
    "causalml R-learner": "causalml",
}


@pytest.fixture(scope="module")
def world() -> Simulation:
    return simulate("averaged", n=1200, seed=4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_a_peer_predicts_curves(name: str, world: Simulation) -> None:
    if importlib.util.find_spec(NAMES[name]) is None:
        pytest.skip(f"{NAMES[name]} is not installed: pip install -e 'lab[peers]'")
    curves = make_competitor(name, seed=1).fit(world.log).predict(world.log.features)  # type: ignore[union-attr]
    assert curves.shape == (1200, 5)
    assert np.isfinite(curves).all()
    assert curves.min() >= 0
    assert curves.max() <= 1
    rise = curves.mean(axis=0)
    assert rise[-1] > rise[0]  # more is better in this world


def test_curves_of_boosting_never_fall(world: Simulation) -> None:
    for per_level in (False, True):
        curves = LevelBooster("sklearn", per_level=per_level, seed=1).fit(world.log).predict(world.log.features)
        assert (np.diff(curves, axis=1) >= -1e-12).all()


def test_effects_are_added_to_the_curve_of_the_cheapest_level(world: Simulation) -> None:
    class Known(EconMLLearner):
        def _learn_effects(self, X: Array, level: Array, response: Array) -> None:
            pass

        def _predict_effects(self, X: Array) -> Array:
            return np.tile([0.0, 0.0, 0.0, 2.0], (len(X), 1))

    curves = Known().fit(world.log).predict(world.log.features)
    assert (curves[:, :4] == curves[:, :1]).all()
    assert (curves[:, 4] == 1).all()  # a probability


@pytest.mark.parametrize(
    ("package", "peer"),
    [
        ("lightgbm", LevelBooster("lightgbm")),
        ("xgboost", LevelBooster("xgboost")),
        ("econml.dr", EconMLLearner("DRLearner")),
        ("econml.dml", EconMLLearner("CausalForestDML")),
        ("causalml.inference.meta", CausalMLLearner("BaseXRegressor")),
    ],
)
def test_a_missing_package_is_named(
    package: str, peer: PeerModel, world: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPartError, match=r"lab\[peers\]"):
        peer.fit(world.log)
