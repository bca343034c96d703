"""Models of costs: observed next to the response, and proportional to a scale of each customer."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from largesse.data.log_reader import log_from_arrays
from largesse.errors import InputError, PolicyFileError
from largesse.policy.policy import Policy
from largesse.records import Array, Customers, Log, SpendingCurve
from largesse.response.boosting import Boosting
from largesse.response.linear import Linear
from largesse.response.observed_cost_model import (
    MAX_LOG_SCALE,
    Proportional,
    WithCosts,
    get_customer_costs,
    predict_curves_and_costs,
)
from largesse.response.stacking import Stack

MODEL = WithCosts(Linear(penalty=0.01), costs=Proportional(penalty=0.01))
CURVE = SpendingCurve(price=(2.0, 0.0), expected=(0.0, 1.0), honest=(0.0, 1.2), reach=(0.0, 0.05), noise=0.1)


@cache
def log() -> Log:
    rng = np.random.default_rng(0)
    x, level = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    bought = rng.random(300) < 0.3 + 0.1 * level
    return log_from_arrays(x, level, bought.astype(float), paid=bought * level * np.exp(0.3 * x[:, 0]))


def test_responses_are_the_models_own_and_costs_those_of_the_other() -> None:
    both = clone(MODEL).fit(log())
    assert np.array_equal(both.predict(log()), Linear(penalty=0.01).fit(log()).predict(log()))
    costs = both.predict_costs(log())
    assert np.allclose(costs, Proportional(penalty=0.01).fit(log().of_costs).predict(log()), rtol=1e-3, atol=1e-3)
    assert np.array_equal(get_customer_costs(both, log()), costs)
    assert get_customer_costs(both.model_, log()) is None


def test_costs_of_any_model_are_never_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    both = clone(MODEL).fit(log())
    monkeypatch.setattr(Proportional, "_curves", lambda _self, X: np.full((len(X), 3), -1.0))
    assert not both.predict_costs(log()).any()


def test_the_defaults_are_the_stack_and_proportional_costs() -> None:
    model, costs = WithCosts(seed=3).unfitted_models
    assert (repr(model), repr(costs)) == (repr(Stack(seed=3)), repr(Proportional(seed=3)))


def test_a_log_that_does_not_say_what_rows_cost_is_refused() -> None:
    plain = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])
    with pytest.raises(InputError, match="WithCosts"):
        clone(MODEL).fit(plain)


def test_a_saved_policy_knows_both_models_and_what_plans_really_cost(tmp_path: Path) -> None:
    model = WithCosts(Boosting(rounds=5), costs=Proportional(penalty=0.01)).fit(log())
    policy = Policy(model, log().levels, spending=CURVE).calibrate(log(), 0.4, confidence=0.9)
    assert policy.scale > 1.2
    policy.save(tmp_path / "policy")
    again = Policy.load(tmp_path / "policy")
    assert isinstance(again.model, WithCosts)
    assert (again.spending, again.scale, again.price, again.levels) == (CURVE, policy.scale, policy.price, log().levels)
    assert again.model.predict_costs(log()).tobytes() == model.predict_costs(log()).tobytes()
    assert np.array_equal(again.probabilities(log()), policy.probabilities(log()))


def test_a_policy_of_observed_costs_needs_a_model_of_them() -> None:
    with pytest.raises(InputError, match="responses"):
        Policy(Linear(penalty=0.01).fit(log()), log().levels)


@pytest.mark.parametrize("spoilt", [{"price": [1.0]}, {"price": [1.0, None]}, {"pris": [1.0, 0.0]}, {"noise": -1.0}])
def test_a_damaged_spending_curve_is_refused(
    spoilt: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(clone(MODEL).fit(log()), log().levels, spending=CURVE)
    state, arrays = policy._state()
    state["spending"] |= spoilt
    monkeypatch.setattr(Policy, "_state", lambda _self: (state, arrays))
    policy.save(tmp_path / "policy")
    with pytest.raises(PolicyFileError):
        Policy.load(tmp_path / "policy")


def test_what_is_expected_of_a_customer_does_not_depend_on_who_else_is_in_the_table() -> None:
    both, features = clone(MODEL).fit(log()), log().features
    curves, costs = predict_curves_and_costs(both, Customers(features))
    assert costs is not None
    assert np.allclose(curves, both.predict(features), atol=1e-6)
    assert np.allclose(costs, both.predict_costs(features), atol=1e-6)
    ends = [0, 1, 2, 5, 100, 291, 300]
    parts = [
        predict_curves_and_costs(both, Customers(features.slice(a, b - a)), workers=a % 3 + 1)
        for a, b in pairwise(ends)
    ]
    assert np.array_equal(curves, np.concatenate([part for part, _ in parts]))
    assert np.array_equal(costs, np.concatenate([part for _, part in parts if part is not None]))
    own = np.ones((300, 3))
    assert predict_curves_and_costs(both.model_, Customers(features, None, own))[1] is own


SIZES = np.array([0.0, 2.0, 5.0])
COEF = np.array([0.6, -0.3])


def draw(n: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Return features, levels, costs and the true mean costs (n, K)."""
    rng = np.random.default_rng(seed)
    x, level = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    truth = np.exp(x @ COEF)[:, None] * SIZES
    # Many pay nothing, and some pay a lot: nothing like a Poisson distribution, but the mean is right.
    paid = truth[np.arange(n), level] * rng.exponential(size=n) * (rng.random(n) < 0.5) * 2
    return x, level, paid, truth


def test_true_costs_are_found() -> None:
    x, level, paid, truth = draw(8000)
    found = Proportional().fit(x, level, paid).predict(x)
    assert found[:, 0].max() == 0.0  # a level that never cost anything
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.2 * truth.std()


def test_totals_of_every_level_are_those_of_the_log_with_weights_too() -> None:
    x, level, paid, _ = draw(500)
    weight = np.random.default_rng(1).uniform(0.5, 2, 500)
    for given in (None, weight):
        curves = Proportional(penalty=0.1).fit(x, level, paid, weight=given).predict(x)
        for k in range(3):
            own, w = level == k, np.ones(500) if given is None else given
            assert w[own] @ curves[own, k] == pytest.approx(w[own] @ paid[own])


def test_the_coefficients_minimise_the_penalised_loss() -> None:
    x, level, paid, _ = draw(300)
    model = Proportional(penalty=0.05).fit(x, level, paid)
    X, share = model.encode(x).astype(np.float64), paid / paid.sum()

    def loss(coef: Array) -> float:
        mass = [np.exp(X[level == k] @ coef).sum() for k in range(3)]
        sizes = [share[level == k].sum() for k in range(3)]
        return float(np.dot(sizes, np.log(mass)) - share @ X @ coef + 0.025 * coef @ coef)

    best = model.fit_.coef
    for j in range(len(best)):
        for step in (-1e-3, 1e-3):
            assert loss(best) < loss(best + step * np.eye(len(best))[j])


def test_sizes_may_fall_and_scales_beyond_the_log_are_not_believed() -> None:
    x, level, paid, _ = draw(400)
    model = Proportional().fit(x, 2 - level, paid)
    assert model.fit_.sizes[0] > model.fit_.sizes[1] > model.fit_.sizes[2] == 0
    far = model.predict(x * 1000)
    assert far.max() <= model.predict(x).max() * (1 + 1e-9)
    assert model.fit_.high < MAX_LOG_SCALE


def test_costs_below_zero_are_refused() -> None:
    x, level, paid, _ = draw(100)
    with pytest.raises(InputError, match="negative in 1 row"):
        Proportional().fit(x, level, np.where(np.arange(100) == 3, -1.0, paid))


def test_a_part_of_a_log_without_costs_is_expected_to_cost_nothing() -> None:
    x, level, paid, _ = draw(100)
    log = log_from_arrays(x, level, paid)
    free = replace(log, response=np.zeros(100))
    assert not Proportional().fit(free).predict(x).any()
