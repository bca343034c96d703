from typing import Any

import numpy as np
import pytest

from largesse.data.log_reader import log_from_arrays
from largesse.errors import InputError
from largesse.records import Log
from largesse.stats.folds import assign_folds, mark_held_out_rows


def log_of(n: int, K: int = 3, clusters: int | None = None, seed: int = 0) -> Log:
    rng = np.random.default_rng(seed)
    level = np.concatenate([np.arange(K), rng.choice(K, n - K, p=rng.dirichlet(np.ones(K)))])
    cluster = None if clusters is None else rng.permutation(np.arange(n) % clusters)
    return log_from_arrays(rng.normal(size=(n, 2)), level, np.arange(n) % 2, cluster=cluster)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
@pytest.mark.parametrize("n", [10, 57, 300])
def test_every_level_is_spread_evenly(n: int, count: int) -> None:
    log = log_of(n)
    fold = assign_folds(log, count)
    assert set(fold.tolist()) == set(range(count))
    for k in range(3):
        sizes = np.bincount(fold[log.level == k], minlength=count)
        assert sizes.max() - sizes.min() <= 1
    assert np.ptp(np.bincount(fold)) <= 1


@pytest.mark.parametrize("clusters", [2, 3, 7, 40])
def test_clusters_stay_whole_and_folds_are_even(clusters: int) -> None:
    log = log_of(200, clusters=clusters)
    assert log.cluster is not None
    fold = assign_folds(log, 5)
    assert len(np.unique(fold)) == min(5, clusters)
    for group in range(clusters):
        assert len(np.unique(fold[log.cluster == group])) == 1
    sizes = np.bincount(fold)
    assert np.ptp(sizes) <= np.bincount(log.cluster).max()


def test_part_of_a_clustered_log_is_cut_into_filled_folds() -> None:
    log = log_of(200, clusters=40)
    assert log.cluster is not None
    part = log.take(log.cluster >= 30)
    assert (np.bincount(assign_folds(part, 5), minlength=5) > 0).all()


@pytest.mark.parametrize("clusters", [None, 20])
def test_the_seed_decides(clusters: int | None) -> None:
    log = log_of(100, clusters=clusters)
    assert np.array_equal(assign_folds(log, 5, seed=1), assign_folds(log, 5, seed=1))
    assert not np.array_equal(assign_folds(log, 5, seed=1), assign_folds(log, 5, seed=2))


@pytest.mark.parametrize("count", [0, 1, 11])
def test_too_few_or_too_many_folds_are_refused(count: int) -> None:
    with pytest.raises(InputError, match=f"{count} .* 10 "):
        assign_folds(log_of(10), count)


def test_a_single_cluster_cannot_be_cut() -> None:
    with pytest.raises(InputError, match="same cluster"):
        assign_folds(log_of(50, clusters=1), 5)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.99])
def test_about_a_share_of_every_level_is_held_out(share: float) -> None:
    log = log_of(300)
    held = mark_held_out_rows(log, share, seed=0)
    expected = min(max(round(10 * share), 1), 9) / 10  # in tenths, and never nothing or everything
    for k in range(3):
        rows = log.level == k
        assert held[rows].sum() == pytest.approx(expected * rows.sum(), abs=3)  # one per tenth


def test_whole_clusters_are_held_out_together() -> None:
    log = log_of(200, clusters=3)
    held = mark_held_out_rows(log, 0.3, seed=0)
    assert log.cluster is not None
    assert 0 < held.mean() < 1
    assert all(len(np.unique(held[log.cluster == group])) == 1 for group in range(3))


@pytest.mark.parametrize(
    "wrong", [{"count": 2.5}, {"count": {}}, {"count": True}, {"seed": -1}, {"seed": 2.5}, {"seed": "x"}]
)
def test_folds_and_seeds_are_whole_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="whole number"):
        assign_folds(log_from_arrays(np.eye(8), np.arange(8) % 2, np.arange(8)), **wrong)
