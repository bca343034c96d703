"""GANITE: counterfactuals filled in by a generative adversarial network, then learnt (Yoon, Jordon and van der Schaar 2018).

Defaults are those of the authors' public code. Differences from it:

- K levels instead of two: the discriminator chooses among K slots by softmax, the generators have K heads, and the second
  block learns whole rows, as the method's paper does for more than two treatments.
- Noise enters both generators, and the second block has a discriminator, as in the method's paper; the public code has
  neither. β = 0, the default, is the public code's second block. Predictions are averaged over draws of the noise.
- α multiplies the adversarial term, as in the authors' code; elsewhere it multiplies the supervised one. The incentive
  paper, whose grids these are, does not say which it means.
- The second block keeps its best weights on held-out rows, with a look every 100 steps, and stops without gain; the public
  code keeps the last weights. α and β set to "auto" are chosen by the same held-out loss.
- Amounts have squared error on standardised amounts; responses in [0, 1] the public code's cross-entropy.

Block one: a generator sees a row and its response, and fills in the responses at the other levels; a discriminator tries
to tell which of the K responses was observed. Block two: a second generator learns the completed rows from the features
alone; with β > 0 a second discriminator tries to tell its curves from completed rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Annotated, Any, final

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.errors import Problem, refuse
from largesse.io import ArraySpec
from largesse.records import Array, Log
from largesse.response import Network, ResponseModel, Training
from largesse.response.networks import (
    ResponseScale,
    TrainingJob,
    TrainingLoop,
    TrainingProgram,
    batched_training,
    check_shapes,
    find_positive_integer_problems,
    find_setting_problems,
    mark_lowest_loss,
    replace_auto_settings,
    train_networks,
)
from largesse.stats import find_chosen_index, limit_to_one_thread, mark_held_out_rows
from largesse_lab.baselines.network_helpers import (
    draw_by_steps,
    find_held_out_share_problems,
    find_strength_problems,
    list_tried_strengths,
    loop_of_steps,
    normal_params,
    start_by_seed,
    zero_moments,
)

STRENGTHS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)  # the incentive paper's grid, for α and for β
NOISE_DRAWS = 16  # over which predictions are averaged
PREDICT_ROWS = 16_384  # at a time
GANITE_CHECK_STEPS = 100  # steps between two looks at held-out rows
GANITE_NETWORK = Network(width=30)
GANITE_TRAINING = Training(rate=1e-3, batch=256, steps=10_000, patience=10)


@final
class GANITE(ResponseModel):
    """Two generators: one completes each row with counterfactuals, the other learns completed rows from features.

    Parameters
    ----------
    alpha, beta
        Strength of the adversary of the first and of the second block: a number, several to choose from, or "auto": the
        incentive paper's grid, 0 to 10.
    discriminator_steps
        Steps of a discriminator for each step of its generator.
    network, training
        `Network` (its width) and `Training` (rate, batch, steps of each block, patience of the second block in looks of
        100 steps); a setting at "auto" is GANITE's default.
    hold_out
        Share of rows that are held out to choose α, β and when to stop.
    seed
        For the rows held out, first weights, batches and noise.

    Attributes
    ----------
    alpha_, beta_
        The strengths used.
    choices_
        The candidates, with their held-out losses.
    """

    alpha_: float
    beta_: float
    scale_: ResponseScale
    params_: dict[str, Annotated[Array, ArraySpec(..., dtype="float32")]]

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        beta: Any = 0.0,
        discriminator_steps: int = 2,
        network: Network = Network(),
        training: Training = Training(),
        hold_out: float = 0.3,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.discriminator_steps = discriminator_steps
        self.network = network
        self.training = training
        self.hold_out = hold_out
        self.seed = seed

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        refuse("GANITE", self._problems())
        self.scale_ = ResponseScale.choose_scale(log.response)
        alphas, betas = list_tried_strengths(self.alpha, STRENGTHS), list_tried_strengths(self.beta, STRENGTHS)
        level = np.eye(len(log.levels), dtype=np.float32)[log.level]
        data = (X.astype(np.float32), level, self.scale_.standardise(log.response).astype(np.float32))
        with limit_to_one_thread(X.size * len(alphas) * len(betas)):
            self._train(data, self._rows(log), alphas, betas)

    def _train(
        self, data: tuple[Array, ...], rows: list[Array], alphas: tuple[float, ...], betas: tuple[float, ...]
    ) -> None:
        """Train the first block for every α in one program, then the second for every α and β in another."""
        gan, pairs = self._gan(data[0].shape[1]), list(product(range(len(alphas)), betas))
        training = replace_auto_settings(self.training, GANITE_TRAINING)
        loop = loop_of_steps(training.steps, GANITE_CHECK_STEPS, training.patience, last=True)
        model_data: tuple[Any, ...] = (*_repeat(rows, len(alphas)), np.array(alphas, np.float32))
        first = train_networks(
            TrainingJob(block_one(gan, loop), loop, data, model_data, np.full(len(alphas), 2 * self.seed))
        ).params
        source = np.array([i for i, _ in pairs])
        model_data = (
            *_repeat(rows, len(pairs)),
            np.array([beta for _, beta in pairs], np.float32),
            {name: value[source] for name, value in first.items()},
        )
        loop = loop_of_steps(training.steps, GANITE_CHECK_STEPS, training.patience)
        program = block_two(gan, any(beta > 0 for beta in betas), loop)
        second = train_networks(TrainingJob(program, loop, data, model_data, np.full(len(pairs), 2 * self.seed + 1)))
        names = [f"α {alphas[i]:g}, β {beta:g}" for i, beta in pairs]
        self.choices_ = mark_lowest_loss(names, second.loss, of="GANITE: settings")
        best = find_chosen_index(self.choices_)
        self.alpha_, self.beta_ = alphas[source[best]], pairs[best][1]
        self.params_ = {name: value[best] for name, value in second.params.items()}

    def _rows(self, log: Log) -> list[Array]:
        """Return rows to train on with their weights, and rows to stop by with theirs, each (1, …)."""
        weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        held = mark_held_out_rows(log, self.hold_out, self.seed)
        stop = batched_training.stack_row_sets([np.flatnonzero(held)], weight, most=batched_training.STOP_ROWS)
        return [*batched_training.stack_row_sets([np.flatnonzero(~held)], weight), *stop]

    def _gan(self, features: int) -> Any:

        width, training = (
            replace_auto_settings(self.network, GANITE_NETWORK).width,
            replace_auto_settings(self.training, GANITE_TRAINING),
        )
        settings = (training.rate, training.batch, self.discriminator_steps)
        return Gan(features, self.levels_, width, self.scale_.bounded, *settings)

    def _problems(self) -> list[Problem]:
        wrong = find_setting_problems("network", self.network, GANITE_NETWORK)
        wrong += find_setting_problems("training", self.training, GANITE_TRAINING)
        wrong += find_positive_integer_problems(self, ("discriminator_steps",)) + find_held_out_share_problems(
            self.hold_out
        )
        return wrong + find_strength_problems("alpha", self.alpha) + find_strength_problems("beta", self.beta)

    # -- predicting -------------------------------------------------------------------------------------------------

    def _curves(self, X: Array) -> Array:

        noise = np.random.default_rng(self.seed).random((NOISE_DRAWS, self.levels_), np.float32)
        return self.scale_.restore_units(predict(self._gan(X.shape[1]), self.params_, X, noise))

    def _check_learnt(self) -> None:

        check_shapes(self.params_, shapes(self._gan(len(self.encoder_.names)))["infer"])


def _repeat(parts: list[Array], many: int) -> list[Array]:
    return [np.repeat(array, many, axis=0) for array in parts]


Params = dict[str, jax.Array]
INITIAL_SCALE = np.sqrt(2.0)  # of first weights, × 1/√fan-in, as published


@dataclass(frozen=True)
class Gan:
    """Sizes of the networks and settings of their training, the same for all models."""

    features: int
    levels: int
    width: int
    bounded: bool  # responses in [0, 1]: outputs are logits
    rate: float
    batch: int
    discriminator_steps: int  # for each step of a generator


# -- the networks ---------------------------------------------------------------------------------------------------


def _generator_shapes(gan: Gan, inputs: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a generator: two shared layers, then for each level a layer of its own and an output."""
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
    layer_shapes: dict[str, tuple[int, ...]] = {}
    for j, (a, b) in enumerate(pairwise(sizes)):
        layer_shapes |= {f"layer{j}_w": (a, b), f"layer{j}_b": (b,)}
    return layer_shapes


def shapes(gan: Gan) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the shapes of the four networks' parameters; the generators get K − 1 and K numbers of noise."""
    p, K = gan.features, gan.levels
    return {
        "complete": _generator_shapes(gan, p + K + 1 + (K - 1)),
        "detect": _discriminator_shapes(gan, K),
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
    """Convert scores to responses: probabilities, or unchanged amounts."""
    return jax.nn.sigmoid(score) if gan.bounded else score


def losses(gan: Gan, score: jax.Array, target: jax.Array) -> jax.Array:
    """Return elementwise losses: log loss of a logit, or the squared error."""
    return jax.nn.softplus(score) - target * score if gan.bounded else (score - target) ** 2


# -- block one ------------------------------------------------------------------------------------------------------


def complete_scores(complete: Params, x: jax.Array, level: jax.Array, r: jax.Array, noise: jax.Array) -> jax.Array:
    """Return the scores (n, K) of the first generator for a row: features, level as one-hot, response, noise."""
    return generate(complete, jnp.concatenate([x, level, r[:, None], noise], axis=1))


def complete_rows(generated: jax.Array, level: jax.Array, r: jax.Array) -> jax.Array:
    """Return generated responses (n, K), with each row's logged response (n,) at its logged level."""
    return jnp.where(level > 0, r[:, None], generated)


def detector_loss(detect: Params, x: jax.Array, rows: jax.Array, level: jax.Array, w: jax.Array) -> jax.Array:
    """Return the cross-entropy of the discriminator, which predicts the logged level."""
    log_probability = jax.nn.log_softmax(discriminate(detect, x, rows), axis=1)
    return -_mean((log_probability * level).sum(axis=1), w)


def completer_loss(
    gan: Gan, complete: Params, detect: Params, batch: tuple[Any, ...], noise: jax.Array, alpha: jax.Array
) -> jax.Array:
    """Return the generator's loss: the response loss at the logged level − α × the discriminator's cross-entropy."""
    x, level, r, w = batch
    score = complete_scores(complete, x, level, r, noise)
    observed = _mean((losses(gan, score, r[:, None]) * level).sum(axis=1), w)
    return observed - alpha * detector_loss(detect, x, complete_rows(responses(gan, score), level, r), level, w)


# -- block two ------------------------------------------------------------------------------------------------------


def judge_loss(judge: Params, x: jax.Array, real: jax.Array, made: jax.Array, w: jax.Array) -> jax.Array:
    """Return the cross-entropy of the second discriminator, which separates completed rows from inferred ones."""
    yes = jax.nn.softplus(-discriminate(judge, x, real)[:, 0])
    no = jax.nn.softplus(discriminate(judge, x, made)[:, 0])
    return _mean(yes + no, w)


def inference_loss(
    gan: Gan, infer: Params, judge: Params, batch: tuple[Any, ...], rows: jax.Array, noise: jax.Array, beta: jax.Array
) -> jax.Array:
    """Return the second generator's loss: the loss on completed rows − β × the second discriminator's cross-entropy."""
    x, _, _, w = batch
    score = generate(infer, jnp.concatenate([x, noise], axis=1))
    return _mean(losses(gan, score, rows).mean(axis=1), w) - beta * judge_loss(judge, x, rows, responses(gan, score), w)


def _mean(values: jax.Array, w: jax.Array) -> jax.Array:
    return w @ values / jnp.maximum(w.sum(), 1e-9)


# -- what a step does -----------------------------------------------------------------------------------------------


def _adam_step(optimiser: Any, loss: Any, params: Params, moments: Any) -> tuple[Params, Any]:
    update, moments = optimiser.update(jax.grad(loss)(params), moments, params)
    return optax.apply_updates(params, update), moments


def _start(gan: Gan, optimiser: Any, names: Sequence[str]) -> Callable[..., Any]:
    """Return a function that draws the initial weights of both networks, and the initial moments of their optimiser."""

    def first(rng: np.random.Generator) -> Any:
        first_params, second_params = (normal_params(rng, shapes(gan)[name], INITIAL_SCALE) for name in names)
        return (
            first_params,
            second_params,
            zero_moments(optimiser, first_params),
            zero_moments(optimiser, second_params),
        )

    return lambda seeds, _model_data: start_by_seed(seeds, first)


def _draw(gan: Gan, loop: TrainingLoop, numbers: int) -> Callable[..., Iterator[Any]]:
    """Return a function that draws the rows (with replacement) and the noise of each step."""

    def draw(seed: int, model_data: Any, stretches: Sequence[Array]) -> Iterator[Any]:
        some = np.flatnonzero(np.asarray(model_data[1]) > 0)

        def draws(rng: np.random.Generator, steps: int) -> tuple[Array, Array]:
            size = (steps, gan.discriminator_steps + 1, gan.batch)
            return some[rng.integers(0, len(some), size)].astype(np.int32), rng.random((*size, numbers), np.float32)

        return draw_by_steps(seed, stretches, loop.steps, draws)

    return draw


def _width(gan: Gan) -> int:
    """Return the width of the generator's and the discriminator's input for one row."""
    return gan.features + (4 + gan.levels) * gan.width


def _take(data: Any, model_data: Any, places: jax.Array) -> tuple[jax.Array, ...]:
    X, level, response = data
    rows = model_data[0][places]
    return X[rows], level[rows], response[rows], model_data[1][places]


@functools.lru_cache(maxsize=32)
def block_one(gan: Gan, loop: TrainingLoop) -> TrainingProgram:
    """Return block one. `data`: features, one-hot level (n, K), response. `model_data`: rows, weights, held-out rows, weights, α."""
    optimiser = optax.adam(gan.rate)

    def step(state: Any, data: Any, model_data: Any, drawn: Any) -> Any:
        complete, detect, complete_moments, detect_moments = state
        places, noise = drawn
        for turn in range(gan.discriminator_steps):
            x, level, r, w = _take(data, model_data, places[turn])
            rows = complete_rows(responses(gan, complete_scores(complete, x, level, r, noise[turn])), level, r)
            completed_batch = (x, rows, level, w)
            detect, detect_moments = _adam_step(
                optimiser, lambda q, b=completed_batch: detector_loss(q, *b), detect, detect_moments
            )
        batch = _take(data, model_data, places[-1])
        complete, complete_moments = _adam_step(
            optimiser,
            lambda q: completer_loss(gan, q, detect, batch, noise[-1], model_data[4]),
            complete,
            complete_moments,
        )
        return complete, detect, complete_moments, detect_moments

    start = _start(gan, optimiser, ("complete", "detect"))
    draw = _draw(gan, loop, gan.levels - 1)
    return TrainingProgram(start, draw, step, lambda *_: jnp.float32(0), lambda state: state[0], (0, 2), _width(gan))


@functools.lru_cache(maxsize=32)
def block_two(gan: Gan, judged: bool, loop: TrainingLoop) -> TrainingProgram:
    """Return block two. `model_data` as in block one, with β in the place of α, then the trained first generator.

    Without a judge (every β zero) no discriminator is trained.
    """
    optimiser = optax.adam(gan.rate)

    def completed(model_data: Any, batch: tuple[Any, ...], noise: jax.Array) -> jax.Array:
        x, level, r, _ = batch
        score = complete_scores(model_data[5], x, level, r, noise[:, gan.levels :])
        return complete_rows(responses(gan, score), level, r)

    def step(state: Any, data: Any, model_data: Any, drawn: Any) -> Any:
        infer, judge, infer_moments, judge_moments = state
        places, noise = drawn
        for turn in range(gan.discriminator_steps if judged else 0):
            batch = _take(data, model_data, places[turn])
            real = completed(model_data, batch, noise[turn])
            made = generate(infer, jnp.concatenate([batch[0], noise[turn][:, : gan.levels]], axis=1))
            pair = (batch[0], real, responses(gan, made), batch[3])
            judge, judge_moments = _adam_step(optimiser, lambda q, b=pair: judge_loss(q, *b), judge, judge_moments)
        batch = _take(data, model_data, places[-1])
        rows = completed(model_data, batch, noise[-1])
        beta = model_data[4] if judged else 0.0
        infer, infer_moments = _adam_step(
            optimiser,
            lambda q: inference_loss(gan, q, judge, batch, rows, noise[-1][:, : gan.levels], beta),
            infer,
            infer_moments,
        )
        return infer, judge, infer_moments, judge_moments

    def loss(state: Any, data: Any, model_data: Any) -> jax.Array:
        X, level, response = data
        rows, weight = model_data[2], model_data[3]
        noise = jnp.full((len(rows), gan.levels), 0.5)
        score = generate(state[0], jnp.concatenate([X[rows], noise], axis=1))
        observed = (losses(gan, score, response[rows][:, None]) * level[rows]).sum(axis=1)
        return _mean(observed, weight)

    start = _start(gan, optimiser, ("infer", "judge"))
    draw = _draw(gan, loop, 2 * gan.levels - 1)
    return TrainingProgram(start, draw, step, loss, lambda state: state[0], (0, 2), _width(gan))


# -- predicting -----------------------------------------------------------------------------------------------------


def predict(gan: Gan, infer: dict[str, Array], X: Array, noise: Array) -> Array:
    """Return responses (n, K) of features (n, p), averaged over draws of noise (draws, K), `PREDICT_ROWS` rows at a time."""
    blocks = [
        np.asarray(_predict(gan)(infer, jnp.asarray(X[first : first + PREDICT_ROWS], jnp.float32), noise))
        for first in range(0, len(X), PREDICT_ROWS)
    ]
    return np.concatenate(blocks).astype(np.float64) if blocks else np.zeros((0, gan.levels))


@functools.lru_cache(maxsize=32)
def _predict(gan: Gan) -> Any:
    def respond(infer: Params, x: jax.Array, noise: jax.Array) -> jax.Array:
        inputs = jnp.concatenate([x, jnp.broadcast_to(noise, (len(x), gan.levels))], axis=1)
        return responses(gan, generate(infer, inputs))

    return jax.jit(lambda infer, x, noise: jax.vmap(respond, in_axes=(None, None, 0))(infer, x, noise).mean(axis=0))
