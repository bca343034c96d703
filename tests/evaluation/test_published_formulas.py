"""Estimators equal the published formulas, and the estimators of skdr-eval and obp where these are installed.

The formulas are written row by row from the papers: inverse propensities (Horvitz and Thompson 1952), self-normalised (Swaminathan and
Joachims 2015), direct and doubly robust (Dudík, Langford and Li 2011), self-normalised doubly robust (Thomas and Brunskill
2016), switch (Wang, Agarwal and Dudík 2017), optimistic shrinkage (Su, Dimakopoulou, Krishnamurthy and Dudík 2020).
"""

import importlib.util
from typing import Any

import numpy as np
import pytest

from largesse.evaluation.estimators import (
    ESTIMATORS,
    EstimatorRows,
    _drop_large_ratios,
    _shrink_large_ratios,
    make_estimator_rows,
    measure_influence,
    tune_ratio_bound,
)
from largesse.records import Array

N, K = 400, 4


@pytest.fixture(scope="module", params=["probabilities", "levels"])
def arrays(request: pytest.FixtureRequest) -> dict[str, Array]:
    rng = np.random.default_rng(17)
    logger = rng.dirichlet(np.full(K, 2.0), N) * 0.9 + 0.1 / K
    level = np.array([rng.choice(K, p=row) for row in logger])
    policy = rng.dirichlet(np.ones(K), N)
    if request.param == "levels":
        policy = np.eye(K)[rng.integers(0, K, N)]
    curves = rng.random((N, K))
    response = (rng.random(N) < 0.2 + 0.5 * curves[np.arange(N), level]).astype(float)
    return {"logger": logger, "level": level, "policy": policy, "curves": curves, "response": response}


def weigh(arrays: dict[str, Array]) -> EstimatorRows:
    propensity = arrays["logger"][np.arange(N), arrays["level"]]
    return make_estimator_rows(arrays["curves"], arrays["level"], arrays["response"], propensity, arrays["policy"])


def estimate(arrays: dict[str, Array], name: str) -> float:
    return float(measure_influence(ESTIMATORS[name].terms(weigh(arrays))).mean())


def find_published(arrays: dict[str, Array], name: str) -> float:
    rows = weigh(arrays)
    tau, shrinkage = tune_ratio_bound(rows, _drop_large_ratios), tune_ratio_bound(rows, _shrink_large_ratios)
    total = direct = ratio = 0.0
    for i in range(N):
        y, r = int(arrays["level"][i]), float(arrays["response"][i])
        q = sum(float(arrays["policy"][i, k] * arrays["curves"][i, k]) for k in range(K))
        w = float(arrays["policy"][i, y] / arrays["logger"][i, y])
        e = r - float(arrays["curves"][i, y])
        direct, ratio = direct + q / N, ratio + w
        kept = {
            "direct": 0.0,
            "ips": w * r,
            "snips": w * r,
            "dr": w * e,
            "sndr": w * e,
            "switch": w * e if w <= tau else 0.0,
            "dros": w * e if np.isinf(shrinkage) else shrinkage * w / (w**2 + shrinkage) * e,
        }
        total += kept[name]
    correction = total / ratio if name in ("snips", "sndr") else total / N
    return correction if name in ("ips", "snips") else direct + correction


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_equals_its_published_formula(arrays: dict[str, Array], name: str) -> None:
    assert estimate(arrays, name) == pytest.approx(find_published(arrays, name), abs=1e-9)


def test_bounds_are_in_use_where_weights_are_large(arrays: dict[str, Array]) -> None:
    rows = weigh(arrays)
    noisy = EstimatorRows(rows.direct, rows.ratio * 50, rows.residual, rows.outcome)
    assert np.isfinite(tune_ratio_bound(noisy, _drop_large_ratios)) or np.isfinite(
        tune_ratio_bound(noisy, _shrink_large_ratios)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("skdr_eval") is None, reason="pip install skdr-eval==0.12.0")
def test_doubly_robust_estimates_equal_those_of_skdr_eval(arrays: dict[str, Array]) -> None:
    import skdr_eval

    rows, level = np.arange(N), arrays["level"]
    # It takes one prediction per row for the residual; with predictions of the logged level for all levels the direct part is the same.
    predicted = arrays["curves"][rows, level]
    flat: dict[str, Any] = dict(arrays, curves=np.tile(predicted[:, None], (1, K)))
    theirs = skdr_eval.dr_value_with_clip(
        arrays["logger"],
        arrays["policy"],
        arrays["response"],
        predicted,
        level,
        np.ones((N, K)),
        clip_grid=(np.inf,),
    )
    assert estimate(flat, "dr") == pytest.approx(theirs["DR"].V_hat, abs=1e-9)
    assert estimate(flat, "sndr") == pytest.approx(theirs["SNDR"].V_hat, abs=1e-9)


def has_obp() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("obp", "torch"))


@pytest.mark.skipif(
    not has_obp(), reason="obp 0.5.7 and torch: pip install --no-deps --ignore-requires-python obp==0.5.7"
)
def test_estimates_equal_those_of_obp(arrays: dict[str, Array]) -> None:
    from obp.ope import estimators as obp

    rows = weigh(arrays)
    theirs = {
        "direct": obp.DirectMethod(),
        "ips": obp.InverseProbabilityWeighting(),
        "snips": obp.SelfNormalizedInverseProbabilityWeighting(),
        "dr": obp.DoublyRobust(),
        "sndr": obp.SelfNormalizedDoublyRobust(),
        "switch": obp.SwitchDoublyRobust(lambda_=tune_ratio_bound(rows, _drop_large_ratios)),
        "dros": obp.DoublyRobustWithShrinkage(lambda_=tune_ratio_bound(rows, _shrink_large_ratios)),
    }
    inputs = {
        "reward": arrays["response"],
        "action": arrays["level"],
        "pscore": arrays["logger"][np.arange(N), arrays["level"]],
        "action_dist": arrays["policy"][:, :, None],
        "estimated_rewards_by_reg_model": arrays["curves"][:, :, None],
        "position": np.zeros(N, dtype=int),
    }
    for name, estimator in theirs.items():
        assert estimate(arrays, name) == pytest.approx(estimator.estimate_policy_value(**inputs), abs=1e-9), name
