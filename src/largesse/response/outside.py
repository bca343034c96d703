"""Rows outside of the sample of a large log: the fitted model has not seen them, so it may say what it expects of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from largesse.progress import advance
from largesse.records import Array, HeldOut, Log

if TYPE_CHECKING:
    import pyarrow as pa


def add_outside(
    held: HeldOut,
    log: Log,
    fold: Array,
    features: Sequence[str] | None,
    expect: Callable[[pa.Table], tuple[Array, Array | None]],
) -> HeldOut:
    """Return what is expected of all rows of a large log: `held` of its sample, and of the others what `expect` says.

    `expect` gets tables with these features and returns curves and, where costs are observed, expected costs.
    """
    assert log.sample is not None
    n, outside, start = len(log), log.outside, 0
    curves, costs = _spread(held.curves, log.sample.rows, n), None
    if held.costs is not None:
        costs = _spread(held.costs, log.sample.rows, n)
    for batch in log.sample.batches(features):
        here = outside[start : start + len(batch)]
        rows = start + np.flatnonzero(here)
        curves[rows], spent = expect(batch.filter(here))
        if costs is not None and spent is not None:
            costs[rows] = spent
        start += len(batch)
        advance(start / n)
    moved = held.shuffled
    shuffled = None if moved is None else replace(moved, rows=log.sample.rows[moved.rows])
    return HeldOut(curves, fold, costs, shuffled)


def _spread(part: Array, rows: Array, n: int) -> Array:
    """Return a matrix (n, K) with some of its rows."""
    whole = np.empty((n, part.shape[1]))
    whole[rows] = part
    return whole
