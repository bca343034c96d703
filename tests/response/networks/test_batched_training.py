"""The loop that all networks are trained by: what is drawn, what is kept, when it stops, and in which groups."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from largesse.records import Array
from largesse.response.networks import batched_training
from largesse.response.networks.batched_training import pad_rows, round_up_rows, stack_row_sets, train_in_groups
from largesse.response.networks.training_runner_hook import train_networks, use_training_runner
from largesse.response.networks.training_types import TrainedNetworks, TrainingJob, TrainingLoop, TrainingProgram
from largesse_lab.baselines import network_helpers
from largesse_lab.baselines.network_helpers import (
    draw_batches,
    draw_batches_by_interval,
    initialise_models_by_seed,
    make_training_loop,
)
from support.models import summing_job, summing_program

LOOP = TrainingLoop(looks=100, steps=1, patience=1000)


def program(loop: TrainingLoop = LOOP, **own: Any) -> TrainingProgram:
    """A number that moves by its own speed at every step; the loss is its distance from ten."""

    def draw(seed: int, _own: Any, stretches: Any) -> Iterator[Array]:
        return draw_batches_by_interval(seed, stretches, loop.steps, lambda rng, steps: rng.random(steps, np.float32))

    usual: dict[str, Any] = {
        "start": lambda seeds, _own: initialise_models_by_seed(seeds, lambda _rng: np.float32(0)),
        "draw": draw,
        "step": lambda state, _data, own, _drawn: state + own[0],
        "loss": lambda state, _data, _own: jnp.abs(state - 10.0),
        "keep": lambda state: state,
    }
    return TrainingProgram(**(usual | own))


def job(made: TrainingProgram, loop: TrainingLoop, speed: list[float], seeds: list[int] | None = None) -> TrainingJob:
    many = len(speed)
    own = (np.array(speed, np.float32),)
    return TrainingJob(made, loop, (np.zeros(1, np.float32),), own, np.array(seeds or [0] * many))


def test_the_best_is_kept_however_far_training_goes_on() -> None:
    found = train_in_groups(job(program(), LOOP, [1.0, 3.0]))
    assert found.params.tolist() == [10.0, 9.0]
    assert found.loss.tolist() == [0.0, 1.0]
    assert found.look.tolist() == [10, 3]
    assert isinstance(found.params, np.ndarray)


def test_the_last_is_kept_where_asked() -> None:
    loop = make_training_loop(100, 10, patience=10, last=True)
    assert train_in_groups(job(program(loop), loop, [1.0])).params.tolist() == [100.0]


def test_a_model_that_has_stopped_gains_no_more() -> None:
    # Falls to step 3, rises, and is lowest of all at step 20.
    uneven = program(loss=lambda state, _data, _own: jnp.where(state == 20, -1.0, jnp.abs(state - 3.0)))
    for patience, found in ((5, 3.0), (30, 20.0)):
        assert train_in_groups(job(uneven, TrainingLoop(40, 1, patience), [1.0])).params.tolist() == [found]


def test_training_ends_once_every_model_has_stopped() -> None:
    drawn: list[int] = []

    def draw(_seed: int, _own: Any, stretches: Any) -> Iterator[Array]:
        for looks in stretches:
            drawn.append(int(looks[-1]))
            yield np.zeros(len(looks), np.float32)

    train_in_groups(job(program(draw=draw), TrainingLoop(100, 1, patience=2, stretch=5), [5.0, 10.0]))
    assert max(drawn) <= 10  # best at looks 2 and 1; one stretch is drawn ahead


def test_steps_fewer_than_a_look_are_still_taken() -> None:
    loop = make_training_loop(7, 100, patience=10)
    assert train_in_groups(job(program(loop), loop, [1.0])).params.tolist() == [7.0]


def test_one_seed_sees_the_same_draws_and_another_seed_others() -> None:
    loop = TrainingLoop(2, 10)
    noisy = program(
        loop,
        start=lambda seeds, _own: initialise_models_by_seed(seeds, lambda rng: np.float32(rng.random())),
        step=lambda state, _data, _own, drawn: state + drawn,
        loss=lambda state, _data, _own: -state,
    )
    found, again = (train_in_groups(job(noisy, loop, [1.0] * 3, [3, 5, 3])).params for _ in range(2))
    assert found[0] == found[2] != found[1]
    assert found.tobytes() == again.tobytes()
    assert train_in_groups(job(noisy, loop, [1.0], [5])).params[0] == pytest.approx(found[1], rel=1e-6)


def test_another_runner_may_do_the_work() -> None:
    asked: list[TrainingJob] = []
    given = job(program(), LOOP, [1.0])
    with use_training_runner(lambda one: asked.append(one) or TrainedNetworks(None, np.zeros(1), np.zeros(1))):  # type: ignore[func-returns-value]
        assert train_networks(given).params is None
    assert asked == [given]
    assert train_networks(given).params.tolist() == [10.0]


def test_models_beyond_memory_are_run_in_groups_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = TrainingLoop(2, 10, patience=100)
    whole = summing_job(summing_program(loop), 300, 7, loop)
    alone = train_in_groups(whole)
    sizes = []
    inner = batched_training._train_group
    monkeypatch.setattr(batched_training, "_train_group", lambda *a: sizes.append(len(a[-1])) or inner(*a))
    monkeypatch.setattr(batched_training, "count_models_in_memory", lambda *_: 3)
    parts = train_in_groups(whole)
    assert sizes == [3, 3, 3]  # the last model comes three times
    np.testing.assert_allclose(parts.params["sum"], alone.params["sum"], rtol=1e-5)
    np.testing.assert_allclose(parts.loss, alone.loss, rtol=1e-5)


# ---------------------------------------------------------------------------------------------- rows


def test_a_batch_holds_no_row_twice_and_only_rows_with_a_weight() -> None:
    weight = np.array([1.0, 0.0, 2.0, 1.0, 0.0, 3.0, 1.0])
    places = draw_batches(np.random.default_rng(0), weight, 500, 3)
    assert places.shape == (500, 3)
    assert all(len(set(row)) == 3 for row in places.tolist())
    counts = np.bincount(places.ravel(), minlength=7)
    assert counts[weight == 0].sum() == 0
    assert counts[weight > 0] == pytest.approx(300, rel=0.2)


def test_where_rows_are_few_the_rest_of_a_batch_weighs_nothing() -> None:
    weight = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    places = draw_batches(np.random.default_rng(0), weight, 20, 5)
    assert all(sorted(row) == sorted(set(row)) for row in places.tolist())
    assert all({1, 3} <= set(row) for row in places.tolist())


def test_very_many_rows_are_drawn_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_helpers, "DISTINCT_ROWS", 5)
    weight = np.r_[np.zeros(3), np.ones(10)]
    places = draw_batches(np.random.default_rng(0), weight, 300, 4)
    assert places.shape == (300, 4)
    assert np.bincount(places.ravel(), minlength=13)[3:] == pytest.approx(120, rel=0.3)
    assert places.min() == 3


def test_rows_are_filled_up_with_what_weighs_nothing() -> None:
    index, mass = stack_row_sets([np.array([4, 2]), np.array([1, 3, 0])], np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert index.shape == mass.shape == (2, round_up_rows(3))
    assert mass.sum(axis=1).tolist() == [8.0, 7.0]
    assert index[1, :3].tolist() == [1, 3, 0]
    assert pad_rows(np.ones(300)).sum() == 300
    assert pad_rows(np.ones((300, 2))).shape == (round_up_rows(300), 2)
    index, mass = stack_row_sets([np.arange(10), np.arange(3)], np.ones(10), most=4)
    assert index[0][mass[0] > 0].tolist() == [0, 2, 5, 7]
    assert index[1][mass[1] > 0].tolist() == [0, 1, 2]
