"""A policy network: who gets what within a budget, learnt by Algorithm 1 and kept in one file."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import Any, final

import numpy as np

from largesse.allocation import allocate, expected_costs
from largesse.errors import Problem, below_cheapest, budget_problems, fail, nearest, refuse
from largesse.files import expected_content, read_archive, write_archive
from largesse.levels import Levels
from largesse.policy.translations import SPENDS, Translation, Trial, best_of, find_price, net_scores
from largesse.records import Array, Customers, Log
from largesse.response import Learner, share_problems
from largesse.stats import one_thread, softmax

FORMAT = "largesse-banditnet"
TRANSLATIONS = tuple(j / 10 for j in range(10))  # λ; the mean reward is added
FINER = 0.01  # between the λ of the second round, which lie around the best of the first
WORDS = {"spend": SPENDS, "search": ("posthoc", "retrain"), "activation": ("elu", "relu")}


@final
class BanditNet(Learner):
    """A policy network under a budget.

    Parameters
    ----------
    budget
        Average cost per customer that may not be exceeded.
    spend
        "up to" the budget, as Algorithm 1 (η ≥ 0: what the policy does not want to spend is left over); or "all" of it
        (η may be negative: the budget is used up, on whom the scores say it is least wasted).
    search
        How η is found: "posthoc" (on the scores of one training for each λ) or "retrain" (Algorithm 1 to the letter).
    translations
        The λ that are tried, on the scale of rewards moved into [0, 1]; None is 0, .1 … .9 and the mean reward.
    clip
        1/ρ is held to this.
    width, depth, activation, skip
        The network.
    rate, decay, batch, steps, patience
        How it is trained: Adam with decoupled weight decay, rows per step, most steps, and looks (100 steps each)
        without gain after which it stops.
    hold_out
        Share of rows that are held out, to stop by and to choose λ.
    seed
        For the rows held out, first weights and batches.

    Attributes
    ----------
    translations_
        What was tried: a `Translation` for each λ.
    price_
        η that is taken off the scores; after "retrain", whose scores have theirs in them, what it left over the budget.
    levels_known_
        The `Levels` of the log.
    """

    def __init__(
        self,
        *,
        budget: float = 1.0,
        spend: str = "up to",
        search: str = "posthoc",
        translations: Any = None,
        clip: float = 100.0,
        width: int = 128,
        depth: int = 2,
        activation: str = "elu",
        skip: bool = True,
        rate: float = 1e-3,
        decay: float = 0.1,
        batch: int = 128,
        steps: int = 2000,
        patience: int = 5,
        hold_out: float = 0.3,
        seed: int = 0,
    ) -> None:
        self.budget = budget
        self.spend = spend
        self.search = search
        self.translations = translations
        self.clip = clip
        self.width = width
        self.depth = depth
        self.activation = activation
        self.skip = skip
        self.rate = rate
        self.decay = decay
        self.batch = batch
        self.steps = steps
        self.patience = patience
        self.hold_out = hold_out
        self.seed = seed

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        refuse("BanditNet", self._problems(log))
        self.levels_known_ = log.levels
        costs = self._costs(log.costs, len(log))
        if costs.min(axis=1).mean() > self.budget:
            raise below_cheapest("BanditNet", self.budget, float(costs.min(axis=1).mean()))
        trial = Trial(self, X, log, costs)
        with one_thread(X.size):
            shifts = self._shifts(trial.reward)
            tried, params = trial.fitted(shifts)
            if self.translations is None:
                best = tried[best_of(tried)].shift
                finer, more = trial.fitted(best + FINER * (np.arange(len(shifts)) - len(shifts) // 2))
                tried, params = tried + finer, {k: np.concatenate([params[k], more[k]]) for k in params}
        best = best_of(tried)
        self.translations_ = tuple(replace(one, chosen=i == best) for i, one in enumerate(tried))
        self.params_ = {name: value[best] for name, value in params.items()}
        self.price_ = self._price(self.scores(X), costs, self.budget, trial.weight)

    def _shifts(self, reward: Array) -> Array:
        given = (*TRANSLATIONS, float(reward.mean())) if self.translations is None else self.translations
        return np.asarray(given, dtype=np.float64)

    def _costs(self, own: Array | None, n: int) -> Array:
        """Return what each level costs each customer (n, K)."""
        face = own if own is not None else self.levels_known_.common_costs
        if face is None:
            hint = f"read the table with levels=…, so that {self.levels_known_.cost_columns} are found"
            fail("BanditNet", Problem("costs are per customer, but this table was read without them", hint))
        K = len(self.levels_known_)
        # Nothing is paid on redemption here, so no curve is needed to know what is paid.
        return np.broadcast_to(expected_costs(self.levels_known_, np.zeros((1, K)), face), (n, K))

    def _network(self, features: int) -> Any:
        from largesse.response.networks.network import Shape

        return Shape(features, self.levels_, "free", self.width, self.depth, self.activation, self.skip, False)

    def _problems(self, log: Log) -> list[Problem]:
        wrong = [
            Problem(f"{name}={getattr(self, name)!r}", "a whole number, 1 or more")
            for name in ("width", "depth", "batch", "steps", "patience")
            if getattr(self, name) < 1
        ]
        wrong += [
            Problem(f"{name}={getattr(self, name)!r}", nearest(str(getattr(self, name)), known))
            for name, known in WORDS.items()
            if getattr(self, name) not in known
        ]
        wrong += budget_problems(self.budget)
        if not self.clip >= 1:
            wrong.append(Problem(f"clip={self.clip!r}", "1/ρ is never below one: give a number above it"))
        if self.translations is not None and not (
            np.size(self.translations) and np.isfinite(np.asarray(self.translations, dtype=float)).all()
        ):
            wrong.append(Problem(f"translations={self.translations!r}", "numbers, as [0, 0.3, 0.6], or None"))
        if log.levels.on_redemption:
            hint = "plan with a response model instead: what redemption costs follows from the response"
            wrong.append(Problem("costs are paid on redemption, which a policy alone cannot foresee", hint))
        return wrong + share_problems(self.hold_out)

    # -- deciding ---------------------------------------------------------------------------------------------------

    def scores(self, X: Array) -> Array:
        """Return the network's scores (n, K) of encoded features (n, p), before any price."""
        return net_scores(self._network(X.shape[1]), {k: v[None] for k, v in self.params_.items()}, X)[0]

    def predict(self, customers: Any) -> Array:
        """Return the probabilities (n, K) of the levels at the price learnt on the log, each customer's on their own."""
        X = self.encode(customers)
        return softmax(self.scores(X) - self.price_ * self._costs(getattr(customers, "costs", None), len(X)))

    def probabilities(self, customers: Any, budget: float | None = None) -> Array:
        """Return probabilities (n, K) whose expected cost over these customers is within the budget."""
        X, costs, budget = self._asked(customers, budget)
        scores = self.scores(X)
        return softmax(scores - self._price(scores, costs, budget) * costs)

    def decide(self, customers: Any, budget: float | None = None) -> Array:
        """Return one level (n,) each: the best scores that the budget allows these customers together."""
        X, costs, budget = self._asked(customers, budget)
        if not len(X):
            return np.zeros(0, dtype=np.int64)
        scores = self.scores(X)
        if self.spend == "all":  # cost is worth more than any score, so the budget alone holds it back
            scores = scores + _dear(scores, costs) * costs
        return allocate(scores, costs, budget).levels

    def _price(self, scores: Array, costs: Array, budget: float, weight: Array | None = None) -> float:
        return find_price(scores, costs, budget, weight, self.spend)

    def _asked(self, customers: Any, budget: float | None) -> tuple[Array, Array, float]:
        X = self.encode(customers)
        costs = self._costs(customers.costs if isinstance(customers, Customers | Log) else None, len(X))
        budget = self.budget if budget is None else float(budget)
        refuse("BanditNet", budget_problems(budget, unlimited=True))
        least = float(costs.min(axis=1).mean()) if len(X) else 0.0
        if budget < least:
            raise below_cheapest("BanditNet", budget, least)
        return X, costs, budget

    # -- keeping ----------------------------------------------------------------------------------------------------

    def _keep(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts = {
            "price": self.price_,
            "translations": [asdict(one) for one in self.translations_],
            "levels": asdict(self.levels_known_),
        }
        return facts, {name: np.asarray(value, dtype=np.float32) for name, value in self.params_.items()}

    def _recall(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        from largesse.response import check_params
        from largesse.response.networks.network import shapes

        self.price_, self.levels_known_ = float(facts["price"]), Levels(**facts["levels"])
        self.translations_ = tuple(
            Translation(**{**one, "expected": tuple(one["expected"])}) for one in facts["translations"]
        )
        if len(self.levels_known_) != self.levels_:
            raise ValueError(f"{len(self.levels_known_)} levels in a network of {self.levels_}")
        check_params(arrays, shapes(self._network(len(self.encoder_.names))))
        self.params_ = dict(arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file; the same policy gives the same bytes."""
        state, arrays = self.state()
        write_archive(path, FORMAT, {"model": state}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BanditNet:
        """Read what `save` wrote, and refuse it unless everything in it is known and whole."""
        manifest, arrays = read_archive(path, FORMAT)
        with expected_content(path):
            return cls.from_state(manifest["model"], arrays)


def _dear(scores: Array, costs: Array) -> float:
    """Return what a unit of cost must be worth for every dearer level to be the better one."""
    gaps = np.diff(np.sort(costs, axis=1), axis=1)
    gaps = gaps[gaps > 1e-9 * costs.max(initial=0.0)]
    return float(2 * np.ptp(scores, axis=1).max() / gaps.min()) if len(gaps) else 0.0
