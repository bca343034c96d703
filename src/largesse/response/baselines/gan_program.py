"""GANITE's four networks and what one training step of each of its two blocks does.

Block one: a generator sees a row and what happened, and fills in what would have happened at the other levels; a
discriminator tries to tell which of the K numbers is the one that happened. Block two: a second generator learns the
completed rows from the features alone; with β > 0 a second discriminator tries to tell its curves from completed rows.
"""

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
from largesse.response.networks.iterate import Parts, normal, unmoved

Params = dict[str, jax.Array]
SPREAD = np.sqrt(2.0)  # of first weights, × 1/√fan-in, as published


@dataclass(frozen=True)
class Gan:
    """Sizes, and how to train: the same for all models."""

    features: int
    levels: int
    width: int
    bounded: bool  # responses in [0, 1]: outputs are logits
    rate: float
    batch: int
    turns: int  # steps of a discriminator for one of its generator


# -- the networks ---------------------------------------------------------------------------------------------------


def _generator_shapes(gan: Gan, inputs: int) -> dict[str, tuple[int, ...]]:
    """Two shared layers, then for each level one of its own and an output."""
    h, K = gan.width, gan.levels
    return {
        "shared0_w": (inputs, h),
        "shared0_b": (h,),
        "shared1_w": (h, h),
        "shared1_b": (h,),
        "head0_w": (K, h, h),
        "head0_b": (K, h),
        "head1_w": (K, h, 1),
        "head1_b": (K, 1),
    }


def _discriminator_shapes(gan: Gan, outputs: int) -> dict[str, tuple[int, ...]]:
    sizes = [gan.features + gan.levels, gan.width, gan.width, outputs]
    found: dict[str, tuple[int, ...]] = {}
    for j, (a, b) in enumerate(pairwise(sizes)):
        found |= {f"layer{j}_w": (a, b), f"layer{j}_b": (b,)}
    return found


def shapes(gan: Gan) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the shapes of the parameters of the four networks; noise: K − 1 numbers for one generator, K for the other."""
    p, K = gan.features, gan.levels
    return {
        "fill": _generator_shapes(gan, p + K + 1 + (K - 1)),
        "tell": _discriminator_shapes(gan, K),
        "infer": _generator_shapes(gan, p + K),
        "judge": _discriminator_shapes(gan, 1),
    }


def generate(params: Params, inputs: jax.Array) -> jax.Array:
    """Return scores (n, K) from inputs (n, q)."""
    h = jax.nn.relu(inputs @ params["shared0_w"] + params["shared0_b"])
    h = jax.nn.relu(h @ params["shared1_w"] + params["shared1_b"])
    h = jax.nn.relu(jnp.einsum("nd,kde->kne", h, params["head0_w"]) + params["head0_b"][:, None])
    out = jnp.einsum("knd,kde->kne", h, params["head1_w"]) + params["head1_b"][:, None]
    return out[:, :, 0].T


def discriminate(params: Params, x: jax.Array, rows: jax.Array) -> jax.Array:
    """Return logits (n, outputs) from features (n, p) and responses at all levels (n, K)."""
    h = jnp.concatenate([x, rows], axis=1)
    for j in range(2):
        h = jax.nn.relu(h @ params[f"layer{j}_w"] + params[f"layer{j}_b"])
    return h @ params["layer2_w"] + params["layer2_b"]


def responses(gan: Gan, score: jax.Array) -> jax.Array:
    """Return what scores mean: shares, or amounts as they are."""
    return jax.nn.sigmoid(score) if gan.bounded else score


def losses(gan: Gan, score: jax.Array, target: jax.Array) -> jax.Array:
    """Return elementwise losses: log loss of a logit, or the squared error."""
    return jax.nn.softplus(score) - target * score if gan.bounded else (score - target) ** 2


# -- block one ------------------------------------------------------------------------------------------------------


def filled_in(fill: Params, x: jax.Array, place: jax.Array, r: jax.Array, noise: jax.Array) -> jax.Array:
    """Return the scores (n, K) that the first generator gives a row: features, level as one-hot, response, noise."""
    return generate(fill, jnp.concatenate([x, place, r[:, None], noise], axis=1))


def completed(generated: jax.Array, place: jax.Array, r: jax.Array) -> jax.Array:
    """Return generated responses (n, K) with each row's own response (n,) in the slot of its own level."""
    return jnp.where(place > 0, r[:, None], generated)


def telling_loss(tell: Params, x: jax.Array, rows: jax.Array, place: jax.Array, w: jax.Array) -> jax.Array:
    """Return the cross-entropy with which the discriminator tells the slot that happened."""
    chances = jax.nn.log_softmax(discriminate(tell, x, rows), axis=1)
    return -_mean((chances * place).sum(axis=1), w)


def filling_loss(gan: Gan, fill: Params, tell: Params, batch: tuple, noise: jax.Array, alpha: jax.Array) -> jax.Array:
    """Return the generator's: loss of its own slot − α × the discriminator's cross-entropy, which it wants large."""
    x, place, r, w = batch
    score = filled_in(fill, x, place, r, noise)
    own = _mean((losses(gan, score, r[:, None]) * place).sum(axis=1), w)
    return own - alpha * telling_loss(tell, x, completed(responses(gan, score), place, r), place, w)


# -- block two ------------------------------------------------------------------------------------------------------


def judging_loss(judge: Params, x: jax.Array, real: jax.Array, made: jax.Array, w: jax.Array) -> jax.Array:
    """Return the cross-entropy with which the second discriminator tells completed rows from inferred ones."""
    yes = jax.nn.softplus(-discriminate(judge, x, real)[:, 0])
    no = jax.nn.softplus(discriminate(judge, x, made)[:, 0])
    return _mean(yes + no, w)


def inferring_loss(
    gan: Gan, infer: Params, judge: Params, batch: tuple, rows: jax.Array, noise: jax.Array, beta: jax.Array
) -> jax.Array:
    """Return the second generator's: loss of whole completed rows − β × what the second discriminator gets wrong."""
    x, _, _, w = batch
    score = generate(infer, jnp.concatenate([x, noise], axis=1))
    return _mean(losses(gan, score, rows).mean(axis=1), w) - beta * judging_loss(
        judge, x, rows, responses(gan, score), w
    )


def _mean(values: jax.Array, w: jax.Array) -> jax.Array:
    return w @ values / jnp.maximum(w.sum(), 1e-9)


# -- what a step does -----------------------------------------------------------------------------------------------


def _adam_step(optimiser: Any, loss: Any, params: Params, inner: Any) -> tuple[Params, Any]:
    update, inner = optimiser.update(jax.grad(loss)(params), inner, params)
    return optax.apply_updates(params, update), inner


def _chance(gan: Gan, numbers: int) -> Any:
    """Return what draws, for each step, rows with replacement and noise for every turn and the generator."""

    def luck(rng: np.random.Generator, mine: Any, steps: int) -> tuple[Array, Array]:
        some = np.flatnonzero(np.asarray(mine[1]) > 0)
        size = (steps, gan.turns + 1, gan.batch)
        return some[rng.integers(0, len(some), size)].astype(np.int32), rng.random((*size, numbers), np.float32)

    return luck


def _wide(gan: Gan) -> int:
    """Return the numbers that a row is turned into by a generator and a discriminator."""
    return gan.features + (4 + gan.levels) * gan.width


def _taken(data: Any, mine: Any, places: jax.Array) -> tuple[jax.Array, ...]:
    X, place, response = data
    rows = mine[0][places]
    return X[rows], place[rows], response[rows], mine[1][places]


@functools.lru_cache(maxsize=32)
def block_one(gan: Gan) -> Parts:
    """Return block one. `data`: features, place (n, K), response. `mine`: rows, weights, held-out rows and theirs, α."""
    optimiser = optax.adam(gan.rate)

    def start(rng: np.random.Generator) -> Any:
        fill, tell = (normal(rng, shapes(gan)[name], SPREAD) for name in ("fill", "tell"))
        return fill, tell, unmoved(optimiser, fill), unmoved(optimiser, tell)

    def step(state: Any, data: Any, mine: Any, chance: Any) -> Any:
        fill, tell, fill_inner, tell_inner = state
        places, noise = chance
        for turn in range(gan.turns):
            x, place, r, w = _taken(data, mine, places[turn])
            rows = completed(responses(gan, filled_in(fill, x, place, r, noise[turn])), place, r)
            tell, tell_inner = _adam_step(
                optimiser, lambda q, b=(x, rows, place, w): telling_loss(q, *b), tell, tell_inner
            )
        batch = _taken(data, mine, places[-1])
        fill, fill_inner = _adam_step(
            optimiser, lambda q: filling_loss(gan, q, tell, batch, noise[-1], mine[4]), fill, fill_inner
        )
        return fill, tell, fill_inner, tell_inner

    chance = _chance(gan, gan.levels - 1)
    return Parts(start, chance, step, lambda *_: jnp.float32(0), lambda state: state[:2], (0, 2), _wide(gan))


@functools.lru_cache(maxsize=32)
def block_two(gan: Gan, judged: bool) -> Parts:
    """Return block two. `mine` as in block one, but β for α, then the trained first generator.

    Without a judge (every β zero) no discriminator is trained: the completed rows are all there is to learn.
    """
    optimiser = optax.adam(gan.rate)

    def start(rng: np.random.Generator) -> Any:
        infer, judge = (normal(rng, shapes(gan)[name], SPREAD) for name in ("infer", "judge"))
        return infer, judge, unmoved(optimiser, infer), unmoved(optimiser, judge)

    def completed_rows(mine: Any, batch: tuple, noise: jax.Array) -> jax.Array:
        x, place, r, _ = batch
        score = filled_in(mine[5], x, place, r, noise[:, gan.levels :])
        return completed(responses(gan, score), place, r)

    def step(state: Any, data: Any, mine: Any, chance: Any) -> Any:
        infer, judge, infer_inner, judge_inner = state
        places, noise = chance
        for turn in range(gan.turns if judged else 0):
            batch = _taken(data, mine, places[turn])
            real = completed_rows(mine, batch, noise[turn])
            made = generate(infer, jnp.concatenate([batch[0], noise[turn][:, : gan.levels]], axis=1))
            shown = (batch[0], real, responses(gan, made), batch[3])
            judge, judge_inner = _adam_step(optimiser, lambda q, b=shown: judging_loss(q, *b), judge, judge_inner)
        batch = _taken(data, mine, places[-1])
        rows = completed_rows(mine, batch, noise[-1])
        beta = mine[4] if judged else 0.0
        infer, infer_inner = _adam_step(
            optimiser,
            lambda q: inferring_loss(gan, q, judge, batch, rows, noise[-1][:, : gan.levels], beta),
            infer,
            infer_inner,
        )
        return infer, judge, infer_inner, judge_inner

    def loss(state: Any, data: Any, mine: Any) -> jax.Array:
        X, place, response = data
        rows, weight = mine[2], mine[3]
        noise = jnp.full((len(rows), gan.levels), 0.5)
        score = generate(state[0], jnp.concatenate([X[rows], noise], axis=1))
        own = (losses(gan, score, response[rows][:, None]) * place[rows]).sum(axis=1)
        return _mean(own, weight)

    return Parts(start, _chance(gan, 2 * gan.levels - 1), step, loss, lambda state: state[0], (0, 2), _wide(gan))


# -- predicting -----------------------------------------------------------------------------------------------------


def predict(gan: Gan, infer: dict[str, Array], X: Array, noise: Array, rows: int = 16_384) -> Array:
    """Return responses (n, K) of features (n, p), averaged over draws of noise (draws, K), some rows at a time."""
    found = [
        np.asarray(_predict(gan)(infer, jnp.asarray(X[first : first + rows], jnp.float32), noise))
        for first in range(0, len(X), rows)
    ]
    return np.concatenate(found).astype(np.float64) if found else np.zeros((0, gan.levels))


@functools.lru_cache(maxsize=32)
def _predict(gan: Gan) -> Any:
    def one(infer: Params, x: jax.Array, noise: jax.Array) -> jax.Array:
        inputs = jnp.concatenate([x, jnp.broadcast_to(noise, (len(x), gan.levels))], axis=1)
        return responses(gan, generate(infer, inputs))

    return jax.jit(lambda infer, x, noise: jax.vmap(one, in_axes=(None, None, 0))(infer, x, noise).mean(axis=0))
