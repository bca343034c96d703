"""What a feature's own shape adds to its straight line: hinges at its quantiles, less the line nearest to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from largesse.records import Array
from largesse.response.archive import Shaped

LOOK = 20_000  # rows, spread over the table, that tell the quantiles


@dataclass(frozen=True, eq=False)
class Bends:
    """Hinges max(x_j − knot, 0) of some features, each less its own least-squares line: m of them for each of q features."""

    columns: Annotated[Array, Shaped("q", dtype="int64")]  # which features bend
    knots: Annotated[Array, Shaped("m", "q")]
    intercept: Annotated[Array, Shaped("m", "q")]  # of the line taken off
    slope: Annotated[Array, Shaped("m", "q")]

    def __call__(self, X: Array) -> Array:
        """Return the hinges (n, m·q) of features (n, p)."""
        x = X[:, self.columns]
        kind = x.dtype.type
        parts = [
            np.maximum(x - knot.astype(kind), 0) - (intercept.astype(kind) + slope.astype(kind) * x)
            for knot, intercept, slope in zip(self.knots, self.intercept, self.slope, strict=True)
        ]
        return np.concatenate(parts, axis=1) if parts else x[:, :0]


def bends(X: Array, knots: int) -> Bends:
    """Return the hinges of the features (n, p) that have values enough to bend between."""
    X = X[:: -(-len(X) // LOOK) or 1].astype(np.float64)
    places = np.quantile(X, np.arange(1, knots + 1) / (knots + 1), axis=0) if len(X) else np.zeros((knots, X.shape[1]))
    ends = np.concatenate([X.min(axis=0)[None], places, X.max(axis=0)[None]])
    columns = np.flatnonzero((np.diff(ends, axis=0) > 0).all(axis=0))
    x, at = X[:, columns], places[:, columns]
    middle, spread = x.mean(axis=0), x.var(axis=0)
    hinges = np.maximum(x - at[:, None], 0)  # (m, n, q)
    height = hinges.mean(axis=1)
    slope = ((hinges - height[:, None]) * (x - middle)).mean(axis=1) / spread
    return Bends(columns, at, height - slope * middle, slope)
