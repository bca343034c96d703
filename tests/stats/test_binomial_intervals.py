import math

import numpy as np
import pytest
from scipy import stats

from largesse.stats.binomial_intervals import BinaryOutcomes, binomial_half_widths, mark_binary_successes
from largesse.stats.skewed_mean_intervals import estimate_skewed_mean
from largesse.stats.t_intervals import t_estimate


@pytest.mark.parametrize(("cases", "rows"), [(0, 50), (3, 50), (25, 50), (48, 50), (50, 50)])
def test_answers_that_count_alike_have_the_exact_interval_of_a_share(cases: int, rows: int) -> None:
    yes = np.arange(rows) < cases
    below, above = binomial_half_widths(BinaryOutcomes(np.ones(rows), yes), None, math.inf)
    share = cases / rows
    exact = stats.binomtest(cases, rows).proportion_ci(0.95, method="exact")
    assert (share - below, share + above) == pytest.approx((exact.low, exact.high))


def test_a_yes_that_takes_away_mirrors_the_ends() -> None:
    rng = np.random.default_rng(0)
    answers = BinaryOutcomes(rng.uniform(1, 9, 40), rng.random(40) < 0.1)
    below, above = binomial_half_widths(answers, None, math.inf)
    assert binomial_half_widths(answers * -1.0, None, math.inf) == pytest.approx((above, below))
    assert binomial_half_widths(answers * 3.0, np.full(40, 7.0), math.inf) == pytest.approx((3 * below, 3 * above))
    assert above > 1.3 * below


def test_without_stakes_there_is_no_reach() -> None:
    assert binomial_half_widths(BinaryOutcomes(np.zeros(4), np.array([True, False, True, False])), None, 1.0) == (0, 0)


def test_what_curves_explain_narrows_the_reach() -> None:
    answers = BinaryOutcomes(np.ones(100), np.arange(100) < 50)
    whole = binomial_half_widths(answers, None, 0.05)
    assert binomial_half_widths(answers, None, 0.025) == pytest.approx((whole[0] / 2, whole[1] / 2))
    assert binomial_half_widths(answers, None, 0.5) == whole


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.3, 0.98])
@pytest.mark.parametrize("uneven", [False, True])
def test_few_answers_are_covered_where_a_t_interval_misses_them(rate: float, uneven: bool) -> None:
    rng = np.random.default_rng(1)
    short = honest = width = 0.0
    for _ in range(400):
        chance = rng.uniform(0.1, 0.9, 200) if uneven else np.full(200, 0.25)
        stakes, yes = (rng.random(200) < chance) / chance, rng.random(200) < rate
        values = rate + stakes * (yes - rate)
        plain, found = t_estimate(values), estimate_skewed_mean(values, answers=BinaryOutcomes(stakes, yes))
        assert found.low <= plain.low < plain.high <= found.high
        short += plain.low <= rate <= plain.high
        honest += found.low <= rate <= found.high
        width += (found.high - found.low) / (plain.high - plain.low) / 400
    assert honest >= max(0.93 * 400, short)
    if rate == 0.3:  # enough of both kinds
        assert width < 1.08


def test_clusters_are_not_counted_by_rows() -> None:
    values = np.r_[np.zeros(90), np.ones(10)]
    answers, cluster = BinaryOutcomes(np.ones(100), values > 0), np.arange(100) // 5
    assert estimate_skewed_mean(values, None, cluster, answers=answers) == estimate_skewed_mean(values, None, cluster)


def test_outcomes_of_one_size_are_yes_or_no() -> None:
    for no in ([0.0, 0.0], [1.0, 1.0], [0.0, 1.0, 2.0], [0.0, 1.0, -1.0]):
        assert mark_binary_successes(np.array(no)) is None
    found = mark_binary_successes(np.array([0.0, -2.5, -2.5]))
    assert found is not None
    assert found.tolist() == [False, True, True]
