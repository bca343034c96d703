import math

import numpy as np
import pytest
from scipy import stats

from largesse.stats.t_intervals import t_estimate


def slow_cluster_se(values: np.ndarray, weight: np.ndarray, cluster: np.ndarray) -> float:
    """Return the jackknife's standard error: the mean again and again, each cluster left out in turn."""
    mean = np.average(values, weights=weight)
    groups = sorted(set(cluster.tolist()))
    squares = 0.0
    for group in groups:
        rest = cluster != group
        squares += (np.average(values[rest], weights=weight[rest]) - mean) ** 2
    return math.sqrt((len(groups) - 1) / len(groups) * squares)


def test_mean_error_and_interval_are_the_textbook_ones() -> None:
    values = np.random.default_rng(0).normal(size=40)
    found = t_estimate(values)
    assert found.estimate == pytest.approx(values.mean())
    assert found.se == pytest.approx(values.std(ddof=1) / math.sqrt(40))
    low, high = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
    assert found.interval == pytest.approx((low, high))


def test_cluster_error_agrees_with_a_slow_loop() -> None:
    rng = np.random.default_rng(3)
    cluster = 3 * rng.integers(0, 9, 60) + 7  # some names are missing
    values, weight = rng.normal(size=60) + cluster, rng.random(60)
    found = t_estimate(values, weight, cluster)
    assert found.se == pytest.approx(slow_cluster_se(values, weight, cluster))
    assert found.high - found.estimate == pytest.approx(stats.t.ppf(0.975, len(set(cluster.tolist())) - 1) * found.se)


def test_a_large_cluster_is_not_trusted_for_having_pulled_the_mean_to_itself() -> None:
    """With half of the rows in one cluster, sums over clusters promise too much; the jackknife does not."""
    rng = np.random.default_rng(7)
    cluster = np.r_[np.zeros(50, dtype=int), 1 + np.arange(50) // 5]
    held = {"jackknife": 0, "sums": 0}
    for _ in range(400):
        values = rng.normal(size=100) + rng.normal(size=11)[cluster]
        found = t_estimate(values, None, cluster)
        parts = np.bincount(cluster, weights=values - values.mean())
        sums = math.sqrt(11 / 10 * (parts @ parts)) / 100
        held["jackknife"] += found.low <= 0 <= found.high
        held["sums"] += abs(values.mean()) <= stats.t.ppf(0.975, 10) * sums
    assert held["sums"] < 0.9 * 400 < held["jackknife"]


@pytest.mark.parametrize(("buyers", "rows"), [(1, 1000), (3, 500), (10, 2000)])
def test_few_buyers_make_an_interval_as_wide_as_the_exact_one(buyers: int, rows: int) -> None:
    values = np.zeros(rows)
    values[:buyers] = 1
    found = t_estimate(values)
    exact = stats.beta.ppf([0.025, 0.975], [buyers, buyers + 1], [rows - buyers + 1, rows - buyers])
    textbook = 2 * stats.t.ppf(0.975, rows - 1) * found.se
    assert textbook < 0.95 * (exact[1] - exact[0]) < found.high - found.low


def test_a_row_with_all_the_weight_has_a_mean_but_no_interval() -> None:
    found = t_estimate(np.array([3.0, 5.0]), np.array([1.0, 0.0]))
    assert found.estimate == 3
    assert math.isnan(found.se)


@pytest.mark.parametrize("cluster", [None, np.zeros(1, dtype=int)])
def test_one_unit_has_a_mean_but_no_interval(cluster: np.ndarray | None) -> None:
    found = t_estimate(np.array([3.0]), None, cluster)
    assert found.estimate == 3
    assert all(math.isnan(x) for x in (found.se, found.low, found.high))


def test_numbers_whose_squares_vanish_have_the_interval_of_larger_ones() -> None:
    values = np.random.default_rng(3).normal(size=50)
    small, usual = t_estimate(1e-90 * values, np.ones(50)), t_estimate(values, np.ones(50))
    assert small.high == pytest.approx(1e-90 * usual.high)
