"""Methods of other packages give curves of the right shape, learn what is there, and name the package that is missing."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from largesse.allocation import allocate
from largesse.errors import InputError, MissingPackageError
from largesse.records import Array
from largesse.worlds import Simulation, simulate
from largesse_lab.peers import (
    BoostingLearner,
    CausalForestBCF,
    CausalMLLearner,
    DecisionFocused,
    EconMLLearner,
    EconMLPolicy,
    FunnelProduct,
    PeerModel,
    TabPFNLearner,
    UpliftForest,
)
from largesse_lab.runner.competitor_models import make_competitor

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
    "causalml uplift forest": "causalml",
    "econml DRPolicyForest": "econml",
    "econml DRPolicyTree": "econml",
    "perpetual": "perpetual",
    "stochtree BCF": "stochtree",
    "DFCL": "jax",
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
    assert rise[-1] >= rise[0]  # more is better in this world; perpetual stops before it sees that


def test_curves_of_boosting_never_fall(world: Simulation) -> None:
    for per_level in (False, True):
        curves = BoostingLearner("sklearn", per_level=per_level, seed=1).fit(world.log).predict(world.log.features)
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
        ("lightgbm", BoostingLearner("lightgbm")),
        ("xgboost", BoostingLearner("xgboost")),
        ("econml.dr", EconMLLearner("DRLearner")),
        ("econml.dml", EconMLLearner("CausalForestDML")),
        ("causalml.inference.meta", CausalMLLearner("BaseXRegressor")),
        ("causalml.inference.tree", UpliftForest()),
        ("econml.dr", EconMLPolicy("PolicyTree")),
        ("perpetual", BoostingLearner("perpetual")),
        ("tabpfn", TabPFNLearner()),
    ],
)
def test_a_missing_package_is_named(
    package: str, peer: PeerModel, world: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=r"pip install"):
        peer.fit(world.log)


def test_curves_of_a_policy_return_its_own_plan_at_its_prices() -> None:
    class Chooser:
        def __init__(self, levels: list[int]) -> None:
            self.levels = np.array(levels)

        def predict(self, X: Array) -> Array:
            return self.levels[: len(X)]

    peer = EconMLPolicy()
    peer.K, peer.level_costs, peer.prices = 3, np.array([0.0, 1.0, 2.0]), np.array([3.0, 2.0, 1.0])
    peer.policies = [Chooser(levels) for levels in ([0, 0, 1], [0, 1, 1], [2, 1, 2])]
    curves = np.column_stack([np.zeros(3), peer._predict_effects(np.zeros((3, 1)))])
    assert curves.tolist() == [[0.0, 0.0, 2.0], [0.0, 2.0, 0.0], [0.0, 3.0, 4.0]]
    for budget, policy in zip((1 / 3, 2 / 3, 5 / 3), peer.policies, strict=True):
        assert allocate(curves, peer.level_costs, budget).levels.tolist() == policy.levels.tolist()


def test_a_peer_refuses_what_it_cannot_do(world: Simulation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    amounts = replace(world.log, response=world.log.response * 2.5)
    with pytest.raises(InputError, match="amounts"):
        UpliftForest().fit(amounts)
    with pytest.raises(InputError, match="amounts"):
        FunnelProduct().fit(world.log)
    monkeypatch.setitem(sys.modules, "tabpfn", sys)
    monkeypatch.setenv("LARGESSE_TABPFN", str(tmp_path / "none.ckpt"))
    with pytest.raises(InputError, match=r"none\.ckpt"):
        TabPFNLearner().fit(world.log)


def test_the_funnel_is_the_product_of_its_stages() -> None:
    log = simulate("averaged", n=1200, seed=4).log
    amounts = replace(log, response=log.response * (10.0 + log.level))
    curves = FunnelProduct(seed=1).fit(amounts).predict(amounts.features)
    assert (np.diff(curves, axis=1) >= 0).all()
    assert curves.mean() == pytest.approx(float(amounts.response.mean()), rel=0.2)


def test_decision_focused_training_is_repeatable(world: Simulation) -> None:
    first, second = (DecisionFocused(seed=3).fit(world.log).predict(world.log.features) for _ in range(2))
    assert (first == second).all()
    assert np.ptp(first[:, -1]) > 0


def test_causal_forests_learn_two_levels_with_a_propensity_model(world: Simulation) -> None:
    from largesse.data import log_from_arrays
    from largesse.levels import Levels

    two = world.log.level < 2
    X = np.asarray(world.features)[two]
    log = log_from_arrays(X, world.log.level[two], world.log.response[two], levels=Levels(costs=[0, 1]))
    model = CausalForestBCF(seed=1).fit(log)
    assert model.model.internal_propensity_model
    assert model.predict(log.features).shape == (len(X), 2)
