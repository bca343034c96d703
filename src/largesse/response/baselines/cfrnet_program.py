"""CFRNet's network, and what one of its training steps does."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.records import Array
from largesse.response.baselines.ipm import one_against_all
from largesse.response.networks.jobs import Loop, Program
from largesse.response.networks.settings import Network, Training
from largesse.response.networks.trainer import (
    draw_batches,
    draw_by_steps,
    normal_params,
    start_by_seed,
    zero_moments,
)

Params = dict[str, jax.Array]
SQUASH = 0.995  # probabilities are held .0025 away from 0 and 1, as published, so that their logs stay finite


@dataclass(frozen=True)
class Net:
    """A representation of `network.depth` layers, and a head for each of `levels` levels."""

    features: int
    levels: int
    network: Network
    log_loss: bool


@dataclass(frozen=True)
class Objective:
    """What is minimised beside the loss of the response; the same for all models."""

    ipm: str
    balance: bool  # whether any α is above zero
    decay: float  # L2 penalty on the heads' weights


def shapes(net: Net) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter."""
    size = net.network
    rep = [net.features, *[size.width] * size.depth]
    head = [rep[-1], *[size.head_width] * size.head_depth, 1]
    found: dict[str, tuple[int, ...]] = {}
    for j, (a, b) in enumerate(pairwise(rep)):
        found |= {f"rep{j}_w": (a, b), f"rep{j}_b": (b,)}
    for j, (a, b) in enumerate(pairwise(head)):
        found |= {f"head{j}_w": (net.levels, a, b), f"head{j}_b": (net.levels, b)}
    return found


def represent(net: Net, params: Params, x: jax.Array) -> jax.Array:
    """Return representations (n, width) of features (n, p), every row of length one."""
    activate = getattr(jax.nn, net.network.activation)
    h = x
    for j in range(net.network.depth):
        h = activate(h @ params[f"rep{j}_w"] + params[f"rep{j}_b"])
    return h / jnp.sqrt(jnp.maximum((h**2).sum(axis=1, keepdims=True), 1e-10))


def scores(net: Net, params: Params, h: jax.Array) -> jax.Array:
    """Return scores (n, K) of representations (n, width)."""
    activate, depth = getattr(jax.nn, net.network.activation), net.network.head_depth
    out = jnp.broadcast_to(h, (net.levels, *h.shape))
    for j in range(depth + 1):
        out = jnp.einsum("knd,kde->kne", out, params[f"head{j}_w"]) + params[f"head{j}_b"][:, None]
        out = activate(out) if j < depth else out
    return out[:, :, 0].T


def responses(net: Net, score: jax.Array) -> jax.Array:
    """Return what scores mean: squashed probabilities, or amounts as they are."""
    return SQUASH * jax.nn.sigmoid(score) + (1 - SQUASH) / 2 if net.log_loss else score


def row_losses(net: Net, score: jax.Array, response: jax.Array) -> jax.Array:
    """Return the loss (n,) of scores (n,): log loss of the squashed probability, or the squared error."""
    p = responses(net, score)
    return -(response * jnp.log(p) + (1 - response) * jnp.log1p(-p)) if net.log_loss else (p - response) ** 2


def batch_loss(
    net: Net, objective: Objective, params: Params, batch: tuple[jax.Array, ...], alpha: jax.Array
) -> jax.Array:
    """Return what is minimised on a batch: features, one-hot level (n, K), response, sample weight and mass of its rows.

    The mean over the batch's rows of sample weight × loss, + α · IPM, + decay · ½‖W‖² over the heads' weights alone.
    """
    x, level, response, sample, mass = batch
    h = represent(net, params, x)
    loss = row_losses(net, (scores(net, params, h) * level).sum(axis=1), response)
    total = (mass * sample) @ loss / jnp.maximum(mass.sum(), 1e-9)
    if objective.balance:
        total += alpha * one_against_all(objective.ipm, h, level, mass)
    heads = [params[f"head{j}_w"] for j in range(net.network.head_depth + 1)]
    return total + objective.decay * 0.5 * sum(jnp.sum(w**2) for w in heads)


@functools.lru_cache(maxsize=32)
def cfrnet_program(net: Net, objective: Objective, training: Training, loop: Loop) -> Program:
    """Return the training of CFRNets.

    `data`: features, level, response. `own`: rows and weights to train on, rows and weights to stop by, the levels (K,)
    that the heads stand for, sample weights (K,), α.
    """
    optimiser = optax.adam(optax.exponential_decay(training.rate, 100, training.rate_decay, staircase=True))

    def first(rng: np.random.Generator) -> Any:
        params = normal_params(rng, shapes(net), net.network.initial_scale)
        return params, zero_moments(optimiser, params)

    def start(seeds: Array, _own: Any) -> Any:
        return start_by_seed(seeds, first)

    def draw(seed: int, own: Any, stretches: Sequence[Array]) -> Iterator[Array]:
        return draw_by_steps(seed, stretches, loop.steps, lambda rng, n: draw_batches(rng, own[1], n, training.batch))

    def step(state: Any, data: Any, own: Any, places: jax.Array) -> Any:
        params, moments = state
        X, level, response = data
        index, weight, _, _, heads, sample, alpha = own
        rows = index[places]
        one_hot = (level[rows][:, None] == heads).astype(jnp.float32)
        batch = (X[rows], one_hot, response[rows], one_hot @ sample, weight[places])
        slope = jax.grad(batch_loss, argnums=2)(net, objective, params, batch, alpha)
        update, moments = optimiser.update(slope, moments, params)
        return optax.apply_updates(params, update), moments

    def loss(state: Any, data: Any, own: Any) -> jax.Array:
        X, level, response = data
        _, _, rows, weight, heads, _, _ = own
        score = scores(net, state[0], represent(net, state[0], X[rows]))
        at_level = (score * (level[rows][:, None] == heads)).sum(axis=1)
        return weight @ row_losses(net, at_level, response[rows]) / jnp.maximum(weight.sum(), 1e-9)

    size = net.network
    width = size.depth * size.width + net.levels * size.head_depth * size.head_width
    return Program(start, draw, step, loss, lambda state: state[0], (0, 2), width)


def predict(net: Net, params: dict[str, Array], X: Array, rows: int = 16_384) -> Array:
    """Return the responses (M, n, K) that M models expect of features (n, p), some rows at a time."""
    models = len(params["rep0_w"])
    found = [
        np.asarray(_predict(net)(params, jnp.asarray(X[first : first + rows], jnp.float32)))
        for first in range(0, len(X), rows)
    ]
    return np.concatenate(found, axis=1).astype(np.float64) if found else np.zeros((models, 0, net.levels))


@functools.lru_cache(maxsize=32)
def _predict(net: Net) -> Any:
    def one(params: Params, x: jax.Array) -> jax.Array:
        return responses(net, scores(net, params, represent(net, params, x)))

    return jax.jit(jax.vmap(one, in_axes=(0, None)))
