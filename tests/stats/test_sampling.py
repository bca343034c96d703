"""Random rows and levels, and standardised columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.stats import draw_clusters, draw_rows_by_level
from largesse.stats.sampling import allocate_sample_to_levels, draw_levels, sample_rows, shuffle_rows


def test_a_sample_has_distinct_rows_in_their_order() -> None:
    rows = sample_rows(1000, 100, seed=1)
    assert len(rows) == 100
    assert (np.diff(rows) > 0).all()
    assert rows.max() < 1000
    np.testing.assert_array_equal(sample_rows(100, 100), np.arange(100))
    np.testing.assert_array_equal(rows, np.sort(shuffle_rows(1000, 100, seed=1)))
    assert not np.array_equal(rows, sample_rows(1000, 100, seed=2))


def test_every_row_is_as_likely_to_be_sampled() -> None:
    rng = np.random.default_rng(0)
    counts = sum(np.bincount(sample_rows(20, 5, rng), minlength=20) for _ in range(2000))
    np.testing.assert_allclose(counts, 500, atol=5 * np.sqrt(375))


def test_levels_are_drawn_with_their_probabilities() -> None:
    probabilities = np.random.default_rng(1).dirichlet(np.ones(4))
    drawn = draw_levels(np.tile(probabilities, (100_000, 1)), seed=2)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 100_000, probabilities, atol=0.006)


def test_levels_of_probability_zero_are_never_drawn() -> None:
    probabilities = np.tile([0.0, 0.5, 0.0, 0.5, 0.0], (10_000, 1))
    assert set(draw_levels(probabilities, seed=0).tolist()) == {1, 3}


def test_probabilities_that_sum_to_a_little_less_than_one_draw_no_further_level() -> None:
    tenths = np.tile(np.full(10, 0.1), (10_000, 1)) * (1 - 1e-9)
    assert draw_levels(tenths, seed=0).max() == 9


def test_a_row_keeps_its_level_whatever_rows_follow() -> None:
    probabilities = np.random.default_rng(3).dirichlet(np.ones(3), size=50)
    np.testing.assert_array_equal(draw_levels(probabilities[:20], seed=4), draw_levels(probabilities, seed=4)[:20])


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=8), st.integers(20, 5_000))
def test_shares_add_up_and_rare_levels_keep_rows(counts: list[int], most: int) -> None:
    n = np.array(counts)
    found = allocate_sample_to_levels(n, most)
    assert (found <= n).all()
    assert found.sum() <= most
    assert (found >= np.minimum(n, most // (2 * len(n)))).all()
    if n.sum() > most:
        assert found.sum() == most


def test_a_level_that_is_not_rare_gets_its_share_and_no_weight() -> None:
    level = np.repeat([0, 1, 2], [5000, 3000, 2000])
    rows, stands = draw_rows_by_level(level, 3, 1000)
    assert np.bincount(level[rows]).tolist() == [500, 300, 200]
    assert stands is None
    assert (np.diff(rows) > 0).all()


def test_weights_make_an_oversampled_level_count_as_it_does_in_the_log() -> None:
    level = np.repeat([0, 1], [99_000, 1000])
    rows, stands = draw_rows_by_level(level, 2, 2000)
    assert stands is not None
    own = level[rows]
    assert (own == 1).sum() == 500
    assert stands[own == 1].sum() == pytest.approx(1000)
    assert stands[own == 0].sum() == pytest.approx(99_000)


def test_every_row_of_a_level_is_drawn_equally_often() -> None:
    level = np.repeat([0, 1], [30, 10])
    times = np.zeros(40)
    for seed in range(2000):
        times[draw_rows_by_level(level, 2, 20, seed)[0]] += 1
    for k in (0, 1):
        own = times[level == k]
        assert np.abs(own - own.mean()).max() < 5 * np.sqrt(own.mean())


def test_clusters_stay_whole() -> None:
    cluster = np.random.default_rng(0).integers(0, 50, 1000)
    rows = draw_clusters(cluster, 300, seed=3)
    assert 200 < len(rows) <= 300
    inside = np.isin(np.arange(1000), rows)
    assert not set(cluster[inside]) & set(cluster[~inside])
