"""GANITE: counterfactuals filled in by a generative adversarial network, then learnt (Yoon, Jordon and van der Schaar 2018).

Defaults are those of the authors' public code. Other than it:

- K levels instead of two: the discriminator chooses among K slots by softmax, the generators have K heads, and the second
  block learns whole rows, as the method's paper does for more than two treatments.
- Noise goes into both generators, and a second discriminator into the second block, as in the method's paper; the public
  code has neither. β = 0, the default, is the public code's second block. Predictions are averaged over draws of the noise.
- α multiplies the adversarial term, as in the authors' code; elsewhere it multiplies the supervised one. The incentive
  paper, whose grids these are, does not say which it means.
- The second block keeps its best weights on held-out rows, looked at every 100 steps, and stops when it no longer gains; the
  public code keeps the last. α and β are chosen, if asked, by the same held-out loss.
- Amounts have squared error on standardised amounts; 0/1 responses and shares the public code's cross-entropy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array, Choice, Log
from largesse.response.base import ResponseModel
from largesse.response.baselines.cfrnet import check_params, grid_problems, share_problems
from largesse.stats import hold_out, one_thread

STRENGTHS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)  # the incentive paper's grid, for α and for β
NOISES = 16  # draws over which predictions are averaged


@final
class GANITE(ResponseModel):
    """Two generators: one completes each row with what did not happen, the other learns completed rows from features.

    Parameters
    ----------
    alpha, beta
        Strength of the adversary of the first and of the second block: a number, several to choose from, or "cv": the
        incentive paper's grid, 0 to 10.
    width
        Of the hidden layers.
    rate, batch, steps, turns, patience
        Adam's rate, rows per step, steps of each block, steps of a discriminator for one of its generator, and looks
        (100 steps each) without gain after which the second block stops.
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

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        beta: Any = 0.0,
        width: int = 30,
        rate: float = 1e-3,
        batch: int = 256,
        steps: int = 10_000,
        turns: int = 2,
        patience: int = 10,
        hold_out: float = 0.3,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.width = width
        self.rate = rate
        self.batch = batch
        self.steps = steps
        self.turns = turns
        self.patience = patience
        self.hold_out = hold_out
        self.seed = seed

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        from largesse.response.networks.iterate import filled

        refuse("GANITE", self._problems())
        self.bounded_ = bool(log.response.min() >= 0 and log.response.max() <= 1)
        self.scale_ = (0.0, 1.0) if self.bounded_ else (float(log.response.mean()), float(log.response.std()) or 1.0)
        alphas, betas = _strengths(self.alpha), _strengths(self.beta)
        place = np.eye(len(log.levels), dtype=np.float32)[log.level]
        response = ((log.response - self.scale_[0]) / self.scale_[1]).astype(np.float32)
        data = tuple(filled(part) for part in (X.astype(np.float32), place, response))
        with one_thread(X.size * len(alphas) * len(betas)):
            self._train(data, self._rows(log), alphas, betas)

    def _train(self, data: Any, rows: list[Array], alphas: tuple[float, ...], betas: tuple[float, ...]) -> None:
        """Train the first block for every α in one program, then the second for every α and β in another."""
        from largesse.response.baselines.gan_program import block_one, block_two
        from largesse.response.networks.iterate import Loop, iterate

        gan, pairs = self._gan(data[0].shape[1]), list(product(range(len(alphas)), betas))
        one = (*_repeated(rows, len(alphas)), np.array(alphas, np.float32))
        (fill, _), _ = iterate(
            block_one(gan), Loop(self.steps, last=True), data, one, np.full(len(alphas), 2 * self.seed)
        )
        chosen = np.array([i for i, _ in pairs])
        two = (
            *_repeated(rows, len(pairs)),
            np.array([beta for _, beta in pairs], np.float32),
            {name: value[chosen] for name, value in fill.items()},
        )
        infer, losses = iterate(
            block_two(gan, any(beta > 0 for beta in betas)),
            Loop(self.steps, patience=self.patience),
            data,
            two,
            np.full(len(pairs), 2 * self.seed + 1),
        )
        self._choose([(alphas[i], beta) for i, beta in pairs], infer, losses)

    def _rows(self, log: Log) -> list[Array]:
        """Return rows to train on with their weights, and rows to stop by with theirs, each (1, …)."""
        from largesse.response.networks.iterate import STOP_ROWS, row_sets

        weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        held = hold_out(log, self.hold_out, self.seed)
        stop = row_sets([np.flatnonzero(held)], weight, most=STOP_ROWS)
        return [*row_sets([np.flatnonzero(~held)], weight), *stop]

    def _choose(self, tried: list[tuple[float, float]], infer: dict[str, Array], losses: Array) -> None:
        best = int(np.nanargmin(losses)) if np.isfinite(losses).any() else 0
        self.alpha_, self.beta_ = tried[best]
        self.choices_ = tuple(
            Choice(
                f"α {alpha:g}, β {beta:g}",
                float(loss),
                float(loss - losses[best]),
                0.0,
                i == best,
                of="GANITE: settings",
            )
            for i, ((alpha, beta), loss) in enumerate(zip(tried, losses, strict=True))
        )
        self.params_ = {name: value[best] for name, value in infer.items()}

    def _gan(self, features: int) -> Any:
        from largesse.response.baselines.gan_program import Gan

        return Gan(features, self.levels_, self.width, self.bounded_, self.rate, self.batch, self.turns)

    def _problems(self) -> list[Problem]:
        wrong = [
            Problem(f"{name}={getattr(self, name)!r}", "a whole number, 1 or more")
            for name in ("width", "batch", "steps", "turns", "patience")
            if getattr(self, name) < 1
        ]
        wrong += share_problems(self.hold_out)
        return wrong + grid_problems("alpha", self.alpha) + grid_problems("beta", self.beta)

    # -- predicting and keeping -------------------------------------------------------------------------------------

    def _curves(self, X: Array) -> Array:
        from largesse.response.baselines.gan_program import predict

        noise = np.random.default_rng(self.seed).random((NOISES, self.levels_), np.float32)
        return self.scale_[0] + self.scale_[1] * predict(self._gan(X.shape[1]), self.params_, X, noise)

    def _keep(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts = {"alpha": self.alpha_, "beta": self.beta_, "bounded": self.bounded_, "scale": list(self.scale_)}
        return facts, {name: np.asarray(value, dtype=np.float32) for name, value in self.params_.items()}

    def _recall(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        from largesse.response.baselines.gan_program import shapes

        self.alpha_, self.beta_, self.bounded_ = float(facts["alpha"]), float(facts["beta"]), bool(facts["bounded"])
        self.scale_ = tuple(facts["scale"])
        check_params(arrays, shapes(self._gan(len(self.encoder_.names)))["infer"])
        self.params_ = dict(arrays)


def _strengths(given: Any) -> tuple[float, ...]:
    if isinstance(given, str):
        return STRENGTHS
    return tuple(float(one) for one in given) if isinstance(given, Sequence | np.ndarray) else (float(given),)


def _repeated(parts: list[Array], many: int) -> list[Array]:
    return [np.repeat(part, many, axis=0) for part in parts]
