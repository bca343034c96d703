"""Boosted trees as plain arrays: kept without pickle, and walked at every level in one compiled loop.

Trees are grown by scikit-learn. What is kept is ours, so that a saved model does not depend on the version that grew it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from largesse.records import Array
from largesse.response.archive import Shaped


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of trees. Nodes of all trees lie one after the other; a leaf has left = −1."""

    baseline: float
    roots: Annotated[Array, Shaped("trees", dtype="int32")]
    feature: Annotated[Array, Shaped("nodes", dtype="int32")]  # the number of features stands for the level
    threshold: Annotated[Array, Shaped("nodes")]  # go left when value ≤ threshold
    left: Annotated[Array, Shaped("nodes", dtype="int32")]
    right: Annotated[Array, Shaped("nodes", dtype="int32")]
    value: Annotated[Array, Shaped("nodes")]

    def scores(self, X: Array, K: int) -> Array:
        """Return the sums (n, K) for features (n, p) at levels 0..K−1."""
        X = np.ascontiguousarray(X, dtype=np.float32)
        out = np.full((len(X), K), self.baseline)
        _walker()(X, out, self.roots, self.feature, self.threshold, self.left, self.right, self.value)
        return out

    def check(self, features: int) -> None:
        """Refuse trees that a walk could leave or never end: the compiled loop looks at no bounds."""
        nodes = len(self.feature)
        here = np.arange(nodes)
        inner = self.left >= 0
        if not (
            ((self.roots >= 0) & (self.roots < nodes)).all()
            and ((self.feature >= 0) & (self.feature <= features))[inner].all()
            and all(((to > here) & (to < nodes))[inner].all() for to in (self.left, self.right))
        ):
            raise ValueError("its trees are not trees")


def trees_of(model: Any) -> Trees:
    """Take the trees out of a fitted HistGradientBoosting model with numeric features only."""
    grown = [predictor.nodes for (predictor,) in model._predictors]
    sizes = np.array([len(nodes) for nodes in grown], dtype=np.int64)
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    nodes = np.concatenate(grown)
    shift = np.repeat(roots, sizes)
    leaf = nodes["is_leaf"].astype(bool)
    return Trees(
        baseline=float(np.ravel(model._baseline_prediction)[0]),
        roots=roots,
        feature=nodes["feature_idx"].astype(np.int32),
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64) + shift).astype(np.int32),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64) + shift).astype(np.int32),
        value=nodes["value"].astype(np.float64),
    )


def _walk(
    X: Array, out: Array, roots: Array, feature: Array, threshold: Array, left: Array, right: Array, value: Array
) -> None:
    n, p = X.shape
    for i in range(n):
        for k in range(out.shape[1]):
            total = out[i, k]
            for t in range(len(roots)):
                node = roots[t]
                while left[node] >= 0:
                    j = feature[node]
                    x = np.float64(k) if j == p else np.float64(X[i, j])
                    node = left[node] if x <= threshold[node] else right[node]
                total += value[node]
            out[i, k] = total


@functools.cache
def _walker() -> Callable[..., None]:
    """Compile the walk on first use; numba keeps it on disk."""
    import numba

    return numba.njit(cache=True, nogil=True)(_walk)
