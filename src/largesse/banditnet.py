"""BanditNet under a budget: a policy learnt from the log without a model of the response (the incentive paper's Algorithm 1).

A network gives every level a score, and the policy is their softmax π. With rewards δ in [0, 1] and propensities ρ, it
maximises the mean of (δ − λ) π(y|x)/ρ(y|x) − η Σ_y c(y) π(y|x) (Joachims, Swaminathan and de Rijke 2018, with a price η on
cost): λ moves the rewards, and stands for the self-normaliser S = mean of π/ρ that cannot be optimised directly. For each λ,
η is searched so that the policy spends as much as the budget allows; the λ whose policy has the best self-normalised
estimate (SNIPS) on held-out rows is kept. A policy whose S lies outside the range in which it should fall has learnt to
avoid rows rather than to be good, and is not kept if another is there.

Where the paper leaves it open: λ runs over 0, .1 … .9 and the mean reward, then more finely around the best; propensities
are cross-fitted logistic regressions unless the log gives them, and 1/ρ is held to `clip`; S should lie within three standard
errors of one, since a Chernoff bound with such weights would allow anything; the network is SIRE's, trained by Adam, its best
weights on held-out rows kept. Algorithm 1 trains anew at every η ("retrain"); "posthoc" trains once for each λ and takes
η × cost off the scores. On the customers it is applied to, η is searched again, so that the budget holds there.
"""

from __future__ import annotations

import functools
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from largesse.allocate import allocate, expected_costs
from largesse.data.threads import one_thread
from largesse.data.write import atomic_file
from largesse.errors import BudgetError, PolicyFileError, Problem, nearest, refuse
from largesse.evaluate import folds as cut
from largesse.evaluate import propensities
from largesse.policy import VERSION, opened, refused, sealed
from largesse.records import Array, Customers, Levels, Log
from largesse.response.base import Learner
from largesse.response.cfrnet import held_out, share_problems

FORMAT = "largesse-banditnet"
TRANSLATIONS = tuple(j / 10 for j in range(10))  # λ; the mean reward is added
FINER = 0.01  # between the λ of the second round, which lie around the best of the first
SEARCHES = ("posthoc", "retrain")
ROUNDS = 10  # of training anew, in the search for η
MOST_STEPS = 200  # in the search for η on given scores
NEAR = 1e-10  # of the budget: what the search for η may leave unspent
BAND = 3.0  # standard errors within which S should lie of one
LEAST_BAND = 0.05
FOLDS = 5  # over which propensities are cross-fitted


@dataclass(frozen=True)
class Translation:
    """One λ: the price η it needed, and how its policy fared."""

    shift: float  # λ
    price: float  # η
    spend: float  # expected, per customer of the log
    normaliser: float  # S on the rows trained on
    expected: tuple[float, float]  # where S should lie
    snips: float  # on held-out rows
    chosen: bool = False

    @property
    def sound(self) -> bool:
        """Whether S lies where it should."""
        return self.expected[0] <= self.normaliser <= self.expected[1]


@final
class BanditNet(Learner):
    """A policy network under a budget.

    Parameters
    ----------
    budget
        Average cost per customer that may not be exceeded.
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
        η that is taken off the scores; 0 after "retrain", whose scores have it in them.
    levels_known_
        The `Levels` of the log.
    """

    def __init__(
        self,
        *,
        budget: float = 1.0,
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
            raise _too_small(self.budget, float(costs.min(axis=1).mean()))
        trial = _Trial(self, X, log, costs)
        with one_thread(X.size):
            shifts = self._shifts(trial.reward)
            tried, params = trial.fitted(shifts)
            if self.translations is None:
                best = tried[_best(tried)].shift
                finer, more = trial.fitted(best + FINER * (np.arange(len(shifts)) - len(shifts) // 2))
                tried, params = tried + finer, {k: np.concatenate([params[k], more[k]]) for k in params}
        best = _best(tried)
        self.translations_ = tuple(replace(one, chosen=i == best) for i, one in enumerate(tried))
        self.params_ = {name: value[best] for name, value in params.items()}
        self.price_ = 0.0 if self.search == "retrain" else tried[best].price
        # What a search by training leaves over the budget on the whole log is taken off the scores.
        self.price_ = max(self.price_, _price(self.scores(X), costs, self.budget, trial.weight))

    def _shifts(self, reward: Array) -> Array:
        given = (*TRANSLATIONS, float(reward.mean())) if self.translations is None else self.translations
        return np.asarray(given, dtype=np.float64)

    def _costs(self, own: Array | None, n: int) -> Array:
        """Return what each level costs each customer (n, K)."""
        face = own if own is not None else self.levels_known_.common_costs
        if face is None:
            hint = f"read the table with levels=…, so that {self.levels_known_.cost_columns} are found"
            refuse("BanditNet", [Problem("costs are per customer, but this table was read without them", hint)])
            raise AssertionError
        K = len(self.levels_known_)
        # Nothing is paid on redemption here, so no curve is needed to know what is paid.
        return np.broadcast_to(expected_costs(self.levels_known_, np.zeros((1, K)), face), (n, K))

    def _network(self, features: int) -> Any:
        from largesse.response.network import Shape

        return Shape(features, self.levels_, "free", self.width, self.depth, self.activation, self.skip, False)

    def _problems(self, log: Log) -> list[Problem]:
        wrong = [
            Problem(f"{name}={getattr(self, name)!r}", "a whole number, 1 or more")
            for name in ("width", "depth", "batch", "steps", "patience")
            if getattr(self, name) < 1
        ]
        if self.search not in SEARCHES:
            wrong.append(Problem(f"search={self.search!r}", nearest(str(self.search), SEARCHES)))
        if self.activation not in ("elu", "relu"):
            wrong.append(Problem(f"activation={self.activation!r}", nearest(str(self.activation), ("elu", "relu"))))
        if not (np.isfinite(self.budget) and self.budget >= 0):
            wrong.append(Problem(f"budget={self.budget!r}", "an average cost per customer, zero or more"))
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
        return _scores(self._network(X.shape[1]), {k: v[None] for k, v in self.params_.items()}, X)[0]

    def predict(self, customers: Any) -> Array:
        """Return the probabilities (n, K) of the levels at the price learnt on the log, each customer's on their own."""
        X = self.encode(customers)
        return _softmax(self.scores(X) - self.price_ * self._costs(getattr(customers, "costs", None), len(X)))

    def chances(self, customers: Any, budget: float | None = None) -> Array:
        """Return probabilities (n, K) whose expected cost over these customers is within the budget."""
        X, costs, budget = self._asked(customers, budget)
        scores = self.scores(X)
        return _softmax(scores - _price(scores, costs, budget) * costs)

    def decide(self, customers: Any, budget: float | None = None) -> Array:
        """Return one level (n,) each: the best scores that the budget allows these customers together."""
        X, costs, budget = self._asked(customers, budget)
        return allocate(self.scores(X), costs, budget).levels if len(X) else np.zeros(0, dtype=np.int64)

    def _asked(self, customers: Any, budget: float | None) -> tuple[Array, Array, float]:
        X = self.encode(customers)
        costs = self._costs(customers.costs if isinstance(customers, Customers | Log) else None, len(X))
        budget = self.budget if budget is None else float(budget)
        least = float(costs.min(axis=1).mean()) if len(X) else 0.0
        if not budget >= least:
            raise _too_small(budget, least)
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
        from largesse.response.cfrnet import check_params
        from largesse.response.network import shapes

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
        content = sealed({"format": FORMAT, "version": VERSION, "model": state}, arrays)
        with atomic_file(path) as part:
            part.write_bytes(content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BanditNet:
        """Read what `save` wrote, and refuse it unless everything in it is known and whole."""
        manifest, arrays = opened(Path(path), FORMAT)
        try:
            return cls.from_state(manifest["model"], arrays)
        except PolicyFileError:
            raise
        except Exception as error:
            hint = "fit again with this version"
            raise refused(Path(path), f"holds something that is not expected ({error})", hint) from error


# -- Algorithm 1 ----------------------------------------------------------------------------------------------------


class _Trial:
    """The log, made ready for training at any λ and η."""

    def __init__(self, settings: BanditNet, X: Array, log: Log, costs: Array) -> None:
        from largesse.response.iterate import STOP_ROWS, filled, row_sets

        self.settings, self.X, self.costs = settings, X, costs
        self.level = log.level
        low, high = log.response.min(), log.response.max()
        self.reward = (log.response - low) / (high - low if high > low else 1.0)
        self.weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        fold = cut(log, min(FOLDS, len(log)), settings.seed) if log.propensity is None else np.zeros(len(log), int)
        rho = propensities(log, fold, settings.seed).own
        self.inverse = np.minimum(1.0 / rho, settings.clip)
        self.held = held_out(log, settings.hold_out, settings.seed)
        parts = (X, log.level, self.reward, self.inverse, costs)
        self.data = tuple(filled(np.asarray(p, np.int32 if p is log.level else np.float32)) for p in parts)
        sets = (np.flatnonzero(~self.held), np.flatnonzero(self.held))
        stop = row_sets([sets[1]], self.weight, most=STOP_ROWS)
        self.rows = (*row_sets([sets[0]], self.weight, settings.batch), *stop)

    def fitted(self, shifts: Array) -> tuple[list[Translation], dict[str, Array]]:
        """Return the policies of every λ, each with the η that lets it spend what the budget allows."""
        s = self.settings
        if s.search == "retrain":
            prices, params = self._retrained(shifts)
            scores = _scores(s._network(self.X.shape[1]), params, self.X)
            # Where even the dearest η left the policy over budget, the rest is taken off the scores.
            rest = np.array([_price(score, self.costs, s.budget, self.weight) for score in scores])
        else:
            params = self._trained(shifts, np.zeros(len(shifts)))
            scores = _scores(s._network(self.X.shape[1]), params, self.X)
            prices = np.zeros(len(shifts))
            rest = np.array([_price(score, self.costs, s.budget, self.weight) for score in scores])
        chances = [_softmax(score - price * self.costs) for score, price in zip(scores, rest, strict=True)]
        found = zip(shifts, prices + rest, chances, strict=True)
        return [self._judged(float(a), float(b), c) for a, b, c in found], params

    def _trained(self, shifts: Array, prices: Array) -> dict[str, Array]:
        """Train one network for each λ and η, all in one program."""
        from largesse.response.iterate import Loop, iterate

        s, M = self.settings, len(shifts)
        mine = (
            *(np.repeat(part, M, axis=0) for part in self.rows),
            shifts.astype(np.float32),
            prices.astype(np.float32),
        )
        parts = _parts(s._network(self.X.shape[1]), s.rate, s.decay, s.batch)
        # One seed for all: they differ by λ and η alone.
        params, _ = iterate(parts, Loop(s.steps, patience=s.patience), self.data, mine, np.full(M, s.seed))
        found: dict[str, Array] = params
        return found

    def _retrained(self, shifts: Array) -> tuple[Array, dict[str, Array]]:
        """Search for each λ's smallest η that keeps the policy within budget, training anew at every one that is tried."""
        s, M = self.settings, len(shifts)
        over, within = np.zeros(M), np.full(M, np.inf)
        asked, kept = np.zeros(M), None
        first = 1.0 / max(float(np.ptp(self.costs, axis=1).mean()), 1e-9)
        for _ in range(ROUNDS):
            params = self._trained(shifts, asked)
            scores = _scores(s._network(self.X.shape[1]), params, self.X)
            spend = np.array([self._spend(_softmax(score)) for score in scores])
            fits = spend <= s.budget
            better = fits & (asked <= within)
            within, over = np.where(fits, np.minimum(asked, within), within), np.where(fits, over, asked)
            # Until a λ has a policy within budget its latest one stands in, the cheapest so far.
            take = better | ~np.isfinite(within)
            kept = (
                params
                if kept is None
                else {k: np.where(take.reshape(-1, *[1] * (v.ndim - 1)), params[k], v) for k, v in kept.items()}
            )
            if (within == 0).all():
                break
            doubled = np.maximum(2 * over, first)
            asked = np.where(np.isfinite(within), (over + np.where(np.isfinite(within), within, 0)) / 2, doubled)
        assert kept is not None
        return np.where(np.isfinite(within), within, over), kept

    def _spend(self, chances: Array) -> float:
        return float(np.average((chances * self.costs).sum(axis=1), weights=self.weight))

    def _judged(self, shift: float, price: float, chances: Array) -> Translation:
        ratio = chances[np.arange(len(self.level)), self.level] * self.inverse
        mine, w = ratio[~self.held], self.weight[~self.held]
        S = float(np.average(mine, weights=w))
        se = float(np.sqrt(np.sum(w**2 * (mine - S) ** 2)) / w.sum())
        band = max(BAND * se, LEAST_BAND)
        theirs, v = ratio[self.held], self.weight[self.held]
        snips = float((v * theirs) @ self.reward[self.held] / max(v @ theirs, 1e-12))
        return Translation(shift, price, self._spend(chances), S, (1 - band, 1 + band), snips)


def _best(tried: list[Translation]) -> int:
    """Return the place of the best SNIPS among policies whose S lies where it should, or among all if none does."""
    sound = [i for i, one in enumerate(tried) if one.sound] or list(range(len(tried)))
    return max(sound, key=lambda i: tried[i].snips)


def _price(scores: Array, costs: Array, budget: float, weight: Array | None = None) -> float:
    """Return the smallest η ≥ 0 at which softmax(scores − η costs) has an expected cost (weighted mean) within budget.

    Newton's steps, held inside the two prices between which it is known to lie.
    """
    share = np.full(len(scores), 1.0 / max(len(scores), 1)) if weight is None else weight / weight.sum()
    near = NEAR * max(1.0, abs(budget))

    def spend(price: float) -> tuple[float, float]:
        """Expected cost, and how fast it falls with the price: the mean variance of a customer's cost."""
        chances = _softmax(scores - price * costs)
        each = np.einsum("nk,nk->n", chances, costs)
        return float(share @ each), float(share @ (np.einsum("nk,nk,nk->n", chances, costs, costs) - each**2))

    low, high, price = 0.0, np.inf, 0.0
    for turn in range(MOST_STEPS):
        spent, slope = spend(price)
        if spent <= budget and (price == 0 or spent >= budget - near):
            return price
        low, high = (low, price) if spent <= budget else (price, high)
        if price >= 1e12 or (np.isfinite(high) and high - low <= 1e-15 * high):
            break
        middle = (low + high) / 2 if np.isfinite(high) else max(1.0, 2 * price)
        # A little past where the line meets the budget: the end is approached from within. Now and then a plain halving.
        step = price + (spent - budget + near / 2) / slope if slope > 0 and turn % 5 < 4 else middle
        price = step if low < step < (high if np.isfinite(high) else middle) else middle
    return float(high if np.isfinite(high) else price)


def _softmax(scores: Array) -> Array:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _too_small(budget: float, least: float) -> BudgetError:
    hint = f"the cheapest levels cost {least:g} on average: give that or more"
    return BudgetError("budget", [Problem(f"{budget:g} per customer", hint)])


# -- the network ----------------------------------------------------------------------------------------------------


def _scores(shape: Any, params: dict[str, Array], X: Array) -> Array:
    """Return the scores (M, n, K) of M networks for features (n, p)."""
    from largesse.response.train import predict

    many = len(next(iter(params.values())))
    return predict(params, X, shape, np.ones(many, np.float32)).astype(np.float64)


@functools.lru_cache(maxsize=8)
def _parts(shape: Any, rate: float, decay: float, batch: int) -> Any:
    """Return what training does.

    `data`: features, level, reward, 1/ρ, costs. `mine`: rows and weights to train on and to stop by, λ, η.
    """
    import jax
    import jax.numpy as jnp
    import optax

    from largesse.response import network
    from largesse.response.iterate import Parts, drawn, unmoved

    sizes = network.shapes(shape)
    optimiser = optax.adamw(rate, weight_decay=decay, mask={name: len(size) == 2 for name, size in sizes.items()})

    def start(rng: np.random.Generator) -> Any:
        params = {
            name: (rng.standard_normal(size) / np.sqrt(max(size[0], 1))).astype(np.float32)
            if len(size) == 2
            else np.zeros(size, np.float32)
            for name, size in sizes.items()
        }
        return params, unmoved(optimiser, params)

    def luck(rng: np.random.Generator, mine: Any, steps: int) -> Array:
        return drawn(rng, mine[1], steps, batch)

    def objective(params: Any, data: Any, rows: Any, weight: Any, shift: Any, price: Any) -> Any:
        X, level, reward, inverse, costs = (part[rows] for part in data)
        chances = jax.nn.softmax(network.forward(shape, params, X)[1], axis=1)
        ratio = jnp.take_along_axis(chances, level[:, None], axis=1)[:, 0] * inverse
        gain = (reward - shift) * ratio - price * (chances * costs).sum(axis=1)
        return -(weight @ gain) / jnp.maximum(weight.sum(), 1e-9)

    def step(state: Any, data: Any, mine: Any, places: Any) -> Any:
        params, inner = state
        slope = jax.grad(objective)(params, data, mine[0][places], mine[1][places], mine[4], mine[5])
        update, inner = optimiser.update(slope, inner, params)
        return optax.apply_updates(params, update), inner

    def loss(state: Any, data: Any, mine: Any) -> Any:
        return objective(state[0], data, mine[2], mine[3], mine[4], mine[5])

    return Parts(start, luck, step, loss, lambda state: state[0], (0, 2), shape.depth * shape.width)
