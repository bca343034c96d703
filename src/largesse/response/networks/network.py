"""The network: features → representation z = Λ(x) → scores at all levels, plus an optional straight line past it.

Parameters are a plain dict of arrays: what is trained is what is saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from largesse.response.networks import heads

Params = dict[str, jax.Array]
ACTIVATIONS = {"elu": jax.nn.elu, "relu": jax.nn.relu}


@dataclass(frozen=True)
class Shape:
    """What does not change while training: sizes and kinds."""

    features: int
    levels: int
    head: str = "shrunk"
    width: int = 128
    depth: int = 2
    activation: str = "elu"
    skip: bool = True
    bounded: bool = True  # responses in [0, 1]: scores are logits


def initial(shape: Shape, key: jax.Array) -> Params:
    """Return first parameters: weights of standard deviation 1/√fan-in, biases and the straight line zero."""
    keys = jax.random.split(key, shape.depth + 1)
    params: Params = {}
    size = shape.features
    for j in range(shape.depth):
        params[f"w{j}"] = jax.random.normal(keys[j], (size, shape.width)) / jnp.sqrt(max(size, 1))
        params[f"b{j}"] = jnp.zeros(shape.width)
        size = shape.width
    if shape.skip:
        params["skip"] = jnp.zeros(shape.features)
    return params | heads.initial(shape.head, keys[-1], size, shape.levels, bounded=shape.bounded)


def shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter."""
    return {name: p.shape for name, p in jax.eval_shape(lambda: initial(shape, jax.random.key(0))).items()}


def forward(shape: Shape, params: Params, x: jax.Array, gate: Any = 1.0) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return representation (n, width), scores (n, K) and deviations (n, q) of features (n, p)."""
    z = x
    for j in range(shape.depth):
        z = ACTIVATIONS[shape.activation](z @ params[f"w{j}"] + params[f"b{j}"])
    base = x @ params["skip"] if shape.skip else jnp.zeros(len(x))
    score, deviation = heads.scores(shape.head, params, z, base, gate, shape.levels, shape.bounded)
    return z, score, deviation


def decayed(params: Params) -> dict[str, bool]:
    """Return which parameters weight decay acts on: matrices of weights, not biases, steps or the straight line."""
    return {name: value.ndim == 2 for name, value in params.items()}
