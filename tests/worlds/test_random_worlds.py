"""Worlds drawn at random: one seed, one world, and a truth that belongs to it."""

from __future__ import annotations

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.worlds import draw_world

SEEDS = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_truth_never_falls_and_leaves_room_for_plans(seed: int) -> None:
    world = draw_world(seed)
    fresh = world.draw_fresh(4000, 1)
    assert (np.diff(fresh.truth, axis=1) >= -1e-12).all()
    assert np.isfinite(fresh.truth).all()
    for budget in world.budgets:
        assert fresh.oracle_value(budget) > fresh.uniform_value(budget)


@pytest.mark.parametrize("seed", SEEDS[:8])
def test_responses_agree_with_the_truth(seed: int) -> None:
    one = draw_world(seed).draw_log(20_000)
    own = one.truth[np.arange(len(one)), one.level]
    residual = one.response - own
    assert abs(residual.mean()) < 4.5 * residual.std() / np.sqrt(len(one))


@pytest.mark.parametrize("seed", SEEDS[:8])
def test_levels_are_drawn_with_their_propensities(seed: int) -> None:
    one = draw_world(seed).draw_log(20_000)
    assert np.allclose(one.propensities.sum(axis=1), 1.0)
    assert (one.propensities > 0).all()
    shares = np.bincount(one.level, minlength=one.truth.shape[1]) / len(one)
    assert np.abs(shares - one.propensities.mean(axis=0)).max() < 0.02


def test_one_seed_is_one_world() -> None:
    draw_world.cache_clear()
    first = draw_world(5).draw_log(300)
    draw_world.cache_clear()
    again = draw_world(5).draw_log(300)
    assert first.table.equals(again.table)
    assert np.array_equal(first.response, again.response)
    assert draw_world(5).traits != draw_world(6).traits


def test_fresh_customers_are_not_those_of_the_log() -> None:
    world = draw_world(1)
    assert not world.draw_log(100).table.equals(world.draw_fresh(100).table)


def test_worlds_differ_in_every_trait() -> None:
    drawn = [draw_world(seed).traits.regimes for seed in range(40)]
    for word in drawn[0]:
        assert len({one[word] for one in drawn}) >= 3, word


def test_impossible_worlds_are_refused() -> None:
    with pytest.raises(InputError, match="seeds"):
        draw_world(-1)
    with pytest.raises(InputError, match="at least one"):
        draw_world(0).draw_log(0)
