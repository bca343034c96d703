"""One compiled program that trains many networks at once.

`vmap` over models, `scan` over minibatches and epochs: a grid of penalties × balance strengths × folds × members is one
array program, on a CPU or a GPU unchanged. Each model has its own rows to train on and to stop by; the best weights of
each are kept inside the program. Work is cut into stretches of epochs (so that it can end when every model has stopped,
and tell how far it is) and, when a grid is too big for memory, into groups of models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.records import Array
from largesse.response import network
from largesse.response.hsic import hsic_penalty
from largesse.response.network import Params, Shape

Tell = Callable[[float], None]
STRETCH = 10  # epochs between two looks at whether all models have stopped
MEMORY = {"cpu": 1 << 30, "gpu": 1 << 34}  # bytes for what one group of models needs beside the data


@dataclass(frozen=True)
class Recipe:
    """How to train: the same for all models of a grid."""

    optimiser: str = "adam"  # or "sgd"
    rate: float = 3e-4
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

    def __len__(self) -> int:
        return len(self.kappa)

    def part(self, models: slice) -> Grid:
        """Return some of the models."""
        return Grid(*(getattr(self, name)[models] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Trained:
    """Best weights of every model, the loss they were stopped by, and after how many epochs."""

    params: dict[str, Array]  # each (M, …)
    loss: Array  # (M,)
    epochs: Array  # (M,)


def train(
    X: Array, place: Array, response: Array, grid: Grid, shape: Shape, recipe: Recipe, tell: Tell | None = None
) -> Trained:
    """Train every model of the grid on features (n, p), places (n, K) and responses (n,); same seeds, same result.

    A row's place says where on the ladder of levels it stood: all on its own level, or, for a dose between two knots,
    shared between them.
    """
    data = (jnp.asarray(X, jnp.float32), jnp.asarray(place, jnp.float32), jnp.asarray(response, jnp.float32))
    size = _models_at_once(shape, grid)
    groups = [grid.part(slice(first, first + size)) for first in range(0, len(grid), size)]
    found = []
    for done, group in enumerate(groups):

        def share(part: float, done: int = done) -> None:
            if tell:
                tell((done + part) / len(groups))

        found.append(_train_group(data, group, shape, recipe, share))
    params = {name: np.concatenate([np.asarray(f[0][name]) for f in found]) for name in found[0][0]}
    return Trained(params, np.concatenate([f[1] for f in found]), np.concatenate([f[2] for f in found]))


def predict(params: dict[str, Array], X: Array, shape: Shape, gate: Array, rows: int = 65_536) -> Array:
    """Return scores (M, n, K) of every model for features (n, p), some rows at a time."""
    parts = [
        _predict(shape)(params, jnp.asarray(X[first : first + rows], jnp.float32), gate)
        for first in range(0, len(X), rows)
    ]
    return (
        np.concatenate([np.asarray(part) for part in parts], axis=1)
        if parts
        else np.zeros((len(gate), 0, shape.levels))
    )


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
    return max(1, MEMORY.get(jax.default_backend(), MEMORY["cpu"]) // (4 * numbers))


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


def _optimiser(recipe: Recipe, params: Params) -> optax.GradientTransformation:
    if recipe.optimiser == "sgd":
        return optax.sgd(recipe.rate)
    return optax.adamw(recipe.rate, weight_decay=recipe.decay, mask=network.decayed(params))


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

    def start(seed: jax.Array) -> Any:
        params = network.initial(shape, jax.random.key(seed))
        state = _optimiser(recipe, params).init(params)
        return params, state, params, jnp.inf, jnp.int32(0), jnp.int32(0)

    def epoch(carry: Any, number: jax.Array, data: Any, rows: Any, hyper: Any, seed: jax.Array) -> Any:
        params, state, best, best_loss, best_epoch, seen = carry
        index, weight, stop, stop_weight = rows
        order = jax.random.permutation(jax.random.fold_in(jax.random.key(seed), number), len(index))
        steps = max(len(index) // recipe.batch, 1)
        batches = order[: steps * min(recipe.batch, len(index))].reshape(steps, -1)
        optimiser = _optimiser(recipe, params)

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

    def stretch(carry: Any, numbers: jax.Array, data: Any, rows: Any, hyper: Any, seed: jax.Array) -> Any:
        return jax.lax.scan(lambda c, number: (epoch(c, number, data, rows, hyper, seed), None), carry, numbers)[0]

    many = jax.jit(jax.vmap(stretch, in_axes=(0, None, None, 0, 0, 0)), donate_argnums=0)
    return jax.jit(jax.vmap(start)), many


def _train_group(data: Any, grid: Grid, shape: Shape, recipe: Recipe, tell: Tell) -> tuple[Any, Array, Array]:
    start, stretch = _program(shape, recipe)
    seed = jnp.asarray(grid.seed, jnp.uint32)
    rows = tuple(jnp.asarray(part) for part in (grid.train, grid.train_weight, grid.stop, grid.stop_weight))
    hyper = tuple(jnp.asarray(part, jnp.float32) for part in (grid.kappa, grid.penalty, grid.gate))
    carry = start(seed)
    for first in range(0, recipe.epochs, STRETCH):
        tell(first / recipe.epochs)
        numbers = jnp.arange(first + 1, min(first + STRETCH, recipe.epochs) + 1)
        carry = stretch(carry, numbers, data, rows, hyper, seed)
        if bool((int(numbers[-1]) - carry[4] > recipe.patience).all()):
            break
    return carry[2], np.asarray(carry[3]), np.asarray(carry[4])
