"""A policy network: who gets what within a budget, learnt by Algorithm 1 of the incentive paper and saved in one file."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, fields, replace
from typing import Any, final

import numpy as np

from largesse.allocation import allocate, expected_costs
from largesse.errors import Problem, below_cheapest, budget_problems, fail, refuse
from largesse.io import expected_content, read_archive, write_archive
from largesse.levels import Levels
from largesse.policy.banditnet_training import SPENDS, Settings, Trainer, Translation, choose_translation, find_price
from largesse.records import Array, Customers, Log
from largesse.response import (
    Learner,
    Network,
    PolicyNetworks,
    Training,
    option_problems,
    policy_network_problems,
    share_problems,
)
from largesse.stats import one_thread, softmax

FORMAT = "largesse-banditnet"
TRANSLATIONS = tuple(j / 10 for j in range(10))  # λ; the mean reward is added
FINER = 0.01  # between the λ of the second round, which lie around the best of the first
MOST_COST = 1e150  # squares of larger ones have no floats
OPTIONS = {"spend": SPENDS, "search": ("posthoc", "retrain")}


@final
class BanditNet(Learner):
    """A policy network under a budget.

    Parameters
    ----------
    budget
        Average cost per customer that may not be exceeded.
    spend
        "up to" the budget, as Algorithm 1 (η ≥ 0: what the policy does not want to spend is left over); or "all" of it
        (η may be negative: the rest of the budget goes where the scores lose least).
    search
        How η is found: "posthoc" (on the scores of one training for each λ) or "retrain" (Algorithm 1 to the letter).
    translations
        The λ that are tried, on the scale of rewards shifted into [0, 1]; "auto" is 0, .1 … .9 and the mean reward.
    clip
        Most that 1/ρ counts.
    network, training
        `Network` and `Training`; what is left at "auto" is BanditNet's own. A look of `patience` is 100 steps.
    hold_out
        Share of rows that are held out, to stop by and to choose λ.
    seed
        For the rows held out, first weights and batches.

    Attributes
    ----------
    translations_
        What was tried: a `Translation` for each λ.
    price_
        η subtracted from the scores × cost. With "retrain" the scores already contain η; this is the remainder still
        needed to meet the budget.
    networks_
        The one network that was kept.
    levels_known_
        The `Levels` of the log.
    """

    networks_: PolicyNetworks
    price_: float
    translations_: tuple[Translation, ...]

    def __init__(
        self,
        *,
        budget: float = 1.0,
        spend: str = "up to",
        search: str = "posthoc",
        translations: Any = "auto",
        clip: float = 100.0,
        network: Network = Network(),
        training: Training = Training(),
        hold_out: float = 0.3,
        seed: int = 0,
    ) -> None:
        self.budget = budget
        self.spend = spend
        self.search = search
        self.translations = translations
        self.clip = clip
        self.network = network
        self.training = training
        self.hold_out = hold_out
        self.seed = seed

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        refuse("BanditNet", self._problems(log.levels))
        self.levels_known_ = log.levels
        costs = self._costs(log.costs, len(log))
        if costs.min(axis=1).mean() > self.budget:
            raise below_cheapest("BanditNet", self.budget, float(costs.min(axis=1).mean()))
        trainer = Trainer(self._settings(), X, log, costs)
        with one_thread(X.size):
            shifts = self._shifts(trainer.rows.reward)
            found = trainer.train(shifts)
            if isinstance(self.translations, str):
                best = found.translations[choose_translation(found.translations)].shift
                finer = best + FINER * (np.arange(len(shifts)) - len(shifts) // 2)
                found = found.append(trainer.train(finer))
        kept = choose_translation(found.translations)
        self.translations_ = tuple(replace(one, chosen=i == kept) for i, one in enumerate(found.translations))
        self.networks_ = found.networks.take(np.array([kept]))
        self.price_ = self._price(self.scores(X), costs, self.budget, trainer.rows.weight)

    def _settings(self) -> Settings:
        names = (field.name for field in fields(Settings))
        return Settings(**{name: getattr(self, name) for name in names})

    def _shifts(self, reward: Array) -> Array:
        auto = isinstance(self.translations, str)
        return np.asarray((*TRANSLATIONS, float(reward.mean())) if auto else self.translations, dtype=np.float64)

    def _costs(self, own: Array | None, n: int) -> Array:
        """Return what each level costs each customer (n, K)."""
        face = own if own is not None else self.levels_known_.common_costs
        if face is None:
            hint = f"read the table with levels=…, so that {self.levels_known_.cost_columns} are found"
            fail("BanditNet", Problem("costs are per customer, but this table was read without them", hint))
        K = len(self.levels_known_)
        # Nothing is paid on redemption here, so no curve is needed to know what is paid.
        paid = expected_costs(self.levels_known_, np.zeros((1, K)), face)
        if not paid.max(initial=0.0) <= MOST_COST:
            fail("BanditNet", Problem(f"a level costs {paid.max():g}", f"costs are at most {MOST_COST:g}"))
        return np.broadcast_to(paid, (n, K))

    def _problems(self, levels: Levels) -> list[Problem]:
        wrong = option_problems(self, OPTIONS) + policy_network_problems(self.network, self.training)
        wrong += budget_problems(self.budget)
        if not self.clip >= 1:
            wrong.append(Problem(f"clip={self.clip!r}", "1/ρ is never below one: give a number above it"))
        if not _are_translations(self.translations):
            wrong.append(Problem(f"translations={self.translations!r}", "numbers, as [0, 0.3, 0.6], or 'auto'"))
        if not levels.certain:
            words = "observed" if levels.observed else "paid on redemption"
            hint = "plan with a response model instead: it foresees what customers do"
            wrong.append(Problem(f"costs are {words}, which a policy alone cannot foresee", hint))
        return wrong + share_problems(self.hold_out)

    # -- deciding ---------------------------------------------------------------------------------------------------

    def scores(self, X: Array) -> Array:
        """Return the network's scores (n, K) of encoded features (n, p), before any price."""
        return self.networks_.scores(X)[0]

    def probabilities_at_price(self, customers: Any) -> Array:
        """Return the probabilities (n, K) of the levels at the price learnt on the log, whoever the other customers are."""
        X = self.encode(customers)
        return softmax(self.scores(X) - self.price_ * self._costs(getattr(customers, "costs", None), len(X)))

    def probabilities(self, customers: Any, budget: float | None = None) -> Array:
        """Return probabilities (n, K) whose expected cost over these customers is within the budget."""
        X, costs, budget = self._prepare(customers, budget)
        scores = self.scores(X)
        return softmax(scores - self._price(scores, costs, budget) * costs)

    def decide(self, customers: Any, budget: float | None = None) -> Array:
        """Return one level (n,) each: the best scores that the budget allows these customers together."""
        X, costs, budget = self._prepare(customers, budget)
        if not len(X):
            return np.zeros(0, dtype=np.int64)
        scores = self.scores(X)
        if self.spend == "all":  # cost is worth more than any score, so the budget alone holds it back
            scores = scores + _overriding_value(scores, costs) * costs
        return allocate(scores, costs, budget).levels

    def _price(self, scores: Array, costs: Array, budget: float, weight: Array | None = None) -> float:
        return find_price(scores, costs, budget, weight, self.spend)

    def _prepare(self, customers: Any, budget: float | None) -> tuple[Array, Array, float]:
        X = self.encode(customers)
        costs = self._costs(customers.costs if isinstance(customers, Customers | Log) else None, len(X))
        budget = self.budget if budget is None else float(budget)
        refuse("BanditNet", budget_problems(budget, unlimited=True))
        least = float(costs.min(axis=1).mean()) if len(X) else 0.0
        if budget < least:
            raise below_cheapest("BanditNet", budget, least)
        return X, costs, budget

    # -- saving -----------------------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        self.networks_.check(len(self.encoder_.names), self.levels_, models=1)
        least = -math.inf if self.spend == "all" else 0.0
        if not (math.isfinite(self.price_) and self.price_ >= least):
            raise ValueError(f"price_: {self.price_}")

    def _check_levels(self) -> None:
        """Raise ValueError unless settings, levels and network fit together and give finite scores at the price."""
        if problems := self._problems(self.levels_known_):
            raise ValueError(problems[0].what)
        if len(self.levels_known_) != self.levels_:
            raise ValueError(f"{len(self.levels_known_)} levels in a network of {self.levels_}")
        costs = self.levels_known_.common_costs
        with np.errstate(all="ignore"):
            scores = self.scores(np.zeros((1, len(self.encoder_.names)), dtype=np.float32))
            priced = scores if costs is None else scores - self.price_ * self._costs(None, 1)
        if scores.shape != (1, self.levels_) or not np.isfinite(priced).all():
            raise ValueError("the network has no finite scores at its price")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file; the same policy gives the same bytes."""
        write_archive(path, FORMAT, *self._state())

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        state, arrays = self.state()
        return {"levels": asdict(self.levels_known_), "model": state}, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BanditNet:
        """Read what `save` wrote, and refuse it unless everything in it is known and whole."""
        manifest, arrays = read_archive(path, FORMAT)
        with expected_content(path):
            net = cls.from_state(manifest["model"], arrays)
            net.levels_known_ = Levels(**manifest["levels"])
            net._check_levels()
            return net


def _are_translations(given: Any) -> bool:
    if isinstance(given, str):
        return given == "auto"
    return np.size(given) > 0 and bool(np.isfinite(np.asarray(given, dtype=float)).all())


def _overriding_value(scores: Array, costs: Array) -> float:
    """Return a value per unit of cost at which every dearer level beats every cheaper one."""
    gaps = np.diff(np.sort(costs, axis=1), axis=1)
    gaps = gaps[gaps > 1e-9 * costs.max(initial=0.0)]
    return float(2 * np.ptp(scores, axis=1).max() / gaps.min()) if len(gaps) else 0.0
