"""What a run needs of the machine that holds the rows.

`line` walks the straight line and `steps` does the thinking; both touch rows only through an `Engine`. `Local` keeps
them in the memory of one machine. An engine for a cluster is one more file that fulfils this protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from largesse.records import Array, Checkup, Customers, HeldOut, Log, Progress, Propensities, Scores, Study
from largesse.response import ResponseModel
from largesse.runs.campaign import Campaign

if TYPE_CHECKING:
    import pyarrow as pa


class Engine(Protocol):
    """Reads, fits, predicts, judges and writes where the rows are."""

    def read_log(self, campaign: Campaign, source: Any = None) -> Log:
        """Read and check the campaign's log, or another source with the same columns."""

    def read_customers(self, campaign: Campaign, source: str, features: Sequence[str]) -> Customers:
        """Read and check a table of customers that must have these features; ids are optional."""

    def fit(self, model: ResponseModel, log: Log, *, seed: int, progress: Progress) -> tuple[ResponseModel, HeldOut]:
        """Fit the model to the log; return it, and what models that did not see a row expect of it."""

    def predict(self, model: ResponseModel, customers: Customers) -> Array:
        """Return the expected response (n, K) of every customer at every level."""

    def predict_costs(self, model: ResponseModel, customers: Customers) -> Array | None:
        """Return each customer's own costs (n, K): expected ones where costs are observed; None where all have the same."""

    def examine(
        self, log: Log, held: HeldOut, *, seed: int, progress: Progress, propensities: Propensities | None = None
    ) -> tuple[Scores, Checkup]:
        """Score the log's held-out rows and check the log; propensities that are known are not estimated again."""

    def study(
        self, log: Log, scores: Scores, checkup: Checkup, budget: float, *, estimator: str, seed: int, confidence: float
    ) -> Study:
        """Judge by a log's scores what plans bring at a budget, to be kept with this confidence; nothing is fitted."""

    def write_table(self, path: Path, table: pa.Table) -> None:
        """Write a table, all of it or nothing, in the format that the ending of the path names."""
