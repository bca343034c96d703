"""CFRNet's network and what one of its training steps does."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.records import Array
from largesse.response.baselines.ipm import one_against_all
from largesse.response.networks.iterate import Parts, drawn, normal, unmoved
from largesse.response.networks.network import ACTIVATIONS

Params = dict[str, jax.Array]
SQUASH = 0.995  # shares are held .0025 away from 0 and 1, as published, so that their logs stay finite


@dataclass(frozen=True)
class Net:
    """Sizes and kinds: a representation of `depth` layers, and a head of its own for each of `levels` levels."""

    features: int
    levels: int
    width: int
    depth: int
    head_width: int
    head_depth: int
    activation: str
    spread: float  # of first weights, × 1/√fan-in
    log_loss: bool


@dataclass(frozen=True)
class Recipe:
    """How to train: the same for all models."""

    ipm: str
    sigma: float
    sharpness: float
    rounds: int
    balance: bool  # whether any α is above zero
    rate: float
    rate_decay: float
    decay: float
    batch: int


def shapes(net: Net) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter."""
    rep = [net.features, *[net.width] * net.depth]
    head = [rep[-1], *[net.head_width] * net.head_depth, 1]
    found: dict[str, tuple[int, ...]] = {}
    for j, (a, b) in enumerate(pairwise(rep)):
        found |= {f"rep{j}_w": (a, b), f"rep{j}_b": (b,)}
    for j, (a, b) in enumerate(pairwise(head)):
        found |= {f"head{j}_w": (net.levels, a, b), f"head{j}_b": (net.levels, b)}
    return found


def represent(net: Net, params: Params, x: jax.Array) -> jax.Array:
    """Return representations (n, width) of features (n, p), every row of length one."""
    h = x
    for j in range(net.depth):
        h = ACTIVATIONS[net.activation](h @ params[f"rep{j}_w"] + params[f"rep{j}_b"])
    return h / jnp.sqrt(jnp.maximum((h**2).sum(axis=1, keepdims=True), 1e-10))


def scores(net: Net, params: Params, h: jax.Array) -> jax.Array:
    """Return scores (n, K) of representations (n, width)."""
    out = jnp.broadcast_to(h, (net.levels, *h.shape))
    for j in range(net.head_depth + 1):
        out = jnp.einsum("knd,kde->kne", out, params[f"head{j}_w"]) + params[f"head{j}_b"][:, None]
        out = ACTIVATIONS[net.activation](out) if j < net.head_depth else out
    return out[:, :, 0].T


def responses(net: Net, score: jax.Array) -> jax.Array:
    """Return what scores mean: squashed shares, or amounts as they are."""
    return SQUASH * jax.nn.sigmoid(score) + (1 - SQUASH) / 2 if net.log_loss else score


def row_losses(net: Net, score: jax.Array, response: jax.Array) -> jax.Array:
    """Return the loss (n,) of scores (n,): log loss of the squashed share, or the squared error."""
    p = responses(net, score)
    return -(response * jnp.log(p) + (1 - response) * jnp.log1p(-p)) if net.log_loss else (p - response) ** 2


def objective(net: Net, recipe: Recipe, params: Params, batch: tuple[jax.Array, ...], alpha: jax.Array) -> jax.Array:
    """Return what is minimised on a batch: features, place (n, K), response, sample weight and mass of its rows.

    The mean over the batch's rows of sample weight × loss, + α · IPM, + decay · ½‖W‖² over the heads' weights alone.
    """
    x, place, response, sample, mass = batch
    h = represent(net, params, x)
    loss = row_losses(net, (scores(net, params, h) * place).sum(axis=1), response)
    total = (mass * sample) @ loss / jnp.maximum(mass.sum(), 1e-9)
    if recipe.balance:
        settings = (recipe.sigma, recipe.sharpness, recipe.rounds)
        total += alpha * one_against_all(recipe.ipm, h, place, mass, *settings)
    heads = [params[f"head{j}_w"] for j in range(net.head_depth + 1)]
    return total + recipe.decay * 0.5 * sum(jnp.sum(w**2) for w in heads)


@functools.lru_cache(maxsize=32)
def parts(net: Net, recipe: Recipe) -> Parts:
    """Return what a model does.

    `data`: features, level, response. `mine`: rows and their weights, held-out rows and theirs, the levels (K,) that the
    heads stand for, sample weights (K,), α.
    """
    rate = optax.exponential_decay(recipe.rate, 100, recipe.rate_decay, staircase=True)
    optimiser = optax.adam(rate)

    def start(rng: np.random.Generator) -> Any:
        params = normal(rng, shapes(net), net.spread)
        return params, unmoved(optimiser, params)

    def luck(rng: np.random.Generator, mine: Any, steps: int) -> Array:
        return drawn(rng, mine[1], steps, recipe.batch)

    def step(state: Any, data: Any, mine: Any, places: jax.Array) -> Any:
        params, inner = state
        X, level, response = data
        index, weight, _, _, heads, sample, alpha = mine
        rows = index[places]
        place = (level[rows][:, None] == heads).astype(jnp.float32)
        batch = (X[rows], place, response[rows], place @ sample, weight[places])
        slope = jax.grad(objective, argnums=2)(net, recipe, params, batch, alpha)
        update, inner = optimiser.update(slope, inner, params)
        return optax.apply_updates(params, update), inner

    def loss(state: Any, data: Any, mine: Any) -> jax.Array:
        X, level, response = data
        _, _, rows, weight, heads, _, _ = mine
        score = scores(net, state[0], represent(net, state[0], X[rows]))
        own = (score * (level[rows][:, None] == heads)).sum(axis=1)
        return weight @ row_losses(net, own, response[rows]) / jnp.maximum(weight.sum(), 1e-9)

    wide = net.depth * net.width + net.levels * net.head_depth * net.head_width
    return Parts(start, luck, step, loss, lambda state: state[0], (0, 2), wide)


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
