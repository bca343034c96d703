"""Parts of the networks of several baselines: first weights, draws of batches, checks of arguments."""

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


def find_option_problems(model: Any, options: Mapping[str, Sequence[str]]) -> list[Problem]:
    """List the arguments of a model that are not among their options."""
    return [
        Problem(f"{name}={value!r}", suggest(str(value), known))
        for name, known in options.items()
        if (value := getattr(model, name)) not in known
    ]


def find_held_out_share_problems(share: float) -> list[Problem]:
    """Check a share of rows to hold out."""
    return [] if 0 < share < 1 else [Problem(f"hold_out={share!r}", "a share of rows between 0 and 1, as 0.3")]


def find_strength_problems(name: str, value: Any) -> list[Problem]:
    """Check a strength: a number, several to choose from, or "auto"."""
    if isinstance(value, str):
        return [] if value == "auto" else [Problem(f"{name}={value!r}", "a number, several, or 'auto'")]
    numbers = np.asarray(value, dtype=float)
    if numbers.size == 0 or not (np.isfinite(numbers) & (numbers >= 0)).all():
        return [Problem(f"{name}={value!r}", "a number, zero or more; several; or 'auto'")]
    return []


def list_tried_strengths(values: Any, grid: tuple[float, ...]) -> tuple[float, ...]:
    """Return the strengths to try: those given, or the grid for "auto".

    >>> list_tried_strengths(0.3, (0.0, 1.0)), list_tried_strengths([1, 2], (0.0, 1.0)), list_tried_strengths("auto", (0.0, 1.0))
    ((0.3,), (1.0, 2.0), (0.0, 1.0))
    """
    if isinstance(values, str):
        return grid
    return tuple(float(value) for value in values) if isinstance(values, Sequence | np.ndarray) else (float(values),)


# -- starts and draws -----------------------------------------------------------------------------------------------


def loop_of_steps(steps: int, between: int, patience: int, *, last: bool = False) -> TrainingLoop:
    """Return the loop of at most `steps` steps, with an evaluation of the held-out loss after every `between` steps.

    >>> loop_of_steps(2000, 100, patience=5)
    TrainingLoop(looks=20, steps=100, patience=5, stretch=5, last=False)
    """
    size = min(between, steps)
    return TrainingLoop(max(steps // size, 1), size, patience, last=last)


def start_by_seed(seeds: Array, first: Callable[[np.random.Generator], Any]) -> Any:
    """Return the first states (M, …) of models; `first` makes one from a generator; equal seeds have equal states."""
    unique, source = np.unique(seeds, return_inverse=True)
    states = [first(_generators(int(seed))[0]) for seed in unique]
    return jax.tree.map(lambda *each: np.stack(each)[source.reshape(-1)], *states)


def draw_by_steps(
    seed: int, stretches: Sequence[Array], steps: int, draw: Callable[[np.random.Generator, int], Any]
) -> Iterator[Any]:
    """Yield the draws of every stretch from one generator; `draw` makes those of some steps."""
    rng = _generators(seed)[1]
    for looks in stretches:
        yield draw(rng, len(looks) * steps)


def _generators(seed: int) -> list[np.random.Generator]:
    """Return a generator for first weights and one for draws."""
    return np.random.default_rng(seed).spawn(2)


def draw_batches(rng: np.random.Generator, weight: Array, steps: int, batch: int) -> Array:
    """Return positions (steps, batch) of rows drawn evenly from those with a weight, without repeats within a batch.

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


def normal_params(rng: np.random.Generator, sizes: dict[str, tuple[int, ...]], scale: float) -> dict[str, Array]:
    """Return first parameters: weights normal with standard deviation scale/√fan-in, biases (names in _b) zero."""
    return {
        name: np.zeros(size, np.float32)
        if name.endswith("_b")
        else (rng.standard_normal(size) * scale / np.sqrt(max(size[-2], 1))).astype(np.float32)
        for name, size in sizes.items()
    }


def zero_moments(optimiser: Any, params: Any) -> Any:
    """Return an optimiser's first state as NumPy arrays: all its moments are zero."""
    return jax.tree.map(lambda array: np.zeros(array.shape, array.dtype), jax.eval_shape(optimiser.init, params))
