"""Random distributions of features, and random functions of features, for random worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.records import Array
from largesse.stats import sigmoid

if TYPE_CHECKING:
    import pyarrow as pa

SURFACE_SHAPES = ("linear", "additive", "interacting", "trees", "smooth")
COLUMN_KINDS = ("normal", "skewed", "counts", "binary", "categorical")
SURFACE_MOMENT_ROWS = 5000  # customers whose mean and spread standardise a surface
_N_TREES, _TREE_DEPTH = 6, 3
_N_WAVES = 30


@dataclass(frozen=True, eq=False)
class FeatureDistribution:
    """Random joint distribution of p feature columns, driven by correlated normal variables."""

    kinds: tuple[str, ...]
    loadings: Array  # (p, q) on common factors; independent noise makes up the rest of each column's variance
    edges: tuple[Array, ...]  # where a binary or categorical column is cut
    values: tuple[Array, ...]  # latent value of each category
    missing: Array  # (p,) share of missing values
    informative: bool  # whether large values are missing more often

    def draw(self, n: int, rng: np.random.Generator) -> tuple[pa.Table, Array]:
        """Draw a feature table of n customers, and the latent variables (n, p) behind its columns.

        Latent variables are about standard normal. Values of the table may be missing.
        """
        import pyarrow as pa

        factors = rng.standard_normal((n, self.loadings.shape[1]))
        noise_scale = np.sqrt(1.0 - (self.loadings**2).sum(axis=1))
        Z = factors @ self.loadings.T + noise_scale * rng.standard_normal((n, len(self.kinds)))
        latent = np.empty_like(Z)
        table = {}
        for j, kind in enumerate(self.kinds):
            latent[:, j], observed = self._transform_column(j, kind, Z[:, j])
            missing_probability = self.missing[j] * (2.0 * sigmoid(2.0 * Z[:, j]) if self.informative else 1.0)
            is_missing = rng.random(n) < missing_probability
            table[f"{kind}_{j}"] = pa.array(observed, mask=is_missing if self.missing[j] > 0 else None)
        return pa.table(table), latent

    def _transform_column(self, j: int, kind: str, z: Array) -> tuple[Array, Array]:
        """Transform normal values (n,) to the latent variable and the observed values of column j."""
        if kind == "skewed":
            return z, np.exp(z)
        if kind == "counts":
            counts = np.floor(np.exp(0.8 + 0.8 * z))
            return (np.log1p(counts) - 1.2) / 0.65, counts
        if kind in ("binary", "categorical"):
            code = np.searchsorted(self.edges[j], z)
            observed = code.astype(np.float64) if kind == "binary" else np.array([f"c{k}" for k in range(13)])[code]
            return self.values[j][code], observed
        return z, z


def draw_feature_distribution(rng: np.random.Generator, p: int) -> FeatureDistribution:
    """Draw a random joint distribution of p feature columns.

    The first two columns have no missing values.
    """
    one_kind = rng.random() < 0.3
    kind_odds = np.full(len(COLUMN_KINDS), 0.0 if one_kind else 1.0)
    kind_odds[rng.integers(len(COLUMN_KINDS) - 2)] += 3.0
    kinds = [str(kind) for kind in rng.choice(COLUMN_KINDS, size=p, p=kind_odds / kind_odds.sum())]
    n_factors = int(rng.integers(1, 6))
    loadings = rng.normal(size=(p, n_factors))
    loadings *= (rng.uniform(0.0, 0.8) / np.sqrt((loadings**2).sum(axis=1)))[:, None]
    edges, values = [], []
    for kind in kinds:
        n_cuts = int(rng.integers(2, 12)) if kind == "categorical" else 1
        edges.append(np.sort(rng.normal(scale=0.9, size=n_cuts)) if kind in ("binary", "categorical") else np.zeros(0))
        # Categories have no order: the latent value of each is drawn independently.
        values.append(rng.normal(size=n_cuts + 1) if kind == "categorical" else np.array([-1.0, 1.0]))
    has_missing = rng.random(p) < (0.3 if rng.random() < 0.5 else 0.0)
    has_missing[:2] = False
    missing = np.where(has_missing, rng.uniform(0.02, 0.3, p), 0.0)
    return FeatureDistribution(tuple(kinds), loadings, tuple(edges), tuple(values), missing, bool(rng.random() < 0.5))


@dataclass(frozen=True, eq=False)
class RandomSurface:
    """Random function of customers' latent features, standardised to mean 0 and standard deviation 1."""

    shape: str
    raw: Callable[[Array], Array]
    mean: float
    sd: float

    def __call__(self, latent: Array) -> Array:
        """Return the function's values (n,) at latent features (n, p)."""
        return (self.raw(latent) - self.mean) / self.sd


def draw_random_surface(rng: np.random.Generator, sample: Array, shape: str, width: int) -> RandomSurface:
    """Draw a random function of `width` features, standardised on a `sample` (m, p) of customers.

    A function that is constant on the sample is replaced by a linear one of all features.
    """
    features = rng.permutation(sample.shape[1])[: max(width, 1)]
    raw = _DRAW_FUNCTION[shape](rng, features)
    heights = raw(sample)
    sd = float(heights.std())
    if sd < 1e-6:  # only a rare category, or a tree that never splits: use a linear surface instead
        return draw_random_surface(rng, sample, "linear", sample.shape[1])
    return RandomSurface(shape, raw, float(heights.mean()), sd)


def _draw_weights(rng: np.random.Generator, n: int) -> Array:
    """Draw n weights ±1/k^a (k = 1 … n), with random signs and one random power a."""
    sizes: Array = (1.0 + np.arange(n)) ** -rng.uniform(0.0, 1.0)
    return sizes * rng.choice([-1.0, 1.0], size=n)


def _draw_linear(rng: np.random.Generator, features: Array) -> Callable[[Array], Array]:
    weights = _draw_weights(rng, len(features))
    return lambda x: x[:, features] @ weights


def _draw_additive(rng: np.random.Generator, features: Array) -> Callable[[Array], Array]:
    weights, form_numbers = _draw_weights(rng, len(features)), rng.integers(0, 5, len(features))
    forms: list[Callable[[Array], Array]] = [
        lambda x: x,
        lambda x: np.tanh(2.0 * x),
        lambda x: np.abs(x),
        lambda x: np.minimum(x**2, 6.0),
        lambda x: np.where(x > 0.5, 1.0, 0.0),
    ]
    terms = list(zip(features, weights, form_numbers, strict=True))
    return lambda x: sum((w * forms[number](x[:, j]) for j, w, number in terms), start=np.zeros(len(x)))


def _draw_interacting(rng: np.random.Generator, features: Array) -> Callable[[Array], Array]:
    linear = _draw_linear(rng, features)
    pairs = rng.integers(0, len(features), size=(max(len(features) // 2, 1), 2))
    weights = rng.normal(size=len(pairs))
    share = rng.uniform(0.3, 1.5)

    def raw(x: Array) -> Array:
        z = x[:, features]
        products = z[:, pairs[:, 0]] * z[:, pairs[:, 1]]
        return linear(x) / np.sqrt(len(features)) + (share * products) @ weights / np.sqrt(len(weights))

    return raw


def _draw_trees(rng: np.random.Generator, features: Array) -> Callable[[Array], Array]:
    split_features = rng.choice(features, size=(_N_TREES, _TREE_DEPTH))
    cuts = rng.normal(scale=0.7, size=(_N_TREES, _TREE_DEPTH))
    leaf_values = rng.normal(size=(_N_TREES, 2**_TREE_DEPTH))
    bits = 2 ** np.arange(_TREE_DEPTH)

    def raw(x: Array) -> Array:
        # Oblivious trees: all nodes of one depth have the same split.
        codes = ((x[:, split_features] > cuts) @ bits).astype(np.int64)  # (n, trees)
        return leaf_values[np.arange(_N_TREES), codes].sum(axis=1)

    return raw


def _draw_smooth(rng: np.random.Generator, features: Array) -> Callable[[Array], Array]:
    features = features[:8]
    scale = 1.0 / np.sqrt(len(features))
    directions = rng.normal(scale=scale, size=(len(features), _N_WAVES)) * rng.uniform(0.4, 1.5)
    phases, heights = rng.uniform(0, 2 * np.pi, _N_WAVES), rng.normal(size=_N_WAVES)
    return lambda x: np.cos(x[:, features] @ directions + phases) @ heights


_DRAW_FUNCTION: dict[str, Callable[[np.random.Generator, Array], Callable[[Array], Array]]] = {
    "linear": _draw_linear,
    "additive": _draw_additive,
    "interacting": _draw_interacting,
    "trees": _draw_trees,
    "smooth": _draw_smooth,
}
