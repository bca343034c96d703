"""One compiled program that trains many networks at once.

`vmap` over models, `scan` over minibatches and epochs: a grid of penalties × balance strengths × folds × members is one
array program, on a CPU or a GPU unchanged. Each model has its own rows to train on and to stop by; the best weights of
each are kept inside the program. Work is cut into stretches of epochs (so that it can end when every model has stopped,
and tell how far it is) and, when a grid is too big for memory, into groups of models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.records import Array
from largesse.response.networks import heads, network
from largesse.response.networks.hsic import hsic_penalty
from largesse.response.networks.network import Params, Shape
from largesse.response.networks.together import groups, met, offsets, side_by_side
from largesse.stats import cores

Tell = Callable[[float], None]
TOGETHER = 5  # models at a time on a CPU
MOST_STEPS = 100  # in one epoch: with more rows, each epoch takes others
STRETCH = 10  # epochs between two looks at whether all models have stopped
MEMORY = {"cpu": 1 << 30, "gpu": 1 << 34}  # bytes for what one group of models needs beside the data


@dataclass(frozen=True)
class Recipe:
    """How to train: the same for all models of a grid."""

    optimiser: str = "adam"  # or "sgd"
    rate: float = 3e-4
    schedule: str = "constant"  # or "cosine": down to nothing at the last epoch
    decay: float = 10.0  # decoupled: each step takes rate × decay off the weights
    batch: int = 128
    epochs: int = 150
    patience: int = 20  # epochs without gain after which a model stops
    kernel: str = "linear"
    estimator: str = "biased"
    balance: bool = False  # whether any κ is above zero: otherwise HSIC is not even computed


@dataclass(frozen=True, eq=False)
class Grid:
    """What differs between models (M of them)."""

    train: Array  # (M, n_train) int32 rows to train on
    train_weight: Array  # (M, n_train) float32; zero for padding
    stop: Array  # (M, n_stop) int32 rows to stop by
    stop_weight: Array  # (M, n_stop) float32
    kappa: Array  # (M,)
    penalty: Array  # (M,) on the mean square of the deviations
    gate: Array  # (M,) zero: common increments
    seed: Array  # (M,)
    ladder: Array | None = None  # (M, K) scores to start from, the same for all customers

    def __len__(self) -> int:
        return len(self.kappa)

    def part(self, models: slice | Array) -> Grid:
        """Return some of the models, named by their places."""
        fields = ((name, getattr(self, name)) for name in self.__dataclass_fields__)
        return Grid(**{name: value[models] for name, value in fields if value is not None})


@dataclass(frozen=True, eq=False)
class Trained:
    """Best weights of every model, the loss they were stopped by, and after how many epochs."""

    params: dict[str, Array]  # each (M, …)
    loss: Array  # (M,)
    epochs: Array  # (M,)


@dataclass(frozen=True, eq=False)
class _Job:
    X: Array
    place: Array
    response: Array
    grid: Grid
    tell: Tell | None


def train(
    X: Array, place: Array, response: Array, grid: Grid, shape: Shape, recipe: Recipe, tell: Tell | None = None
) -> Trained:
    """Train every model of the grid on features (n, p), places (n, K) and responses (n,); same seeds, same result.

    A row's place says where on the ladder of levels it stood: all on its own level, or, for a dose between two knots,
    shared between them. In a meeting of fits (see `response.together`) the grids of all of them are trained as one.
    """
    # Rows to train on of one number: models of one seed then draw the same batches whoever else is there.
    kind = ("train", shape, recipe, grid.train.shape[1])
    found: Trained = met(kind, _Job(X, place, response, grid, tell), lambda jobs: _trained(jobs, shape, recipe))
    return found


def _trained(jobs: list[_Job], shape: Shape, recipe: Recipe) -> list[Trained]:
    """Train the grids of several logs as one."""
    begin = offsets([len(job.X) for job in jobs])
    each = [(job.X, job.place, job.response) for job in jobs]
    rows = each[0] if len(jobs) == 1 else tuple(np.concatenate(parts) for parts in zip(*each, strict=True))
    grid = _one_grid([job.grid for job in jobs], begin, shape.levels)

    def tell(done: float) -> None:
        for job in jobs:
            if job.tell:
                job.tell(done)

    found = _train_rows(rows, grid, shape, recipe, tell)
    ends = np.cumsum([len(job.grid) for job in jobs]).tolist()
    return [_some(found, slice(end - len(job.grid), end)) for job, end in zip(jobs, ends, strict=True)]


def _some(found: Trained, models: slice) -> Trained:
    return Trained({k: v[models] for k, v in found.params.items()}, found.loss[models], found.epochs[models])


def _one_grid(grids: list[Grid], begin: list[int], levels: int) -> Grid:
    """Return the models of several grids, whose rows begin at some places of the joined table."""
    if len(grids) == 1:
        return grids[0]
    same = ("train_weight", "kappa", "penalty", "gate", "seed")
    ladders = [np.full((len(g), levels), np.nan) if g.ladder is None else g.ladder for g in grids]
    return Grid(
        train=side_by_side([g.train for g in grids], begin),
        stop=side_by_side([g.stop for g in grids], begin),
        stop_weight=side_by_side([g.stop_weight for g in grids]),
        ladder=np.concatenate(ladders),
        **{name: np.concatenate([getattr(g, name) for g in grids]) for name in same},
    )


def _train_rows(rows: tuple[Array, ...], grid: Grid, shape: Shape, recipe: Recipe, tell: Tell) -> Trained:
    more = rounded(len(rows[0])) - len(rows[0])  # rows that nobody trains on: tables of like size share their program
    data = tuple(jnp.pad(jnp.asarray(part, jnp.float32), [(0, more)] + [(0, 0)] * (np.ndim(part) - 1)) for part in rows)
    parts = [grid.part(models) for models in groups(len(grid), _models_at_once(shape, grid))]
    done, turn = np.zeros(len(parts)), Lock()

    def trained(i: int) -> tuple[Any, Array, Array]:
        def share(part: float) -> None:
            with turn:
                done[i] = part
                tell(float(done.mean()))

        params, loss, epochs = _train_group(data, parts[i], shape, recipe, share)
        share(1.0)  # models may have stopped before the last epoch
        return {name: np.asarray(value) for name, value in params.items()}, loss, epochs

    # A small network keeps one core busy: on a CPU several groups run side by side.
    with ThreadPoolExecutor(cores() if jax.default_backend() == "cpu" else 1) as pool:
        found = [trained(0), *pool.map(trained, range(1, len(parts)))]  # the first one compiles for all
    params = {name: np.concatenate([f[0][name] for f in found])[: len(grid)] for name in found[0][0]}
    return Trained(params, *(np.concatenate([f[i] for f in found])[: len(grid)] for i in (1, 2)))


def rounded(rows: int) -> int:
    """Return a number of rows a little larger: tables of about the same size then share one compiled program.

    >>> rounded(3), rounded(100), rounded(2000), rounded(2010), rounded(1_000_000)
    (16, 104, 2048, 2048, 1048576)
    """
    rows = max(rows, 16)
    step = 1 << (rows.bit_length() - 4)
    return -(-rows // step) * step


def predict(params: dict[str, Array], X: Array, shape: Shape, gate: Array, rows: int = 65_536) -> Array:
    """Return scores (M, n, K) of every model for features (n, p), some rows at a time."""
    out = np.empty((len(gate), len(X), shape.levels), np.float32)
    for first in range(0, len(X), rows):
        part = np.asarray(X[first : first + rows], np.float32)
        filled = np.concatenate([part, np.zeros((rounded(len(part)) - len(part), part.shape[1]), np.float32)])
        out[:, first : first + rows] = np.asarray(_predict(shape)(params, filled, gate))[:, : len(part)]
    return out


def mean_scores(params: dict[str, Array], X: Array, shape: Shape, gate: Array, rows: int = 65_536) -> Array:
    """Return the mean over models of their scores (n, K), without holding them all.

    A mean of logits need not be concave where its parts are: concave shares are averaged as shares.
    """
    shares = shape.head == "concave" and shape.bounded
    out = np.empty((len(X), shape.levels))
    for first in range(0, len(X), rows):
        found = predict(params, X[first : first + rows], shape, gate)
        out[first : first + rows] = _mean_share(found) if shares else found.mean(axis=0)
    return out


def _mean_share(score: Array) -> Array:
    share = (1 / (1 + np.exp(-score.astype(np.float64)))).mean(axis=0)
    return np.log(share) - np.log1p(-share)


def _models_at_once(shape: Shape, grid: Grid) -> int:
    """Return how many models fit into memory together."""
    weights = sum(int(np.prod(size)) for size in network.shapes(shape).values())
    row = shape.features + shape.depth * shape.width + 3 * shape.levels  # of the rows to stop by, all at once
    # Weights, two moments, the best so far and gradients; rows, weights and their shuffling.
    numbers = 5 * weights + row * grid.stop.shape[1] + 4 * grid.train.shape[1]
    most = max(1, MEMORY.get(jax.default_backend(), MEMORY["cpu"]) // (4 * numbers))
    # A CPU gains nothing from more models at a time, and small groups of one size share their program and end sooner.
    return min(most, TOGETHER) if jax.default_backend() == "cpu" else most


@functools.cache
def _predict(shape: Shape) -> Callable[..., jax.Array]:
    def one(params: Params, x: jax.Array, gate: jax.Array) -> jax.Array:
        return network.forward(shape, params, x, gate)[1]

    return jax.jit(jax.vmap(one, in_axes=(0, None, 0)))


def row_loss(score: jax.Array, response: jax.Array, bounded: bool) -> jax.Array:
    """Return the loss of each row (n,) at its own level: log loss, or half the squared error."""
    if bounded:
        return jax.nn.softplus(score) - response * score
    return 0.5 * (score - response) ** 2


def _optimiser(recipe: Recipe, params: Params, steps: int = 1) -> optax.GradientTransformation:
    """Return how weights move; `steps` an epoch say how fast a schedule runs."""
    rate: Any = recipe.rate
    if recipe.schedule == "cosine":
        rate = optax.cosine_decay_schedule(recipe.rate, recipe.epochs * steps)
    if recipe.optimiser == "sgd":
        return optax.sgd(rate)
    return optax.adamw(rate, weight_decay=recipe.decay, mask=network.decayed(params))


@functools.cache
def _program(shape: Shape, recipe: Recipe) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the compiled start and stretch of training, for one shape and recipe; everything else is data."""

    def objective(
        params: Params, x: jax.Array, y: jax.Array, r: jax.Array, w: jax.Array, hyper: tuple[jax.Array, ...]
    ) -> jax.Array:
        kappa, penalty, gate = hyper
        z, score, deviation = network.forward(shape, params, x, gate)
        whole = jnp.maximum(w.sum(), 1e-9)
        loss = (w * row_loss((score * y).sum(axis=1), r, shape.bounded)).sum() / whole
        loss += penalty * (w @ jnp.sum(deviation**2, axis=1)) / whole
        if recipe.balance:
            # A linear HSIC grows with the number of units; per unit, κ means the same for every width.
            unit = z.shape[1] if recipe.kernel == "linear" else 1
            key = jax.random.key(0) if recipe.kernel == "rff" else None
            balance = hsic_penalty(z, y, kernel=recipe.kernel, estimator=recipe.estimator, weight=w, key=key)
            loss += kappa * balance / unit
        return loss

    def held_out(params: Params, data: Any, rows: jax.Array, w: jax.Array, gate: jax.Array) -> jax.Array:
        X, place, response = data
        own = (network.forward(shape, params, X[rows], gate)[1] * place[rows]).sum(axis=1)
        return (w @ row_loss(own, response[rows], shape.bounded)) / jnp.maximum(w.sum(), 1e-9)

    def start(seed: jax.Array, ladder: jax.Array) -> Any:
        first = network.initial(shape, jax.random.key(seed))
        params = heads.started(shape.head, first, ladder, shape.bounded)
        state = _optimiser(recipe, params).init(params)
        return params, state, params, jnp.full((), jnp.inf, jnp.float32), jnp.int32(0), jnp.int32(0)

    def epoch(carry: Any, number: jax.Array, batches: jax.Array, data: Any, rows: Any, hyper: Any) -> Any:
        params, state, best, best_loss, best_epoch, seen = carry
        index, weight, stop, stop_weight = rows
        optimiser = _optimiser(recipe, params, len(batches))

        def step(inner: Any, batch: jax.Array) -> Any:
            params, state = inner
            here = index[batch]
            X, place, response = data
            slope = jax.grad(objective)(params, X[here], place[here], response[here], weight[batch], hyper)
            update, state = optimiser.update(slope, state, params)
            return (optax.apply_updates(params, update), state), None

        (params, state), _ = jax.lax.scan(step, (params, state), batches)
        loss = held_out(params, data, stop, stop_weight, hyper[2])
        # A model that has stopped keeps its best; the rest of the program runs on for the others.
        going = number - best_epoch <= recipe.patience
        better = going & (loss < best_loss)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), params, best)
        return (
            params,
            state,
            best,
            jnp.where(better, loss, best_loss),
            jnp.where(better, number, best_epoch),
            seen + going,
        )

    def stretch(carry: Any, numbers: jax.Array, batches: jax.Array, data: Any, rows: Any, hyper: Any) -> Any:
        return jax.lax.scan(
            lambda c, now: (epoch(c, now[0], now[1], data, rows, hyper), None), carry, (numbers, batches)
        )[0]

    many = jax.jit(jax.vmap(stretch, in_axes=(0, None, 0, None, 0, 0)), donate_argnums=0)
    return jax.jit(jax.vmap(start)), many


def _train_group(data: Any, grid: Grid, shape: Shape, recipe: Recipe, tell: Tell) -> tuple[Any, Array, Array]:
    start, stretch = _program(shape, recipe)
    seed = jnp.asarray(grid.seed, jnp.uint32)
    rows = tuple(jnp.asarray(part) for part in (grid.train, grid.train_weight, grid.stop, grid.stop_weight))
    hyper = tuple(jnp.asarray(part, jnp.float32) for part in (grid.kappa, grid.penalty, grid.gate))
    ladder = np.full((len(grid), shape.levels), np.nan) if grid.ladder is None else grid.ladder
    carry = start(seed, jnp.asarray(ladder, jnp.float32))
    epochs = np.arange(1, recipe.epochs + 1, dtype=np.int32)
    stretches = [epochs[first : first + STRETCH] for first in range(0, recipe.epochs, STRETCH)]
    drawn = (_batches(grid, numbers, recipe.batch) for numbers in stretches)
    batches = next(drawn)
    for numbers in stretches:
        carry = stretch(carry, numbers, batches, data, rows, hyper)
        batches = next(drawn, batches)  # drawn while the device works
        tell(float(numbers[-1]) / recipe.epochs)
        if bool((int(numbers[-1]) - carry[4] > recipe.patience).all()):
            break
    return carry[2], np.asarray(carry[3]), np.asarray(carry[4])


def _batches(grid: Grid, numbers: Array, batch: int) -> Array:
    """Return which rows each model takes in each step of some epochs (M, epochs, steps, batch); models of one seed alike.

    They are drawn here, not in the program: sorting is what a compiled program does worst on a CPU.
    """
    n = grid.train.shape[1]
    steps, size = min(max(n // batch, 1), MOST_STEPS), min(batch, n)

    def drawn(seed: int, number: int) -> Array:
        rng = np.random.default_rng((seed, number))
        take = steps * size
        rows = rng.permutation(n)[:take] if n < 4 * take else rng.integers(n, size=take)
        return rows.astype(np.int32).reshape(steps, size)

    made = {seed: np.stack([drawn(seed, int(number)) for number in numbers]) for seed in np.unique(grid.seed).tolist()}
    return np.stack([made[seed] for seed in grid.seed.tolist()])
