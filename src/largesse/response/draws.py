"""Sums of trees drawn from a posterior, as plain arrays: kept without pickle, walked at every level in one compiled loop."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.records import Array
from largesse.response.trees import Trees

ROWS_AT_ONCE = 2048  # the features of this many rows stay close to the processor while all trees pass over them


@dataclass(frozen=True, eq=False)
class Draws:
    """S draws of a sum of trees, one after the other; a score is shift + scale × its draw's sum."""

    count: int  # S
    shift: float
    scale: float
    trees: Trees  # their baseline is not used

    def scores(self, X: Array, K: int) -> Iterator[tuple[slice, Array]]:
        """Yield rows and their scores (rows, S, K) at levels 0..K−1, some of the features (n, p) at a time."""
        t = self.trees
        for first in range(0, len(X), ROWS_AT_ONCE):
            part = np.ascontiguousarray(X[first : first + ROWS_AT_ONCE], dtype=np.float32)
            out = np.zeros((len(part), self.count, K))
            if len(t.roots):
                _walker()(part, out, t.roots, t.feature, t.threshold, t.left, t.right, t.value)
            yield slice(first, first + len(part)), self.shift + self.scale * out

    def check(self, features: int) -> None:
        """Refuse what is not S draws of equally many trees."""
        self.trees.check(features)
        if self.count < 1 or len(self.trees.roots) % self.count:
            raise ValueError(f"{len(self.trees.roots)} trees in {self.count} draws")


def one_number(value: float) -> Draws:
    """Return a single draw that is the same for everybody."""
    whole, real = np.zeros(0, np.int32), np.zeros(0)
    return Draws(1, value, 0.0, Trees(0.0, whole, whole, real, whole, whole, real))


def draws_of(model: Any) -> Draws:
    """Take the trees out of a sampled stochtree model with numeric features only."""
    forests = json.loads(model.forest_container_mean.dump_json_string())
    fields: tuple[list[float], ...] = ([], [], [], [], [])
    roots = []
    for s in range(forests["num_samples"]):
        forest = forests[f"forest_{s}"]
        for t in range(forests["num_trees"]):
            roots.append(len(fields[0]))
            _add(forest[f"tree_{t}"], len(fields[0]), *fields)
    feature, threshold, left, right, value = fields
    trees = Trees(
        baseline=0.0,
        roots=np.array(roots, np.int32),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        value=np.array(value, np.float64),
    )
    return Draws(int(forests["num_samples"]), float(model.y_bar), float(model.y_std), trees)


def _add(
    grown: dict[str, Any],
    first: int,
    feature: list[float],
    threshold: list[float],
    left: list[float],
    right: list[float],
    value: list[float],
) -> None:
    """Append the nodes of one tree, numbered from its root downwards: what was pruned leaves holes that are used again.

    Plain lists: a tree has a handful of nodes, and there are tens of thousands of trees.
    """
    to_left, to_right = grown["left"], grown["right"]
    order = [0]
    for node in order:
        here = first + len(order)
        if to_left[node] >= 0:
            order += [to_left[node], to_right[node]]
            feature.append(grown["split_index"][node])
            threshold.append(grown["threshold"][node])
            left.append(here)
            right.append(here + 1)
            value.append(0.0)
        else:
            feature.append(0)
            threshold.append(0.0)
            left.append(-1)
            right.append(-1)
            value.append(grown["leaf_value"][node])


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
                # Most trees never ask for the level: one walk then serves all levels up to the next that would differ.
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
