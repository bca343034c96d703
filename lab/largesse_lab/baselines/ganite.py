"""GANITE baseline: a generative adversarial network that fills in counterfactual responses.

Yoon, Jordon and van der Schaar 2018.

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
    check_parameter_shapes,
    find_positive_integer_problems,
    find_setting_problems,
    mark_lowest_loss,
    replace_auto_settings,
    train_networks,
)
from largesse.stats import find_chosen_index, limit_to_one_thread, mark_held_out_rows
from largesse_lab.baselines.network_helpers import (
    draw_batches_by_interval,
    draw_initial_parameters,
    find_held_out_share_problems,
    find_penalty_strength_problems,
    initialise_models_by_seed,
    list_penalty_strengths,
    make_training_loop,
    make_zero_moments,
)

STRENGTHS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)  # the incentive paper's grid, for α and for β
NOISE_DRAWS = 16  # over which predictions are averaged
PREDICT_ROWS = 16_384  # at a time
GANITE_CHECK_STEPS = 100  # steps between two looks at held-out rows
GANITE_NETWORK = Network(width=30)
GANITE_TRAINING = Training(rate=1e-3, batch=256, steps=10_000, patience=10)


@final
class GANITE(ResponseModel):
    """Response model of two generators: one imputes counterfactuals, the other predicts all responses from features.

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
        alphas, betas = list_penalty_strengths(self.alpha, STRENGTHS), list_penalty_strengths(self.beta, STRENGTHS)
        level = np.eye(len(log.levels), dtype=np.float32)[log.level]
        data = (X.astype(np.float32), level, self.scale_.standardise(log.response).astype(np.float32))
        with limit_to_one_thread(X.size * len(alphas) * len(betas)):
            self._train(data, self._split_rows(log), alphas, betas)

    def _train(
        self, data: tuple[Array, ...], rows: list[Array], alphas: tuple[float, ...], betas: tuple[float, ...]
    ) -> None:
        """Train the counterfactual generators for every α, then the inference generators for every α and β."""
        gan, pairs = self._make_architecture(data[0].shape[1]), list(product(range(len(alphas)), betas))
        training = replace_auto_settings(self.training, GANITE_TRAINING)
        loop = make_training_loop(training.steps, GANITE_CHECK_STEPS, training.patience, last=True)
        model_data: tuple[Any, ...] = (*_repeat_arrays(rows, len(alphas)), np.array(alphas, np.float32))
        first = train_networks(
            TrainingJob(
                make_counterfactual_program(gan, loop), loop, data, model_data, np.full(len(alphas), 2 * self.seed)
            )
        ).params
        source = np.array([i for i, _ in pairs])
        model_data = (
            *_repeat_arrays(rows, len(pairs)),
            np.array([beta for _, beta in pairs], np.float32),
            {name: value[source] for name, value in first.items()},
        )
        loop = make_training_loop(training.steps, GANITE_CHECK_STEPS, training.patience)
        program = make_inference_program(gan, any(beta > 0 for beta in betas), loop)
        second = train_networks(TrainingJob(program, loop, data, model_data, np.full(len(pairs), 2 * self.seed + 1)))
        names = [f"α {alphas[i]:g}, β {beta:g}" for i, beta in pairs]
        self.choices_ = mark_lowest_loss(names, second.loss, of="GANITE: settings")
        best = find_chosen_index(self.choices_)
        self.alpha_, self.beta_ = alphas[source[best]], pairs[best][1]
        self.params_ = {name: value[best] for name, value in second.params.items()}

    def _split_rows(self, log: Log) -> list[Array]:
        """Return training rows with weights and held-out rows with weights, each as an array (1, n)."""
        weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        held = mark_held_out_rows(log, self.hold_out, self.seed)
        stop = batched_training.stack_row_sets([np.flatnonzero(held)], weight, most=batched_training.STOP_ROWS)
        return [*batched_training.stack_row_sets([np.flatnonzero(~held)], weight), *stop]

    def _make_architecture(self, features: int) -> Any:

        width, training = (
            replace_auto_settings(self.network, GANITE_NETWORK).width,
            replace_auto_settings(self.training, GANITE_TRAINING),
        )
        settings = (training.rate, training.batch, self.discriminator_steps)
        return GANITEArchitecture(features, self.levels_, width, self.scale_.bounded, *settings)

    def _problems(self) -> list[Problem]:
        wrong = find_setting_problems("network", self.network, GANITE_NETWORK)
        wrong += find_setting_problems("training", self.training, GANITE_TRAINING)
        wrong += find_positive_integer_problems(self, ("discriminator_steps",))
        wrong += find_held_out_share_problems(self.hold_out) + find_penalty_strength_problems("alpha", self.alpha)
        return wrong + find_penalty_strength_problems("beta", self.beta)

    # -- predicting -------------------------------------------------------------------------------------------------

    def _curves(self, X: Array) -> Array:

        noise = np.random.default_rng(self.seed).random((NOISE_DRAWS, self.levels_), np.float32)
        return self.scale_.restore_units(
            predict_ganite_responses(self._make_architecture(X.shape[1]), self.params_, X, noise)
        )

    def _check_learnt(self) -> None:

        check_parameter_shapes(
            self.params_, list_ganite_shapes(self._make_architecture(len(self.encoder_.names)))["infer"]
        )


def _repeat_arrays(parts: list[Array], many: int) -> list[Array]:
    return [np.repeat(array, many, axis=0) for array in parts]


Params = dict[str, jax.Array]
INITIAL_SCALE = np.sqrt(2.0)  # of first weights, × 1/√fan-in, as published


@dataclass(frozen=True)
class GANITEArchitecture:
    """Sizes of GANITE's networks and settings of their training."""

    features: int
    levels: int
    width: int
    bounded: bool  # responses in [0, 1]: outputs are logits
    rate: float
    batch: int
    discriminator_steps: int  # for each step of a generator


# -- the networks ---------------------------------------------------------------------------------------------------


def _generator_shapes(gan: GANITEArchitecture, inputs: int) -> dict[str, tuple[int, ...]]:
    """Return the parameter shapes of a generator: two shared layers, then two layers per level."""
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


def _discriminator_shapes(gan: GANITEArchitecture, outputs: int) -> dict[str, tuple[int, ...]]:
    sizes = [gan.features + gan.levels, gan.width, gan.width, outputs]
    layer_shapes: dict[str, tuple[int, ...]] = {}
    for j, (a, b) in enumerate(pairwise(sizes)):
        layer_shapes |= {f"layer{j}_w": (a, b), f"layer{j}_b": (b,)}
    return layer_shapes


def list_ganite_shapes(gan: GANITEArchitecture) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the parameter shapes of GANITE's two generators and two discriminators."""
    p, K = gan.features, gan.levels
    return {
        "complete": _generator_shapes(gan, p + K + 1 + (K - 1)),
        "detect": _discriminator_shapes(gan, K),
        "infer": _generator_shapes(gan, p + K),
        "judge": _discriminator_shapes(gan, 1),
    }


def compute_generator_scores(params: Params, inputs: jax.Array) -> jax.Array:
    """Return a generator's output scores (n, K) for inputs (n, q)."""
    h = jax.nn.relu(inputs @ params["shared0_w"] + params["shared0_b"])
    h = jax.nn.relu(h @ params["shared1_w"] + params["shared1_b"])
    h = jax.nn.relu(jnp.einsum("nd,kde->kne", h, params["head0_w"]) + params["head0_b"][:, None])
    out = jnp.einsum("knd,kde->kne", h, params["head1_w"]) + params["head1_b"][:, None]
    return out[:, :, 0].T


def compute_discriminator_logits(params: Params, x: jax.Array, rows: jax.Array) -> jax.Array:
    """Return a discriminator's logits from features (n, p) and responses at all levels (n, K)."""
    h = jnp.concatenate([x, rows], axis=1)
    for j in range(2):
        h = jax.nn.relu(h @ params[f"layer{j}_w"] + params[f"layer{j}_b"])
    return h @ params["layer2_w"] + params["layer2_b"]


def convert_generator_scores(gan: GANITEArchitecture, score: jax.Array) -> jax.Array:
    """Convert output scores to expected responses: probabilities through a sigmoid, or unchanged amounts."""
    return jax.nn.sigmoid(score) if gan.bounded else score


def compute_response_losses(gan: GANITEArchitecture, score: jax.Array, target: jax.Array) -> jax.Array:
    """Return the loss of each predicted response: log loss for probabilities, else squared error."""
    return jax.nn.softplus(score) - target * score if gan.bounded else (score - target) ** 2


# -- block one ------------------------------------------------------------------------------------------------------


def compute_completion_scores(
    complete: Params, x: jax.Array, level: jax.Array, r: jax.Array, noise: jax.Array
) -> jax.Array:
    """Return the counterfactual generator's scores (n, K) from features, level, logged response and noise."""
    return compute_generator_scores(complete, jnp.concatenate([x, level, r[:, None], noise], axis=1))


def insert_logged_responses(generated: jax.Array, level: jax.Array, r: jax.Array) -> jax.Array:
    """Replace generated responses (n, K) by the logged responses (n,) at the logged levels."""
    return jnp.where(level > 0, r[:, None], generated)


def compute_level_discriminator_loss(
    detect: Params, x: jax.Array, rows: jax.Array, level: jax.Array, w: jax.Array
) -> jax.Array:
    """Return the cross-entropy of the discriminator that predicts the logged level."""
    log_probability = jax.nn.log_softmax(compute_discriminator_logits(detect, x, rows), axis=1)
    return -_weighted_mean((log_probability * level).sum(axis=1), w)


def compute_counterfactual_generator_loss(
    gan: GANITEArchitecture,
    complete: Params,
    detect: Params,
    batch: tuple[Any, ...],
    noise: jax.Array,
    alpha: jax.Array,
) -> jax.Array:
    """Return the counterfactual generator's loss: response loss minus α × the discriminator's loss."""
    x, level, r, w = batch
    score = compute_completion_scores(complete, x, level, r, noise)
    observed = _weighted_mean((compute_response_losses(gan, score, r[:, None]) * level).sum(axis=1), w)
    return observed - alpha * compute_level_discriminator_loss(
        detect, x, insert_logged_responses(convert_generator_scores(gan, score), level, r), level, w
    )


# -- block two ------------------------------------------------------------------------------------------------------


def compute_second_discriminator_loss(
    judge: Params, x: jax.Array, real: jax.Array, made: jax.Array, w: jax.Array
) -> jax.Array:
    """Return the cross-entropy of the discriminator that separates completed rows from inferred rows."""
    yes = jax.nn.softplus(-compute_discriminator_logits(judge, x, real)[:, 0])
    no = jax.nn.softplus(compute_discriminator_logits(judge, x, made)[:, 0])
    return _weighted_mean(yes + no, w)


def compute_inference_generator_loss(
    gan: GANITEArchitecture,
    infer: Params,
    judge: Params,
    batch: tuple[Any, ...],
    rows: jax.Array,
    noise: jax.Array,
    beta: jax.Array,
) -> jax.Array:
    """Return the inference generator's loss: loss on completed rows minus β × the discriminator's loss."""
    x, _, _, w = batch
    score = compute_generator_scores(infer, jnp.concatenate([x, noise], axis=1))
    return _weighted_mean(
        compute_response_losses(gan, score, rows).mean(axis=1), w
    ) - beta * compute_second_discriminator_loss(judge, x, rows, convert_generator_scores(gan, score), w)


def _weighted_mean(values: jax.Array, w: jax.Array) -> jax.Array:
    return w @ values / jnp.maximum(w.sum(), 1e-9)


# -- what a step does -----------------------------------------------------------------------------------------------


def _adam_step(optimiser: Any, loss: Any, params: Params, moments: Any) -> tuple[Params, Any]:
    update, moments = optimiser.update(jax.grad(loss)(params), moments, params)
    return optax.apply_updates(params, update), moments


def _make_initialiser(gan: GANITEArchitecture, optimiser: Any, names: Sequence[str]) -> Callable[..., Any]:
    """Return a function that draws a generator's and a discriminator's first weights and zero Adam moments."""

    def first(rng: np.random.Generator) -> Any:
        first_params, second_params = (
            draw_initial_parameters(rng, list_ganite_shapes(gan)[name], INITIAL_SCALE) for name in names
        )
        return (
            first_params,
            second_params,
            make_zero_moments(optimiser, first_params),
            make_zero_moments(optimiser, second_params),
        )

    return lambda seeds, _model_data: initialise_models_by_seed(seeds, first)


def _make_batch_sampler(gan: GANITEArchitecture, loop: TrainingLoop, numbers: int) -> Callable[..., Iterator[Any]]:
    """Return a function that draws the rows (with replacement) and the noise of every training step."""

    def draw(seed: int, model_data: Any, stretches: Sequence[Array]) -> Iterator[Any]:
        some = np.flatnonzero(np.asarray(model_data[1]) > 0)

        def draws(rng: np.random.Generator, steps: int) -> tuple[Array, Array]:
            size = (steps, gan.discriminator_steps + 1, gan.batch)
            return some[rng.integers(0, len(some), size)].astype(np.int32), rng.random((*size, numbers), np.float32)

        return draw_batches_by_interval(seed, stretches, loop.steps, draws)

    return draw


def _count_values_per_row(gan: GANITEArchitecture) -> int:
    """Return the number of values that generator and discriminator hold per row."""
    return gan.features + (4 + gan.levels) * gan.width


def _take_batch(data: Any, model_data: Any, places: jax.Array) -> tuple[jax.Array, ...]:
    X, level, response = data
    rows = model_data[0][places]
    return X[rows], level[rows], response[rows], model_data[1][places]


@functools.lru_cache(maxsize=32)
def make_counterfactual_program(gan: GANITEArchitecture, loop: TrainingLoop) -> TrainingProgram:
    """Return the training program of the counterfactual generator and its discriminator.

    `data`: features, one-hot level (n, K), response. `model_data`: rows, weights, held-out rows, weights, α.
    """
    optimiser = optax.adam(gan.rate)

    def step(state: Any, data: Any, model_data: Any, drawn: Any) -> Any:
        complete, detect, complete_moments, detect_moments = state
        places, noise = drawn
        for turn in range(gan.discriminator_steps):
            x, level, r, w = _take_batch(data, model_data, places[turn])
            rows = insert_logged_responses(
                convert_generator_scores(gan, compute_completion_scores(complete, x, level, r, noise[turn])), level, r
            )
            completed_batch = (x, rows, level, w)
            detect, detect_moments = _adam_step(
                optimiser, lambda q, b=completed_batch: compute_level_discriminator_loss(q, *b), detect, detect_moments
            )
        batch = _take_batch(data, model_data, places[-1])
        complete, complete_moments = _adam_step(
            optimiser,
            lambda q: compute_counterfactual_generator_loss(gan, q, detect, batch, noise[-1], model_data[4]),
            complete,
            complete_moments,
        )
        return complete, detect, complete_moments, detect_moments

    start = _make_initialiser(gan, optimiser, ("complete", "detect"))
    draw = _make_batch_sampler(gan, loop, gan.levels - 1)
    return TrainingProgram(
        start, draw, step, lambda *_: jnp.float32(0), lambda state: state[0], (0, 2), _count_values_per_row(gan)
    )


@functools.lru_cache(maxsize=32)
def make_inference_program(gan: GANITEArchitecture, judged: bool, loop: TrainingLoop) -> TrainingProgram:
    """Return the training program of the inference generator and its discriminator.

    `model_data` as in the counterfactual program, with β in the place of α, then the trained counterfactual generator.

    Without a judge (every β zero) no discriminator is trained.
    """
    optimiser = optax.adam(gan.rate)

    def completed(model_data: Any, batch: tuple[Any, ...], noise: jax.Array) -> jax.Array:
        x, level, r, _ = batch
        score = compute_completion_scores(model_data[5], x, level, r, noise[:, gan.levels :])
        return insert_logged_responses(convert_generator_scores(gan, score), level, r)

    def step(state: Any, data: Any, model_data: Any, drawn: Any) -> Any:
        infer, judge, infer_moments, judge_moments = state
        places, noise = drawn
        for turn in range(gan.discriminator_steps if judged else 0):
            batch = _take_batch(data, model_data, places[turn])
            real = completed(model_data, batch, noise[turn])
            made = compute_generator_scores(infer, jnp.concatenate([batch[0], noise[turn][:, : gan.levels]], axis=1))
            pair = (batch[0], real, convert_generator_scores(gan, made), batch[3])
            judge, judge_moments = _adam_step(
                optimiser, lambda q, b=pair: compute_second_discriminator_loss(q, *b), judge, judge_moments
            )
        batch = _take_batch(data, model_data, places[-1])
        rows = completed(model_data, batch, noise[-1])
        beta = model_data[4] if judged else 0.0
        infer, infer_moments = _adam_step(
            optimiser,
            lambda q: compute_inference_generator_loss(gan, q, judge, batch, rows, noise[-1][:, : gan.levels], beta),
            infer,
            infer_moments,
        )
        return infer, judge, infer_moments, judge_moments

    def loss(state: Any, data: Any, model_data: Any) -> jax.Array:
        X, level, response = data
        rows, weight = model_data[2], model_data[3]
        noise = jnp.full((len(rows), gan.levels), 0.5)
        score = compute_generator_scores(state[0], jnp.concatenate([X[rows], noise], axis=1))
        observed = (compute_response_losses(gan, score, response[rows][:, None]) * level[rows]).sum(axis=1)
        return _weighted_mean(observed, weight)

    start = _make_initialiser(gan, optimiser, ("infer", "judge"))
    draw = _make_batch_sampler(gan, loop, 2 * gan.levels - 1)
    return TrainingProgram(start, draw, step, loss, lambda state: state[0], (0, 2), _count_values_per_row(gan))


# -- predicting -----------------------------------------------------------------------------------------------------


def predict_ganite_responses(gan: GANITEArchitecture, infer: dict[str, Array], X: Array, noise: Array) -> Array:
    """Return the responses (n, K) predicted for features (n, p), averaged over draws of noise (draws, K)."""
    blocks = [
        np.asarray(
            _compile_ganite_prediction(gan)(infer, jnp.asarray(X[first : first + PREDICT_ROWS], jnp.float32), noise)
        )
        for first in range(0, len(X), PREDICT_ROWS)
    ]
    return np.concatenate(blocks).astype(np.float64) if blocks else np.zeros((0, gan.levels))


@functools.lru_cache(maxsize=32)
def _compile_ganite_prediction(gan: GANITEArchitecture) -> Any:
    def respond(infer: Params, x: jax.Array, noise: jax.Array) -> jax.Array:
        inputs = jnp.concatenate([x, jnp.broadcast_to(noise, (len(x), gan.levels))], axis=1)
        return convert_generator_scores(gan, compute_generator_scores(infer, inputs))

    return jax.jit(lambda infer, x, noise: jax.vmap(respond, in_axes=(None, None, 0))(infer, x, noise).mean(axis=0))
