from dataclasses import replace

import numpy as np
import pytest

from largesse.evaluation.bootstrap import (
    _POISSON_CHANGES,
    MAX_MULTINOMIAL_CLUSTERS,
    POISSON_PARTS,
    bootstrap_estimate,
    resample_cluster_sums,
    sum_clusters,
)
from largesse.evaluation.estimators import ESTIMATORS, EstimateTerms, make_estimator_rows, measure_influence
from largesse.evaluation.policy_evaluation import evaluate
from largesse.stats.t_intervals import t_estimate
from largesse.worlds.paper_simulations import simulate


def test_the_table_of_draws_has_mean_and_variance_one() -> None:
    assert (sum(POISSON_PARTS), _POISSON_CHANGES.mean(), _POISSON_CHANGES.var()) == (256, 0.0, 1.0)


@pytest.mark.parametrize("n", [300, MAX_MULTINOMIAL_CLUSTERS + 1])
def test_it_agrees_with_the_influence_function_on_a_mean(n: int) -> None:
    rng = np.random.default_rng(0)
    values, weight = rng.exponential(size=n), rng.uniform(0.5, 2, n)
    plain, found = t_estimate(values, weight), bootstrap_estimate(EstimateTerms(values), weight, replicates=600)
    assert found.estimate == pytest.approx(plain.estimate)
    assert found.se == pytest.approx(plain.se, rel=0.12)
    assert found.interval == pytest.approx(plain.interval, abs=0.5 * plain.se)


@pytest.mark.parametrize("estimator", ["snips", "sndr"])
def test_ratios_are_resampled_as_ratios(estimator: str) -> None:
    rng = np.random.default_rng(1)
    n = 800
    rows = make_estimator_rows(
        rng.random((n, 2)), rng.integers(0, 2, n), rng.normal(size=n), rng.uniform(0.2, 0.8, n), np.array([0.3, 0.7])
    )
    terms = ESTIMATORS[estimator].terms(rows)
    plain = t_estimate(measure_influence(terms, rows.weight), rows.weight)
    found = bootstrap_estimate(terms, rows.weight)
    assert found.estimate == pytest.approx(plain.estimate)
    assert found.se == pytest.approx(plain.se, rel=0.12)


def test_clusters_are_drawn_whole() -> None:
    rng = np.random.default_rng(2)
    village = np.repeat(np.arange(100), 10)
    values = rng.normal(size=100)[village]  # one voice per village
    alone, together = (bootstrap_estimate(EstimateTerms(values), np.ones(1000), c) for c in (None, village))
    assert together.se == pytest.approx(values.std() / 10, rel=0.15)
    assert together.se > 2.5 * alone.se


def test_sums_of_clusters_and_a_replicate_are_what_they_say() -> None:
    weight, values, cluster = np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 11.0]), np.array([8, 8, 2])
    sums = sum_clusters([values, None], weight, cluster)
    assert sums.tolist() == [[3, 33, 0], [3, 19, 0]]
    drawn = resample_cluster_sums(sums, 50)
    assert set(drawn[:, 1]) <= {66.0, 52.0, 38.0}  # either cluster twice, or each once


def test_evaluate_can_be_asked_for_it() -> None:
    sim = simulate("averaged", n=1000, seed=1, mix=0.3)
    log = replace(sim.log, features=sim.log.features.select(["x0", "x1"]))
    one, other = (evaluate(log, np.full(1000, 2), interval=i) for i in ("influence", "bootstrap"))
    assert (one.value, one.interval, other.interval) == (pytest.approx(other.value), "influence", "bootstrap")
    assert one.value_se == pytest.approx(other.value_se, rel=0.1)
    assert one.value_se != other.value_se
    assert other.value_interval[0] <= one.value_interval[0] < one.value_interval[1] <= other.value_interval[1]
