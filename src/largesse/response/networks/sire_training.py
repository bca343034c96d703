"""Training step of SIRE and IRE networks, and predictions of trained networks.

The loss of a batch is mean response loss + penalty · mean squared deviation + κ · HSIC(z, level).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.records import Array
from largesse.response.networks.batched_training import pad_rows
from largesse.response.networks.hsic import hsic_penalty
from largesse.response.networks.layers import Params, forward, initial_parameters, set_initial_curve, weight_decay_mask
from largesse.response.networks.network_settings import Balance, NetworkShape, Training
from largesse.response.networks.training_types import TrainingProgram
from largesse.stats import logit, sigmoid

MODELS_AT_ONCE = 5  # models in one program on a CPU
MAX_EPOCH_STEPS = 100  # with more rows, each epoch takes a random part of them
SCORE_ROWS = 65_536  # rows per block of predictions


def count_steps_per_epoch(rows: int, batch: int) -> int:
    """Return the number of training steps per epoch, from the number of rows and the batch size."""
    return min(max(rows // batch, 1), MAX_EPOCH_STEPS)


def response_losses(score: jax.Array, response: jax.Array, bounded: bool) -> jax.Array:
    """Return the losses (n,) of scores (n,): log loss of logits, or half the squared error."""
    if bounded:
        return jax.nn.softplus(score) - response * score
    return 0.5 * (score - response) ** 2


@functools.lru_cache(maxsize=64)
def make_sire_program(shape: NetworkShape, training: Training, balance: Balance | None, rows: int) -> TrainingProgram:
    """Return the program that trains SIRE or IRE networks of one shape.

    Each has `rows` rows.

    HSIC is skipped without `balance`.

    `data`: features (n, p), level weights (n, K), response (n,). A row's level weights are one at its own level, or, for a
    dose between two knots, shared between them. `model_data`: rows and weights to train on, rows and weights to stop by, κ,
    penalty on deviations, gate of deviations, and the curve (K,) that scores start from (NaN: the usual start).
    """
    optimiser = _make_optimiser(training, count_steps_per_epoch(rows, training.batch))

    def first(seed: jax.Array, curve: jax.Array) -> Any:
        params = set_initial_curve(shape, initial_parameters(shape, jax.random.key(seed)), curve)
        return params, optimiser.init(params)

    all_first = jax.jit(jax.vmap(first))

    def start(seeds: Array, model_data: Any) -> Any:
        return all_first(jnp.asarray(seeds, jnp.uint32), jnp.asarray(model_data[7], jnp.float32))

    def draw(seed: int, _model_data: Any, stretches: Sequence[Array]) -> Iterator[Array]:
        for looks in stretches:
            yield np.concatenate([_draw_epoch_batches(seed, int(epoch), rows, training.batch) for epoch in looks])

    def objective(params: Params, batch: tuple[jax.Array, ...], hyper: tuple[jax.Array, ...]) -> jax.Array:
        x, y, r, w = batch
        kappa, penalty, gate = hyper
        z, score, deviation = forward(shape, params, x, gate)
        total = jnp.maximum(w.sum(), 1e-9)
        loss = (w * response_losses((score * y).sum(axis=1), r, shape.bounded)).sum() / total
        loss += penalty * (w @ jnp.sum(deviation**2, axis=1)) / total
        return loss if balance is None else loss + kappa * _compute_imbalance(z, y, w, balance)

    def step(state: Any, data: Any, model_data: Any, places: jax.Array) -> Any:
        params, moments = state
        here = model_data[0][places]
        X, level, response = data
        batch = (X[here], level[here], response[here], model_data[1][places])
        slope = jax.grad(objective)(params, batch, model_data[4:7])
        update, moments = optimiser.update(slope, moments, params)
        return optax.apply_updates(params, update), moments

    def loss(state: Any, data: Any, model_data: Any) -> jax.Array:
        X, level, response = data
        rows, w, gate = model_data[2], model_data[3], model_data[6]
        score = (forward(shape, state[0], X[rows], gate)[1] * level[rows]).sum(axis=1)
        return (w @ response_losses(score, response[rows], shape.bounded)) / jnp.maximum(w.sum(), 1e-9)

    width = shape.features + shape.depth * shape.width + 3 * shape.levels
    return TrainingProgram(start, draw, step, loss, lambda state: state[0], (0, 2), width, MODELS_AT_ONCE)


def _make_optimiser(training: Training, steps: int) -> optax.GradientTransformation:
    """Return the Optax optimiser of the network's weights.

    A cosine schedule falls to zero at the last step of the last epoch.
    """
    rate: Any = training.rate
    if training.schedule == "cosine":
        rate = optax.cosine_decay_schedule(training.rate, training.epochs * steps)
    if training.optimiser == "sgd":
        return optax.sgd(rate)
    return optax.adamw(rate, weight_decay=training.decay, mask=weight_decay_mask)


def _compute_imbalance(z: jax.Array, level: jax.Array, weight: jax.Array, balance: Balance) -> jax.Array:
    how: dict[str, Any] = {"kernel": balance.kernel, "estimator": balance.estimator, "weight": weight}
    # A linear HSIC grows with the number of units, as do distances; per unit, κ means the same for every width.
    units = z.shape[1]
    if not balance.normalise:
        return hsic_penalty(z / np.sqrt(units), level, normalise=False, **how)
    return hsic_penalty(z, level, **how) / (units if balance.kernel == "linear" else 1)


def _draw_epoch_batches(seed: int, epoch: int, rows: int, batch: int) -> Array:
    """Draw the random batches (steps, batch) of row positions for one epoch."""
    rng = np.random.default_rng((seed, epoch))
    size = min(batch, rows)
    take = count_steps_per_epoch(rows, batch) * size
    order = rng.permutation(rows)[:take] if rows < 4 * take else rng.integers(rows, size=take)
    return order.astype(np.int32).reshape(-1, size)


# -- predicting -----------------------------------------------------------------------------------------------------


def predict_scores(
    params: dict[str, Array], X: Array, shape: NetworkShape, gate: Array | None = None, rows: int = SCORE_ROWS
) -> Array:
    """Return the scores (M, n, K) of M networks for features (n, p).

    Models with a closed gate (M,) have no increment deviations.
    """
    models = len(next(iter(params.values())))
    gate = np.ones(models, np.float32) if gate is None else gate
    out = np.empty((models, len(X), shape.levels), np.float32)
    for first in range(0, len(X), rows):
        block = np.asarray(X[first : first + rows], np.float32)
        out[:, first : first + rows] = np.asarray(_compile_scores(shape)(params, pad_rows(block), gate))[
            :, : len(block)
        ]
    return out


def predict_mean_scores(
    params: dict[str, Array], X: Array, shape: NetworkShape, gate: Array, rows: int = SCORE_ROWS
) -> Array:
    """Return the mean scores (n, K) of several networks for features (n, p).

    One block of rows is in memory at a time.

    A mean of logits need not be concave even if each one is, so concave curves are averaged as probabilities.
    """
    concave = shape.head == "concave" and shape.bounded
    out = np.empty((len(X), shape.levels))
    for first in range(0, len(X), rows):
        model_scores = predict_scores(params, X[first : first + rows], shape, gate)
        mean = (
            logit(sigmoid(model_scores.astype(np.float64)).mean(axis=0), inside=0.0)
            if concave
            else model_scores.mean(axis=0)
        )
        out[first : first + rows] = mean
    return out


def compute_representations(params: dict[str, Array], X: Array, shape: NetworkShape) -> Array:
    """Return the representations z (M, n, width) of features (n, p) by M networks."""
    padded = pad_rows(np.asarray(X, np.float32))
    return np.asarray(_compile_representations(shape)(params, padded), np.float64)[:, : len(X)]


@functools.cache
def _compile_scores(shape: NetworkShape) -> Callable[..., jax.Array]:
    def score(params: Params, x: jax.Array, gate: jax.Array) -> jax.Array:
        return forward(shape, params, x, gate)[1]

    return jax.jit(jax.vmap(score, in_axes=(0, None, 0)))


@functools.cache
def _compile_representations(shape: NetworkShape) -> Callable[..., jax.Array]:
    return jax.jit(jax.vmap(lambda params, x: forward(shape, params, x)[0], in_axes=(0, None)))
