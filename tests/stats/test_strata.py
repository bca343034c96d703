"""Samples by level: sizes, weights and chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.stats import draw_clusters, draw_rows
from largesse.stats.strata import share_rows


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=8), st.integers(20, 5_000))
def test_shares_add_up_and_rare_levels_keep_rows(counts: list[int], most: int) -> None:
    n = np.array(counts)
    found = share_rows(n, most)
    assert (found <= n).all()
    assert found.sum() <= most
    assert (found >= np.minimum(n, most // (2 * len(n)))).all()
    if n.sum() > most:
        assert found.sum() == most


def test_a_level_that_is_not_rare_gets_its_share_and_no_weight() -> None:
    level = np.repeat([0, 1, 2], [5000, 3000, 2000])
    rows, stands = draw_rows(level, 3, 1000)
    assert np.bincount(level[rows]).tolist() == [500, 300, 200]
    assert stands is None
    assert (np.diff(rows) > 0).all()


def test_weights_make_an_oversampled_level_count_as_it_does_in_the_log() -> None:
    level = np.repeat([0, 1], [99_000, 1000])
    rows, stands = draw_rows(level, 2, 2000)
    assert stands is not None
    own = level[rows]
    assert (own == 1).sum() == 500
    assert stands[own == 1].sum() == pytest.approx(1000)
    assert stands[own == 0].sum() == pytest.approx(99_000)


def test_every_row_of_a_level_is_drawn_equally_often() -> None:
    level = np.repeat([0, 1], [30, 10])
    times = np.zeros(40)
    for seed in range(2000):
        times[draw_rows(level, 2, 20, seed)[0]] += 1
    for k in (0, 1):
        own = times[level == k]
        assert np.abs(own - own.mean()).max() < 5 * np.sqrt(own.mean())


def test_clusters_stay_whole() -> None:
    cluster = np.random.default_rng(0).integers(0, 50, 1000)
    rows = draw_clusters(cluster, 300, seed=3)
    assert 200 < len(rows) <= 300
    inside = np.isin(np.arange(1000), rows)
    assert not set(cluster[inside]) & set(cluster[~inside])
