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
"""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array, Log
from largesse.response.archive import Shaped
from largesse.response.base import ResponseModel
from largesse.response.networks.fitted import Scale, check_shapes, choose_least
from largesse.response.networks.jobs import TrainingJob, loop_of_steps
from largesse.response.networks.runner import train
from largesse.response.networks.settings import (
    Network,
    Training,
    setting_problems,
    settle,
    share_problems,
    strength_problems,
    strengths,
    whole_problems,
)
from largesse.stats import chosen, hold_out, one_thread

STRENGTHS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)  # the incentive paper's grid, for α and for β
NOISE_DRAWS = 16  # over which predictions are averaged
LOOK = 100  # steps between two looks at held-out rows
NETWORK = Network(width=30)
TRAINING = Training(rate=1e-3, batch=256, steps=10_000, patience=10)


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
        100 steps); what is left at "auto" is GANITE's own.
    hold_out
        Share of rows that are held out to choose α, β and when to stop.
    seed
        For the rows held out, first weights, batches and noise.

    Attributes
    ----------
    alpha_, beta_
        The strengths used.
    choices_
        What was tried, with its held-out loss.
    """

    alpha_: float
    beta_: float
    scale_: Scale
    params_: dict[str, Annotated[Array, Shaped(..., dtype="float32")]]

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
        self.scale_ = Scale.of(log.response)
        alphas, betas = strengths(self.alpha, STRENGTHS), strengths(self.beta, STRENGTHS)
        level = np.eye(len(log.levels), dtype=np.float32)[log.level]
        data = (X.astype(np.float32), level, self.scale_.standardise(log.response).astype(np.float32))
        with one_thread(X.size * len(alphas) * len(betas)):
            self._train(data, self._rows(log), alphas, betas)

    def _train(
        self, data: tuple[Array, ...], rows: list[Array], alphas: tuple[float, ...], betas: tuple[float, ...]
    ) -> None:
        """Train the first block for every α in one program, then the second for every α and β in another."""
        from largesse.response.baselines.ganite_program import block_one, block_two

        gan, pairs = self._gan(data[0].shape[1]), list(product(range(len(alphas)), betas))
        training = settle(self.training, TRAINING)
        loop = loop_of_steps(training.steps, LOOK, training.patience, last=True)
        own: tuple[Any, ...] = (*_repeat(rows, len(alphas)), np.array(alphas, np.float32))
        first = train(TrainingJob(block_one(gan, loop), loop, data, own, np.full(len(alphas), 2 * self.seed))).params
        source = np.array([i for i, _ in pairs])
        own = (
            *_repeat(rows, len(pairs)),
            np.array([beta for _, beta in pairs], np.float32),
            {name: value[source] for name, value in first.items()},
        )
        loop = loop_of_steps(training.steps, LOOK, training.patience)
        program = block_two(gan, any(beta > 0 for beta in betas), loop)
        second = train(TrainingJob(program, loop, data, own, np.full(len(pairs), 2 * self.seed + 1)))
        names = [f"α {alphas[i]:g}, β {beta:g}" for i, beta in pairs]
        self.choices_ = choose_least(names, second.loss, of="GANITE: settings")
        best = chosen(self.choices_)
        self.alpha_, self.beta_ = alphas[source[best]], pairs[best][1]
        self.params_ = {name: value[best] for name, value in second.params.items()}

    def _rows(self, log: Log) -> list[Array]:
        """Return rows to train on with their weights, and rows to stop by with theirs, each (1, …)."""
        from largesse.response.networks.trainer import STOP_ROWS, row_sets

        weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        held = hold_out(log, self.hold_out, self.seed)
        stop = row_sets([np.flatnonzero(held)], weight, most=STOP_ROWS)
        return [*row_sets([np.flatnonzero(~held)], weight), *stop]

    def _gan(self, features: int) -> Any:
        from largesse.response.baselines.ganite_program import Gan

        width, training = settle(self.network, NETWORK).width, settle(self.training, TRAINING)
        own = (training.rate, training.batch, self.discriminator_steps)
        return Gan(features, self.levels_, width, self.scale_.bounded, *own)

    def _problems(self) -> list[Problem]:
        wrong = setting_problems("network", self.network, NETWORK)
        wrong += setting_problems("training", self.training, TRAINING)
        wrong += whole_problems(self, ("discriminator_steps",)) + share_problems(self.hold_out)
        return wrong + strength_problems("alpha", self.alpha) + strength_problems("beta", self.beta)

    # -- predicting -------------------------------------------------------------------------------------------------

    def _curves(self, X: Array) -> Array:
        from largesse.response.baselines.ganite_program import predict

        noise = np.random.default_rng(self.seed).random((NOISE_DRAWS, self.levels_), np.float32)
        return self.scale_.restore(predict(self._gan(X.shape[1]), self.params_, X, noise))

    def _check_learnt(self) -> None:
        from largesse.response.baselines.ganite_program import shapes

        check_shapes(self.params_, shapes(self._gan(len(self.encoder_.names)))["infer"])


def _repeat(parts: list[Array], many: int) -> list[Array]:
    return [np.repeat(part, many, axis=0) for part in parts]
