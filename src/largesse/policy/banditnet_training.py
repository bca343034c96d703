"""BanditNet under a budget: a policy learnt from the log without a response model (the incentive paper's Algorithm 1).

A network gives every level a score, and the policy is their softmax π. With rewards δ in [0, 1] and propensities ρ, it
maximises the mean of (δ − λ) π(y|x)/ρ(y|x) − η Σ_y c(y) π(y|x) (Joachims, Swaminathan and de Rijke 2018, with a price η on
cost). The translation λ shifts the rewards; it stands for the self-normaliser S = mean of π/ρ, which cannot be optimised
directly. For each λ, η is searched so that the policy spends what the budget allows. The λ whose policy has the best
self-normalised estimate (SNIPS) on held-out rows is kept. A policy whose S is far from one has learnt to avoid rows rather
than to be good; it is only kept if no other is there.

η ≥ 0 removes cost from a policy; it never adds any. A policy that learnt to spend less than the budget ("up to") stays there,
and loses to plans that use their budget. With "all", η may be negative: spending is then rewarded until the budget is spent.

Where the paper leaves things open: λ runs over 0, .1 … .9 and the mean reward, then more finely around the best.
Propensities are cross-fitted logistic regressions unless the log gives them, and 1/ρ is clipped. S should lie within three
standard errors of one, since a Chernoff bound with such weights would allow anything. The network is SIRE's with a free
head, trained by Adam, its best weights on held-out rows kept. Algorithm 1 trains again for every η ("retrain"); "posthoc"
trains once for each λ and subtracts η × cost from the scores. For the customers it is applied to, η is searched again, so
that the budget holds there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from largesse.propensity import estimate_propensities
from largesse.records import Array, Log
from largesse.response import Network, PolicyNetworks, PolicyRows, Training, train_policy_networks
from largesse.stats import assign_folds, hold_out, softmax

RETRAININGS = 10  # in the search for η
MOST_STEPS = 200  # in the search for η on given scores
UNSPENT = 1e-10  # of the budget: what the search for η may leave
LARGEST = 1e12  # η
SHORT_OF_ALL = 1e-6  # of the most that can be spent
SPENDS = ("up to", "all")  # of the budget
ERRORS = 3.0  # standard errors that S may lie away from one
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


@dataclass(frozen=True, eq=False)
class Trained:
    """The policies of several λ and their networks."""

    translations: tuple[Translation, ...]
    networks: PolicyNetworks

    def append(self, others: Trained) -> Trained:
        """Return these policies and others."""
        return Trained(self.translations + others.translations, self.networks.append(others.networks))


@dataclass(frozen=True)
class Settings:
    """What a `BanditNet` is told about its training."""

    budget: float
    spend: str
    search: str
    clip: float
    network: Network
    training: Training
    hold_out: float
    seed: int


class Trainer:
    """Trains policies at any λ and η on one log."""

    def __init__(self, settings: Settings, X: Array, log: Log, costs: Array) -> None:
        self.settings = settings
        low, high = log.response.min(), log.response.max()
        given = log.propensity is not None
        fold = np.zeros(len(log), int) if given else assign_folds(log, min(FOLDS, len(log)), settings.seed)
        rho = estimate_propensities(log, fold, settings.seed).own
        self.rows = PolicyRows(
            X=X,
            level=log.level,
            reward=(log.response - low) / (high - low if high > low else 1.0),
            inverse=np.minimum(1.0 / rho, settings.clip),
            costs=costs,
            weight=np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean(),
            held=hold_out(log, settings.hold_out, settings.seed),
        )

    def train(self, shifts: Array) -> Trained:
        """Return the policies of every λ, each with the η that lets it spend what the budget allows."""
        s, costs = self.settings, self.rows.costs
        if s.search == "retrain":
            prices, networks = self._search_by_training(shifts)
        else:
            prices, networks = np.zeros(len(shifts)), self._train(shifts, np.zeros(len(shifts)))
        scores = networks.scores(self.rows.X)
        # After "retrain" too: where even the largest η left the policy over budget, the rest is taken off the scores.
        rest = np.array([find_price(score, costs, s.budget, self.rows.weight, s.spend) for score in scores])
        policies = [softmax(score - price * costs) for score, price in zip(scores, rest, strict=True)]
        found = zip(shifts, prices + rest, policies, strict=True)
        return Trained(tuple(self._judge(float(a), float(b), policy) for a, b, policy in found), networks)

    def _train(self, shifts: Array, prices: Array) -> PolicyNetworks:
        s = self.settings
        return train_policy_networks(self.rows, shifts, prices, network=s.network, training=s.training, seed=s.seed)

    def _search_by_training(self, shifts: Array) -> tuple[Array, PolicyNetworks]:
        """Search for each λ's smallest η that keeps the policy within budget; every η tried is a training."""
        over, within = np.zeros(len(shifts)), np.full(len(shifts), np.inf)
        prices = np.zeros(len(shifts))
        kept: PolicyNetworks | None = None
        first = 1.0 / max(float(np.ptp(self.rows.costs, axis=1).mean()), 1e-9)
        for _ in range(RETRAININGS):
            networks = self._train(shifts, prices)
            spend = np.array([self._spend(softmax(score)) for score in networks.scores(self.rows.X)])
            fits = spend <= self.settings.budget
            better = fits & (prices <= within)
            within, over = np.where(fits, np.minimum(prices, within), within), np.where(fits, over, prices)
            found = np.isfinite(within)
            # Until a λ has a policy within budget its latest one stands in, the cheapest so far.
            kept = networks if kept is None else networks.where(better | ~found, kept)
            if (within == 0).all():
                break
            prices = np.where(found, (over + np.where(found, within, 0)) / 2, np.maximum(2 * over, first))
        assert kept is not None
        return np.where(np.isfinite(within), within, over), kept

    def _spend(self, policy: Array) -> float:
        return float(np.average((policy * self.rows.costs).sum(axis=1), weights=self.rows.weight))

    def _judge(self, shift: float, price: float, policy: Array) -> Translation:
        """Return how a policy (n, K) fares: its normaliser on the rows trained on, its value on held-out rows."""
        rows, held = self.rows, self.rows.held
        ratio = policy[np.arange(len(rows.level)), rows.level] * rows.inverse
        mine, w = ratio[~held], rows.weight[~held]
        S = float(np.average(mine, weights=w))
        se = float(np.sqrt(np.sum(w**2 * (mine - S) ** 2)) / w.sum())
        band = max(ERRORS * se, LEAST_BAND)
        theirs, v = ratio[held], rows.weight[held]
        snips = float((v * theirs) @ rows.reward[held] / max(v @ theirs, 1e-12))
        return Translation(shift, price, self._spend(policy), S, (1 - band, 1 + band), snips)


def choose_translation(tried: Sequence[Translation]) -> int:
    """Return the position of the best SNIPS among policies whose S lies where it should, or among all if none does."""
    sound = [i for i, one in enumerate(tried) if one.sound] or list(range(len(tried)))
    return max(sound, key=lambda i: tried[i].snips)


def find_price(
    scores: Array, costs: Array, budget: float, weight: Array | None = None, spend: str = SPENDS[0]
) -> float:
    """Return the smallest η at which softmax(scores − η costs) has an expected cost (weighted mean) within budget.

    η is negative only if all of the budget is to be spent; the dearest levels get a budget that they do not use up.
    """
    share = np.full(len(scores), 1.0 / max(len(scores), 1)) if weight is None else weight / weight.sum()

    def spent(price: float) -> tuple[float, float]:
        """Return the expected cost, and how fast it falls with the price: the mean variance of a customer's cost."""
        policy = softmax(scores - price * costs)
        each = np.einsum("nk,nk->n", policy, costs)
        return float(share @ each), float(share @ (np.einsum("nk,nk,nk->n", policy, costs, costs) - each**2))

    now, _ = spent(0.0)
    if now > budget:
        return _crossing(spent, budget, 1.0)
    most = float(share @ costs.max(axis=1))
    if spend == "up to" or not now < most:
        return 0.0
    # The most is spent only at η = −∞: almost all of it will do.
    return _crossing(spent, min(budget, (1 - SHORT_OF_ALL) * most), -1.0)


def _crossing(spent: Callable[[float], tuple[float, float]], budget: float, far: float) -> float:
    """Return the smallest price whose spending is within budget: on the way from 0 to `far`, or beyond it.

    Newton steps, kept inside the bracket known to hold it, with a bisection every fifth step.
    """
    near, over = 0.0, far > 0
    while (spent(far)[0] > budget) == over and abs(far) < LARGEST:
        near, far = far, 2 * far
    low, high = min(near, far), max(near, far)
    left, price = UNSPENT * max(1.0, abs(budget)), (low + high) / 2
    for turn in range(MOST_STEPS):
        now, slope = spent(price)
        if budget - left <= now <= budget:
            return price
        low, high = (price, high) if now > budget else (low, price)
        if high - low <= 1e-15 * max(abs(low), abs(high)):
            break
        # Slightly past the crossing of the tangent, so that the budget is approached from within.
        step = price + (now - budget + left / 2) / slope if slope > 0 and turn % 5 < 4 else low
        price = step if low < step < high else (low + high) / 2
    return high
