"""DFCL, decision-focused causal learning (KDD 2024), re-implemented with its policy-learning loss.

Source: arXiv 2407.13664. Squared error plus the loss of the Lagrangian dual's decisions: for prices λ, minus the mean of
(r − λc) / π × the softmax probability, at the logged level, of r̂ − λĉ. π is the share of the level in the log.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.records import Array
from largesse_lab.peers.peer_model import PeerModel

WIDTH, BATCH, STEPS, CHECK_STEPS, RATE, N_PRICES = 64, 256, 2000, 50, 1e-3, 10


class DecisionFocused(PeerModel):
    """DFCL network of two hidden layers, trained with the policy-learning loss.

    The layers have 64 units; responses are centred; a fifth of the rows decides when to stop. ĉ is a level's mean cost.
    """

    def _learn(self, X: Array, level: Array, response: Array) -> None:
        rng = np.random.default_rng(self.seed)
        self.middle, self.spread = X.mean(axis=0), X.std(axis=0) + 1e-6
        self.mean, self.scale = float(response.mean()), float(response.std()) + 1e-12
        inputs, target = (X - self.middle) / self.spread, (response - self.mean) / self.scale
        cost = (self.level_costs - self.level_costs[0]) / max(float(np.ptp(self.level_costs)), 1e-12)
        n_rows = np.maximum(np.bincount(level, minlength=self.K), 1)
        means = np.bincount(level, target, self.K) / n_rows
        prices = np.linspace(0.0, 2.0 * max(float(np.ptp(means)), 0.1), N_PRICES)
        sizes = [(X.shape[1], WIDTH), (WIDTH, WIDTH), (WIDTH, self.K)]
        params: Any = [(rng.standard_normal(size) / size[0] ** 0.5, np.zeros(size[1])) for size in sizes]
        optimiser = optax.adamw(RATE, weight_decay=1e-2)
        state, constants = optimiser.init(params), tuple(map(jnp.asarray, (cost, len(level) / n_rows, prices)))

        @jax.jit
        def step(params: Any, state: Any, *batch: Array) -> tuple[Any, Any]:
            change, state = optimiser.update(jax.grad(_find_loss)(params, *batch, *constants), state, params)
            return optax.apply_updates(params, change), state

        learnt, kept = np.split(rng.permutation(len(X)), [int(0.8 * len(X))])
        self.params, best, check = params, np.inf, jax.jit(_find_loss)
        for i in range(STEPS + 1):
            if (
                i % CHECK_STEPS == 0
                and (loss := float(check(params, inputs[kept], level[kept], target[kept], *constants))) < best
            ):
                self.params, best = params, loss
            rows = rng.choice(learnt, BATCH)
            params, state = step(params, state, inputs[rows], level[rows], target[rows])

    def _predict(self, X: Array) -> Array:
        return np.asarray(_run_network(self.params, (X - self.middle) / self.spread)) * self.scale + self.mean


def _run_network(params: Any, X: Any) -> Any:
    for weight, bias in params[:-1]:
        X = jnp.maximum(X @ weight + bias, 0.0)
    return X @ params[-1][0] + params[-1][1]


def _find_loss(params: Any, X: Any, level: Any, target: Any, cost: Any, inverse: Any, prices: Any) -> Any:
    curves, rows = _run_network(params, X), jnp.arange(len(level))
    chosen = jax.nn.softmax(curves[None] - prices[:, None, None] * cost, axis=2)[:, rows, level]  # (prices, rows)
    gains = (target - prices[:, None] * cost[level]) * inverse[level]
    return ((curves[rows, level] - target) ** 2).mean() - (gains * chosen).mean()
