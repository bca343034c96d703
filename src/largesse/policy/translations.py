"""BanditNet under a budget: a policy learnt from the log without a model of the response (the incentive paper's Algorithm 1).

A network gives every level a score, and the policy is their softmax π. With rewards δ in [0, 1] and propensities ρ, it
maximises the mean of (δ − λ) π(y|x)/ρ(y|x) − η Σ_y c(y) π(y|x) (Joachims, Swaminathan and de Rijke 2018, with a price η on
cost): λ moves the rewards, and stands for the self-normaliser S = mean of π/ρ that cannot be optimised directly. For each λ,
η is searched so that the policy spends as much as the budget allows; the λ whose policy has the best self-normalised
estimate (SNIPS) on held-out rows is kept. A policy whose S lies outside the range in which it should fall has learnt to
avoid rows rather than to be good, and is not kept if another is there.

η ≥ 0 takes cost off a policy; it never adds any. A policy that learnt to spend less than the budget ("up to") is then left
at that, and against plans that use their budget it loses what the rest would have brought. With "all", η may also be
negative: cost is then worth something in itself, until the budget is spent.

Where the paper leaves it open: λ runs over 0, .1 … .9 and the mean reward, then more finely around the best; propensities
are cross-fitted logistic regressions unless the log gives them, and 1/ρ is held to `clip`; S should lie within three standard
errors of one, since a Chernoff bound with such weights would allow anything; the network is SIRE's, trained by Adam, its best
weights on held-out rows kept. Algorithm 1 trains anew at every η ("retrain"); "posthoc" trains once for each λ and takes
η × cost off the scores. On the customers it is applied to, η is searched again, so that the budget holds there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.propensity import estimate_propensities
from largesse.records import Array, Log
from largesse.stats import assign_folds, hold_out, softmax

if TYPE_CHECKING:
    from largesse.policy.banditnet import BanditNet

ROUNDS = 10  # of training anew, in the search for η
MOST_STEPS = 200  # in the search for η on given scores
NEAR = 1e-10  # of the budget: what the search for η may leave unspent
FURTHEST = 1e12  # η
NEXT_TO = 1e-6  # of the most that can be spent may be left
SPENDS = ("up to", "all")  # what is done with the budget
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


class Trial:
    """The log, made ready for training at any λ and η."""

    def __init__(self, settings: BanditNet, X: Array, log: Log, costs: Array) -> None:
        from largesse.response.networks.iterate import STOP_ROWS, filled, row_sets

        self.settings, self.X, self.costs = settings, X, costs
        self.level = log.level
        low, high = log.response.min(), log.response.max()
        self.reward = (log.response - low) / (high - low if high > low else 1.0)
        self.weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
        fold = (
            assign_folds(log, min(FOLDS, len(log)), settings.seed)
            if log.propensity is None
            else np.zeros(len(log), int)
        )
        rho = estimate_propensities(log, fold, settings.seed).own
        self.inverse = np.minimum(1.0 / rho, settings.clip)
        self.held = hold_out(log, settings.hold_out, settings.seed)
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
        else:
            prices, params = np.zeros(len(shifts)), self._trained(shifts, np.zeros(len(shifts)))
        scores = net_scores(s._network(self.X.shape[1]), params, self.X)
        # After "retrain" too: where even the dearest η left the policy over budget, the rest is taken off the scores.
        rest = np.array([find_price(score, self.costs, s.budget, self.weight, s.spend) for score in scores])
        chances = [softmax(score - price * self.costs) for score, price in zip(scores, rest, strict=True)]
        found = zip(shifts, prices + rest, chances, strict=True)
        return [self._judged(float(a), float(b), c) for a, b, c in found], params

    def _trained(self, shifts: Array, prices: Array) -> dict[str, Array]:
        """Train one network for each λ and η, all in one program."""
        from largesse.response.networks.iterate import Loop, iterate

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
            scores = net_scores(s._network(self.X.shape[1]), params, self.X)
            spend = np.array([self._spend(softmax(score)) for score in scores])
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


def best_of(tried: list[Translation]) -> int:
    """Return the place of the best SNIPS among policies whose S lies where it should, or among all if none does."""
    sound = [i for i, one in enumerate(tried) if one.sound] or list(range(len(tried)))
    return max(sound, key=lambda i: tried[i].snips)


def find_price(
    scores: Array, costs: Array, budget: float, weight: Array | None = None, spend: str = SPENDS[0]
) -> float:
    """Return the smallest η at which softmax(scores − η costs) has an expected cost (weighted mean) within budget.

    η is not below zero, unless all is to be spent; a budget that even the dearest levels do not use up goes to them.
    """
    share = np.full(len(scores), 1.0 / max(len(scores), 1)) if weight is None else weight / weight.sum()

    def spent(price: float) -> tuple[float, float]:
        """Expected cost, and how fast it falls with the price: the mean variance of a customer's cost."""
        chances = softmax(scores - price * costs)
        each = np.einsum("nk,nk->n", chances, costs)
        return float(share @ each), float(share @ (np.einsum("nk,nk,nk->n", chances, costs, costs) - each**2))

    now, _ = spent(0.0)
    if now > budget:
        return _crossing(spent, budget, 1.0)
    most = float(share @ costs.max(axis=1))
    if spend == "up to" or not now < most:
        return 0.0
    # The most is spent only at η = −∞: next to all of it is as good.
    return _crossing(spent, min(budget, (1 - NEXT_TO) * most), -1.0)


def _crossing(spent: Callable[[float], tuple[float, float]], budget: float, far: float) -> float:
    """Return the smallest price whose spending is within budget: on the way from 0 to `far`, or beyond it.

    Newton's steps, held between the two prices where it is known to lie; now and then a plain halving.
    """
    near, over = 0.0, far > 0
    while (spent(far)[0] > budget) == over and abs(far) < FURTHEST:
        near, far = far, 2 * far
    low, high = min(near, far), max(near, far)
    left, price = NEAR * max(1.0, abs(budget)), (low + high) / 2
    for turn in range(MOST_STEPS):
        now, slope = spent(price)
        if budget - left <= now <= budget:
            return price
        low, high = (price, high) if now > budget else (low, price)
        if high - low <= 1e-15 * max(abs(low), abs(high)):
            break
        # A little past where the line meets the budget: the end is approached from within.
        step = price + (now - budget + left / 2) / slope if slope > 0 and turn % 5 < 4 else low
        price = step if low < step < high else (low + high) / 2
    return high


def net_scores(shape: Any, params: dict[str, Array], X: Array) -> Array:
    """Return the scores (M, n, K) of M networks for features (n, p)."""
    from largesse.response.networks.train import predict

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

    from largesse.response.networks import network
    from largesse.response.networks.iterate import Parts, drawn, unmoved

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
