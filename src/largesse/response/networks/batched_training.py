"""Batched training of many small networks in one compiled JAX program, with early stopping.

`vmap` over models, `scan` over steps: a grid of settings × folds × members is one array program, on a CPU or a GPU
unchanged. After every few steps (a *look*) each model computes its loss on rows it does not train on. Its best weights are
kept inside the program, and a model without gain for some looks has stopped. The host checks now and then whether all
models have stopped. Models that do not fit into memory together are trained in groups of one size.

Batches are drawn by NumPy on the host, while the device works: they compile to nothing, are the same on every machine, and
sorting is slow in a compiled program on a CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from largesse.progress import advance, track_results
from largesse.records import Array
from largesse.response.networks.training_types import TrainedNetworks, TrainingJob, TrainingLoop, TrainingProgram
from largesse.stats import count_cores

STOP_ROWS = 10_000  # rows of the held-out loss, all evaluated at every look
MEMORY = {"cpu": 1 << 30, "gpu": 1 << 34}  # bytes of one group of models, without the data


# -- running a job --------------------------------------------------------------------------------------------------


def train_in_groups(job: TrainingJob) -> TrainedNetworks:
    """Train all models of a training job, in groups that fit into memory."""
    data = tuple(jnp.asarray(pad_rows(array)) for array in job.data)
    parts = split_models_into_groups(len(job.seeds), count_models_in_memory(job))

    def trained(models: Array) -> TrainedNetworks:
        model_data = jax.tree.map(lambda array: np.asarray(array)[models], job.model_data)
        return _train_group(job, data, model_data, models)

    def results() -> Iterator[TrainedNetworks]:
        yield trained(parts[0])  # it compiles for all
        yield from pool.map(trained, parts[1:])

    # A small network keeps one core busy: on a CPU several groups run side by side.
    side_by_side = job.program.at_once is not None and jax.default_backend() == "cpu"
    with ThreadPoolExecutor(count_cores() if side_by_side else 1) as pool:
        trained_groups = list(track_results(results(), len(parts)))
    params = jax.tree.map(
        lambda *each: np.concatenate(each)[: len(job.seeds)], *(group.params for group in trained_groups)
    )
    loss, look = (
        np.concatenate([getattr(f, name) for f in trained_groups])[: len(job.seeds)] for name in ("loss", "look")
    )
    return TrainedNetworks(params, loss, look)


def count_models_in_memory(job: TrainingJob) -> int:
    """Return the number of models that can be trained together in the available memory."""
    program, loop = job.program, job.loop
    first = jax.tree.map(lambda array: np.asarray(array)[:1], job.model_data)
    model_data = jax.tree.map(lambda array: array[0], first)
    stop = np.size(model_data[program.rows[-1]]) if program.rows else 1
    # The state holds weights and moments; gradients, the best weights and activations need as much again.
    state = (
        2 * _count_numbers(program.start(job.seeds[:1], first)) + _count_numbers(model_data) + 4 * program.width * stop
    )
    draws = _count_numbers(next(program.draw(int(job.seeds[0]), model_data, [np.ones(1, np.int32)]))) * loop.stretch
    pairs = np.stack([job.log_index_by_model(), job.seeds])
    shared = len(np.unique(pairs, axis=1).T) / len(job.seeds)  # draws are held once
    most = max(1, int(MEMORY.get(jax.default_backend(), MEMORY["cpu"]) // (4 * (state + draws * shared))))
    # A CPU gains nothing from more models at a time, and small groups of one size share their program and end sooner.
    return min(most, program.at_once) if program.at_once and jax.default_backend() == "cpu" else most


def _count_numbers(tree: Any) -> int:
    return sum(int(np.size(array)) for array in jax.tree.leaves(tree))


def split_models_into_groups(models: int, at_once: int) -> list[Array]:
    """Split the positions of models into groups of equal size.

    The last model may repeat.

    >>> split_models_into_groups(7, 3)
    [array([0, 1, 2]), array([3, 4, 5]), array([6, 6, 6])]
    >>> split_models_into_groups(8, 5)
    [array([0, 1, 2, 3]), array([4, 5, 6, 7])]
    """
    count = -(-models // max(at_once, 1))
    size = -(-models // count)
    return [np.minimum(np.arange(first, first + size), models - 1) for first in range(0, count * size, size)]


def _train_group(job: TrainingJob, data: Any, model_data: Any, models: Array) -> TrainedNetworks:
    """Train one group of models of a training job.

    Models with the same log and seed get the same random draws.
    """
    begin, stretch = _compile_training(job.program, job.loop)
    seeds, loop = job.seeds[models], job.loop
    _, firsts, source = np.unique(
        np.stack([job.log_index_by_model()[models], seeds]), axis=1, return_index=True, return_inverse=True
    )
    source = source.reshape(-1).astype(np.int32)  # (M,) whose draws each model sees
    looks = np.arange(1, loop.looks + 1, dtype=np.int32)
    stretches = [looks[first : first + loop.stretch] for first in range(0, loop.looks, loop.stretch)]
    each = [
        job.program.draw(int(seeds[j]), jax.tree.map(lambda array, j=j: array[j], model_data), stretches)
        for j in firsts
    ]
    draws = _stack_random_draws(each, stretches)
    carry = begin(job.program.start(seeds, model_data))
    model_data = jax.tree.map(jnp.asarray, model_data)
    drawn = next(draws)
    for done, numbers in enumerate(stretches):
        advance(done / len(stretches))
        carry = stretch(carry, numbers, drawn, source, data, model_data)
        drawn = next(draws, None)  # while the device works
        if not loop.last and bool((int(numbers[-1]) - carry[3] > loop.patience).all()):
            break
    return TrainedNetworks(jax.tree.map(np.asarray, carry[1]), np.asarray(carry[2]), np.asarray(carry[3]))


def _stack_random_draws(each: Sequence[Iterator[Any]], stretches: Sequence[Array]) -> Iterator[Any]:
    """Yield the random batches of all models for each training interval, stacked as arrays.

    Their axes are evaluations, steps, sources, …
    """
    with ThreadPoolExecutor(count_cores()) as pool:
        for looks in stretches:
            drawn = list(pool.map(next, each))
            yield jax.tree.map(functools.partial(_split_by_evaluation, len(looks)), *drawn)


def _split_by_evaluation(looks: int, *drawn: Array) -> Array:
    together = np.stack(drawn, axis=1)
    return together.reshape(looks, -1, *together.shape[1:])


@functools.lru_cache(maxsize=64)
def _compile_training(program: TrainingProgram, loop: TrainingLoop) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Compile the initialisation and the training steps for all models of a group."""

    def begin(state: Any) -> Any:
        many = len(jax.tree.leaves(state)[0])
        return state, program.keep(state), jnp.full(many, jnp.inf, jnp.float32), jnp.zeros(many, jnp.int32)

    def train_and_evaluate(
        carry: Any, now: tuple[jax.Array, Any], source: jax.Array, data: Any, model_data: Any
    ) -> Any:
        number, draws = now
        state, best, best_loss, best_look = carry

        def step(state: Any, drawn: Any) -> Any:
            return program.step(state, data, model_data, jax.tree.map(lambda array: array[source], drawn)), None

        state, _ = jax.lax.scan(step, state, draws)
        loss = program.loss(state, data, model_data)
        # A model that has stopped keeps its best; the program runs on for the others.
        going = number - best_look <= loop.patience
        better = jnp.bool_(True) if loop.last else going & (loss < best_loss)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), program.keep(state), best)
        return state, best, jnp.where(better, loss, best_loss), jnp.where(better, number, best_look)

    def stretch(carry: Any, numbers: jax.Array, draws: Any, source: jax.Array, data: Any, model_data: Any) -> Any:
        return jax.lax.scan(
            lambda c, now: (train_and_evaluate(c, now, source, data, model_data), None), carry, (numbers, draws)
        )[0]

    return jax.jit(begin), jax.jit(jax.vmap(stretch, in_axes=(0, None, None, 0, None, 0)), donate_argnums=0)


# -- rows -----------------------------------------------------------------------------------------------------------


def round_up_rows(rows: int) -> int:
    """Round a number of rows up, so that tables of similar size share one compiled program.

    >>> round_up_rows(3), round_up_rows(100), round_up_rows(2000), round_up_rows(2010), round_up_rows(1_000_000)
    (16, 104, 2048, 2048, 1048576)
    """
    rows = max(rows, 16)
    step = 1 << (rows.bit_length() - 4)
    return -(-rows // step) * step


def pad_rows(array: Array) -> Array:
    """Append rows of zeros to an array, up to the rounded number of rows.

    See `round_up_rows`.

    >>> pad_rows(np.ones((3, 2))).shape
    (16, 2)
    """
    more = round_up_rows(len(array)) - len(array)
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)])


def stack_row_sets(
    sets: Sequence[Array], weight: Array, least: int = 0, most: int | None = None
) -> tuple[Array, Array]:
    """Stack M sets of row indices and weights to arrays (M, length), padded with zero weights.

    From a set with more than `most` rows, `most` evenly spaced ones are taken.
    """
    if most is not None:
        sets = [rows if len(rows) <= most else rows[np.arange(most) * len(rows) // most] for rows in sets]
    length = round_up_rows(max(least, 1, *(len(rows) for rows in sets)))
    index, mass = np.zeros((len(sets), length), np.int32), np.zeros((len(sets), length), np.float32)
    for j, rows in enumerate(sets):
        index[j, : len(rows)], mass[j, : len(rows)] = rows, weight[rows]
    return index, mass
