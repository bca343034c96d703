"""CFRNet and TARNet: counterfactual regression with a balanced representation (Shalit, Johansson and Sontag 2017).

A network Φ whose rows are brought to length one, a head for each level, rows weighted by 1/(K·share of their level), and
α × a distance (IPM) between the levels' representations. α = 0 is TARNet. The defaults are the settings
published for IHDP, but for α, which is chosen: next to the log loss of 0/1 responses the published 0.3 leaves nothing.

Other than the published code:

- More than two levels. "pairwise" is the reading of the incentive paper: K−1 nets of level 0 against level k, whose heads
  for level 0 are averaged; one α for all of them. "shared" is one Φ with K heads and the distance of each level
  from all others, weighted by its share; with two levels the two are the same.
- 0/1 responses (and shares) have the published log loss, amounts the published squared error, on standardised amounts.
- The best weights on held-out rows are kept as training goes, looked at every 25 steps; the published code writes
  predictions down, less often, and chooses among them afterwards. A model that has not gained for `patience` looks
  stops; the published one runs on.
- α is chosen, if asked, by the same held-out loss, from the incentive paper's grid. TARNet is not in that grid.
- No dropout and no batch norm: the published settings for IHDP have neither.
- Features are standardised, as everywhere in this house.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from largesse.errors import Problem, nearest, refuse
from largesse.records import Array, Choice, Log
from largesse.response.base import ResponseModel
from largesse.stats import hold_out, one_thread

ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # the incentive paper's grid of p_alpha
WAYS = ("pairwise", "shared")
IPMS = ("linear", "rbf", "wasserstein")
LOSSES = ("auto", "log", "square")
ACTIVATIONS = ("elu", "relu")
LOOK = 25  # steps between two looks at held-out rows: with few rows a net overfits within a hundred


@final
class CFRNet(ResponseModel):
    """A network whose representation is balanced between levels, with a head for each level.

    Parameters
    ----------
    alpha
        Strength of the balance: a number (0.3 was published for IHDP), several to choose from, or "cv": the incentive
        paper's grid, 1e-5 to 10.
    way
        More than two levels: "pairwise" (level 0 against each other one) or "shared" (one representation, K heads).
    ipm
        "wasserstein", "linear" or "rbf".
    sigma, sharpness, rounds
        Width of "rbf"; sharpness and rounds of Sinkhorn's algorithm for "wasserstein".
    reweight
        Whether rows are weighted so that all levels count alike.
    loss
        "log", "square", or "auto": log where responses lie in [0, 1].
    width, depth, head_width, head_depth, activation, spread
        The network: hidden layers of the representation and of each head; first weights are `spread`/√fan-in.
    rate, rate_decay, decay, batch, steps, patience
        Adam's rate, what it is multiplied by every 100 steps, L2 penalty on heads, rows per step, most steps, looks
        (25 steps each) without gain after which a model stops.
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

    def __init__(
        self,
        *,
        alpha: Any = "cv",
        way: str = "pairwise",
        ipm: str = "wasserstein",
        sigma: float = 0.1,
        sharpness: float = 10.0,
        rounds: int = 10,
        reweight: bool = True,
        loss: str = "auto",
        width: int = 200,
        depth: int = 3,
        head_width: int = 100,
        head_depth: int = 3,
        activation: str = "elu",
        spread: float = 0.1,
        rate: float = 1e-3,
        rate_decay: float = 0.97,
        decay: float = 1e-4,
        batch: int = 100,
        steps: int = 3000,
        patience: int = 40,
        hold_out: float = 0.3,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.way = way
        self.ipm = ipm
        self.sigma = sigma
        self.sharpness = sharpness
        self.rounds = rounds
        self.reweight = reweight
        self.loss = loss
        self.width = width
        self.depth = depth
        self.head_width = head_width
        self.head_depth = head_depth
        self.activation = activation
        self.spread = spread
        self.rate = rate
        self.rate_decay = rate_decay
        self.decay = decay
        self.batch = batch
        self.steps = steps
        self.patience = patience
        self.hold_out = hold_out
        self.seed = seed

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        from largesse.response.baselines import cfr_program as program
        from largesse.response.networks.iterate import Loop, filled, iterate

        refuse("CFRNet", self._problems(log))
        self.bounded_ = bool(log.response.min() >= 0 and log.response.max() <= 1)
        self.scale_ = (0.0, 1.0) if self.bounded_ else (float(log.response.mean()), float(log.response.std()) or 1.0)
        alphas = self._alphas()
        net = self._net(X.shape[1])
        recipe = program.Recipe(
            self.ipm,
            self.sigma,
            self.sharpness,
            self.rounds,
            any(alpha > 0 for alpha in alphas),
            self.rate,
            self.rate_decay,
            self.decay,
            self.batch,
        )
        response = ((log.response - self.scale_[0]) / self.scale_[1]).astype(np.float32)
        data = tuple(filled(part) for part in (X.astype(np.float32), log.level.astype(np.int32), response))
        mine, seeds = self._models(log, alphas)
        with one_thread(X.size * len(seeds)):
            params, losses = iterate(
                program.parts(net, recipe), Loop(self.steps, LOOK, self.patience), data, mine, seeds
            )
        self._choose(alphas, params, losses)

    def _models(self, log: Log, alphas: tuple[float, ...]) -> tuple[tuple[Array, ...], Array]:
        """Return what each of α × problems models is given (see `cfr_program.parts`), and its seed."""
        from largesse.response.networks.iterate import STOP_ROWS, row_sets

        weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        held = hold_out(log, self.hold_out, self.seed)
        heads = self._heads(len(log.levels))
        inside = [np.isin(log.level, levels) for levels in heads]
        train = row_sets([np.flatnonzero(mine & ~held) for mine in inside], weight, self.batch)
        stop = row_sets([np.flatnonzero(mine & held) for mine in inside], weight, most=STOP_ROWS)
        sample = np.array([self._sample_weights(log.level[~held], weight[~held], levels) for levels in heads])
        many, P = len(alphas), len(heads)
        parts = (*train, *stop, np.array(heads, np.int32), sample.astype(np.float32))
        repeated = tuple(np.tile(part, (many, *[1] * (part.ndim - 1))) for part in parts)
        # The same start for every α: they then differ by it alone.
        return (*repeated, np.repeat(np.array(alphas, np.float32), P)), np.tile(self.seed * 1009 + np.arange(P), many)

    def _heads(self, K: int) -> list[list[int]]:
        """Return the levels that each problem's heads stand for."""
        return [[0, k] for k in range(1, K)] if self.way == "pairwise" and K > 1 else [list(range(K))]

    def _sample_weights(self, level: Array, weight: Array, heads: list[int]) -> Array:
        mass = np.array([weight[level == k].sum() for k in heads])
        if not self.reweight:
            return np.ones(len(heads))
        return np.where(mass > 0, mass.sum() / (len(heads) * np.maximum(mass, 1e-9)), 1.0)

    def _choose(self, alphas: tuple[float, ...], params: dict[str, Array], losses: Array) -> None:
        each = losses.reshape(len(alphas), -1)  # (α, problems)
        means = each.mean(axis=1)
        best = int(np.nanargmin(means)) if np.isfinite(means).any() else 0
        self.alpha_ = alphas[best]
        self.choices_ = tuple(
            Choice(f"α {alpha:g}", float(mean), float(mean - means[best]), 0.0, i == best, of="CFRNet: settings")
            for i, (alpha, mean) in enumerate(zip(alphas, means, strict=True))
        )
        P = each.shape[1]
        self.params_ = {name: value[best * P : (best + 1) * P] for name, value in params.items()}

    def _alphas(self) -> tuple[float, ...]:
        if isinstance(self.alpha, str):
            return ALPHAS
        several = isinstance(self.alpha, Sequence | np.ndarray)
        return tuple(float(alpha) for alpha in self.alpha) if several else (float(self.alpha),)

    def _net(self, features: int) -> Any:
        from largesse.response.baselines.cfr_program import Net

        return Net(
            features,
            len(self._heads(self.levels_)[0]),
            self.width,
            self.depth,
            self.head_width,
            self.head_depth,
            self.activation,
            self.spread,
            self.bounded_ if self.loss == "auto" else self.loss == "log",
        )

    def _problems(self, log: Log) -> list[Problem]:
        """Return everything that is wrong with the settings, for this log."""
        named = {"way": WAYS, "ipm": IPMS, "loss": LOSSES, "activation": ACTIVATIONS}
        wrong = [
            Problem(f"{name}={getattr(self, name)!r}", nearest(str(getattr(self, name)), known))
            for name, known in named.items()
            if getattr(self, name) not in known
        ]
        whole = ("width", "depth", "head_width", "head_depth", "batch", "steps", "patience", "rounds")
        wrong += [
            Problem(f"{name}={getattr(self, name)!r}", "a whole number, 1 or more")
            for name in whole
            if getattr(self, name) < 1
        ]
        wrong += share_problems(self.hold_out)
        wrong += grid_problems("alpha", self.alpha)
        if self.loss == "log" and not (log.response.min() >= 0 and log.response.max() <= 1):
            wrong.append(Problem("loss='log' is for responses in [0, 1]", "use 'auto' or 'square' for amounts"))
        return wrong

    # -- predicting and keeping -------------------------------------------------------------------------------------

    def _curves(self, X: Array) -> Array:
        from largesse.response.baselines.cfr_program import predict

        found = self.scale_[0] + self.scale_[1] * predict(self._net(X.shape[1]), self.params_, X)  # (P, n, heads)
        # Every net of a pair has a head for level 0: they are averaged. A single net is its own average.
        curves = np.concatenate([found[:, :, 0].mean(axis=0)[:, None], *found[:, :, 1:]], axis=1)
        return np.clip(curves, 0.0, 1.0) if self.bounded_ else curves

    def _keep(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts = {"alpha": self.alpha_, "bounded": self.bounded_, "scale": list(self.scale_)}
        return facts, {name: np.asarray(value, dtype=np.float32) for name, value in self.params_.items()}

    def _recall(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        from largesse.response.baselines.cfr_program import shapes

        self.alpha_, self.bounded_, self.scale_ = float(facts["alpha"]), bool(facts["bounded"]), tuple(facts["scale"])
        wanted = shapes(self._net(len(self.encoder_.names)))
        models = len(self._heads(self.levels_))
        check_params(arrays, {name: (models, *shape) for name, shape in wanted.items()})
        self.params_ = dict(arrays)


def share_problems(share: float) -> list[Problem]:
    """Say whether a share of rows to hold out is not one."""
    return [] if 0 < share < 1 else [Problem(f"hold_out={share!r}", "a share of rows between 0 and 1, as 0.3")]


def grid_problems(name: str, given: Any) -> list[Problem]:
    """Say whether a strength is neither a number, nor several, nor "cv"."""
    if isinstance(given, str):
        return [] if given == "cv" else [Problem(f"{name}={given!r}", "a number, several, or 'cv'")]
    numbers = np.asarray(given, dtype=float)
    if numbers.size == 0 or not (np.isfinite(numbers) & (numbers >= 0)).all():
        return [Problem(f"{name}={given!r}", "a number, zero or more; several; or 'cv'")]
    return []


def check_params(arrays: dict[str, Array], wanted: dict[str, tuple[int, ...]]) -> None:
    """Refuse parameters that the network does not have: some of other shapes would pass by broadcasting."""
    found = {name: array.shape for name, array in arrays.items()}
    if found != wanted:
        raise ValueError(f"parameters of shapes {found}")
