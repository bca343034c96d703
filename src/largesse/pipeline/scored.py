"""Customers of one machine with what is expected of them: in memory, or in files that nobody else sees.

A table that is larger than memory is read in batches, each customer is scored once, and curves and own costs go to a file
without a name beside the output. It is gone when the command ends, however it ends. Features and ids stay where they are:
they are read again when the plan is written.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from largesse.allocation import Question, check_batch, expected_costs
from largesse.evaluation import SAMPLE
from largesse.io import Scratch
from largesse.levels import Levels
from largesse.pipeline.ahead import map_ahead
from largesse.policy import Policy
from largesse.records import Array, Customers, Scores
from largesse.response import expect_in_blocks

if TYPE_CHECKING:
    import pyarrow as pa

Answer = TypeVar("Answer")
BATCH = 1 << 18  # rows
PASSES = {  # question → what its pass over a large table is called
    "Look": "looking for the price",
    "Gather": "gathering customers near the price",
    "Ties": "splitting ties",
    "SpendAt": "expecting costs",
}
KEY = 0x9E3779B97F4A7C15


class Rows(Protocol):
    """A matrix (n, K), wherever it is."""

    def read(self, start: int, count: int) -> Array:
        """Return some rows, (count, K)."""


@dataclass(frozen=True, eq=False)
class Held:
    """A matrix in memory."""

    values: Array

    def read(self, start: int, count: int) -> Array:
        """Return some rows, (count, K)."""
        return self.values[start : start + count]


@dataclass(frozen=True, eq=False)
class Spilled:
    """A matrix in a file, row by row, in double precision."""

    file: Scratch
    width: int

    def append(self, values: Array) -> None:
        """Add rows (count, K) at the end."""
        self.file.append(np.ascontiguousarray(values, dtype=np.float64).data.cast("B"))

    def read(self, start: int, count: int) -> Array:
        """Return some rows, (count, K)."""
        size = 8 * self.width
        return np.frombuffer(self.file.read(start * size, count * size), dtype=np.float64).reshape(-1, self.width)


class Source(Protocol):
    """The table that customers come from."""

    @property
    def features(self) -> Sequence[str]:
        """The names of its features."""

    def read(self, features: Sequence[str]) -> Iterator[Customers]:
        """Give all customers in their order, batch by batch, with some of their features."""


@dataclass(frozen=True, eq=False)
class HeldSource:
    """A table in memory."""

    customers: Customers

    @property
    def features(self) -> Sequence[str]:
        """The names of its features."""
        return list(self.customers.features.column_names)

    def read(self, features: Sequence[str]) -> Iterator[Customers]:
        """Give all customers at once."""
        yield replace(self.customers, features=self.customers.features.select(list(features)))


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the customers: those with the least random keys, which their row numbers alone decide."""

    rows: Array  # (m,) rising
    features: pa.Table

    @classmethod
    def of(cls, rows: Array, features: pa.Table, most: int) -> Sample:
        """Return at most so many of these customers."""
        if len(rows) <= most:
            return cls(rows, features)
        kept = np.sort(np.argpartition(random_keys(rows), most)[:most])
        return cls(rows[kept], features.take(kept))


def random_keys(rows: Array) -> Array:
    """Return a random number (n,) for each row number: the same in every batch and on every machine."""
    x = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(KEY)  # after Steele, Lea and Flood's SplitMix64
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Sampler:
    """Draws a sample of customers who come in batches: at most twice as many as are wanted are held."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: list[Sample] = []
        self._count = 0
        self._highest = np.uint64(2**64 - 1)  # key that still can be in the sample

    def add(self, rows: Array, features: pa.Table) -> None:
        """Look at some customers."""
        near = random_keys(rows) <= self._highest
        if near.any():
            self._held.append(Sample(rows[near], features if near.all() else features.filter(near)))
            self._count += int(near.sum())
        if self._count > 2 * self.most:
            self._held = [self.sample()]
            self._count = self.most
            self._highest = random_keys(self._held[0].rows).max()

    def sample(self) -> Sample:
        """Return the sample of all who were looked at."""
        import pyarrow as pa

        rows = np.concatenate([held.rows for held in self._held])
        features = pa.concat_tables([held.features for held in self._held]).unify_dictionaries()
        return Sample.of(rows, features, self.most)


@dataclass(frozen=True, eq=False)
class LocalScored:
    """Fulfils `ScoredCustomers`."""

    n: int
    levels: Levels
    source: Source
    curves: Rows
    own: Rows | None  # each customer's own costs, as the table or a model of costs has them
    sampled: Sample
    expected: bool = False  # `own` are expected costs already
    scale: float = 1.0  # of all costs

    def batch(self, start: int, count: int) -> tuple[Array, Array, Array]:
        """Return the row numbers (count,), curves (count, K) and cost rows of some customers who follow each other."""
        curves = self.curves.read(start, count)
        own = None if self.own is None else self.own.read(start, count)
        costs = own if own is not None and self.expected else expected_costs(self.levels, curves, own)
        return check_batch(curves, costs if self.scale == 1.0 else costs * self.scale, start)

    def batches(self) -> Iterator[tuple[Array, Array, Array]]:
        """Give all customers."""
        return (self.batch(start, BATCH) for start in range(0, self.n, BATCH))

    def pick(self, rows: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Give some customers, whose row numbers rise, in batches."""
        for start in range(0, self.n, BATCH):
            place, own = np.searchsorted(rows, [start, start + BATCH]), None
            if place[0] < place[1]:
                every, curves, costs = self.batch(start, BATCH)
                own = rows[slice(*place)] - start
                yield every[own], curves[own], costs[own] if len(costs) > 1 else costs

    def ask(self, question: Question[Answer], /) -> Answer:
        """Return the sum of the answers of all batches."""
        answers: Iterator[Any] = map_ahead(
            lambda start: question.of(*self.batch(start, BATCH)), range(0, self.n, BATCH)
        )
        total: Answer = functools.reduce(operator.add, answers)
        return total

    def scaled(self, scale: float) -> LocalScored:
        """Return the same customers with costs that are multiplied."""
        return replace(self, scale=scale)

    def gather(self) -> tuple[Customers, Array, Array]:
        """Return all customers in memory: with all their features, curves (n, K) and expected costs (K,) or (n, K)."""
        import pyarrow as pa

        parts = list(self.source.read(self.source.features))
        features = pa.concat_tables([part.features for part in parts]).unify_dictionaries()
        batches = list(self.batches())
        curves = np.concatenate([curves for _, curves, _ in batches])
        own = any(len(costs) > 1 for _, _, costs in batches)
        costs = np.concatenate([costs for _, _, costs in batches]) if own else batches[0][2][0]
        ids = None if parts[0].customer is None else pa.concat_arrays([part.customer for part in parts])
        return Customers(features, ids), curves, costs


def hold_customers(policy: Policy, customers: Customers, own: Scores | None = None) -> LocalScored:
    """Score customers in memory; `own` are the scores of the log whose own customers they are."""
    rows, features = np.arange(len(customers)), customers.features.select(list(policy.model.encoder_.features))
    sample, source = Sample.of(rows, features, SAMPLE), HeldSource(customers)
    if own is not None:
        costs = np.broadcast_to(own.expected_costs, own.curves.shape)
        return LocalScored(len(rows), policy.levels, source, Held(own.curves), Held(costs), sample, expected=True)
    curves, paid = expect_in_blocks(policy.model, customers, tracked=True)
    return LocalScored(len(rows), policy.levels, source, Held(curves), None if paid is None else Held(paid), sample)
