"""Random data-generating processes with known true responses, one per seed.

A default that is chosen on one family of simulations is a default for that family. Here a seed draws the number of levels
and their doses, the dose-response curve, the features and their effects, the logging policy, and the kind of response.
`WorldTraits` holds the drawn traits as words and numbers.

The expected response to level k with dose share d_k ∈ [0, 1] is, on the logit scale or on the plain one,

    f(x, k) = base(x) + strength · m(x) · g(d_k; x),

g the ladder from 0 to 1 and m(x) ≥ 0 the effect modifier; f never falls in the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from largesse.errors import Problem, refuse
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.stats import draw_levels, sigmoid
from largesse.worlds.known_truth import KnownTruth
from largesse.worlds.random_functions import (
    SURFACE_MOMENT_ROWS,
    SURFACE_SHAPES,
    FeatureDistribution,
    RandomSurface,
    draw_feature_distribution,
    draw_random_surface,
)

if TYPE_CHECKING:
    import pyarrow as pa

WORLD_BUDGET_SHARES = (0.25, 0.5)  # of the dearest level's cost: the budgets of evaluated plans
MIN_GAIN_SHARE = 0.02  # of the best plan over the best uniform mixture, relative to the dearest level's mean effect

# Streams of one seed: a draw for one purpose never shifts the draws for another.
_WORLD, _LOG, _FRESH = range(3)


@dataclass(frozen=True)
class WorldTraits:
    """Randomly drawn properties of a random world, as words and numbers."""

    levels: int
    doses: str  # equal, doubling, irregular
    response: str  # yes/no, amounts, gaussian
    rate: float  # share of customers who respond at the middle level
    scale: str  # of the scores: logit, plain
    ladder: str  # equal, saturating, s-shaped, threshold, dose
    strength: float  # of the dearest level, on that scale
    base: str  # shape of the base surface
    base_spread: float
    differ: str  # cause of differences between increments: nothing, one feature, few, segment, own dose
    differ_spread: float
    features: int
    log: str  # random, shares, features, response, rule
    known: bool  # whether the log holds its propensities

    @property
    def regimes(self) -> dict[str, str]:
        """Categories of a random world's properties, by which experiments group worlds."""
        level_range = "2–3" if self.levels < 4 else "4–6" if self.levels < 7 else "7–12"
        names = ("response", "ladder", "base", "differ", "log", "doses")
        feature_range = "up to 20" if self.features <= 20 else "21–60" if self.features <= 60 else "61–200"
        return {**{name: getattr(self, name) for name in names}, "levels": level_range, "features": feature_range}


@dataclass(frozen=True, eq=False)
class RandomLog(KnownTruth):
    """Customers of a random world, with their logged and their true responses."""

    table: pa.Table
    level: Array  # (n,) int64, as logged
    response: Array  # (n,) float64, as logged
    propensities: Array  # (n, K)
    truth: Array  # (n, K): the expected response at every level
    costs: Array  # (K,)
    known: bool

    @property
    def log(self) -> Log:
        """Log of the simulated customers, with propensities if they are known in this world."""
        propensity = self.propensities[np.arange(len(self)), self.level]
        levels = Levels(costs=self.costs)
        return Log(self.table, self.level, self.response, levels, propensity=propensity if self.known else None)


@dataclass(frozen=True, eq=False)
class RandomWorld:
    """Random data-generating process of features, responses and logged levels.

    Made by `draw_world`.
    """

    seed: int
    traits: WorldTraits
    doses: Array  # (K,), from 0 up; also the costs
    columns: FeatureDistribution
    intercept: float
    base: RandomSurface
    modifier: RandomSurface  # of the effect of levels
    amount: RandomSurface
    log_surface: RandomSurface  # followed by the logging policy, in addition to the base
    shape: float  # of the ladder
    noise: float  # of amounts
    log_strength: float  # of the logging policy's dependence on its surface; in a rule, sets the random share

    @property
    def budgets(self) -> tuple[float, ...]:
        """Budgets per customer at which experiments evaluate plans."""
        return tuple(float(share * self.doses[-1]) for share in WORLD_BUDGET_SHARES)

    def draw_log(self, n: int) -> RandomLog:
        """Draw a log of n customers."""
        return self._draw(n, (_LOG,))

    def draw_fresh(self, n: int, stream: int = 0) -> RandomLog:
        """Draw n customers who are not in the log."""
        return self._draw(n, (_FRESH, stream))

    def draw_next(self, n: int, choose: Callable[[pa.Table], Array], stream: int = 0) -> RandomLog:
        """Draw a later log of n new customers, whose levels a policy chooses with given probabilities.

        They are the customers of `draw_fresh` with this stream; `choose` takes their table and returns probabilities (n, K).
        """
        return self._draw(n, (_FRESH, stream), choose)

    def _draw(self, n: int, stream: tuple[int, ...], choose: Callable[[pa.Table], Array] | None = None) -> RandomLog:
        if n < 1:
            refuse("world", [Problem(f"n = {n} customers", "draw at least one")])
        feature_rng, level_rng, noise_rng = _make_generator(self.seed, *stream).spawn(3)
        table, latent = self.columns.draw(n, feature_rng)
        propensities = self._propensities(latent) if choose is None else choose(table)
        level = draw_levels(propensities, level_rng)
        truth = self.expect(latent)
        response = self._draw_responses(latent, truth, level, noise_rng)
        known = self.traits.known or choose is not None
        return RandomLog(table, level, response, propensities, truth, self.doses, known)

    # -- responses -----------------------------------------------------------------------------------------------

    def _scores(self, latent: Array) -> Array:
        """Return the scores (n, K) at all levels of customers with latent features (n, p)."""
        t = self.traits
        modifier = self.modifier(latent)
        d = self.doses / self.doses[-1]
        if t.differ == "own dose":
            half = np.clip(self.shape * np.exp(t.differ_spread * modifier), 0.02, 20.0)[:, None]
            rise = d / (d + half) * (1 + half)
        else:
            rise = make_dose_response_curve(t.ladder, d, self.shape)[None, :]
        factor = np.ones(len(latent))
        if t.differ in ("one feature", "few"):
            factor = np.exp(t.differ_spread * modifier - t.differ_spread**2 / 2)
        elif t.differ == "segment":
            share = 0.3
            factor = np.where(modifier > 0.52, 1.0 / share, 0.0) * min(t.differ_spread, 1.0)
            factor += 1.0 - min(t.differ_spread, 1.0)
        base = self.intercept + t.base_spread * self.base(latent)
        return base[:, None] + t.strength * np.minimum(factor, 6.0)[:, None] * rise

    def _probabilities(self, latent: Array) -> Array:
        scores = self._scores(latent)
        return sigmoid(scores) if self.traits.scale == "logit" else np.clip(scores, 0.001, 0.999)

    def _amounts(self, latent: Array) -> Array:
        """Return the mean amount (n, K) that responding customers spend at each level."""
        rise = make_dose_response_curve("saturating", self.doses / self.doses[-1], self.shape)
        return np.exp(3.0 + 0.5 * self.amount(latent))[:, None] * (1.0 + 0.2 * rise)

    def expect(self, latent: Array) -> Array:
        """Return the expected response (n, K) of customers with latent features (n, p)."""
        if self.traits.response == "gaussian":
            return self._scores(latent)
        chances = self._probabilities(latent)
        return chances if self.traits.response == "yes/no" else chances * self._amounts(latent)

    def _draw_responses(self, latent: Array, truth: Array, level: Array, rng: np.random.Generator) -> Array:
        rows = np.arange(len(level))
        if self.traits.response == "gaussian":
            return truth[rows, level] + self.noise * rng.standard_normal(len(level))
        responds = (rng.random(len(level)) < self._probabilities(latent)[rows, level]).astype(np.float64)
        if self.traits.response == "yes/no":
            return responds
        spread = self.noise * rng.standard_normal(len(level)) - self.noise**2 / 2
        return responds * self._amounts(latent)[rows, level] * np.exp(spread)

    # -- logging policy ---------------------------------------------------------------------------------------------

    def _propensities(self, latent: Array) -> Array:
        K, logging = len(self.doses), self.traits.log
        place = np.linspace(-1.0, 1.0, K)
        if logging == "random":
            return np.full((len(latent), K), 1.0 / K)
        if logging == "shares":
            odds = np.exp(1.5 * np.sin(3.0 * self.log_strength + 2.5 * place))
            return np.tile(odds / odds.sum(), (len(latent), 1))
        score = self.base(latent) if logging == "response" else self.log_surface(latent)
        if logging == "rule":
            # The company's rule: the higher the score, the dearer (or the cheaper) the level; some rows at random.
            score = 0.7 * self.base(latent) + 0.7 * score
            edges = np.sqrt(0.98) * _normal_quantiles(K)
            chosen = np.searchsorted(edges, score if self.log_strength > 0 else -score)
            random_share = 0.1 + 0.2 * abs(self.log_strength)
            return (1.0 - random_share) * np.eye(K)[chosen] + random_share / K
        odds = np.exp(2.0 * self.log_strength * score[:, None] * place)
        return 0.95 * odds / odds.sum(axis=1, keepdims=True) + 0.05 / K


def make_dose_response_curve(ladder: str, d: Array, shape: float) -> Array:
    """Return an increasing dose-response curve (K,) from 0 to 1, for doses d (K,) scaled to 0–1.

    `shape` in (0, 1) sets the curvature or the middle of the curve.

    >>> make_dose_response_curve("equal", np.array([0.0, 0.1, 1.0]), 0.5)
    array([0. , 0.5, 1. ])
    >>> make_dose_response_curve("threshold", np.array([0.0, 0.1, 1.0]), 0.1)
    array([0., 1., 1.])
    """
    K = len(d)
    if ladder == "saturating":
        steep = 1.0 + 7.0 * shape
        return np.asarray((1.0 - np.exp(-steep * d)) / (1.0 - math.exp(-steep)))
    if ladder == "s-shaped":
        middle, steep = 0.2 + 0.5 * shape, 12.0
        low, high = sigmoid(np.array([-steep * middle, steep * (1.0 - middle)]))
        return np.asarray((sigmoid(steep * (d - middle)) - low) / (high - low))
    if ladder == "threshold":
        return (np.arange(K) >= 1 + int(shape * (K - 1))).astype(np.float64)
    return np.arange(K) / (K - 1) if ladder == "equal" else d


@lru_cache(maxsize=64)
def draw_world(seed: int) -> RandomWorld:
    """Draw a random world from a seed: random features, response model and logging policy.

    >>> world = draw_world(3)
    >>> log = world.draw_log(500)
    >>> log.truth.shape == (500, world.traits.levels), bool((np.diff(log.truth, axis=1) >= 0).all())
    (True, True)
    """
    if seed < 0:
        refuse("world", [Problem(f"seed = {seed}", "seeds are zero or more")])
    for attempt in range(100):
        world = _draw_unchecked_world(seed, _make_generator(seed, _WORLD, attempt))
        fresh = world.draw_fresh(4000, 1)
        max_effect = fresh.truth[:, -1].mean() - fresh.truth[:, 0].mean()
        min_gain = min(fresh.oracle_value(budget) - fresh.uniform_value(budget) for budget in world.budgets)
        # Skill is undefined where no plan is better than a uniform mixture.
        if min_gain >= MIN_GAIN_SHARE * max_effect > 0:
            break
    return world


def _draw_unchecked_world(seed: int, rng: np.random.Generator) -> RandomWorld:
    traits = _draw_traits(rng)
    columns = draw_feature_distribution(rng, traits.features)
    _, sample = columns.draw(SURFACE_MOMENT_ROWS, rng)
    is_narrow = rng.random() < 0.5
    width = int(rng.integers(2, 6)) if is_narrow else int(rng.integers(6, max(7, min(40, traits.features) + 1)))
    base = draw_random_surface(rng, sample, traits.base, width)
    modifier_width = {"one feature": 1, "segment": 2}.get(traits.differ, 3)
    modifier_shape = {"one feature": "linear", "segment": "trees"}.get(traits.differ, str(rng.choice(SURFACE_SHAPES)))
    modifier = draw_random_surface(rng, sample, modifier_shape, modifier_width)
    amount = draw_random_surface(rng, sample, "additive", 4)
    log_surface = draw_random_surface(rng, sample, "linear", 4)
    noise = 1.0 if traits.response == "gaussian" else float(rng.uniform(0.4, 1.4))
    world = RandomWorld(
        seed, traits, _draw_doses(rng, traits), columns, 0.0, base, modifier, amount, log_surface,
        float(rng.uniform(0.05, 0.95)), noise, float(rng.uniform(0.3, 1.0) * rng.choice([-1.0, 1.0])),
    )  # fmt: skip
    values = {field.name: getattr(world, field.name) for field in fields(world)}
    return RandomWorld(**(values | {"intercept": _find_intercept(world, sample[:4000])}))


def _draw_traits(rng: np.random.Generator) -> WorldTraits:
    def pick(odds_by_name: dict[str, float]) -> str:
        odds = np.array(list(odds_by_name.values()))
        return str(rng.choice(list(odds_by_name), p=odds / odds.sum()))

    response = pick({"yes/no": 0.68, "amounts": 0.2, "gaussian": 0.12})
    scale = "plain" if response == "gaussian" else pick({"logit": 0.75, "plain": 0.25})
    rate = float(np.exp(rng.uniform(math.log(0.01 if response == "yes/no" else 0.03), math.log(0.6))))
    strength = float(np.clip(np.exp(rng.normal(-0.2, 0.6)), 0.2, 2.5))
    base_spread = float(rng.uniform(0.3, 1.5))
    differ = pick({"nothing": 0.2, "one feature": 0.2, "few": 0.25, "segment": 0.15, "own dose": 0.2})
    ladder = pick({"equal": 0.25, "dose": 0.15, "saturating": 0.3, "s-shaped": 0.15, "threshold": 0.15})
    if scale == "plain" and response != "gaussian":
        strength *= 0.5 * rate  # the dearest level lifts responses by a tenth to the whole of their rate
        base_spread *= 0.4 * rate
    return WorldTraits(
        levels=int(rng.choice([2, 3, 4, 5, 6, 8, 10, 12], p=[0.08, 0.15, 0.17, 0.2, 0.15, 0.1, 0.1, 0.05])),
        doses=pick({"equal": 0.45, "doubling": 0.25, "irregular": 0.3}),
        response=response,
        rate=rate,
        scale=scale,
        ladder="saturating" if differ == "own dose" else ladder,
        strength=strength * (0.6 if response == "gaussian" else 1.0),
        base=str(rng.choice(SURFACE_SHAPES)),
        base_spread=base_spread,
        differ=differ,
        differ_spread=float(rng.uniform(0.3, 1.2)),
        features=int(np.exp(rng.uniform(math.log(5), math.log(200)))),
        log=pick({"random": 0.25, "shares": 0.15, "features": 0.2, "response": 0.2, "rule": 0.2}),
        known=bool(rng.random() < 0.5),
    )


def _draw_doses(rng: np.random.Generator, traits: WorldTraits) -> Array:
    steps = traits.levels - 1
    if traits.doses == "doubling":
        return np.concatenate([[0.0], 2.0 ** np.arange(steps)])
    if traits.doses == "irregular":
        return np.concatenate([[0.0], np.cumsum(0.2 + rng.exponential(size=steps))])
    return np.arange(steps + 1, dtype=np.float64)


def _find_intercept(world: RandomWorld, sample: Array) -> float:
    """Find the intercept at which the middle level has the response rate of the drawn traits."""
    scores, rate = world._scores(sample)[:, world.traits.levels // 2], world.traits.rate
    if world.traits.response == "gaussian":
        return 10.0
    if world.traits.scale == "plain":
        return float(rate - scores.mean())
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sigmoid(scores + middle).mean() < rate else (low, middle)
    return (low + high) / 2


def _normal_quantiles(K: int) -> Array:
    from scipy.special import ndtri

    return np.asarray(ndtri(np.arange(1, K) / K))


def _make_generator(seed: int, *stream: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))
