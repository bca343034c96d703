"""The engine of a cluster: logs come to the driver, customers stay where they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from largesse.campaign import Campaign
from largesse.evaluation import PlanTally, Shown
from largesse.io import scratch_folder
from largesse.pipeline.local import Local
from largesse.pipeline.on_spark.logs import fetch_log
from largesse.pipeline.on_spark.parts import write_parts
from largesse.pipeline.on_spark.scoring import SparkScored, score_table
from largesse.pipeline.on_spark.session import explain_failure
from largesse.pipeline.on_spark.tables import Table, find_table, is_frame, list_texts
from largesse.pipeline.on_spark.tasks import Wanted
from largesse.pipeline.planned import Planned, ScoredCustomers, Target
from largesse.policy import Policy
from largesse.progress import report_to, start_stage
from largesse.records import Checkup, HeldOut, Log, Progress, Propensities, Scores, Shuffled, Study
from largesse.response import ResponseModel

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True, eq=False)
class Opened:
    """A table of customers that was found, and how it is read."""

    table: Table
    how: Wanted


@final
class Spark:
    """Fulfils `Engine` on a Spark session. A context: what it keeps for a large log is gone when it ends.

    Parameters
    ----------
    session
        A session, classic or Connect.
    log, customers
        DataFrames, names of tables or paths that take the place of what the campaign names.
    near
        A folder on the disk that the driver and the executors share, for the rows of a large log.
    """

    def __init__(
        self, session: SparkSession, *, log: Any = None, customers: Any = None, near: str | Path = "."
    ) -> None:
        self.session, self.log, self.customers, self.near = session, log, customers, Path(near)
        self._local, self._stack = Local(), ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read_log(self, campaign: Campaign, source: Any = None) -> Log:
        """Read and check the campaign's log, or another source with the same columns.

        Files that the driver reaches are read as on one machine; the rest is fetched from Spark.
        """
        given = source if source is not None else self.log if self.log is not None else campaign.log
        if not (is_frame(given) or isinstance(given, str | os.PathLike)):
            return self._local.read_log(campaign, given)
        found = find_table(self.session, given, "log")
        if found.pieces is not None:
            return self._local.read_log(campaign, found.path)
        features = campaign.roles.get("features")
        listed = {*campaign.columns.values(), *(campaign.levels.cost_columns or ()), *(features or ())}
        folder = self._stack.enter_context(scratch_folder(self.near))
        return self._local.read_log(campaign, fetch_log(found.frame, None if features is None else listed, folder))

    def open_customers(self, campaign: Campaign, source: Any, features: Mapping[str, str]) -> Any:
        """Find a table of customers; its rows are checked where they are, when they are scored.

        Constraints need all customers in one place, and so do numbers that are written as text, for all of it tells how:
        then the driver reads them.
        """
        found = find_table(self.session, source if self.customers is None else self.customers, "customers")
        parse, costs = campaign.roles.get("parse") or {}, campaign.levels.cost_columns or ()
        numbers = [*(name for name, kind in features.items() if kind in ("number", "date")), *costs]
        written = any(name in numbers and name not in parse for name in list_texts(found))
        if campaign.planning.constrained or campaign.planning.exact or written:
            with explain_failure("reading customers"):
                given = found.path if found.pieces is not None else found.frame.toArrow()
            return self._local.open_customers(campaign, given, features)
        how = Wanted(tuple(features), campaign.columns.get("customer"), tuple(costs), tuple(parse.items()))
        return Opened(found, how)

    @contextmanager
    def score_customers(
        self, policy: Policy, customers: Any, near: Path, progress: Progress, own: Scores | None = None
    ) -> Iterator[ScoredCustomers]:
        """Score customers on the executors; those of a log, which are here, on the driver."""
        if not isinstance(customers, Opened):
            with self._local.score_customers(policy, customers, near, progress, own) as held:
                yield held
            return
        with ExitStack() as stack:
            with report_to(progress):
                start_stage("scoring customers")
                scored = stack.enter_context(score_table(customers.table, policy, customers.how, near))
            yield scored

    def write_plan(
        self, planned: Planned, targets: Sequence[Target], progress: Progress
    ) -> tuple[Sequence[Shown], PlanTally]:
        """Let executors write the plan, all of it or nothing, into a folder in the customers' order; return who gets what."""
        if not isinstance(planned.scored, SparkScored):
            return self._local.write_plan(planned, targets, progress)
        with report_to(progress):
            start_stage("writing the plan", planned.scored.n)
            return write_parts(planned, targets)

    def fit(self, model: ResponseModel, log: Log, *, seed: int, progress: Progress) -> tuple[ResponseModel, HeldOut]:
        """Fit the model to the log, on the driver; return it, and what models that did not see a row expect of it."""
        return self._local.fit(model, log, seed=seed, progress=progress)

    def examine(
        self, log: Log, held: HeldOut, *, seed: int, progress: Progress, propensities: Propensities | None = None
    ) -> tuple[Scores, Checkup]:
        """Score the log's held-out rows and check the log; propensities that are known are not estimated again."""
        return self._local.examine(log, held, seed=seed, progress=progress, propensities=propensities)

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
        return self._local.study(
            log, scores, checkup, budget, estimator=estimator, seed=seed, confidence=confidence, shuffled=shuffled
        )

    def write_table(self, path: Path, table: pa.Table) -> None:
        """Write a table, all of it or nothing, in the format that the ending of the path names."""
        self._local.write_table(path, table)
