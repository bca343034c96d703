"""From a representation to scores at all K levels, in one pass.

A score is a logit for responses in [0, 1] and a plain number for amounts. Every head but `free` never falls in the level,
by construction: increments go through softplus, or the scores are a cumulative distribution. What a head learns about a
customer's own increments beyond the common ones is its *deviation*; `shrunk` and `elastic` can be penalised for it, and a
gate of zero switches it off: then all customers share their steps.

| head | increments of the score between levels | deviation |
|---|---|---|
| `free` | any | – |
| `increments` | softplus(δ_k(x)) | – |
| `shrunk` | softplus(θ_k + δ_k(x)) | δ (K−1) |
| `elastic` | softplus(θ_k) · exp(s(x)) | s (1) |
| `cdf` | thresholds: the share of customers whose own threshold lies at or below the level | – |
| `concave` | never growing on the scale of the response | – |
| `minmax` | the paper's: positive weights from the level to the output | – |
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

HEADS = ("free", "increments", "shrunk", "elastic", "cdf", "concave", "minmax")
MONOTONE = tuple(head for head in HEADS if head != "free")
START = 0.2  # a first guess of a step, on the scale of the score
SMALLEST = 0.01  # a step to start from: one of zero could not grow
EDGE = 1e-6  # concave shares stay this far from 0 and 1, whose logits are infinite

Params = dict[str, jax.Array]


def outputs(head: str, K: int, bounded: bool) -> int:
    """Return how many numbers a head reads off the representation."""
    if head == "cdf" or (head == "concave" and bounded):
        return K + 1
    return {"elastic": 2, "minmax": 0}.get(head, K)


def initial(head: str, key: jax.Array, width: int, K: int, *, bounded: bool) -> Params:
    """Return the first parameters of a head on a representation of `width` numbers."""
    if head == "minmax":
        return _initial_minmax(key, width)
    size = outputs(head, K, bounded)
    weight = jax.random.normal(key, (width, size)) / jnp.sqrt(width)
    if head in ("shrunk", "elastic"):
        weight = weight.at[:, 1:].set(0.0)  # own increments start from the common ones
    start = jnp.log(jnp.expm1(START))
    params = {"head_w": weight, "head_b": jnp.zeros(size)}
    if head in ("shrunk", "elastic"):
        params["steps"] = jnp.full(K - 1, start, jnp.float32)  # a weak type would be compiled for again
    elif head == "increments" or (head == "concave" and not bounded):
        params["head_b"] = params["head_b"].at[1:].set(start)
    return params


def started(head: str, params: Params, ladder: jax.Array, bounded: bool) -> Params:
    """Return first parameters that give about these scores (K,) to everyone; as they are where the ladder is not a number."""
    cold = jnp.isnan(ladder[0])
    steps = jnp.log(jnp.expm1(jnp.maximum(jnp.diff(ladder), SMALLEST)))
    moved = dict(params)
    if head == "minmax":
        moved["out_b"] = params["out_b"] + ladder.mean()
    elif head == "cdf" or (head == "concave" and bounded):
        moved["head_b"] = params["head_b"].at[-1].add(-ladder.mean())
    elif head == "free":
        moved["head_b"] = params["head_b"] + ladder
    else:
        moved["head_b"] = params["head_b"].at[0].add(ladder[0])
        if head == "increments":
            moved["head_b"] = moved["head_b"].at[1:].set(steps)
        elif head != "concave":
            moved["steps"] = steps
    return {name: jnp.where(cold, params[name], value) for name, value in moved.items()}


def scores(
    head: str, params: Params, z: jax.Array, base: jax.Array, gate: Any, K: int, bounded: bool
) -> tuple[jax.Array, jax.Array]:
    """Return scores (n, K) and deviations (n, q) of representations z (n, width); `base` (n,) is added to every level."""
    if head == "minmax":
        return _minmax(params, z, K) + base[:, None], jnp.zeros((len(z), 1))
    out = z @ params["head_w"] + params["head_b"]
    if head == "free":
        return out + base[:, None], jnp.zeros((len(z), 1))
    if head == "cdf":
        return _cdf(out, K) + base[:, None], jnp.zeros((len(z), 1))
    if head == "concave" and bounded:
        # The base moves the mass that responds at no level, so that the whole curve stays concave.
        return _concave_shares(out.at[:, -1].add(-base), K), jnp.zeros((len(z), 1))
    deviation = gate * out[:, 1:]
    steps = _steps(head, params, deviation)
    climbed = jnp.concatenate([jnp.zeros((len(z), 1)), jnp.cumsum(steps, axis=1)], axis=1)
    return climbed + (out[:, 0] + base)[:, None], deviation


def _steps(head: str, params: Params, deviation: jax.Array) -> jax.Array:
    """Return the K−1 increments (n, K−1), none negative."""
    if head == "shrunk":
        return jax.nn.softplus(params["steps"] + deviation)
    if head == "elastic":
        return jax.nn.softplus(params["steps"]) * jnp.exp(jnp.clip(deviation, -5.0, 5.0))
    steps = jax.nn.softplus(deviation)
    # Concave: an increment is the sum of its own part and of those of all later ones, so none is larger than the last.
    return jnp.cumsum(steps[:, ::-1], axis=1)[:, ::-1] if head == "concave" else steps


def _cdf(out: jax.Array, K: int) -> jax.Array:
    """Return the logit of P(threshold ≤ k), k = 0..K−1, from K+1 logits (n, K+1), stably."""
    below = jax.lax.cumlogsumexp(out, axis=1)[:, :K]
    above = jax.lax.cumlogsumexp(out, axis=1, reverse=True)[:, 1 : K + 1]
    return below - above


def _concave_shares(out: jax.Array, K: int) -> jax.Array:
    """Return logits of curves whose increments never grow: share j of the mass is spread evenly over the first j steps."""
    mass = jax.nn.softmax(out, axis=1)  # base, then 1..K−1, then those who never respond
    spread = mass[:, 1:K] / jnp.arange(1, K)
    steps = jnp.cumsum(spread[:, ::-1], axis=1)[:, ::-1]
    curve = mass[:, :1] + jnp.concatenate([jnp.zeros((len(out), 1)), jnp.cumsum(steps, axis=1)], axis=1)
    inside = EDGE + (1 - 2 * EDGE) * curve  # a clip would bend the curve
    return jnp.log(inside) - jnp.log1p(-inside)


def _initial_minmax(key: jax.Array, width: int) -> Params:
    one, two, three = jax.random.split(key, 3)
    return {
        "head_w": jax.random.normal(one, (width, width)) / jnp.sqrt(width),
        "head_b": jnp.zeros(width),
        "level_w": 0.1 * jax.random.normal(two, (width,)),
        "out_w": jax.random.normal(three, (width,)) / jnp.sqrt(width),
        "out_b": jnp.zeros(()),
    }


def _minmax(params: Params, z: jax.Array, K: int) -> jax.Array:
    """Return scores (n, K): a hidden layer that sees the level through weights ≥ 0, and an output with weights ≥ 0."""
    hidden = z @ params["head_w"] + params["head_b"]
    # |w| rather than softplus(w): plain gradient descent would hardly move a small weight through a softplus.
    level = jnp.arange(1, K + 1)[:, None] * jnp.abs(params["level_w"])  # (K, width)
    out = jnp.abs(params["out_w"])
    return jnp.stack([jax.nn.elu(hidden + level[k]) @ out for k in range(K)], axis=1) + params["out_b"]
