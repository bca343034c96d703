"""Expression graph of a policy: a few operations that SQL and ONNX both support.

A `Value` is (n, width): one row per customer. A target is one file that writes each operation and knows nothing about models. All
numbers are float64; encoded features are rounded to float32, like the encoder's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.records import Array
from largesse.stats import PROBABILITY_MARGIN

MIN_EXPONENT = -700.0  # below, some databases report an error


@dataclass(frozen=True, eq=False)
class Value:
    """Node of the expression graph: an operation, its operands and its number of columns.

    Sources: `number`, `seconds`, `text` (a column of the table), `constant`. `inside` is one where a source meets a condition.
    Encodings: `scaled`, `wave`, `words`, `means`.
    Columns: `join`, `pick`, `take` (one column per row, by its index). Numbers: `affine`, `trees`, `add`, `sub`, `mul`, `div`,
    `max`, `min`, `exp`, `log`, `tanh`, `where_less` (the third where the first is below the second, else the fourth).
    `network` marks the output of a neural network, unchanged.
    """

    step: str
    needs: tuple[Value, ...]
    width: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __add__(self, other: Any) -> Value:
        return _make_elementwise_node("add", self, other)

    def __sub__(self, other: Any) -> Value:
        return _make_elementwise_node("sub", self, other)

    def __mul__(self, other: Any) -> Value:
        if self.step == "affine" and isinstance(other, float):
            # ONNX Runtime would fuse product and factor, and round the factor to float32.
            return affine(self.needs[0], self.facts["weights"] * other, self.facts["bias"] * other)
        return _make_elementwise_node("mul", self, other)

    def __truediv__(self, other: Any) -> Value:
        if self.step == "affine" and isinstance(other, float):
            return affine(self.needs[0], self.facts["weights"] / other, self.facts["bias"] / other)
        return _make_elementwise_node("div", self, other)


def make_constant(row: Any) -> Value:
    """Make a node with the same constant row (q,) for every customer."""
    values = np.atleast_1d(np.asarray(row, dtype=np.float64))
    return Value("constant", (), len(values), {"row": values})


def _as_value(operand: Any) -> Value:
    return operand if isinstance(operand, Value) else make_constant(operand)


def _make_elementwise_node(step: str, *operands: Any) -> Value:
    needs = tuple(_as_value(value) for value in operands)
    return Value(step, needs, max(value.width for value in needs))


def larger(a: Any, b: Any) -> Value:
    """Return the elementwise maximum of two graph values."""
    return _make_elementwise_node("max", a, b)


def smaller(a: Any, b: Any) -> Value:
    """Return the elementwise minimum of two graph values."""
    return _make_elementwise_node("min", a, b)


def where_less(a: Any, b: Any, then: Any, other: Any) -> Value:
    """Return the elementwise choice between two graph values: `then` where a < b, otherwise `other`."""
    return _make_elementwise_node("where_less", a, b, then, other)


def clip(value: Value, low: float, high: float) -> Value:
    """Return a value clipped to a range."""
    return smaller(larger(value, low), high)


def exp(value: Value) -> Value:
    """Return the exponential of a value; the exponent is limited, because some databases refuse underflow."""
    return Value("exp", (larger(value, MIN_EXPONENT),), value.width)


def log(value: Value) -> Value:
    """Return the natural logarithm of a value."""
    return Value("log", (value,), value.width)


def join_columns(parts: Sequence[Value]) -> Value:
    """Join several values side by side into one value with all their columns."""
    return parts[0] if len(parts) == 1 else Value("join", tuple(parts), sum(value.width for value in parts))


def pick_columns(value: Value, columns: Sequence[int]) -> Value:
    """Select columns of a value by their indices, in the given order."""
    chosen = tuple(int(column) for column in columns)
    return value if chosen == tuple(range(value.width)) else Value("pick", (value,), len(chosen), {"columns": chosen})


def split_columns(value: Value) -> list[Value]:
    """Split a value into one value for each column."""
    return [pick_columns(value, [k]) for k in range(value.width)]


def take_indexed_column(table: Value, place: Value) -> Value:
    """Select one entry of each row of a table by a column index (n, 1)."""
    return Value("take", (table, place), 1)


def affine(value: Value, weights: Array, bias: Any = 0.0) -> Value:
    """Return the affine map value @ weights (p, q) + bias (q,)."""
    weights = np.asarray(weights, dtype=np.float64)
    shift = np.broadcast_to(np.asarray(bias, dtype=np.float64), (weights.shape[1],))
    if not value.width:
        return make_constant(shift)
    if value.step in ("mul", "div") and value.needs[1].step == "constant" and value.needs[1].width == 1:
        factor = float(value.needs[1].facts["row"][0])
        return affine(value.needs[0], weights * factor if value.step == "mul" else weights / factor, shift)
    return Value("affine", (value,), weights.shape[1], {"weights": weights, "bias": shift})


def cumulate_columns(value: Value) -> Value:
    """Return the running sums over the columns of a value."""
    return affine(value, np.triu(np.ones((value.width, value.width))))


def mean_columns(value: Value) -> Value:
    """Return the mean (n, 1) over the columns of a value."""
    return affine(value, np.ones((value.width, 1))) / float(value.width)


def find_row_maximum(value: Value) -> Value:
    """Return the maximum (n, 1) over the columns of a value."""
    return reduce(larger, split_columns(value))


def sigmoid(score: Value) -> Value:
    """Return 1 / (1 + exp(−score)), as `stats.sigmoid` computes it."""
    return (Value("tanh", (score * 0.5,), score.width) + 1.0) * 0.5


def logit(probability: Value) -> Value:
    """Return the log-odds of probabilities, clipped away from 0 and 1."""
    held = clip(probability, PROBABILITY_MARGIN, 1.0 - PROBABILITY_MARGIN)
    return log(held) - log(make_constant(1.0) - held)


def softmax(scores: Value) -> Value:
    """Return the softmax of scores over their columns."""
    odds = exp(scores - find_row_maximum(scores))
    return odds / affine(odds, np.ones((scores.width, 1)))


def isotonic(curves: Value) -> Value:
    """Return the isotonic regression of response curves over the levels; non-decreasing curves stay unchanged.

    The result is that of `response.make_monotone`.
    """
    K = curves.width
    if K == 1:
        return curves
    levels = split_columns(curves)
    sums = [make_constant(0.0), *split_columns(cumulate_columns(curves))]
    best: list[Value | None] = [None] * K
    for first in range(K):
        lowest: Value | None = None
        for last in reversed(range(first, K)):
            mean = (sums[last + 1] - sums[first]) / float(last + 1 - first) if last > first else levels[first]
            lowest = mean if lowest is None else smaller(mean, lowest)
            current = best[last]
            best[last] = lowest if current is None else larger(current, lowest)
    raised: list[Value] = []
    for value in best:
        assert value is not None
        raised.append(larger(raised[-1], value) if raised else value)
    least = reduce(smaller, [later - earlier for earlier, later in pairwise(levels)])
    return where_less(least, 0.0, join_columns(raised), curves)
