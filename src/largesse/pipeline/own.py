"""The customers of a log that is larger than memory: scored in batches, and planned like any others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from largesse.allocation import check_batch, expected_costs
from largesse.evaluation import SAMPLE
from largesse.io import scratch_file
from largesse.pipeline.ahead import read_ahead
from largesse.pipeline.scored import Held, LocalScored, Sample, Spilled
from largesse.policy import Policy
from largesse.progress import advance
from largesse.records import Customers, Log, Scores
from largesse.records import Sample as LogSample
from largesse.response import expect_in_blocks


@dataclass(frozen=True, eq=False)
class LogCustomers:
    """The rows of a large log as customers. Fulfils `Source`."""

    log: Log
    sample: LogSample

    @property
    def n(self) -> int:
        """How many customers there are."""
        return len(self.log)

    @property
    def features(self) -> Sequence[str]:
        """The names of the features."""
        return list(self.sample.log.features.column_names)

    def read(self, features: Sequence[str]) -> Iterator[Customers]:
        """Give all customers in their order, batch by batch, with some of their features."""
        start, ids, costs = 0, self.log.customer, self.log.costs
        # Of a batch without columns nobody could tell how many rows it has.
        for table in self.sample.batches(list(features) or self.features[:1]):
            rows = slice(start, start + len(table))
            start += len(table)
            yield Customers(table, None if ids is None else ids[rows], None if costs is None else costs[rows])


@contextmanager
def score_log(policy: Policy, customers: LogCustomers, near: Path, own: Scores | None = None) -> Iterator[LocalScored]:
    """Score every customer once; curves go to a file without a name in the folder `near`.

    `own` are the scores of the log, where costs are not certain: they stand in for the model.
    """
    names, levels = list(policy.model.encoder_.features), policy.levels
    sample = Sample.of(customers.sample.rows, customers.sample.log.features.select(names), SAMPLE)
    if own is not None:
        costs = np.broadcast_to(own.expected_costs, own.curves.shape)
        yield LocalScored(customers.n, levels, customers, Held(own.curves), Held(costs), sample, expected=True)
        return
    with scratch_file(near) as file:
        curves, start = Spilled(file, len(levels)), 0
        for part in read_ahead(customers.read(names)):
            expected, paid = expect_in_blocks(policy.model, part)
            check_batch(expected, expected_costs(levels, expected, paid), start)
            curves.append(expected)
            start += len(part)
            advance(start / customers.n)
        file.finish()
        listed = customers.log.costs
        yield LocalScored(customers.n, levels, customers, curves, None if listed is None else Held(listed), sample)
