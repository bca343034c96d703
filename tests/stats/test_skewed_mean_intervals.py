import math

import numpy as np
import pytest

from largesse.stats.binomial_intervals import BinaryOutcomes
from largesse.stats.skewed_mean_intervals import (
    MIN_TAIL_ROWS,
    _draw_t_statistics,
    _make_tail_side,
    count_tail_rows_if_few,
    estimate_skewed_mean,
    is_sparse_amount,
)
from largesse.stats.t_intervals import t_estimate

BUYERS, SIGMA = 0.05, 1.5


def draw_purchases(rng: np.random.Generator, n: int, share: float = BUYERS / 3) -> np.ndarray:
    """Return weighted purchases of which few rows have one: three levels, responses times three at the policy's."""
    return 3 * (rng.random(n) < share) * np.exp(SIGMA * rng.standard_normal(n))


TRUTH = BUYERS * math.exp(SIGMA**2 / 2)


def test_few_large_purchases_are_covered_where_a_t_interval_misses_them() -> None:
    rng = np.random.default_rng(0)
    plain = honest = given = 0
    for _ in range(300):
        values = draw_purchases(rng, 1000)
        short, found = t_estimate(values), estimate_skewed_mean(values, tail=values)
        plain += short.low <= TRUTH <= short.high
        given += not math.isnan(found.high)
        honest += found.low <= TRUTH <= found.high
    assert plain < 0.88 * 300
    assert honest >= 0.94 * given
    assert given > 0.9 * 300


def test_differences_are_covered_on_both_sides() -> None:
    rng = np.random.default_rng(1)
    plain = honest = 0
    for _ in range(300):
        values = draw_purchases(rng, 2000) - draw_purchases(rng, 2000)
        short, found = t_estimate(values), estimate_skewed_mean(values, tail=values)
        assert found.low <= short.low < short.high <= found.high
        plain += short.low <= 0 <= short.high
        honest += found.low <= 0 <= found.high
    assert honest >= max(plain, 0.94 * 300)


@pytest.mark.parametrize("kind", ["yes or no", "normal"])
def test_intervals_that_are_right_stay_as_they_are(kind: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        values = 3.0 * (rng.random(600) < 0.1) if kind == "yes or no" else rng.normal(size=600)
        short, found = t_estimate(values), estimate_skewed_mean(values)
        assert (found.estimate, found.se) == (short.estimate, short.se)
        assert found.high - found.low <= 1.01 * (short.high - short.low)


def test_many_purchases_make_the_interval_an_ordinary_one() -> None:
    rng = np.random.default_rng(3)
    ratios = []
    for n in (1000, 10_000, 1_000_000):
        values = draw_purchases(rng, n)
        short, found = t_estimate(values), estimate_skewed_mean(values, tail=values)
        ratios.append((found.high - found.low) / (short.high - short.low))
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] < 1.1


@pytest.mark.parametrize("buyers", [0, 1, MIN_TAIL_ROWS - 1])
def test_with_too_few_purchases_there_is_no_interval(buyers: int) -> None:
    values = np.r_[np.zeros(300), np.arange(buyers) + 1.0]
    found = estimate_skewed_mean(values, tail=values)
    assert found.estimate == pytest.approx(values.mean())
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert count_tail_rows_if_few(values) == buyers


def test_each_sign_needs_enough_rows_unless_it_hardly_counts() -> None:
    assert count_tail_rows_if_few(np.r_[np.ones(30), -np.ones(9)]) == 9
    assert count_tail_rows_if_few(np.r_[np.ones(30), -np.ones(MIN_TAIL_ROWS)]) is None
    assert count_tail_rows_if_few(np.r_[np.ones(300), -np.ones(4)]) is None


def test_clusters_are_the_terms_and_scaling_moves_nothing() -> None:
    rng = np.random.default_rng(4)
    values, weight = draw_purchases(rng, 2000), rng.uniform(0.5, 2, 2000)
    alone = estimate_skewed_mean(values, weight, tail=values)
    each = estimate_skewed_mean(values, weight, np.arange(2000), values)
    assert each.interval == pytest.approx(alone.interval)  # purchases are a tail either way
    twice = estimate_skewed_mean(2 * values, 5 * weight, tail=2 * values)
    assert twice.interval == pytest.approx((2 * alone.low, 2 * alone.high))
    mirrored = estimate_skewed_mean(-values, weight, tail=-values)
    assert mirrored.high == pytest.approx(-alone.low, rel=0.05, abs=0.05 * alone.se)
    assert -mirrored.low == pytest.approx(alone.high, rel=0.25)  # other draws


def test_the_same_rows_have_the_same_interval() -> None:
    values = draw_purchases(np.random.default_rng(5), 3000)
    assert estimate_skewed_mean(values, tail=values) == estimate_skewed_mean(values.copy(), tail=values.copy())


@pytest.mark.parametrize(
    ("outcome", "rare"),
    [([0, 0, 1, 1], False), ([0, 0, 2.5, 1], True), ([1, 2, 3, 4], False), ([0, 0, 0, 0], False)],
)
def test_amounts_that_some_rows_lack_are_rare(outcome: list[float], rare: bool) -> None:
    assert is_sparse_amount(np.array(outcome)) is rare


def test_an_interval_allows_for_both_answers_and_amounts() -> None:
    rng = np.random.default_rng(6)
    yes, paid = rng.random(1000) < 0.2, draw_purchases(rng, 1000)
    values, answers = 3.0 * yes - paid, BinaryOutcomes(np.full(1000, 3.0), yes)
    both = estimate_skewed_mean(values, tail=-paid, answers=answers)
    assert both.low < estimate_skewed_mean(values, answers=answers).low
    assert both.high >= estimate_skewed_mean(values, answers=answers).high
    assert both.se == t_estimate(values).se


def test_errors_of_sums_next_to_nothing_are_numbers() -> None:
    none, one = _make_tail_side(np.zeros(0), np.zeros(0)), _make_tail_side(np.array([1e-165]), np.array([1e-165]))
    assert np.isfinite(_draw_t_statistics(one, none, 1e-320, 1)).all()
