"""The loop that many models run through: what is drawn, what is kept, when it stops."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from largesse.response.networks import iterate as loop
from largesse.response.networks.iterate import Loop, Parts, drawn, filled, iterate, row_sets


def parts(**own: Any) -> Parts:
    """A number that moves by its own speed at every step; the loss is its distance from ten."""
    usual: dict[str, Any] = {
        "start": lambda _rng: np.float32(0),
        "luck": lambda rng, _mine, steps: rng.random(steps, np.float32),
        "step": lambda state, _data, mine, _chance: state + mine,
        "loss": lambda state, _data, _mine: jnp.abs(state - 10.0),
        "kept": lambda state: state,
    }
    return Parts(**(usual | own))


def test_the_best_is_kept_however_far_training_goes_on() -> None:
    best, loss = iterate(
        parts(), Loop(100, look=1, patience=1000), np.float32(0), np.array([1.0, 3.0]), np.zeros(2, int)
    )
    assert best.tolist() == [10.0, 9.0]
    assert loss.tolist() == [0.0, 1.0]


def test_the_last_is_kept_where_asked() -> None:
    last, _ = iterate(parts(), Loop(100, look=10, last=True), np.float32(0), np.array([1.0]), np.zeros(1, int))
    assert last.tolist() == [100.0]


def test_a_model_that_has_stopped_gains_no_more() -> None:
    # Falls to step 3, rises, and is lowest of all at step 20.
    uneven = parts(loss=lambda state, _data, _mine: jnp.where(state == 20, -1.0, jnp.abs(state - 3.0)))
    for patience, found in ((5, 3.0), (30, 20.0)):
        best, _ = iterate(uneven, Loop(40, 1, patience), np.float32(0), np.ones(1), np.zeros(1, int))
        assert best.tolist() == [found]


def test_one_seed_sees_one_chance_and_another_another() -> None:
    noisy = parts(
        start=lambda rng: np.float32(rng.random()),
        step=lambda state, _data, _mine, chance: state + chance,
        loss=lambda state, _data, _mine: -state,
    )
    seeds = np.array([3, 5, 3])
    found, _ = iterate(noisy, Loop(20, look=10), np.float32(0), np.ones(3), seeds)
    assert found[0] == found[2] != found[1]
    again, _ = iterate(noisy, Loop(20, look=10), np.float32(0), np.ones(3), seeds)
    assert found.tobytes() == again.tobytes()
    alone, _ = iterate(noisy, Loop(20, look=10), np.float32(0), np.ones(1), seeds[1:2])
    assert alone[0] == pytest.approx(found[1], rel=1e-6)


def test_a_batch_holds_no_row_twice_and_only_rows_with_a_weight() -> None:
    weight = np.array([1.0, 0.0, 2.0, 1.0, 0.0, 3.0, 1.0])
    places = drawn(np.random.default_rng(0), weight, 500, 3)
    assert places.shape == (500, 3)
    assert all(len(set(row)) == 3 for row in places.tolist())
    counts = np.bincount(places.ravel(), minlength=7)
    assert counts[weight == 0].sum() == 0
    assert counts[weight > 0] == pytest.approx(300, rel=0.2)


def test_where_rows_are_few_the_rest_of_a_batch_weighs_nothing() -> None:
    weight = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    places = drawn(np.random.default_rng(0), weight, 20, 5)
    assert all(sorted(row) == sorted(set(row)) for row in places.tolist())
    assert all({1, 3} <= set(row) for row in places.tolist())


def test_very_many_rows_are_drawn_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "DRAWN_APART", 5)
    weight = np.r_[np.zeros(3), np.ones(10)]
    places = drawn(np.random.default_rng(0), weight, 300, 4)
    assert places.shape == (300, 4)
    assert np.bincount(places.ravel(), minlength=13)[3:] == pytest.approx(120, rel=0.3)
    assert places.min() == 3


def test_rows_are_filled_up_with_what_weighs_nothing() -> None:
    index, mass = row_sets([np.array([4, 2]), np.array([1, 3, 0])], np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert index.shape == mass.shape == (2, loop.BLOCK)
    assert mass.sum(axis=1).tolist() == [8.0, 7.0]
    assert index[1, :3].tolist() == [1, 3, 0]
    assert filled(np.ones(300)).sum() == 300
    index, mass = row_sets([np.arange(10), np.arange(3)], np.ones(10), most=4)
    assert index[0][mass[0] > 0].tolist() == [0, 2, 5, 7]
    assert index[1][mass[1] > 0].tolist() == [0, 1, 2]


def test_steps_fewer_than_a_look_are_still_taken() -> None:
    best, _ = iterate(parts(), Loop(7, look=100), np.float32(0), np.array([1.0]), np.zeros(1, int))
    assert best.tolist() == [7.0]
    assert isinstance(jax.tree.leaves(best)[0], np.ndarray)
