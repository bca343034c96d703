"""What a run needs of the machine that holds the rows.

`line` walks the straight line, `steps` and `plans` do the thinking; all touch rows only through an `Engine`. `Local` is
one machine. An engine for a cluster is one more file that fulfils this protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from largesse.campaign import Campaign
from largesse.evaluation import PlanTally, Shown
from largesse.pipeline.planned import Planned, ScoredCustomers, Target
from largesse.policy import Policy
from largesse.records import Checkup, HeldOut, Log, Progress, Propensities, Scores, Shuffled, Study
from largesse.response import ResponseModel

if TYPE_CHECKING:
    import pyarrow as pa


class Engine(Protocol):
    """Reads, fits, predicts, judges and writes where the rows are."""

    def read_log(self, campaign: Campaign, source: Any = None) -> Log:
        """Read and check the campaign's log, or another source with the same columns."""

    def open_customers(self, campaign: Campaign, source: Any, features: Mapping[str, str]) -> Any:
        """Open a table of customers and check that it has these features; ids are optional.

        `features` says of which kind each was in the log. Where the table is larger than memory, its rows are checked when
        they are scored.
        """

    def score_customers(
        self, policy: Policy, customers: Any, near: Path, progress: Progress, own: Scores | None = None
    ) -> AbstractContextManager[ScoredCustomers]:
        """Score customers, which `open_customers` gave or which are `Customers`, and hold what is expected of them.

        `own` are the scores of the log whose own customers they are, where costs are not certain: they stand in for the
        model. What does not fit into memory goes to files `near` a path, which are gone when the context ends.
        """

    def write_plan(
        self, planned: Planned, targets: Sequence[Target], progress: Progress
    ) -> tuple[Sequence[Shown], PlanTally]:
        """Write a plan, each table all or nothing, in the customers' order; return who gets what, for the report."""

    def fit(self, model: ResponseModel, log: Log, *, seed: int, progress: Progress) -> tuple[ResponseModel, HeldOut]:
        """Fit the model to the log; return it, and what models that did not see a row expect of it."""

    def examine(
        self, log: Log, held: HeldOut, *, seed: int, progress: Progress, propensities: Propensities | None = None
    ) -> tuple[Scores, Checkup]:
        """Score the log's held-out rows and check the log; propensities that are known are not estimated again."""

    def study(
        self,
        log: Log,
        scores: Scores,
        checkup: Checkup,
        budget: float,
        *,
        estimator: str,
        seed: int,
        confidence: float,
        shuffled: Shuffled | None,
    ) -> Study:
        """Judge by a log's scores what plans bring at a budget, to be kept with this confidence; nothing is fitted."""

    def write_table(self, path: Path, table: pa.Table) -> None:
        """Write a table, all of it or nothing, in the format that the ending of the path names."""
