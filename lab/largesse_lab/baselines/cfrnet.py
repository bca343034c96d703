"""CFRNet and TARNet baselines: networks with a balanced representation and one head per level.

Shalit, Johansson and Sontag 2017.

A representation Φ whose rows have length one, a head for each level, rows weighted by 1/(K · share of their level), and
α × a distance (IPM) between the levels' representations. α = 0 is TARNet. The defaults are the settings published for
IHDP, except α, which is chosen: next to the log loss of 0/1 responses the published 0.3 leaves nothing.

Differences from the published code:

- More than two levels. "pairwise" is the reading of the incentive paper: K−1 nets of level 0 against level k, whose heads
  for level 0 are averaged; they share one α. "shared" is one Φ with K heads and the distance of each level from all
  others, weighted by its share. With two levels both are the same.
- Responses in [0, 1] have the published log loss, amounts the published squared error, on standardised amounts.
- The best weights on held-out rows are kept during training, with a look every 25 steps; the published code records
  predictions, less often, and chooses among them afterwards. A model without gain for `patience` looks stops.
- α="auto" chooses by the same held-out loss, from the incentive paper's grid. TARNet is not in that grid.
- No dropout and no batch norm: the published settings for IHDP have neither.
- Features are standardised, as for all models here.

Integral probability metrics (IPM) are distances between two groups of rows in a representation. Groups are given as masses
over the same rows, so that shapes do not depend on who is in a batch; a group without mass has distance zero from any other.
All three metrics are as published, with groups of equal weight (`use_p_correction=0`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    check_saved_layers,
    find_setting_problems,
    is_bounded,
    mark_lowest_loss,
    replace_auto_settings,
    train_networks,
)
from largesse.stats import find_chosen_index, limit_to_one_thread, mark_held_out_rows
from largesse_lab.baselines.network_helpers import (
    draw_batches,
    draw_batches_by_interval,
    draw_initial_parameters,
    find_held_out_share_problems,
    find_penalty_strength_problems,
    find_unknown_option_problems,
    initialise_models_by_seed,
    list_penalty_strengths,
    make_training_loop,
    make_zero_moments,
)

ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # the incentive paper's grid of p_alpha
CFRNET_OPTIONS = {
    "way": ("pairwise", "shared"),
    "ipm": ("linear", "rbf", "wasserstein"),
    "loss": ("auto", "log", "square"),
}
CFRNET_CHECK_STEPS = 25  # steps between two looks at held-out rows: with few rows a net overfits within a hundred
CFRNET_NETWORK = Network(width=200, depth=3, activation="elu", head_width=100, head_depth=3, initial_scale=0.1)
CFRNET_TRAINING = Training(rate=1e-3, rate_decay=0.97, decay=1e-4, batch=100, steps=3000, patience=40)


@final
class CFRNet(ResponseModel):
    """Network with a representation that is balanced between levels, and one output head per level.

    Parameters
    ----------
    alpha
        Strength of the balance: a number (0.3 was published for IHDP), several to choose from, or "auto": the incentive
        paper's grid, 1e-5 to 10.
    way
        More than two levels: "pairwise" (level 0 against each other one) or "shared" (one representation, K heads).
    ipm
        "wasserstein", "linear" or "rbf".
    reweight
        Whether rows are weighted so that all levels count equally.
    loss
        "log", "square", or "auto": log where responses lie in [0, 1].
    network, training
        `Network` and `Training`; a setting at "auto" is CFRNet's default. A look of `patience` is 25 steps.
    hold_out
        Share of rows that are held out to choose α and when to stop.
    seed
        For the rows held out, first weights and batches.

    Attributes
    ----------
    alpha_
        The balance used.
    choices_
        The candidates, with their held-out losses.
    """

    alpha_: float
    scale_: ResponseScale
    params_: dict[str, Annotated[Array, ArraySpec(..., dtype="float32")]]

    def __init__(
        self,
        *,
        alpha: Any = "auto",
        way: str = "pairwise",
        ipm: str = "wasserstein",
        reweight: bool = True,
        loss: str = "auto",
        network: Network = Network(),
        training: Training = Training(),
        hold_out: float = 0.3,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.way = way
        self.ipm = ipm
        self.reweight = reweight
        self.loss = loss
        self.network = network
        self.training = training
        self.hold_out = hold_out
        self.seed = seed

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:

        refuse("CFRNet", self._problems(log))
        self.scale_ = ResponseScale.choose_scale(log.response)
        alphas, training = (
            list_penalty_strengths(self.alpha, ALPHAS),
            replace_auto_settings(self.training, CFRNET_TRAINING),
        )
        objective = CFRNetPenalties(self.ipm, any(alpha > 0 for alpha in alphas), training.decay)
        loop = make_training_loop(training.steps, CFRNET_CHECK_STEPS, training.patience)
        program = make_cfrnet_program(self._make_architecture(X.shape[1]), objective, training, loop)
        response = self.scale_.standardise(log.response).astype(np.float32)
        data = (X.astype(np.float32), log.level.astype(np.int32), response)
        model_data, seeds = self._make_model_arrays(log, alphas)
        with limit_to_one_thread(X.size * len(seeds)):
            trained = train_networks(TrainingJob(program, loop, data, model_data, seeds))
        self._choose_alpha(alphas, trained.params, trained.loss)

    def _make_model_arrays(self, log: Log, alphas: tuple[float, ...]) -> tuple[tuple[Array, ...], Array]:
        """Return the data arrays and seeds of one model per α and network, for one training program."""
        weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        held = mark_held_out_rows(log, self.hold_out, self.seed)
        heads = self._list_head_levels(len(log.levels))
        inside = [np.isin(log.level, levels) for levels in heads]
        learn = batched_training.stack_row_sets(
            [np.flatnonzero(mine & ~held) for mine in inside],
            weight,
            replace_auto_settings(self.training, CFRNET_TRAINING).batch,
        )
        stop = batched_training.stack_row_sets(
            [np.flatnonzero(mine & held) for mine in inside], weight, most=batched_training.STOP_ROWS
        )
        sample = np.array([self._compute_level_weights(log.level[~held], weight[~held], levels) for levels in heads])
        many, P = len(alphas), len(heads)
        parts = (*learn, *stop, np.array(heads, np.int32), sample.astype(np.float32))
        repeated = tuple(np.tile(array, (many, *[1] * (array.ndim - 1))) for array in parts)
        # The same seeds for every α: the models then differ by α alone.
        return (*repeated, np.repeat(np.array(alphas, np.float32), P)), np.tile(self.seed * 1009 + np.arange(P), many)

    def _list_head_levels(self, K: int) -> list[list[int]]:
        """List the levels that have an output head in each network."""
        return [[0, k] for k in range(1, K)] if self.way == "pairwise" and K > 1 else [list(range(K))]

    def _compute_level_weights(self, level: Array, weight: Array, heads: list[int]) -> Array:
        mass = np.array([weight[level == k].sum() for k in heads])
        if not self.reweight:
            return np.ones(len(heads))
        return np.where(mass > 0, mass.sum() / (len(heads) * np.maximum(mass, 1e-9)), 1.0)

    def _choose_alpha(self, alphas: tuple[float, ...], params: dict[str, Array], losses: Array) -> None:
        each = losses.reshape(len(alphas), -1)  # (α, nets)
        self.choices_ = mark_lowest_loss([f"α {alpha:g}" for alpha in alphas], each.mean(axis=1), of="CFRNet: settings")
        best, P = find_chosen_index(self.choices_), each.shape[1]
        self.alpha_ = alphas[best]
        self.params_ = {name: value[best * P : (best + 1) * P] for name, value in params.items()}

    def _make_architecture(self, features: int) -> Any:

        log_loss = self.scale_.bounded if self.loss == "auto" else self.loss == "log"
        return CFRNetArchitecture(
            features,
            len(self._list_head_levels(self.levels_)[0]),
            replace_auto_settings(self.network, CFRNET_NETWORK),
            log_loss,
        )

    def _problems(self, log: Log) -> list[Problem]:
        """List settings that are invalid, or unsuitable for the log's responses."""
        wrong = find_unknown_option_problems(self, CFRNET_OPTIONS)
        wrong += find_setting_problems("network", self.network, CFRNET_NETWORK)
        wrong += find_setting_problems("training", self.training, CFRNET_TRAINING)
        wrong += find_held_out_share_problems(self.hold_out) + find_penalty_strength_problems("alpha", self.alpha)
        if self.loss == "log" and not is_bounded(log.response):
            wrong.append(Problem("loss='log' is for responses in [0, 1]", "use 'auto' or 'square' for amounts"))
        return wrong

    # -- predicting -------------------------------------------------------------------------------------------------

    def _curves(self, X: Array) -> Array:

        responses = self.scale_.restore_units(
            predict_cfrnet_responses(self._make_architecture(X.shape[1]), self.params_, X)
        )  # (nets, n, heads)
        # Every net of a pair has a head for level 0: these are averaged. A single net is its own average.
        curves = np.concatenate([responses[:, :, 0].mean(axis=0)[:, None], *responses[:, :, 1:]], axis=1)
        return np.clip(curves, 0.0, 1.0) if self.scale_.bounded else curves

    def _check_learnt(self) -> None:

        net = self._make_architecture(len(self.encoder_.names))
        check_saved_layers(self.params_, net.network.depth, net.network.head_depth)
        wanted = list_cfrnet_shapes(net)
        nets = len(self._list_head_levels(self.levels_))
        check_parameter_shapes(self.params_, {name: (nets, *shape) for name, shape in wanted.items()})


Params = dict[str, jax.Array]
SQUASH = 0.995  # probabilities are held .0025 away from 0 and 1, as published, so that their logs stay finite


@dataclass(frozen=True)
class CFRNetArchitecture:
    """Sizes of a CFRNet: its number of features, its representation layers, and its heads."""

    features: int
    levels: int
    network: Network
    log_loss: bool


@dataclass(frozen=True)
class CFRNetPenalties:
    """Penalties that CFRNet's training adds to the response loss."""

    ipm: str
    balance: bool  # whether any α is above zero
    decay: float  # L2 penalty on the heads' weights


def list_cfrnet_shapes(net: CFRNetArchitecture) -> dict[str, tuple[int, ...]]:
    """Return the array shape of every parameter of a CFRNet by name."""
    size = net.network
    rep = [net.features, *[size.width] * size.depth]
    head = [rep[-1], *[size.head_width] * size.head_depth, 1]
    sizes: dict[str, tuple[int, ...]] = {}
    for j, (a, b) in enumerate(pairwise(rep)):
        sizes |= {f"rep{j}_w": (a, b), f"rep{j}_b": (b,)}
    for j, (a, b) in enumerate(pairwise(head)):
        sizes |= {f"head{j}_w": (net.levels, a, b), f"head{j}_b": (net.levels, b)}
    return sizes


def compute_representations(net: CFRNetArchitecture, params: Params, x: jax.Array) -> jax.Array:
    """Return unit-length representations (n, width) of features (n, p)."""
    activate = getattr(jax.nn, net.network.activation)
    h = x
    for j in range(net.network.depth):
        h = activate(h @ params[f"rep{j}_w"] + params[f"rep{j}_b"])
    return h / jnp.sqrt(jnp.maximum((h**2).sum(axis=1, keepdims=True), 1e-10))


def compute_level_scores(net: CFRNetArchitecture, params: Params, h: jax.Array) -> jax.Array:
    """Return the output scores (n, K) of all heads from representations (n, width)."""
    activate, depth = getattr(jax.nn, net.network.activation), net.network.head_depth
    out = jnp.broadcast_to(h, (net.levels, *h.shape))
    for j in range(depth + 1):
        out = jnp.einsum("knd,kde->kne", out, params[f"head{j}_w"]) + params[f"head{j}_b"][:, None]
        out = activate(out) if j < depth else out
    return out[:, :, 0].T


def convert_scores_to_responses(net: CFRNetArchitecture, score: jax.Array) -> jax.Array:
    """Convert output scores to expected responses: probabilities through a sigmoid, or unchanged amounts."""
    return SQUASH * jax.nn.sigmoid(score) + (1 - SQUASH) / 2 if net.log_loss else score


def compute_row_losses(net: CFRNetArchitecture, score: jax.Array, response: jax.Array) -> jax.Array:
    """Return the loss (n,) of each row's score: log loss for probabilities, else squared error."""
    p = convert_scores_to_responses(net, score)
    return -(response * jnp.log(p) + (1 - response) * jnp.log1p(-p)) if net.log_loss else (p - response) ** 2


def compute_batch_loss(
    net: CFRNetArchitecture, objective: CFRNetPenalties, params: Params, batch: tuple[jax.Array, ...], alpha: jax.Array
) -> jax.Array:
    """Return CFRNet's training loss on a batch of rows, with its penalties.

    A batch is features, one-hot level (n, K), response, sample weight and mass.

    The mean over the batch's rows of sample weight × loss, + α · IPM, + decay · ½‖W‖² over the heads' weights alone.
    """
    x, level, response, sample, mass = batch
    h = compute_representations(net, params, x)
    loss = compute_row_losses(net, (compute_level_scores(net, params, h) * level).sum(axis=1), response)
    total = (mass * sample) @ loss / jnp.maximum(mass.sum(), 1e-9)
    if objective.balance:
        total += alpha * measure_one_against_all_distance(objective.ipm, h, level, mass)
    heads = [params[f"head{j}_w"] for j in range(net.network.head_depth + 1)]
    return total + objective.decay * 0.5 * sum(jnp.sum(w**2) for w in heads)


@functools.lru_cache(maxsize=32)
def make_cfrnet_program(
    net: CFRNetArchitecture, objective: CFRNetPenalties, training: Training, loop: TrainingLoop
) -> TrainingProgram:
    """Return the compiled training program of CFRNets.

    `data`: features, level, response. `model_data`: rows and weights to train on, rows and weights to stop by, the levels (K,)
    that the heads stand for, sample weights (K,), α.
    """
    optimiser = optax.adam(optax.exponential_decay(training.rate, 100, training.rate_decay, staircase=True))

    def first(rng: np.random.Generator) -> Any:
        params = draw_initial_parameters(rng, list_cfrnet_shapes(net), net.network.initial_scale)
        return params, make_zero_moments(optimiser, params)

    def start(seeds: Array, _model_data: Any) -> Any:
        return initialise_models_by_seed(seeds, first)

    def draw(seed: int, model_data: Any, stretches: Sequence[Array]) -> Iterator[Array]:
        return draw_batches_by_interval(
            seed, stretches, loop.steps, lambda rng, n: draw_batches(rng, model_data[1], n, training.batch)
        )

    def step(state: Any, data: Any, model_data: Any, places: jax.Array) -> Any:
        params, moments = state
        X, level, response = data
        index, weight, _, _, heads, sample, alpha = model_data
        rows = index[places]
        one_hot = (level[rows][:, None] == heads).astype(jnp.float32)
        batch = (X[rows], one_hot, response[rows], one_hot @ sample, weight[places])
        slope = jax.grad(compute_batch_loss, argnums=2)(net, objective, params, batch, alpha)
        update, moments = optimiser.update(slope, moments, params)
        return optax.apply_updates(params, update), moments

    def loss(state: Any, data: Any, model_data: Any) -> jax.Array:
        X, level, response = data
        _, _, rows, weight, heads, _, _ = model_data
        score = compute_level_scores(net, state[0], compute_representations(net, state[0], X[rows]))
        at_level = (score * (level[rows][:, None] == heads)).sum(axis=1)
        return weight @ compute_row_losses(net, at_level, response[rows]) / jnp.maximum(weight.sum(), 1e-9)

    size = net.network
    width = size.depth * size.width + net.levels * size.head_depth * size.head_width
    return TrainingProgram(start, draw, step, loss, lambda state: state[0], (0, 2), width)


def predict_cfrnet_responses(net: CFRNetArchitecture, params: dict[str, Array], X: Array, rows: int = 16_384) -> Array:
    """Return the responses (M, n, K) that M trained networks predict for features (n, p)."""
    models = len(params["rep0_w"])
    blocks = [
        np.asarray(_compile_cfrnet_prediction(net)(params, jnp.asarray(X[first : first + rows], jnp.float32)))
        for first in range(0, len(X), rows)
    ]
    return np.concatenate(blocks, axis=1).astype(np.float64) if blocks else np.zeros((models, 0, net.levels))


@functools.lru_cache(maxsize=32)
def _compile_cfrnet_prediction(net: CFRNetArchitecture) -> Any:
    def respond(params: Params, x: jax.Array) -> jax.Array:
        return convert_scores_to_responses(
            net, compute_level_scores(net, params, compute_representations(net, params, x))
        )

    return jax.jit(jax.vmap(respond, in_axes=(0, None)))


SIGMA = 0.1  # width of the Gaussian kernel
SHARPNESS = 10.0  # of the entropic transport: larger is closer to the exact distance
ITERATIONS = 10  # of Sinkhorn's algorithm
MIN_TRANSPORT_KERNEL = 1e-6  # added to the transport kernel
TINY = 1e-10  # least squared distance: the gradient of a root is infinite at zero


def measure_group_distance(kind: str, z: jax.Array, mass: jax.Array, other_mass: jax.Array) -> jax.Array:
    """Return the distance between the distributions of two weighted groups of representations (n, width)."""
    return {"linear": linear_mean_distance, "rbf": rbf_mmd_distance, "wasserstein": wasserstein_distance}[kind](
        z, mass, other_mass
    )


def measure_one_against_all_distance(kind: str, z: jax.Array, level: jax.Array, weight: jax.Array) -> jax.Array:
    """Return the mean distance of each level's representations from those of all other levels.

    Σ_k p_k · distance(level k, all others), with p_k the share of level k; `level` (n, K) is one-hot.

    With two levels this is the distance between them, from level 1 to level 0.
    """
    mass = level * weight[:, None]
    if level.shape[1] == 2:
        return measure_group_distance(kind, z, mass[:, 1], mass[:, 0])
    each = jax.vmap(lambda k: measure_group_distance(kind, z, mass[:, k], weight - mass[:, k]))
    return each(jnp.arange(level.shape[1])) @ mass.sum(axis=0) / jnp.maximum(weight.sum(), 1e-9)


def linear_mean_distance(z: jax.Array, mass: jax.Array, other_mass: jax.Array) -> jax.Array:
    """Return the squared distance between the means of two groups."""
    apart = mass @ z / jnp.maximum(mass.sum(), 1e-9) - other_mass @ z / jnp.maximum(other_mass.sum(), 1e-9)
    return _have_both_groups(mass, other_mass) * jnp.sum(apart**2)


def rbf_mmd_distance(z: jax.Array, mass: jax.Array, other_mass: jax.Array, sigma: float = SIGMA) -> jax.Array:
    """Return the unbiased squared MMD of two groups with the kernel exp(−d²/σ²), which may be negative."""
    kernel = jnp.exp(-_squared_distances(z) / sigma**2)
    kernel = kernel * (1 - jnp.eye(len(z)))

    def mean(a: jax.Array, b: jax.Array) -> jax.Array:
        return a @ kernel @ b / jnp.maximum(a.sum() * b.sum() - (a * b).sum(), 1e-9)

    return _have_both_groups(mass, other_mass) * (
        mean(mass, mass) + mean(other_mass, other_mass) - 2 * mean(mass, other_mass)
    )


def wasserstein_distance(
    z: jax.Array,
    mass: jax.Array,
    other_mass: jax.Array,
    sharpness: float = SHARPNESS,
    iterations: int = ITERATIONS,
    floor: float = MIN_TRANSPORT_KERNEL,
) -> jax.Array:
    """Return the Wasserstein distance of two groups, approximated by Sinkhorn's algorithm.

    Gradients also pass through the transport plan.

    As published: the kernel is exp(−sharpness · distance / mean distance); each group has an extra bin, as heavy as the
    other group and as far from every row as the farthest pair; the cost is doubled, since each group weighs a half.
    """
    cost = jnp.sqrt(jnp.maximum(_squared_distances(z), TINY))
    pairs = jnp.outer(mass, other_mass) > 0
    farthest = jax.lax.stop_gradient(jnp.max(jnp.where(pairs, cost, 0.0)))
    mean = jax.lax.stop_gradient((mass @ cost @ other_mass) / jnp.maximum(mass.sum() * other_mass.sum(), 1e-9))
    n = len(z)
    full = jnp.full((n + 1, n + 1), farthest).at[:n, :n].set(cost).at[n, n].set(0.0)
    a = jnp.append(0.5 * mass / jnp.maximum(mass.sum(), 1e-9), 0.5)
    b = jnp.append(0.5 * other_mass / jnp.maximum(other_mass.sum(), 1e-9), 0.5)
    kernel = jnp.exp(-sharpness / jnp.maximum(mean, 1e-9) * full) + floor

    def iterate(u: jax.Array, _: None) -> tuple[jax.Array, None]:
        return a / (kernel @ (b / (kernel.T @ u))), None

    u, _ = jax.lax.scan(iterate, jnp.ones(n + 1) * a, None, length=iterations)
    v = b / (kernel.T @ u)
    return _have_both_groups(mass, other_mass) * 2 * jnp.sum(u[:, None] * kernel * v * full)


def _have_both_groups(mass: jax.Array, other_mass: jax.Array) -> jax.Array:
    return ((mass.sum() > 0) & (other_mass.sum() > 0)).astype(jnp.float32)


def _squared_distances(z: jax.Array) -> jax.Array:
    """Return the squared distances (n, n) between all pairs of rows."""
    z = z - z.mean(axis=0)
    size = (z**2).sum(axis=1)
    # Differences of large products: the coarse products of a GPU would leave noise.
    return jnp.maximum(size[:, None] + size - 2 * jnp.matmul(z, z.T, precision="highest"), 0.0)
