"""Helper functions of baseline networks: initial weights, batch draws, and checks of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from largesse.errors import Problem, suggest
from largesse.records import Array
from largesse.response.networks import TrainingLoop

DISTINCT_ROWS = 20_000  # beyond these a batch may repeat a row: avoiding it would cost more than the step


# -- arguments ------------------------------------------------------------------------------------------------------


def find_unknown_option_problems(model: Any, options: Mapping[str, Sequence[str]]) -> list[Problem]:
    """List the settings of a model whose value is not among the allowed options."""
    return [
        Problem(f"{name}={value!r}", suggest(str(value), known))
        for name, known in options.items()
        if (value := getattr(model, name)) not in known
    ]


def find_held_out_share_problems(share: float) -> list[Problem]:
    """Return the problem of an invalid share of held-out rows, or an empty list."""
    return [] if 0 < share < 1 else [Problem(f"hold_out={share!r}", "a share of rows between 0 and 1, as 0.3")]


def find_penalty_strength_problems(name: str, value: Any) -> list[Problem]:
    """Return the problem of an invalid penalty strength, or an empty list.

    A strength is a number, several to choose from, or "auto".
    """
    if isinstance(value, str):
        return [] if value == "auto" else [Problem(f"{name}={value!r}", "a number, several, or 'auto'")]
    numbers = np.asarray(value, dtype=float)
    if numbers.size == 0 or not (np.isfinite(numbers) & (numbers >= 0)).all():
        return [Problem(f"{name}={value!r}", "a number, zero or more; several; or 'auto'")]
    return []


def list_penalty_strengths(values: Any, grid: tuple[float, ...]) -> tuple[float, ...]:
    """Return the penalty strengths to try: the given numbers, or the grid for "auto".

    >>> list_penalty_strengths(0.3, (0.0, 1.0)), list_penalty_strengths([1, 2], (0.0, 1.0)), list_penalty_strengths("auto", (0.0, 1.0))
    ((0.3,), (1.0, 2.0), (0.0, 1.0))
    """
    if isinstance(values, str):
        return grid
    return tuple(float(value) for value in values) if isinstance(values, Sequence | np.ndarray) else (float(values),)


# -- starts and draws -----------------------------------------------------------------------------------------------


def make_training_loop(steps: int, between: int, patience: int, *, last: bool = False) -> TrainingLoop:
    """Return a training loop of `steps` steps that evaluates the held-out loss every `between` steps.

    >>> make_training_loop(2000, 100, patience=5)
    TrainingLoop(looks=20, steps=100, patience=5, stretch=5, last=False)
    """
    size = min(between, steps)
    return TrainingLoop(max(steps // size, 1), size, patience, last=last)


def initialise_models_by_seed(seeds: Array, first: Callable[[np.random.Generator], Any]) -> Any:
    """Return the initial training states of several models, one per seed.

    `first` makes a state from a generator; equal seeds have equal states.
    """
    unique, source = np.unique(seeds, return_inverse=True)
    states = [first(_spawn_generators(int(seed))[0]) for seed in unique]
    return jax.tree.map(lambda *each: np.stack(each)[source.reshape(-1)], *states)


def draw_batches_by_interval(
    seed: int, stretches: Sequence[Array], steps: int, draw: Callable[[np.random.Generator, int], Any]
) -> Iterator[Any]:
    """Yield the random training batches of each interval between evaluations of the held-out loss."""
    rng = _spawn_generators(seed)[1]
    for looks in stretches:
        yield draw(rng, len(looks) * steps)


def _spawn_generators(seed: int) -> list[np.random.Generator]:
    """Return two random generators of a seed: for initial weights and for batches."""
    return np.random.default_rng(seed).spawn(2)


def draw_batches(rng: np.random.Generator, weight: Array, steps: int, batch: int) -> Array:
    """Return random row positions (steps, batch) of rows with positive weight, without repeats within a batch.

    Beyond `DISTINCT_ROWS` rows a batch may repeat a row. If fewer rows than a batch have a weight, the batch is filled up
    with rows that weigh nothing.
    """
    some = np.flatnonzero(np.asarray(weight) > 0)
    if len(some) > DISTINCT_ROWS:
        return some[rng.integers(0, len(some), (steps, batch))].astype(np.int32)
    rest = np.setdiff1d(np.arange(min(len(weight), len(some) + batch)), some)[: max(batch - len(some), 0)]
    order = rng.random((steps, len(some)))
    taken = np.argpartition(order, batch - 1, axis=1)[:, :batch] if len(some) > batch else order.argsort(axis=1)
    return np.concatenate([some[taken], np.tile(rest, (steps, 1))], axis=1).astype(np.int32)


def draw_initial_parameters(
    rng: np.random.Generator, sizes: dict[str, tuple[int, ...]], scale: float
) -> dict[str, Array]:
    """Draw initial network parameters: normal weights with deviation scale/√fan-in, and zero biases."""
    return {
        name: np.zeros(size, np.float32)
        if name.endswith("_b")
        else (rng.standard_normal(size) * scale / np.sqrt(max(size[-2], 1))).astype(np.float32)
        for name, size in sizes.items()
    }


def make_zero_moments(optimiser: Any, params: Any) -> Any:
    """Return an optimiser's initial state with zero moments as NumPy arrays."""
    return jax.tree.map(lambda array: np.zeros(array.shape, array.dtype), jax.eval_shape(optimiser.init, params))
