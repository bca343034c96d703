"""Every estimator of value and spend equals the textbook's formula, with its jackknife error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.evaluation import ESTIMATORS, compute_scores, estimate_policy_value_and_spend
from largesse.levels import Levels
from largesse.records import HeldOutPredictions, Log, Propensities
from oracles.estimators import Array, estimate
from support.examples import examples

CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Case:
    """A log with curves and propensities, and a policy to judge."""

    scores: Any
    policy: Array
    probabilities: Array  # (n, K) of the policy
    fields: dict[str, Array]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A log, curves, propensities and a policy; rows may have weights, clusters and costs of their own."""
    n, K = draw(st.integers(4, 120)), draw(st.integers(2, 5))
    redeemed, contact = draw(st.booleans()), draw(st.sampled_from([0.0, 0.3]))
    binary, own_costs, weighted, clustered = (draw(st.booleans()) for _ in range(4))
    kind = draw(st.sampled_from(["levels", "probabilities", "shares"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    level = rng.integers(0, K, n)
    response = (rng.random(n) < 0.4).astype(float) if binary else np.round(rng.lognormal(0, 1.5, n), 3)
    levels = Levels(costs=np.sort(rng.uniform(0, 9, K)), on_redemption=redeemed, contact_cost=contact)
    costs = np.sort(rng.uniform(0, 9, (n, K)), axis=1) if own_costs else None
    weight = rng.lognormal(0, 1, n) if weighted else None
    cluster = rng.integers(0, max(n // 4, 3), n) if clustered else None
    log = Log(None, level, response, levels, weight=weight, cluster=cluster, costs=costs)  # type: ignore[arg-type]
    curves = np.maximum.accumulate(rng.random((n, K)) * max(response.max(), 1.0), axis=1)
    propensity = (rng.dirichlet(np.ones(K), n) * 0.9 + 0.1 / K)[np.arange(n), level]
    scores = compute_scores(log, HeldOutPredictions(curves, rng.integers(0, 2, n)), Propensities(propensity, "given"))
    policy = {
        "levels": lambda: rng.integers(0, K, n),
        "probabilities": lambda: rng.dirichlet(np.full(K, 0.3), n),
        "shares": lambda: rng.dirichlet(np.ones(K)),
    }[kind]()
    probabilities = np.eye(K)[policy] if kind == "levels" else np.broadcast_to(policy, (n, K))
    face = costs if costs is not None else np.tile(levels.common_costs, (n, 1))  # type: ignore[arg-type]
    fields = {"level": level, "response": response, "curves": curves, "propensity": propensity, "face": face}
    fields |= {"weight": np.ones(n) if weight is None else weight, "extra": np.array([redeemed, contact])}
    return Case(scores, policy, probabilities, fields if cluster is None else {**fields, "cluster": cluster})


@pytest.mark.parametrize("name", ESTIMATORS)
@examples(20)
@given(case=cases())
def test_an_estimator_equals_its_formula(name: str, case: Case) -> None:
    for quantity, found in zip(
        ("value", "spend"), estimate_policy_value_and_spend(case.scores, case.policy, name), strict=True
    ):
        expected = estimate(name, quantity, case.probabilities, case.fields)
        np.testing.assert_allclose((found.estimate, found.se), expected, rtol=CLOSE, atol=1e-10)
        if np.isfinite(found.se):
            assert found.low <= found.estimate <= found.high
            assert found.high - found.low >= 3.9 * found.se - CLOSE
