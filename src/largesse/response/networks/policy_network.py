"""Networks of policies: scores at all levels whose softmax is a policy, trained on counterfactual risk.

With rewards δ in [0, 1], propensities ρ and a policy π, training maximises the weighted mean of
(δ − λ) π(y|x)/ρ(y|x) − η Σ_y c(y) π(y|x): the risk of BanditNet (Joachims, Swaminathan and de Rijke 2018) with a price η
on cost. One program trains a network for each of several pairs (λ, η). JAX is imported only when something is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from largesse.errors import Problem
from largesse.records import Array
from largesse.response.archive import Shaped
from largesse.response.networks.fitted import check_depth, check_shapes
from largesse.response.networks.jobs import TrainingJob, loop_of_steps
from largesse.response.networks.runner import train
from largesse.response.networks.settings import Network, Shape, Training, setting_problems, settle

LOOK = 100  # steps between two looks at held-out rows
NETWORK = Network(width=128, depth=2, activation="elu", skip=True)
TRAINING = Training(rate=1e-3, decay=0.1, batch=128, steps=2000, patience=5)


@dataclass(frozen=True, eq=False)
class PolicyNetworks:
    """M trained networks of one shape."""

    shape: Shape
    params: dict[str, Annotated[Array, Shaped(..., dtype="float32")]]  # each (M, …)

    def scores(self, X: Array) -> Array:
        """Return the scores (M, n, K) of encoded features (n, p)."""
        from largesse.response.networks.sire_program import predict_scores

        return predict_scores(self.params, X, self.shape).astype(np.float64)

    def take(self, models: Array) -> PolicyNetworks:
        """Return some of the networks, by position."""
        return PolicyNetworks(self.shape, {name: value[models] for name, value in self.params.items()})

    def append(self, others: PolicyNetworks) -> PolicyNetworks:
        """Return these networks and others of the same shape."""
        both = {name: np.concatenate([value, others.params[name]]) for name, value in self.params.items()}
        return PolicyNetworks(self.shape, both)

    def where(self, take: Array, others: PolicyNetworks) -> PolicyNetworks:
        """Return these networks where `take` (M,) is true, the others elsewhere."""
        mixed = {
            name: np.where(take.reshape(-1, *[1] * (value.ndim - 1)), value, others.params[name])
            for name, value in self.params.items()
        }
        return PolicyNetworks(self.shape, mixed)

    def check(self, features: int, levels: int, models: int) -> None:
        """Raise ValueError unless the arrays belong to so many networks of features and levels."""
        from largesse.response.networks.layers import param_shapes

        if (self.shape.features, self.shape.levels) != (features, levels):
            raise ValueError(f"a network of {self.shape.features} features and {self.shape.levels} levels")
        check_depth(self.params, self.shape.depth)
        check_shapes(self.params, {name: (models, *size) for name, size in param_shapes(self.shape).items()})


@dataclass(frozen=True, eq=False)
class PolicyRows:
    """The rows that policy networks learn from."""

    X: Array  # (n, p) encoded features
    level: Array  # (n,)
    reward: Array  # (n,) in [0, 1]
    inverse: Array  # (n,) 1/ρ
    costs: Array  # (n, K)
    weight: Array  # (n,)
    held: Array  # (n,) whether a row is held out, to stop by


def policy_network_problems(network: Network, training: Training) -> list[Problem]:
    """Return everything that is wrong with the settings of policy networks."""
    return setting_problems("network", network, NETWORK) + setting_problems("training", training, TRAINING)


def train_policy_networks(
    rows: PolicyRows, shifts: Array, prices: Array, *, network: Network, training: Training, seed: int
) -> PolicyNetworks:
    """Train one network for each λ (M,) and η (M,), all from one seed: they differ by λ and η alone."""
    from largesse.response.networks.policy_program import policy_program
    from largesse.response.networks.trainer import STOP_ROWS, row_sets

    network, training = settle(network, NETWORK), settle(training, TRAINING)
    size = (network.width, network.depth, network.activation, network.skip)
    shape = Shape(rows.X.shape[1], rows.costs.shape[1], "free", *size, bounded=False)
    loop = loop_of_steps(training.steps, LOOK, training.patience)
    learn = row_sets([np.flatnonzero(~rows.held)], rows.weight, training.batch)
    stop = row_sets([np.flatnonzero(rows.held)], rows.weight, most=STOP_ROWS)
    own = (
        *(np.repeat(part, len(shifts), axis=0) for part in (*learn, *stop)),
        shifts.astype(np.float32),
        prices.astype(np.float32),
    )
    numbers = (rows.X, rows.reward, rows.inverse, rows.costs)
    data = (rows.level.astype(np.int32), *(np.asarray(part, np.float32) for part in numbers))
    job = TrainingJob(policy_program(shape, training, loop), loop, data, own, np.full(len(shifts), seed))
    return PolicyNetworks(shape, train(job).params)
