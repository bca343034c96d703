"""CFRNet and TARNet: counterfactual regression with a balanced representation (Shalit, Johansson and Sontag 2017).

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
"""

from __future__ import annotations

from typing import Annotated, Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array, Log
from largesse.response.archive import Shaped
from largesse.response.base import ResponseModel
from largesse.response.networks.fitted import Scale, check_depth, check_shapes, choose_least, is_bounded
from largesse.response.networks.jobs import TrainingJob, loop_of_steps
from largesse.response.networks.runner import train
from largesse.response.networks.settings import (
    Network,
    Training,
    option_problems,
    setting_problems,
    settle,
    share_problems,
    strength_problems,
    strengths,
)
from largesse.stats import chosen, hold_out, one_thread

ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # the incentive paper's grid of p_alpha
OPTIONS = {
    "way": ("pairwise", "shared"),
    "ipm": ("linear", "rbf", "wasserstein"),
    "loss": ("auto", "log", "square"),
}
LOOK = 25  # steps between two looks at held-out rows: with few rows a net overfits within a hundred
NETWORK = Network(width=200, depth=3, activation="elu", head_width=100, head_depth=3, initial_scale=0.1)
TRAINING = Training(rate=1e-3, rate_decay=0.97, decay=1e-4, batch=100, steps=3000, patience=40)


@final
class CFRNet(ResponseModel):
    """A network whose representation is balanced between levels, with a head for each level.

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
        Whether rows are weighted so that all levels count alike.
    loss
        "log", "square", or "auto": log where responses lie in [0, 1].
    network, training
        `Network` and `Training`; what is left at "auto" is CFRNet's own. A look of `patience` is 25 steps.
    hold_out
        Share of rows that are held out to choose α and when to stop.
    seed
        For the rows held out, first weights and batches.

    Attributes
    ----------
    alpha_
        The balance used.
    choices_
        What was tried, with its held-out loss.
    """

    alpha_: float
    scale_: Scale
    params_: dict[str, Annotated[Array, Shaped(..., dtype="float32")]]

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
        from largesse.response.baselines.cfrnet_program import Objective, cfrnet_program

        refuse("CFRNet", self._problems(log))
        self.scale_ = Scale.of(log.response)
        alphas, training = strengths(self.alpha, ALPHAS), settle(self.training, TRAINING)
        objective = Objective(self.ipm, any(alpha > 0 for alpha in alphas), training.decay)
        loop = loop_of_steps(training.steps, LOOK, training.patience)
        program = cfrnet_program(self._net(X.shape[1]), objective, training, loop)
        response = self.scale_.standardise(log.response).astype(np.float32)
        data = (X.astype(np.float32), log.level.astype(np.int32), response)
        own, seeds = self._models(log, alphas)
        with one_thread(X.size * len(seeds)):
            found = train(TrainingJob(program, loop, data, own, seeds))
        self._choose(alphas, found.params, found.loss)

    def _models(self, log: Log, alphas: tuple[float, ...]) -> tuple[tuple[Array, ...], Array]:
        """Return what each of α × nets models is given (see `cfrnet_program`), and its seed."""
        from largesse.response.networks.trainer import STOP_ROWS, row_sets

        weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        held = hold_out(log, self.hold_out, self.seed)
        heads = self._heads(len(log.levels))
        inside = [np.isin(log.level, levels) for levels in heads]
        learn = row_sets(
            [np.flatnonzero(mine & ~held) for mine in inside], weight, settle(self.training, TRAINING).batch
        )
        stop = row_sets([np.flatnonzero(mine & held) for mine in inside], weight, most=STOP_ROWS)
        sample = np.array([self._sample_weights(log.level[~held], weight[~held], levels) for levels in heads])
        many, P = len(alphas), len(heads)
        parts = (*learn, *stop, np.array(heads, np.int32), sample.astype(np.float32))
        repeated = tuple(np.tile(part, (many, *[1] * (part.ndim - 1))) for part in parts)
        # The same seeds for every α: the models then differ by α alone.
        return (*repeated, np.repeat(np.array(alphas, np.float32), P)), np.tile(self.seed * 1009 + np.arange(P), many)

    def _heads(self, K: int) -> list[list[int]]:
        """Return the levels that the heads of each net stand for."""
        return [[0, k] for k in range(1, K)] if self.way == "pairwise" and K > 1 else [list(range(K))]

    def _sample_weights(self, level: Array, weight: Array, heads: list[int]) -> Array:
        mass = np.array([weight[level == k].sum() for k in heads])
        if not self.reweight:
            return np.ones(len(heads))
        return np.where(mass > 0, mass.sum() / (len(heads) * np.maximum(mass, 1e-9)), 1.0)

    def _choose(self, alphas: tuple[float, ...], params: dict[str, Array], losses: Array) -> None:
        each = losses.reshape(len(alphas), -1)  # (α, nets)
        self.choices_ = choose_least([f"α {alpha:g}" for alpha in alphas], each.mean(axis=1), of="CFRNet: settings")
        best, P = chosen(self.choices_), each.shape[1]
        self.alpha_ = alphas[best]
        self.params_ = {name: value[best * P : (best + 1) * P] for name, value in params.items()}

    def _net(self, features: int) -> Any:
        from largesse.response.baselines.cfrnet_program import Net

        log_loss = self.scale_.bounded if self.loss == "auto" else self.loss == "log"
        return Net(features, len(self._heads(self.levels_)[0]), settle(self.network, NETWORK), log_loss)

    def _problems(self, log: Log) -> list[Problem]:
        """Return everything that is wrong with the settings, for this log."""
        wrong = option_problems(self, OPTIONS)
        wrong += setting_problems("network", self.network, NETWORK)
        wrong += setting_problems("training", self.training, TRAINING)
        wrong += share_problems(self.hold_out) + strength_problems("alpha", self.alpha)
        if self.loss == "log" and not is_bounded(log.response):
            wrong.append(Problem("loss='log' is for responses in [0, 1]", "use 'auto' or 'square' for amounts"))
        return wrong

    # -- predicting -------------------------------------------------------------------------------------------------

    def _curves(self, X: Array) -> Array:
        from largesse.response.baselines.cfrnet_program import predict

        found = self.scale_.restore(predict(self._net(X.shape[1]), self.params_, X))  # (nets, n, heads)
        # Every net of a pair has a head for level 0: these are averaged. A single net is its own average.
        curves = np.concatenate([found[:, :, 0].mean(axis=0)[:, None], *found[:, :, 1:]], axis=1)
        return np.clip(curves, 0.0, 1.0) if self.scale_.bounded else curves

    def _check_learnt(self) -> None:
        from largesse.response.baselines.cfrnet_program import shapes

        net = self._net(len(self.encoder_.names))
        check_depth(self.params_, net.network.depth, net.network.head_depth)
        wanted = shapes(net)
        nets = len(self._heads(self.levels_))
        check_shapes(self.params_, {name: (nets, *shape) for name, shape in wanted.items()})
