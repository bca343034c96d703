"""Decision trees as plain arrays, evaluated at all levels by one compiled loop.

Trees are grown by scikit-learn. The copy is ours, so that a saved model does not depend on the
version that grew it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from largesse.io import ArraySpec
from largesse.records import Array

MAX_SPLIT_LEVEL = 2**31
TREE_BLOCK_ROWS = 2048  # the features of this many rows stay close to the processor while all trees pass over them


@dataclass(frozen=True, eq=False)
class Trees:
    """Decision trees as arrays with one entry per node.

    A leaf has left = −1.
    """

    roots: Annotated[Array, ArraySpec("trees", dtype="int32")]
    feature: Annotated[Array, ArraySpec("nodes", dtype="int32")]  # index p, the number of features, is the level
    threshold: Annotated[Array, ArraySpec("nodes")]  # go left where value ≤ threshold
    left: Annotated[Array, ArraySpec("nodes", dtype="int32")]
    right: Annotated[Array, ArraySpec("nodes", dtype="int32")]
    value: Annotated[Array, ArraySpec("nodes")]

    def add_predictions(self, out: Array, X: Array) -> None:
        """Add the predictions of S groups of trees at K levels to sums `out` (n, S, K), for features (n, p).

        The groups are of equal size.
        """
        if len(self.roots):
            nodes = (self.feature, self.threshold, self.left, self.right, self.value)
            _compile_tree_evaluation()(np.ascontiguousarray(X, dtype=np.float32), out, self.roots, *nodes)

    def take_first(self, count: int) -> Trees:
        """Return the first `count` trees with only their own nodes."""
        end = self.roots[count] if count < len(self.roots) else len(self.feature)
        nodes = (part[:end] for part in (self.feature, self.threshold, self.left, self.right, self.value))
        return Trees(self.roots[:count], *nodes)

    def check(self, features: int) -> None:
        """Refuse trees with invalid or circular links between nodes.

        The compiled loop checks no bounds.
        """
        nodes = len(self.feature)
        here = np.arange(nodes)
        inner = self.left >= 0
        if not (
            ((self.roots >= 0) & (self.roots < nodes)).all()
            and ((self.feature >= 0) & (self.feature <= features))[inner].all()
            and all(((to > here) & (to < nodes))[inner].all() for to in (self.left, self.right))
            # A split on the level is rounded to a whole number.
            and (np.abs(self.threshold[inner & (self.feature == features)]) < MAX_SPLIT_LEVEL).all()
        ):
            raise ValueError("its trees have invalid links")


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Boosted decision trees: a baseline score, and the trees that are added to it."""

    baseline: float
    trees: Trees

    def scores(self, X: Array, K: int) -> Array:
        """Return the scores (n, K) of features (n, p) at all levels."""
        out = np.full((len(X), 1, K), self.baseline)
        for rows in split_row_blocks(len(X)):
            self.trees.add_predictions(out[rows], X[rows])
        return out[:, 0]


def split_row_blocks(n: int) -> Iterator[slice]:
    """Split n rows into slices whose features fit the processor's cache."""
    return (slice(first, min(first + TREE_BLOCK_ROWS, n)) for first in range(0, n, TREE_BLOCK_ROWS))


# -- conversion from scikit-learn -----------------------------------------------------------------------------------------


def extract_boosted_trees(model: Any, unit: float = 1.0) -> BoostedTrees:
    """Extract the trees of a fitted scikit-learn gradient boosting model, with scores multiplied by `unit`."""
    trees = extract_trees(model)
    return BoostedTrees(float(np.ravel(model._baseline_prediction)[0]) * unit, replace(trees, value=trees.value * unit))


def extract_trees(model: Any) -> Trees:
    """Extract the trees of a fitted scikit-learn gradient boosting model as arrays, grouped by output."""
    rounds = model._predictors
    grown = [predictors[s].nodes for s in range(len(rounds[0])) for predictors in rounds]
    sizes = np.array([len(nodes) for nodes in grown], dtype=np.int64)
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    nodes = np.concatenate(grown)
    shift = np.repeat(roots, sizes)
    leaf = nodes["is_leaf"].astype(bool)
    return Trees(
        roots=roots,
        feature=nodes["feature_idx"].astype(np.int32),
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64) + shift).astype(np.int32),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64) + shift).astype(np.int32),
        value=nodes["value"].astype(np.float64),
    )


# -- evaluation ----------------------------------------------------------------------------------------------------------


def _evaluate_trees(
    X: Array, out: Array, roots: Array, feature: Array, threshold: Array, left: Array, right: Array, value: Array
) -> None:
    n, p = X.shape
    S, K = out.shape[1], out.shape[2]
    each = len(roots) // S
    for t in range(len(roots)):
        s = t // each
        for i in range(n):
            k = 0
            while k < K:
                # Most trees never split on the level: one pass then gives all levels up to the next with another leaf.
                last, node = K - 1, roots[t]
                while left[node] >= 0:
                    j = feature[node]
                    if j == p:
                        if k <= threshold[node]:
                            last = min(last, int(np.floor(threshold[node])))
                            node = left[node]
                        else:
                            node = right[node]
                    else:
                        node = left[node] if np.float64(X[i, j]) <= threshold[node] else right[node]
                for level in range(k, last + 1):
                    out[i, s, level] += value[node]
                k = last + 1


@functools.cache
def _compile_tree_evaluation() -> Callable[..., None]:
    """Compile the evaluation of trees on first use; numba caches it on disk."""
    import numba

    return numba.njit(cache=True, nogil=True)(_evaluate_trees)
