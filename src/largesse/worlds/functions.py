"""Random features and random functions of them: the parts that drawn worlds are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.records import Array
from largesse.stats import sigmoid

if TYPE_CHECKING:
    import pyarrow as pa

SHAPES = ("linear", "additive", "interacting", "trees", "smooth")  # of a surface
KINDS = ("normal", "skewed", "counts", "binary", "categorical")  # of a column
SHOWN = 5000  # customers that show a surface's mean and spread
_TREES, _DEPTH = 6, 3
_WAVES = 30


@dataclass(frozen=True, eq=False)
class Columns:
    """What customers' features look like: p columns driven by correlated normal variables."""

    kinds: tuple[str, ...]
    loadings: Array  # (p, q): on common factors; the rest of each column's variance is its own
    edges: tuple[Array, ...]  # where a binary or categorical column is cut
    values: tuple[Array, ...]  # what each category stands for
    missing: Array  # (p,) share of values that are not known
    informative: bool  # whether large values are missing more often

    def draw(self, n: int, rng: np.random.Generator) -> tuple[pa.Table, Array]:
        """Return n customers as a table with gaps, and the numbers (n, p) behind it, about standard normal."""
        import pyarrow as pa

        factors = rng.standard_normal((n, self.loadings.shape[1]))
        own = np.sqrt(1.0 - (self.loadings**2).sum(axis=1))
        Z = factors @ self.loadings.T + own * rng.standard_normal((n, len(self.kinds)))
        behind = np.empty_like(Z)
        table = {}
        for j, kind in enumerate(self.kinds):
            behind[:, j], shown = self._column(j, kind, Z[:, j])
            chance = self.missing[j] * (2.0 * sigmoid(2.0 * Z[:, j]) if self.informative else 1.0)
            gaps = rng.random(n) < chance
            table[f"{kind}_{j}"] = pa.array(shown, mask=gaps if self.missing[j] > 0 else None)
        return pa.table(table), behind

    def _column(self, j: int, kind: str, z: Array) -> tuple[Array, Array]:
        if kind == "skewed":
            return z, np.exp(z)
        if kind == "counts":
            counts = np.floor(np.exp(0.8 + 0.8 * z))
            return (np.log1p(counts) - 1.2) / 0.65, counts
        if kind in ("binary", "categorical"):
            code = np.searchsorted(self.edges[j], z)
            shown = code.astype(np.float64) if kind == "binary" else np.array([f"c{k}" for k in range(13)])[code]
            return self.values[j][code], shown
        return z, z


def draw_columns(rng: np.random.Generator, p: int) -> Columns:
    """Draw what p columns look like; the first one or two are always numbers without gaps."""
    alike = rng.random() < 0.3
    odds = np.full(len(KINDS), 0.0 if alike else 1.0)
    odds[rng.integers(len(KINDS) - 2)] += 3.0
    kinds = [str(kind) for kind in rng.choice(KINDS, size=p, p=odds / odds.sum())]
    factors = int(rng.integers(1, 6))
    loadings = rng.normal(size=(p, factors))
    loadings *= (rng.uniform(0.0, 0.8) / np.sqrt((loadings**2).sum(axis=1)))[:, None]
    edges, values = [], []
    for kind in kinds:
        cuts = int(rng.integers(2, 12)) if kind == "categorical" else 1
        edges.append(np.sort(rng.normal(scale=0.9, size=cuts)) if kind in ("binary", "categorical") else np.zeros(0))
        # Categories have no order: what they stand for is drawn anew for each.
        values.append(rng.normal(size=cuts + 1) if kind == "categorical" else np.array([-1.0, 1.0]))
    gappy = rng.random(p) < (0.3 if rng.random() < 0.5 else 0.0)
    gappy[:2] = False
    missing = np.where(gappy, rng.uniform(0.02, 0.3, p), 0.0)
    return Columns(tuple(kinds), loadings, tuple(edges), tuple(values), missing, bool(rng.random() < 0.5))


@dataclass(frozen=True, eq=False)
class Surface:
    """A function of customers with mean 0 and standard deviation 1."""

    shape: str
    raw: Callable[[Array], Array]
    mean: float
    sd: float

    def __call__(self, behind: Array) -> Array:
        """Return its values (n,) at the numbers (n, p) behind customers."""
        return (self.raw(behind) - self.mean) / self.sd


def draw_surface(rng: np.random.Generator, shown: Array, shape: str, width: int) -> Surface:
    """Draw a surface in about `width` of the features; `shown` (m, p) are customers that give its mean and spread."""
    used = rng.permutation(shown.shape[1])[: max(width, 1)]
    raw = _DRAW[shape](rng, used)
    seen = raw(shown)
    sd = float(seen.std())
    if sd < 1e-6:  # a rare category alone, or a tree that never splits: a plain line does instead
        return draw_surface(rng, shown, "linear", shown.shape[1])
    return Surface(shape, raw, float(seen.mean()), sd)


def _weights(rng: np.random.Generator, many: int) -> Array:
    # Few large and many small: the k-th largest is 1/k^a of the first.
    sizes: Array = (1.0 + np.arange(many)) ** -rng.uniform(0.0, 1.0)
    return sizes * rng.choice([-1.0, 1.0], size=many)


def _linear(rng: np.random.Generator, used: Array) -> Callable[[Array], Array]:
    w = _weights(rng, len(used))
    return lambda x: x[:, used] @ w


def _additive(rng: np.random.Generator, used: Array) -> Callable[[Array], Array]:
    w, bend = _weights(rng, len(used)), rng.integers(0, 5, len(used))
    forms: list[Callable[[Array], Array]] = [
        lambda x: x,
        lambda x: np.tanh(2.0 * x),
        lambda x: np.abs(x),
        lambda x: np.minimum(x**2, 6.0),
        lambda x: np.where(x > 0.5, 1.0, 0.0),
    ]
    return lambda x: sum((w[i] * forms[bend[i]](x[:, j]) for i, j in enumerate(used)), start=np.zeros(len(x)))


def _interacting(rng: np.random.Generator, used: Array) -> Callable[[Array], Array]:
    lines = _linear(rng, used)
    pairs = rng.integers(0, len(used), size=(max(len(used) // 2, 1), 2))
    w = rng.normal(size=len(pairs))
    share = rng.uniform(0.3, 1.5)

    def raw(x: Array) -> Array:
        z = x[:, used]
        return lines(x) / np.sqrt(len(used)) + share * (z[:, pairs[:, 0]] * z[:, pairs[:, 1]]) @ w / np.sqrt(len(w))

    return raw


def _trees(rng: np.random.Generator, used: Array) -> Callable[[Array], Array]:
    feature = rng.choice(used, size=(_TREES, _DEPTH))
    cut = rng.normal(scale=0.7, size=(_TREES, _DEPTH))
    leaf = rng.normal(size=(_TREES, 2**_DEPTH))
    place = 2 ** np.arange(_DEPTH)

    def raw(x: Array) -> Array:
        # Oblivious trees: all nodes of one depth ask the same question.
        codes = ((x[:, feature] > cut) @ place).astype(np.int64)  # (n, trees)
        return leaf[np.arange(_TREES), codes].sum(axis=1)

    return raw


def _smooth(rng: np.random.Generator, used: Array) -> Callable[[Array], Array]:
    few = used[: min(len(used), 8)]
    direction = rng.normal(scale=1.0 / np.sqrt(len(few)), size=(len(few), _WAVES)) * rng.uniform(0.4, 1.5)
    phase, height = rng.uniform(0, 2 * np.pi, _WAVES), rng.normal(size=_WAVES)
    return lambda x: np.cos(x[:, few] @ direction + phase) @ height


_DRAW: dict[str, Callable[[np.random.Generator, Array], Callable[[Array], Array]]] = {
    "linear": _linear,
    "additive": _additive,
    "interacting": _interacting,
    "trees": _trees,
    "smooth": _smooth,
}
