"""Sums of trees drawn from a posterior, as plain arrays: kept without pickle, walked at every level in one compiled loop."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.records import Array
from largesse.response.trees import FIELDS, Trees

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
    grown = [
        _tree(forests[f"forest_{s}"][f"tree_{t}"])
        for s in range(forests["num_samples"])
        for t in range(forests["num_trees"])
    ]
    sizes = np.array([len(tree[0]) for tree in grown], dtype=np.int64)
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    feature, threshold, left, right, value = (np.concatenate(part) for part in zip(*grown, strict=True))
    shift = np.repeat(roots, sizes)
    trees = Trees(
        baseline=0.0,
        roots=roots.astype(np.int32),
        feature=feature.astype(np.int32),
        threshold=threshold,
        left=np.where(left < 0, -1, left + shift).astype(np.int32),
        right=np.where(left < 0, -1, right + shift).astype(np.int32),
        value=value,
    )
    return Draws(int(forests["num_samples"]), float(model.y_bar), float(model.y_std), trees)


def _tree(grown: dict[str, Any]) -> tuple[Array, ...]:
    """Return the fields of one tree, its nodes numbered from the root downwards: pruned ones leave holes and are reused."""
    order, left = [0], grown["left"]
    for node in order:
        if left[node] >= 0:
            order += [left[node], grown["right"][node]]
    place = np.full(len(left), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    to_left, to_right = np.array(left)[order], np.array(grown["right"])[order]
    inner = to_left >= 0
    return (
        np.where(inner, np.array(grown["split_index"])[order], 0),
        np.where(inner, np.array(grown["threshold"], dtype=np.float64)[order], 0.0),
        np.where(inner, place[to_left], -1),
        np.where(inner, place[to_right], -1),
        np.where(inner, 0.0, np.array(grown["leaf_value"], dtype=np.float64)[order]),
    )


def keep_draws(draws: Draws) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return draws as JSON and arrays."""
    return {"count": draws.count, "shift": draws.shift, "scale": draws.scale}, draws.trees.arrays()


def recall_draws(facts: dict[str, Any], arrays: dict[str, Array], features: int) -> Draws:
    """Return what `keep_draws` kept, of a model of so many features."""
    trees = Trees(0.0, arrays["roots"], *(arrays[name] for name in FIELDS))
    draws = Draws(int(facts["count"]), float(facts["shift"]), float(facts["scale"]), trees)
    draws.check(features)
    return draws


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
