"""Five fixed simulations of logs with known true responses.

All draw n customers with 50 uniform features and log one of five levels, which cost 0..4. Responses depend on the surface
h(x) = Σ_i a_i exp(−s Σ_j b_ij |x_j − c_ij|), with a, b, c uniform on (0, 1), and its standardised form t = (h − μ)/σ.

============  =========  ====  =================================  =======================================
name          x_j        s     the log chooses level k ∝          response f(x, k), S the logistic curve
============  =========  ====  =================================  =======================================
literal       U(0, 10)   1     x_k of the first five features     S(t + (k+1)/5), t all but constant
unit          U(0, 1)    1     the same                           the same, t varies
averaged      U(0, 10)   1/50  the same                           the same, t varies
instrument    U(0, 10)   1/40  exp(1.5 v (k−2)), v from x_1..10   the same, h sees only x_11..50
confounded    U(0, 10)   1/50  exp(t (k−2)/2)                     S(t + k/4 · exp(.8 u) − .5), u a second t
============  =========  ====  =================================  =======================================

In `literal` the exponent is about −112: h is carried by a few rows in thousands and there is nothing to personalise.
In `instrument` the log follows features that do not drive the response; in `confounded` it follows the response
itself, and customers differ in how much a level moves them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from largesse.data import log_from_arrays
from largesse.errors import Problem, refuse, suggest
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.stats import draw_levels, sigmoid
from largesse.worlds.known_truth import KnownTruth

SIMULATIONS: tuple[str, ...] = ("literal", "unit", "averaged", "instrument", "confounded")

_RESPONSES = ("bernoulli", "noiseless", "gaussian")
_N_FEATURES = 50
_N_TERMS = 50  # of h
_PAPER_LEVELS = np.arange(5)
_CUBE_SIDES = {"unit": 1.0}  # of the features' range; 10 for the others
_SURFACE_SCALES = {"literal": 1.0, "unit": 1.0, "averaged": 1 / 50, "instrument": 1 / 40, "confounded": 1 / 50}
_N_INSTRUMENTS = 10  # in `instrument`, the first features drive the log, the others the response
_MOMENT_ROWS = 200_000
_PAPER_CHUNK_ROWS = 20_000  # 8 MB

# Streams of one seed: a draw for one purpose never shifts the draws for another.
_WORLD, _MOMENTS, _LOG, _FRESH = range(4)


@dataclass(frozen=True, eq=False)
class Simulation(KnownTruth):
    """Customers of a simulated population, with their logged and their true responses."""

    name: str
    features: Array  # (n, 50) float64
    level: Array  # (n,) int64, as logged
    response: Array  # (n,) float64, as logged
    propensity: Array  # (n,) float64: probability of the logged level
    propensities: Array  # (n, K) float64: probability of every level
    truth: Array  # (n, K) float64: the true f
    costs: Array  # (K,) float64: 0..4
    noise: str  # how responses are made from f: the argument `response` of `simulate`
    mix: float
    world: SimulatedWorld

    def __repr__(self) -> str:
        return f"Simulation({self.name!r}, {len(self):,} customers)"

    def draw(self, n: int, seed: int) -> Simulation:
        """Draw n additional customers of the same simulated population."""
        _check_sizes(n, seed, self.mix)
        return _draw_customers(self.world, n, (_FRESH, seed), self.noise, self.mix)

    @property
    def log(self) -> Log:
        """Log of the simulated customers, with known propensities."""
        levels = Levels(costs=self.costs)
        return log_from_arrays(self.features, self.level, self.response, levels=levels, propensity=self.propensity)


def simulate(name: str, n: int = 2500, seed: int = 0, *, response: str = "bernoulli", mix: float = 0.0) -> Simulation:
    """Simulate a log of n customers, whose true responses are known.

    Parameters
    ----------
    name
        One of `SIMULATIONS`, described in the table at the head of this file.
    n
        Number of customers. The first customers do not depend on how many follow.
    seed
        Draws the world and the customers. μ and σ of its surface come from 200,000 further customers (Monte Carlo).
    response
        ``"bernoulli"``: 0 or 1 with probability f; ``"noiseless"``: f itself; ``"gaussian"``: f + N(0, .1²).
    mix
        ε: the log follows (1 − ε) ρ + ε/K instead of ρ, so that no level is ever rarer than ε/K.

    Examples
    --------
    >>> sim = simulate("averaged", n=300, seed=1)
    >>> sim.features.shape, sim.truth.shape, sim.costs
    ((300, 50), (300, 5), array([0., 1., 2., 3., 4.]))
    >>> sim.uniform_value(budget=1) < sim.oracle_value(budget=1)
    True
    >>> simulate("average")
    Traceback (most recent call last):
    largesse.errors.InputError: simulation: there is no simulation 'average'
       → did you mean 'averaged'?
    """
    problems = []
    if name not in SIMULATIONS:
        problems.append(Problem(f"there is no simulation {name!r}", suggest(str(name), SIMULATIONS)))
    if response not in _RESPONSES:
        problems.append(Problem(f"there is no response {response!r}", suggest(str(response), _RESPONSES)))
    refuse("simulation", problems)
    _check_sizes(n, seed, mix)
    return _draw_customers(_make_world(name, seed), n, (_LOG,), response, mix)


def _check_sizes(n: int, seed: int, mix: float) -> None:
    problems = []
    if n < 1:
        problems.append(Problem(f"n = {n} customers", "draw at least one"))
    if seed < 0:
        problems.append(Problem(f"seed = {seed}", "seeds are zero or more"))
    if not 0 <= mix <= 1:
        problems.append(Problem(f"mix = {mix:g}", "mix is a share of the log between 0 and 1"))
    refuse("simulation", problems)


# ------------------------------------------------------------------------------------------------ the world


@dataclass(frozen=True, eq=False)
class _PaperSurface:
    """Random function h of J features with I terms, and its mean and standard deviation."""

    a: Array  # (I,)
    b: Array  # (J, I): s·b_ij, zero for features that h does not see
    c: Array  # (J, I); terms last, so that the inner loop runs over neighbours without being a sum
    mean: float = 0.0
    sd: float = 1.0

    def evaluate(self, features: Array) -> Array:
        """Evaluate the random function h at features (n, J), and return its values (n,)."""
        return _compile_surface()(features, self.a, self.b, self.c)

    def compute_standardised_values(self, features: Array) -> Array:
        """Return the standardised values t (n,) of the random function at features (n, J)."""
        return (self.evaluate(features) - self.mean) / self.sd


@dataclass(frozen=True, eq=False)
class SimulatedWorld:
    """Random functions, response model and logging policy of one simulation and seed."""

    name: str
    seed: int
    surfaces: tuple[_PaperSurface, ...]  # t, and u for `confounded`

    def rng(self, *stream: int) -> np.random.Generator:
        """Return a random generator for one purpose, derived from the simulation's seed."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=stream))

    def draw_customer_features(self, n: int, rng: np.random.Generator) -> Array:
        """Draw the features (n, 50) of n customers."""
        return rng.random((n, _N_FEATURES)) * _CUBE_SIDES.get(self.name, 10.0)

    def compute_true_responses(self, scores: list[Array]) -> Array:
        """Return the true responses f (n, K) of customers, from their standardised random functions (n,)."""
        t = scores[0][:, None]
        if self.name == "confounded":
            return sigmoid(t + _PAPER_LEVELS / 4 * np.exp(0.8 * scores[1][:, None]) - 0.5)
        return sigmoid(t + (_PAPER_LEVELS + 1) / 5)

    def propensities(self, features: Array, scores: list[Array], mix: float) -> Array:
        """Return the probabilities (n, K) of all levels under the logging policy.

        They are mixed with the uniform distribution.
        """
        if self.name == "instrument":
            tilt = 1.5 * (features[:, :_N_INSTRUMENTS].mean(axis=1) - 5) / 0.9
            odds = np.exp(tilt[:, None] * (_PAPER_LEVELS - 2))
        elif self.name == "confounded":
            odds = np.exp(scores[0][:, None] * (_PAPER_LEVELS - 2) / 2)
        else:
            odds = features[:, : len(_PAPER_LEVELS)]
        return (1 - mix) * odds / odds.sum(axis=1, keepdims=True) + mix / len(_PAPER_LEVELS)


@lru_cache(maxsize=64)  # a world is 80 kB and its moments take longer than everything else
def _make_world(name: str, seed: int) -> SimulatedWorld:
    unscaled = SimulatedWorld(name, seed, ())
    rng = unscaled.rng(_WORLD)
    # Simulations of one seed share a, b and c.
    surfaces = tuple(_draw_surface(name, rng) for _ in range(2 if name == "confounded" else 1))
    return SimulatedWorld(name, seed, _measure_surface_moments(unscaled, surfaces))


def _draw_surface(name: str, rng: np.random.Generator) -> _PaperSurface:
    a, b, c = rng.random(_N_TERMS), rng.random((_N_FEATURES, _N_TERMS)), rng.random((_N_FEATURES, _N_TERMS))
    if name == "instrument":
        b[:_N_INSTRUMENTS] = 0.0
    surface = _PaperSurface(a, b * _SURFACE_SCALES[name], c)
    for array in (surface.a, surface.b, surface.c):
        array.setflags(write=False)  # worlds are kept and shared
    return surface


def _measure_surface_moments(world: SimulatedWorld, surfaces: tuple[_PaperSurface, ...]) -> tuple[_PaperSurface, ...]:
    rng = world.rng(_MOMENTS)
    heights = np.empty((len(surfaces), _MOMENT_ROWS))
    for start in range(0, _MOMENT_ROWS, _PAPER_CHUNK_ROWS):
        features = world.draw_customer_features(_PAPER_CHUNK_ROWS, rng)
        for surface_heights, surface in zip(heights, surfaces, strict=True):
            surface_heights[start : start + _PAPER_CHUNK_ROWS] = surface.evaluate(features)
    return tuple(
        _PaperSurface(surface.a, surface.b, surface.c, float(surface_heights.mean()), float(surface_heights.std()))
        for surface_heights, surface in zip(heights, surfaces, strict=True)
    )


@cache
def _compile_surface() -> Callable[[Array, Array, Array, Array], Array]:
    """Compile the function that evaluates the random function h at features (n, J).

    It takes .15 s for 200,000 customers where NumPy in blocks of rows took .42 s.
    """
    import numba

    @numba.njit(nogil=True)
    def heights(x: Array, a: Array, b: Array, c: Array) -> Array:
        out = np.empty(len(x))
        distance = np.empty(len(a))
        for row in range(len(x)):
            distance[:] = 0.0
            for j in range(len(b)):
                for i in range(len(a)):
                    distance[i] += b[j, i] * abs(x[row, j] - c[j, i])
            height = 0.0
            for i in range(len(a)):
                # The exponent lies in [−500, 0]: no overflow, and exp(−500) is still a normal float64.
                height += a[i] * np.exp(-distance[i])
            out[row] = height
        return out

    return heights


# ------------------------------------------------------------------------------------------------ the customers


def _draw_customers(world: SimulatedWorld, n: int, stream: tuple[int, ...], noise: str, mix: float) -> Simulation:
    # Separate generators: another noise or mix leaves the customers as they are, so that comparisons are paired.
    feature_rng, level_rng, noise_rng = world.rng(*stream).spawn(3)
    features = world.draw_customer_features(n, feature_rng)
    scores = [surface.compute_standardised_values(features) for surface in world.surfaces]
    truth, propensities = world.compute_true_responses(scores), world.propensities(features, scores, mix)
    level = draw_levels(propensities, level_rng)
    rows = np.arange(n)
    return Simulation(
        name=world.name,
        features=features,
        level=level,
        response=_draw_responses(truth[rows, level], noise, noise_rng),
        propensity=propensities[rows, level],
        propensities=propensities,
        truth=truth,
        costs=_PAPER_LEVELS.astype(np.float64),
        noise=noise,
        mix=mix,
        world=world,
    )


def _draw_responses(expected: Array, noise: str, rng: np.random.Generator) -> Array:
    if noise == "noiseless":
        return expected
    if noise == "gaussian":
        return expected + 0.1 * rng.standard_normal(len(expected))
    return (rng.random(len(expected)) < expected).astype(np.float64)
