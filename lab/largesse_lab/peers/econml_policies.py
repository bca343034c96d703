"""EconML's policy tree and policy forest, whose policies at several shadow prices form response curves."""

from typing import Any, Self

import numpy as np

from largesse.errors import import_optional_package
from largesse.records import Array
from largesse_lab.peers.boosting_packages import HINT
from largesse_lab.peers.peer_model import EffectModel

PRICE_SHARES = (3.0, 1.5, 1.0, 0.5, 0.25, 0.1, 0.0)  # of the best level's mean return on cost


class EconMLPolicy(EffectModel):
    """EconML's `PolicyForest` or `PolicyTree` on doubly robust scores, with default settings.

    The scores are those of `DRPolicyForest` and `DRPolicyTree`.

    The policies have no budget, so a policy is learnt at each price λ from scores less λ × cost. A curve rises by λ per unit of cost where
    a customer's choice first reaches a level: at these prices, allocation by the curves returns the policy's own plan.
    """

    def __init__(self, kind: str = "PolicyForest", seed: int = 0) -> None:
        super().__init__(seed)
        self.kind = kind

    def _learn_effects(self, X: Array, level: Array, response: Array) -> None:
        dr = import_optional_package("econml.dr", "", "EconML", hint=HINT)
        policy = import_optional_package("econml.policy", "", "EconML", hint=HINT)
        shared = {"categories": list(range(self.K)), "discrete_outcome": self.binary, "random_state": self.seed}
        learner = dr.DRLearner(model_final=_ScoreRecorder(), multitask_model_final=True, **shared)
        learner.fit(response, level, X=X)
        gamma = np.column_stack([np.zeros(len(X)), learner.multitask_model_cate.targets])
        cost = self.level_costs - self.level_costs[0]
        rates = (gamma.mean(axis=0) / np.where(cost > 0, cost, np.inf))[1:]
        self.prices = max(float(rates.max()), 1e-3 * float(response.std() / cost.max())) * np.array(PRICE_SHARES)
        settings: dict[str, Any] = {"n_jobs": 1} if self.kind == "PolicyForest" else {}
        kind, seed = getattr(policy, self.kind), self.seed
        self.policies = [kind(random_state=seed, **settings).fit(X, gamma - price * cost) for price in self.prices]

    def _predict_effects(self, X: Array) -> Array:
        cost, rows = self.level_costs - self.level_costs[0], np.arange(len(X))
        curves = np.zeros((len(X), self.K))
        reached, value = np.zeros(len(X)), np.zeros(len(X))
        for price, policy in zip(self.prices, self.policies, strict=True):
            choice = policy.predict(X).astype(int)
            rise = np.maximum(cost[choice] - reached, 0.0)
            value, reached = value + price * rise, np.maximum(reached, cost[choice])
            curves[rows, choice] = np.where(rise > 0, value, curves[rows, choice])
        return curves[:, 1:]


class _ScoreRecorder:
    """A final stage that records the doubly robust scores (n, K − 1), and predicts zeros."""

    def fit(self, _X: Array, targets: Array, **_: Any) -> Self:
        self.targets = targets
        return self

    def predict(self, X: Array) -> Array:
        return np.zeros((len(X), self.targets.shape[1]))
