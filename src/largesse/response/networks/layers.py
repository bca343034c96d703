"""Network layers: from features to a representation, and from it to scores at all levels.

Features x → representation z = Λ(x) → scores at all K levels.

A score is a logit for responses in [0, 1], and a standardised amount otherwise. A *head* turns z into scores. Every head
but `free` is monotone in the level by construction: increments pass through a softplus, or the scores are a cumulative
distribution. The *deviation* of a head is the difference between a customer's own increments and the common ones; `shrunk` and
`elastic` can be penalised for it, and a gate of zero switches it off, so that all customers share the same increments.

| head | increments of the score between levels | deviation |
|---|---|---|
| `free` | any | – |
| `increments` | softplus(δ_k(x)) | – |
| `shrunk` | softplus(θ_k + δ_k(x)) | δ (K−1) |
| `elastic` | softplus(θ_k) · exp(s(x)) | s (1) |
| `cdf` | P(own threshold ≤ level), a distribution over thresholds | – |
| `concave` | never growing, on the scale of the response | – |
| `minmax` | the paper's: non-negative weights from the level to the output | – |

Parameters are a plain dict of arrays, which is trained and saved.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from largesse.response.networks.network_settings import CONCAVE_EDGE, FIRST_STEP, NetworkShape

MIN_FIRST_INCREMENT = 0.01  # least first increment: the gradient of one near zero vanishes

Params = dict[str, jax.Array]


def initial_parameters(shape: NetworkShape, key: jax.Array) -> Params:
    """Return random initial parameters of a network.

    Weights have standard deviation 1/√fan-in; biases and the linear bypass are zero.
    """
    keys = jax.random.split(key, shape.depth + 1)
    params: Params = {}
    size = shape.features
    for j in range(shape.depth):
        params[f"w{j}"] = jax.random.normal(keys[j], (size, shape.width)) / jnp.sqrt(max(size, 1))
        params[f"b{j}"] = jnp.zeros(shape.width)
        size = shape.width
    if shape.skip:
        params["skip"] = jnp.zeros(shape.features)
    return params | initial_head_parameters(shape, keys[-1], size)


def parameter_shapes(shape: NetworkShape) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter array of a network, by name."""
    return {name: p.shape for name, p in jax.eval_shape(lambda: initial_parameters(shape, jax.random.key(0))).items()}


def weight_decay_mask(params: Params) -> dict[str, bool]:
    """Return a mask by parameter name, true for the parameters with weight decay.

    These are the weight matrices, not biases, increments or the linear bypass.
    """
    return {name: value.ndim == 2 for name, value in params.items()}


def forward(
    shape: NetworkShape, params: Params, x: jax.Array, gate: Any = 1.0
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Compute representations (n, width), scores (n, K) and customer-specific increments (n, q) of features (n, p).

    The deviations of a customer's increments from the common ones have 1 or K−1 columns; see the table above.
    """
    activate = getattr(jax.nn, shape.activation)
    z = x
    for j in range(shape.depth):
        z = activate(z @ params[f"w{j}"] + params[f"b{j}"])
    base = x @ params["skip"] if shape.skip else jnp.zeros(len(x))
    score, deviation = head_scores(shape, params, z, base, gate)
    return z, score, deviation


# -- heads ----------------------------------------------------------------------------------------------------------


def count_head_outputs(shape: NetworkShape) -> int:
    """Return the number of outputs of the linear layer in a network's head."""
    K = shape.levels
    if shape.head == "cdf" or (shape.head == "concave" and shape.bounded):
        return K + 1
    return {"elastic": 2, "minmax": 0}.get(shape.head, K)


def initial_head_parameters(shape: NetworkShape, key: jax.Array, width: int) -> Params:
    """Return random initial parameters of a network's head, for a representation of size `width`."""
    head = shape.head
    if head == "minmax":
        return _initial_minmax_parameters(key, width)
    size = count_head_outputs(shape)
    weight = jax.random.normal(key, (width, size)) / jnp.sqrt(width)
    if head in ("shrunk", "elastic"):
        weight = weight.at[:, 1:].set(0.0)  # own increments start from the common ones
    start = jnp.log(jnp.expm1(FIRST_STEP))
    params = {"head_w": weight, "head_b": jnp.zeros(size)}
    if head in ("shrunk", "elastic"):
        params["steps"] = jnp.full(shape.levels - 1, start, jnp.float32)  # a weak type would compile twice
    elif head == "increments" or (head == "concave" and not shape.bounded):
        params["head_b"] = params["head_b"].at[1:].set(start)
    return params


def set_initial_curve(shape: NetworkShape, params: Params, curve: jax.Array) -> Params:
    """Change the initial parameters of a head so that its scores lie near one curve (K,) for all customers.

    Parameters are unchanged if the curve is NaN.
    """
    head = shape.head
    cold = jnp.isnan(curve[0])
    steps = jnp.log(jnp.expm1(jnp.maximum(jnp.diff(curve), MIN_FIRST_INCREMENT)))
    moved = dict(params)
    if head == "minmax":
        moved["out_b"] = params["out_b"] + curve.mean()
    elif head == "cdf" or (head == "concave" and shape.bounded):
        moved["head_b"] = params["head_b"].at[-1].add(-curve.mean())
    elif head == "free":
        moved["head_b"] = params["head_b"] + curve
    else:
        moved["head_b"] = params["head_b"].at[0].add(curve[0])
        if head == "increments":
            moved["head_b"] = moved["head_b"].at[1:].set(steps)
        elif head != "concave":
            moved["steps"] = steps
    return {name: jnp.where(cold, params[name], value) for name, value in moved.items()}


def head_scores(
    shape: NetworkShape, params: Params, z: jax.Array, base: jax.Array, gate: Any
) -> tuple[jax.Array, jax.Array]:
    """Compute scores (n, K) and customer-specific increments (n, q) from representations z (n, width).

    `base` (n,) is added to the scores of every level.
    """
    head, K = shape.head, shape.levels
    if head == "minmax":
        return _compute_minmax_scores(params, z, K) + base[:, None], jnp.zeros((len(z), 1))
    out = z @ params["head_w"] + params["head_b"]
    if head == "free":
        return out + base[:, None], jnp.zeros((len(z), 1))
    if head == "cdf":
        return _compute_cdf_logits(out, K) + base[:, None], jnp.zeros((len(z), 1))
    if head == "concave" and shape.bounded:
        # The base shifts the mass that responds at no level, so that the whole curve stays concave.
        return _compute_concave_logits(out.at[:, -1].add(-base), K), jnp.zeros((len(z), 1))
    deviation = gate * out[:, 1:]
    steps = _compute_increments(head, params, deviation)
    climbed = jnp.concatenate([jnp.zeros((len(z), 1)), jnp.cumsum(steps, axis=1)], axis=1)
    return climbed + (out[:, 0] + base)[:, None], deviation


def _compute_increments(head: str, params: Params, deviation: jax.Array) -> jax.Array:
    """Return the non-negative increments between levels (n, K−1)."""
    if head == "shrunk":
        return jax.nn.softplus(params["steps"] + deviation)
    if head == "elastic":
        return jax.nn.softplus(params["steps"]) * jnp.exp(jnp.clip(deviation, -5.0, 5.0))
    steps = jax.nn.softplus(deviation)
    # Concave: an increment is its own part plus those of all later increments, so that no increment exceeds the one before.
    return jnp.cumsum(steps[:, ::-1], axis=1)[:, ::-1] if head == "concave" else steps


def _compute_cdf_logits(out: jax.Array, K: int) -> jax.Array:
    """Convert logits of K+1 thresholds (n, K+1) to logits (n, K) of P(threshold ≤ level).

    There is no cancellation.
    """
    below = jax.lax.cumlogsumexp(out, axis=1)[:, :K]
    above = jax.lax.cumlogsumexp(out, axis=1, reverse=True)[:, 1 : K + 1]
    return below - above


def _compute_concave_logits(out: jax.Array, K: int) -> jax.Array:
    """Return the logits (n, K) of curves whose increments do not grow with the level.

    The mass of output j is spread evenly over the first j increments.
    """
    mass = jax.nn.softmax(out, axis=1)  # at the base, at 1..K−1, and of those who never respond
    spread = mass[:, 1:K] / jnp.arange(1, K)
    steps = jnp.cumsum(spread[:, ::-1], axis=1)[:, ::-1]
    curve = mass[:, :1] + jnp.concatenate([jnp.zeros((len(out), 1)), jnp.cumsum(steps, axis=1)], axis=1)
    inside = CONCAVE_EDGE + (1 - 2 * CONCAVE_EDGE) * curve  # clipping would break concavity
    return jnp.log(inside) - jnp.log1p(-inside)


def _initial_minmax_parameters(key: jax.Array, width: int) -> Params:
    first, two, three = jax.random.split(key, 3)
    return {
        "head_w": jax.random.normal(first, (width, width)) / jnp.sqrt(width),
        "head_b": jnp.zeros(width),
        "level_w": 0.1 * jax.random.normal(two, (width,)),
        "out_w": jax.random.normal(three, (width,)) / jnp.sqrt(width),
        "out_b": jnp.zeros(()),
    }


def _compute_minmax_scores(params: Params, z: jax.Array, K: int) -> jax.Array:
    """Return scores (n, K) of the "minmax" head: a hidden layer with non-negative weights on the level."""
    hidden = z @ params["head_w"] + params["head_b"]
    # |w| rather than softplus(w): plain gradient descent would hardly move a small weight through a softplus.
    level = jnp.arange(1, K + 1)[:, None] * jnp.abs(params["level_w"])  # (K, width)
    out = jnp.abs(params["out_w"])
    return jnp.stack([jax.nn.elu(hidden + level[k]) @ out for k in range(K)], axis=1) + params["out_b"]
