"""One compiled program that runs many models through the same number of steps, for what SIRE's epochs do not fit.

`vmap` over models, `scan` over steps. Every so many steps a model looks at the rows it does not train on; its best weights
are kept inside the program, and one that has not gained for some looks has stopped. What a step does is given as `Parts`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from largesse.records import Array

TOGETHER = 5  # looks between two of the host's own at whether all models have stopped
BLOCK = 256  # rows are filled up to a multiple of this: logs of like size then share a compiled program
STOP_ROWS = 10_000  # to stop by: all of a model's are looked at together, and more would not say more
DRAWN_APART = 20_000  # with more rows than this a batch may hold one twice: to prevent it would cost more than the step


@dataclass(frozen=True)
class Parts:
    """What a model does: each function is for one model. `data` is shared; `mine` is what differs between models."""

    start: Callable[..., Any]  # generator → first state, as NumPy arrays
    luck: Callable[..., Any]  # generator, mine, steps → what each step is given by chance, as NumPy arrays (steps, …)
    step: Callable[..., Any]  # state, data, mine, luck of the step → state
    loss: Callable[..., Any]  # state, data, mine → held-out loss
    kept: Callable[..., Any]  # state → the part of it to keep, of one model or of all


@dataclass(frozen=True)
class Loop:
    """How long: steps in all, steps between looks, and looks without gain after which a model has stopped."""

    steps: int
    look: int = 100
    patience: int = 10
    last: bool = False  # keep the last weights rather than the best


def iterate(parts: Parts, loop: Loop, data: Any, mine: Any, seeds: Array) -> tuple[Any, Array]:
    """Run M models, `mine` with M in front; return the kept weights (M, …) and their held-out losses (M,).

    Models with one seed start alike and see the same chance: they must have the same rows. Chance is drawn by NumPy:
    it compiles to nothing, and is the same on every machine.
    """
    stretch = _program(parts, loop)
    firsts, place = np.unique(seeds, return_index=True)[1], np.unique(seeds, return_inverse=True)[1]
    starts, later = zip(*(np.random.default_rng(int(seeds[j])).spawn(2) for j in firsts), strict=True)
    state = _stacked([parts.start(rng) for rng in starts], place)
    carry = (state, parts.kept(state), np.full(len(seeds), np.inf, np.float32), np.zeros(len(seeds), np.int32))
    data, mine = jax.tree.map(jnp.asarray, (data, mine))
    size = min(loop.look, loop.steps)
    looks = max(loop.steps // size, 1)
    for first in range(0, looks, TOGETHER):
        many = min(TOGETHER, looks - first)
        luck = [
            parts.luck(rng, jax.tree.map(lambda part, j=j: part[j], mine), many * size)
            for rng, j in zip(later, firsts, strict=True)
        ]
        cut = jax.tree.map(lambda part: part.reshape(many, size, *part.shape[1:]), luck)  # noqa: B023
        numbers = size * (first + 1 + np.arange(many, dtype=np.int32))
        carry = stretch(carry, numbers, _stacked(cut, place), data, mine)
        if not loop.last and bool((int(numbers[-1]) - carry[3] > loop.patience * size).all()):
            break
    return jax.tree.map(np.asarray, carry[1]), np.asarray(carry[2])


def _stacked(trees: Sequence[Any], place: Array) -> Any:
    """Return trees of arrays as one tree, with the places (M,) they are wanted in front."""
    return jax.tree.map(lambda *parts: np.stack(parts)[place], *trees)


@functools.lru_cache(maxsize=32)
def _program(parts: Parts, loop: Loop) -> Callable[..., Any]:
    def look(carry: Any, now: tuple[jax.Array, Any], data: Any, mine: Any) -> Any:
        number, luck = now
        state, best, best_loss, best_step = carry
        state, _ = jax.lax.scan(lambda now, chance: (parts.step(now, data, mine, chance), None), state, luck)
        loss = parts.loss(state, data, mine)
        size = min(loop.look, loop.steps)
        going = number - best_step <= loop.patience * size
        better = jnp.bool_(True) if loop.last else going & (loss < best_loss)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), parts.kept(state), best)
        return state, best, jnp.where(better, loss, best_loss), jnp.where(better, number, best_step)

    def stretch(carry: Any, numbers: jax.Array, luck: Any, data: Any, mine: Any) -> Any:
        return jax.lax.scan(lambda c, now: (look(c, now, data, mine), None), carry, (numbers, luck))[0]

    return jax.jit(jax.vmap(stretch, in_axes=(0, None, 0, None, 0)), donate_argnums=0)


def drawn(rng: np.random.Generator, weight: Array, steps: int, batch: int) -> Array:
    """Return places (steps, batch) of rows drawn evenly from those with a weight; in a step none twice, unless very many.

    Where fewer rows have a weight than a batch holds, the rest of it weighs nothing.
    """
    some = np.flatnonzero(np.asarray(weight) > 0)
    if len(some) > DRAWN_APART:
        return some[rng.integers(0, len(some), (steps, batch))].astype(np.int32)
    rest = np.setdiff1d(np.arange(min(len(weight), len(some) + batch)), some)[: max(batch - len(some), 0)]
    luck = rng.random((steps, len(some)))
    taken = np.argpartition(luck, batch - 1, axis=1)[:, :batch] if len(some) > batch else luck.argsort(axis=1)
    return np.concatenate([some[taken], np.tile(rest, (steps, 1))], axis=1).astype(np.int32)


def normal(rng: np.random.Generator, sizes: dict[str, tuple[int, ...]], spread: float) -> dict[str, Array]:
    """Return first parameters: matrices normal with standard deviation spread/√fan-in, vectors (names ending in _b) zero."""
    return {
        name: np.zeros(size, np.float32)
        if name.endswith("_b")
        else (rng.standard_normal(size) * spread / np.sqrt(max(size[-2], 1))).astype(np.float32)
        for name, size in sizes.items()
    }


def unmoved(optimiser: Any, params: Any) -> Any:
    """Return an optimiser's first state as NumPy arrays: all its moments are zero."""
    return jax.tree.map(lambda part: np.zeros(part.shape, part.dtype), jax.eval_shape(optimiser.init, params))


def filled(array: Array, block: int = BLOCK) -> Array:
    """Return an array with rows of zeros added up to a multiple of `block`.

    >>> filled(np.ones((3, 2)), block=4).shape
    (4, 2)
    """
    more = -len(array) % block
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)])


def row_sets(sets: Sequence[Array], weight: Array, least: int = 0, most: int | None = None) -> tuple[Array, Array]:
    """Return rows (M, length) and their weights, each set filled up with rows that weigh nothing.

    Of a set with more than `most` rows, that many are taken, evenly spaced.
    """
    if most is not None:
        sets = [rows if len(rows) <= most else rows[np.arange(most) * len(rows) // most] for rows in sets]
    longest = max(least, 1, *(len(rows) for rows in sets))
    length = longest + -longest % BLOCK
    index, mass = np.zeros((len(sets), length), np.int32), np.zeros((len(sets), length), np.float32)
    for j, rows in enumerate(sets):
        index[j, : len(rows)], mass[j, : len(rows)] = rows, weight[rows]
    return index, mass
