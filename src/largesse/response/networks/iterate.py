"""One compiled program that runs many models through the same number of steps, for what SIRE's epochs do not fit.

`vmap` over models, `scan` over steps. Every so many steps a model looks at the rows it does not train on; its best weights
are kept inside the program, and one that has not gained for some looks has stopped. What a step does is given as `Parts`.
More models than memory holds are cut into groups of one size.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from largesse.records import Array
from largesse.response.networks.together import groups, met, offsets, side_by_side
from largesse.stats import cores

TOGETHER = 5  # looks between two of the host's own at whether all models have stopped
BLOCK = 256  # rows are filled up to a multiple of this: logs of like size then share a compiled program
STOP_ROWS = 10_000  # to stop by: all of a model's are looked at together, and more would not say more
MEMORY = {"cpu": 1 << 30, "gpu": 1 << 34}  # bytes for what one group of models needs beside the data
DRAWN_APART = 20_000  # with more rows than this a batch may hold one twice: to prevent it would cost more than the step


@dataclass(frozen=True)
class Parts:
    """What a model does: each function is for one model. `data` is shared; `mine` is what differs between models."""

    start: Callable[..., Any]  # generator → first state, as NumPy arrays
    luck: Callable[..., Any]  # generator, mine, steps → what each step is given by chance, as NumPy arrays (steps, …)
    step: Callable[..., Any]  # state, data, mine, luck of the step → state
    loss: Callable[..., Any]  # state, data, mine → held-out loss
    kept: Callable[..., Any]  # state → the part of it to keep, of one model or of all
    rows: tuple[int, ...] = ()  # places in `mine` of row sets, the last to stop by; the weights of each stand behind it
    wide: int = 1  # numbers that a row is turned into on its way through the model


@dataclass(frozen=True)
class Loop:
    """How long: steps in all, steps between looks, and looks without gain after which a model has stopped."""

    steps: int
    look: int = 100
    patience: int = 10
    last: bool = False  # keep the last weights rather than the best


@dataclass(frozen=True, eq=False)
class _Job:
    data: Any
    mine: Any
    seeds: Array

    @property
    def name(self) -> bytes:
        """What jobs have in common that would end alike."""
        found = hashlib.blake2b()
        for part in jax.tree.leaves((self.data, self.mine, self.seeds)):
            found.update(f"{part.shape}{part.dtype}".encode())
            found.update(np.ascontiguousarray(part).data)
        return found.digest()


def iterate(parts: Parts, loop: Loop, data: Any, mine: Any, seeds: Array) -> tuple[Any, Array]:
    """Run M models, `mine` with M in front; return the kept weights (M, …) and their held-out losses (M,).

    Models with one seed start alike and see the same chance: they must have the same rows. Chance is drawn by NumPy:
    it compiles to nothing, and is the same on every machine. In a meeting of fits (see `response.together`) the models of
    all of them run as one, if `parts` says which of `mine` are rows of `data`.
    """
    found: tuple[Any, Array] = met(
        ("iterate", parts, loop), _Job(data, mine, np.asarray(seeds)), lambda jobs: _each_once(parts, loop, jobs)
    )
    return found


def _each_once(parts: Parts, loop: Loop, jobs: list[_Job]) -> list[tuple[Any, Array]]:
    """Return what jobs bring; those that are the same, as policies of one log for several budgets may be, are run once."""
    if len(jobs) == 1:
        return _iterated(parts, loop, jobs)
    names = [job.name for job in jobs]
    different = dict(zip(names, jobs, strict=True))
    found = dict(zip(different, _iterated(parts, loop, list(different.values())), strict=True))
    return [found[name] for name in names]


def _iterated(parts: Parts, loop: Loop, jobs: list[_Job]) -> list[tuple[Any, Array]]:
    if len(jobs) > 1 and not parts.rows:
        return [_iterated(parts, loop, [job])[0] for job in jobs]
    data, mine, seeds = (jobs[0].data, jobs[0].mine, jobs[0].seeds) if len(jobs) == 1 else _one_job(parts, jobs)
    sizes = [len(job.seeds) for job in jobs]
    owner = np.repeat(np.arange(len(jobs)), sizes)
    data = jax.tree.map(jnp.asarray, data)
    found = []
    for models in groups(len(seeds), _models_at_once(parts, loop, mine, seeds, owner)):
        some = jax.tree.map(lambda part, m=models: np.asarray(part)[m], mine)
        found.append(_run_group(parts, loop, data, some, np.stack([owner, seeds])[:, models]))
    kept, losses = jax.tree.map(lambda *part: np.concatenate(part)[: len(seeds)], *found)
    begin = offsets(sizes)
    return [
        (jax.tree.map(lambda part, a=a, b=a + many: part[a:b], kept), losses[a : a + many])
        for a, many in zip(begin, sizes, strict=True)
    ]


def _one_job(parts: Parts, jobs: list[_Job]) -> tuple[Any, Any, Array]:
    """Return the rows of all jobs one below another, their models with rows named accordingly, and their seeds."""
    begin = offsets([len(job.data[0]) for job in jobs])
    data = tuple(filled(np.concatenate(part), 8 * BLOCK) for part in zip(*(job.data for job in jobs), strict=True))
    mine = []
    for i, part in enumerate(zip(*(job.mine for job in jobs), strict=True)):
        if i in parts.rows:
            mine.append(side_by_side(part, begin))
        elif i - 1 in parts.rows:
            mine.append(side_by_side(part))
        else:
            mine.append(jax.tree.map(lambda *each: np.concatenate(each), *part))
    return data, tuple(mine), np.concatenate([job.seeds for job in jobs])


def _models_at_once(parts: Parts, loop: Loop, mine: Any, seeds: Array, owner: Array) -> int:
    """Return how many models fit into memory together."""

    def numbers(tree: Any) -> int:
        return sum(int(np.size(part)) for part in jax.tree.leaves(tree))

    rng = np.random.default_rng(0)
    first = jax.tree.map(lambda part: np.asarray(part)[0], mine)
    stop = np.size(first[parts.rows[-1]]) if parts.rows else 1
    # The state holds weights and moments; gradients, the best so far and what is on its way need as much again.
    own = 2 * numbers(parts.start(rng)) + numbers(first) + 4 * parts.wide * stop
    chance = numbers(parts.luck(rng, first, 1)) * min(loop.look, loop.steps) * TOGETHER
    shared = len(np.unique(np.stack([owner, seeds]), axis=1).T) / len(seeds)  # one seed's chance is held once
    return max(1, int(MEMORY.get(jax.default_backend(), MEMORY["cpu"]) // (4 * (own + chance * shared))))


def _run_group(parts: Parts, loop: Loop, data: Any, mine: Any, luck: Array) -> tuple[Any, Array]:
    """Run some models; `luck` (2, M) names each one's job and seed: those that agree see the same chance."""
    begin, stretch = _program(parts, loop)
    _, firsts, place = np.unique(luck, axis=1, return_index=True, return_inverse=True)
    place = place.reshape(-1).astype(np.int32)
    starts, later = zip(*(np.random.default_rng(int(luck[1, j])).spawn(2) for j in firsts), strict=True)
    carry = begin(jax.tree.map(lambda *each: np.stack(each), *(parts.start(rng) for rng in starts)), place)
    size = min(loop.look, loop.steps)
    ends = size * np.arange(1, max(loop.steps // size, 1) + 1, dtype=np.int32)  # steps done at each look
    stretches = [ends[first : first + TOGETHER] for first in range(0, len(ends), TOGETHER)]
    chances = _chances(parts, mine, list(zip(later, firsts, strict=True)), size, [len(one) for one in stretches])
    mine = jax.tree.map(jnp.asarray, mine)
    chance = next(chances)
    for numbers in stretches:
        carry = stretch(carry, numbers, chance, place, data, mine)
        chance = next(chances, None)  # drawn while the device works
        if not loop.last and bool((int(numbers[-1]) - carry[3] > loop.patience * size).all()):
            break
    return jax.tree.map(np.asarray, carry[1]), np.asarray(carry[2])


def _chances(parts: Parts, mine: Any, who: list[tuple[Any, int]], size: int, looks: list[int]) -> Iterator[Any]:
    """Yield, for each stretch of looks, what its steps are given by chance (looks, size, who, …); `who`: generator, model."""
    models = [jax.tree.map(lambda part, j=j: part[j], mine) for _, j in who]

    def one(many: int, i: int) -> Any:
        return parts.luck(who[i][0], models[i], many * size)

    with ThreadPoolExecutor(cores()) as pool:
        for many in looks:
            drawn = list(pool.map(functools.partial(one, many), range(len(who))))
            yield jax.tree.map(lambda *each, m=many: _in_looks(np.stack(each, axis=1), m), *drawn)


def _in_looks(luck: Array, looks: int) -> Array:
    return luck.reshape(looks, -1, *luck.shape[1:])


@functools.lru_cache(maxsize=32)
def _program(parts: Parts, loop: Loop) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the compiled beginning and stretch of looks, for all models."""

    def begin(starts: Any, place: jax.Array) -> Any:
        state = jax.tree.map(lambda part: part[place], starts)
        many = len(place)
        return state, parts.kept(state), jnp.full(many, jnp.inf, jnp.float32), jnp.zeros(many, jnp.int32)

    def look(carry: Any, now: tuple[jax.Array, Any], place: jax.Array, data: Any, mine: Any) -> Any:
        number, luck = now
        state, best, best_loss, best_step = carry

        def step(state: Any, chance: Any) -> Any:
            return parts.step(state, data, mine, jax.tree.map(lambda part: part[place], chance)), None

        state, _ = jax.lax.scan(step, state, luck)
        loss = parts.loss(state, data, mine)
        size = min(loop.look, loop.steps)
        going = number - best_step <= loop.patience * size
        better = jnp.bool_(True) if loop.last else going & (loss < best_loss)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), parts.kept(state), best)
        return state, best, jnp.where(better, loss, best_loss), jnp.where(better, number, best_step)

    def stretch(carry: Any, numbers: jax.Array, luck: Any, place: jax.Array, data: Any, mine: Any) -> Any:
        return jax.lax.scan(lambda c, now: (look(c, now, place, data, mine), None), carry, (numbers, luck))[0]

    many = jax.jit(jax.vmap(stretch, in_axes=(0, None, None, 0, None, 0)), donate_argnums=0)
    return jax.jit(begin), many


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
