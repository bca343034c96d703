"""What one training step of a policy network does."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.records import Array
from largesse.response.networks.jobs import Loop, Program
from largesse.response.networks.layers import forward, param_shapes
from largesse.response.networks.settings import Shape, Training
from largesse.response.networks.trainer import draw_batches, draw_by_steps, start_by_seed, zero_moments


def policy_loss(
    shape: Shape, params: Any, rows: tuple[jax.Array, ...], shift: jax.Array, price: jax.Array
) -> jax.Array:
    """Return the counterfactual risk (): rows are level, features, reward, 1/ρ, costs (n, K) and weight."""
    level, X, reward, inverse, costs, weight = rows
    probabilities = jax.nn.softmax(forward(shape, params, X)[1], axis=1)
    ratio = jnp.take_along_axis(probabilities, level[:, None], axis=1)[:, 0] * inverse
    gain = (reward - shift) * ratio - price * (probabilities * costs).sum(axis=1)
    return -(weight @ gain) / jnp.maximum(weight.sum(), 1e-9)


@functools.lru_cache(maxsize=8)
def policy_program(shape: Shape, training: Training, loop: Loop) -> Program:
    """Return the training of policy networks.

    `data`: level, features, reward, 1/ρ, costs. `own`: rows and weights to train on, rows and weights to stop by, λ, η.
    """
    sizes = param_shapes(shape)
    matrices = {name: len(size) == 2 for name, size in sizes.items()}
    optimiser = optax.adamw(training.rate, weight_decay=training.decay, mask=matrices)

    def first(rng: np.random.Generator) -> Any:
        params = {
            name: (rng.standard_normal(size) / np.sqrt(max(size[0], 1))).astype(np.float32)
            if matrices[name]
            else np.zeros(size, np.float32)
            for name, size in sizes.items()
        }
        return params, zero_moments(optimiser, params)

    def draw(seed: int, own: Any, stretches: Sequence[Array]) -> Iterator[Array]:
        return draw_by_steps(seed, stretches, loop.steps, lambda rng, n: draw_batches(rng, own[1], n, training.batch))

    def step(state: Any, data: Any, own: Any, places: jax.Array) -> Any:
        params, moments = state
        rows = (*(part[own[0][places]] for part in data), own[1][places])
        slope = jax.grad(policy_loss, argnums=1)(shape, params, rows, own[4], own[5])
        update, moments = optimiser.update(slope, moments, params)
        return optax.apply_updates(params, update), moments

    def loss(state: Any, data: Any, own: Any) -> jax.Array:
        return policy_loss(shape, state[0], (*(part[own[2]] for part in data), own[3]), own[4], own[5])

    return Program(
        lambda seeds, _own: start_by_seed(seeds, first),
        draw,
        step,
        loss,
        lambda state: state[0],
        (0, 2),
        shape.depth * shape.width,
    )
