"""Trees as plain arrays: saved without pickle, and walked at every level in one compiled loop.

Trees are grown by scikit-learn or drawn by stochtree. What is kept is ours, so that a saved model does not depend on the
version that grew it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from largesse.records import Array
from largesse.response.archive import Shaped

MOST_LEVELS = 2**31
ROWS_AT_ONCE = 2048  # the features of this many rows stay close to the processor while all trees pass over them


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees whose nodes lie one after the other; a leaf has left = −1."""

    roots: Annotated[Array, Shaped("trees", dtype="int32")]
    feature: Annotated[Array, Shaped("nodes", dtype="int32")]  # the number of features stands for the level
    threshold: Annotated[Array, Shaped("nodes")]  # go left where value ≤ threshold
    left: Annotated[Array, Shaped("nodes", dtype="int32")]
    right: Annotated[Array, Shaped("nodes", dtype="int32")]
    value: Annotated[Array, Shaped("nodes")]

    def add_to(self, out: Array, X: Array) -> None:
        """Add the values of trees at levels 0..K−1 to sums (n, S, K) for features (n, p): S sums of equally many trees."""
        if len(self.roots):
            nodes = (self.feature, self.threshold, self.left, self.right, self.value)
            _walker()(np.ascontiguousarray(X, dtype=np.float32), out, self.roots, *nodes)

    def check(self, features: int) -> None:
        """Refuse trees that a walk could leave or never end: the compiled loop checks no bounds."""
        nodes = len(self.feature)
        here = np.arange(nodes)
        inner = self.left >= 0
        if not (
            ((self.roots >= 0) & (self.roots < nodes)).all()
            and ((self.feature >= 0) & (self.feature <= features))[inner].all()
            and all(((to > here) & (to < nodes))[inner].all() for to in (self.left, self.right))
            # A split on the level is rounded to a whole number.
            and (np.abs(self.threshold[inner & (self.feature == features)]) < MOST_LEVELS).all()
        ):
            raise ValueError("its trees are not trees")


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """One sum of trees on top of a baseline."""

    baseline: float
    trees: Trees

    def scores(self, X: Array, K: int) -> Array:
        """Return the sums (n, K) for features (n, p) at levels 0..K−1."""
        out = np.full((len(X), 1, K), self.baseline)
        for rows in _blocks(len(X)):
            self.trees.add_to(out[rows], X[rows])
        return out[:, 0]


@dataclass(frozen=True, eq=False)
class Draws:
    """S draws of a sum of trees from a posterior; a score is shift + scale × its draw's sum."""

    count: int  # S
    shift: float
    scale: float
    trees: Trees  # those of the first draw first

    def scores(self, X: Array, K: int) -> Iterator[tuple[slice, Array]]:
        """Yield rows and their scores (rows, S, K) at levels 0..K−1, some of the features (n, p) at a time."""
        for rows in _blocks(len(X)):
            part = X[rows]
            out = np.zeros((len(part), self.count, K))
            self.trees.add_to(out, part)
            yield rows, self.shift + self.scale * out

    def check(self, features: int) -> None:
        """Refuse what is not S draws of equally many trees."""
        self.trees.check(features)
        if self.count < 1 or self.count > max(len(self.trees.roots), 1) or len(self.trees.roots) % self.count:
            raise ValueError(f"{len(self.trees.roots)} trees in {self.count} draws")


def _blocks(n: int) -> Iterator[slice]:
    return (slice(first, min(first + ROWS_AT_ONCE, n)) for first in range(0, n, ROWS_AT_ONCE))


# -- taking trees out of the models that grew them ------------------------------------------------------------------------


def boosted_trees(model: Any) -> BoostedTrees:
    """Take the trees out of a fitted HistGradientBoosting model with numeric features only."""
    grown = [predictor.nodes for (predictor,) in model._predictors]
    sizes = np.array([len(nodes) for nodes in grown], dtype=np.int64)
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    nodes = np.concatenate(grown)
    shift = np.repeat(roots, sizes)
    leaf = nodes["is_leaf"].astype(bool)
    trees = Trees(
        roots=roots,
        feature=nodes["feature_idx"].astype(np.int32),
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64) + shift).astype(np.int32),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64) + shift).astype(np.int32),
        value=nodes["value"].astype(np.float64),
    )
    return BoostedTrees(float(np.ravel(model._baseline_prediction)[0]), trees)


def constant_draw(value: float) -> Draws:
    """Return a single draw that is the same for everybody."""
    whole, real = np.zeros(0, np.int32), np.zeros(0)
    return Draws(1, value, 0.0, Trees(whole, whole, real, whole, whole, real))


def posterior_draws(model: Any) -> Draws:
    """Take the trees out of a sampled stochtree model with numeric features only."""
    forests = json.loads(model.forest_container_mean.dump_json_string())
    nodes: list[_Node] = []
    roots = []
    for s in range(forests["num_samples"]):
        forest = forests[f"forest_{s}"]
        for t in range(forests["num_trees"]):
            roots.append(len(nodes))
            _append_tree(forest[f"tree_{t}"], nodes)
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    trees = Trees(
        roots=np.array(roots, np.int32),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        value=np.array(value, np.float64),
    )
    return Draws(int(forests["num_samples"]), float(model.y_bar), float(model.y_std), trees)


_Node = tuple[int, float, int, int, float]  # a row of `Trees`: feature, threshold, left, right, value


def _append_tree(grown: dict[str, Any], nodes: list[_Node]) -> None:
    """Append the nodes of one tree, numbered from its root downwards: pruning leaves holes that are used again.

    Plain lists: a tree has a handful of nodes, and there are tens of thousands of trees.
    """
    to_left, to_right, first = grown["left"], grown["right"], len(nodes)
    order = [0]
    for node in order:
        child = first + len(order)
        if to_left[node] >= 0:
            order += [to_left[node], to_right[node]]
            nodes.append((grown["split_index"][node], grown["threshold"][node], child, child + 1, 0.0))
        else:
            nodes.append((0, 0.0, -1, -1, grown["leaf_value"][node]))


# -- the walk -------------------------------------------------------------------------------------------------------------


def _walk(
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
                # Most trees never split on the level: one walk then serves all levels up to the next that would differ.
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
def _walker() -> Callable[..., None]:
    """Compile the walk on first use; numba keeps it on disk."""
    import numba

    return numba.njit(cache=True, nogil=True)(_walk)
