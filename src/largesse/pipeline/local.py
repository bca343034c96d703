"""The engine of one machine: tables are in memory or, where they are large, read in batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from largesse.campaign import Campaign
from largesse.data import has_at_most, parse_problems, read_log, read_table
from largesse.errors import Problem, fail, refuse
from largesse.evaluation import PlanTally, Shown, examine_held_out, study_scores
from largesse.io import atomic_file
from largesse.pipeline.customers import check_planned
from largesse.pipeline.own import LogCustomers, score_log
from largesse.pipeline.planned import Planned, Target
from largesse.pipeline.scored import LocalScored, hold_customers
from largesse.pipeline.streaming import CustomerStream, open_stream, score_stream
from largesse.pipeline.writing import write_batches
from largesse.policy import Policy
from largesse.progress import report_to, start_stage
from largesse.records import Checkup, Customers, HeldOut, Log, Progress, Propensities, Scores, Shuffled, Study
from largesse.response import ResponseModel, learn_held_out
from largesse.stats import assign_folds, count_folds

if TYPE_CHECKING:
    import pyarrow as pa


@final
class Local:
    """Fulfils `Engine` with the rooms of this package as they are.

    Parameters
    ----------
    rows
        Tables of customers with more rows than this are never in memory as a whole.
    """

    def __init__(self, *, rows: int = 1_000_000) -> None:
        self.rows = rows

    def read_log(self, campaign: Campaign, source: Any = None) -> Log:
        """Read and check the campaign's log, or another source with the same columns."""
        roles = campaign.roles
        if campaign.propensities is not None:
            roles = {**roles, "propensity": campaign.propensities}
        given, worth = campaign.log if source is None else source, campaign.response_value
        most, seed = campaign.most_rows, campaign.seed
        log = read_log(given, levels=campaign.levels, most_rows=most, seed=seed, response_value=worth, **roles)
        if campaign.response_unit and log.binary and log.response.any():  # of nobody who bought, nothing is known
            got = f"response_unit is {campaign.response_unit!r}, but {log.response_name!r} is yes or no"
            fail("log", Problem(got, "remove response_unit; response_value = … says what a yes is worth"))
        return log

    def open_customers(
        self, campaign: Campaign, source: Any, features: Mapping[str, str]
    ) -> Customers | CustomerStream:
        """Read and check a table of customers; one that is too large is opened, and read in batches when it is scored.

        A table without the id column is numbered by its rows.
        """
        named, parse = campaign.columns.get("customer"), campaign.roles.get("parse") or {}
        if isinstance(source, str | os.PathLike) and not has_at_most(source, self.rows, "customers"):
            refuse("customers", parse_problems(parse))
            stream = open_stream(source, campaign.levels, named, features, parse)
            if stream is not None:
                return stream
        table = read_table(source, what="customers", plain=[str(named)], parse=parse)
        return check_planned(table, campaign.levels, named, list(features))

    @contextmanager
    def score_customers(
        self, policy: Policy, customers: Any, near: Path, progress: Progress, own: Scores | None = None
    ) -> Iterator[LocalScored]:
        """Score customers and hold what is expected of them: in memory, or in files without a name `near` a folder."""
        with ExitStack() as stack:
            with report_to(progress):
                if isinstance(customers, CustomerStream):
                    start_stage("scoring customers", customers.n)
                    scored = stack.enter_context(score_stream(policy, customers, near))
                elif isinstance(customers, LogCustomers):
                    start_stage("scoring customers", customers.n)
                    scored = stack.enter_context(score_log(policy, customers, near, own))
                else:
                    start_stage("scoring customers", len(customers))
                    scored = hold_customers(policy, customers, own)
            yield scored

    def write_plan(
        self, planned: Planned, targets: Sequence[Target], progress: Progress
    ) -> tuple[Sequence[Shown], PlanTally]:
        """Write a plan, each table all or nothing, in the customers' order; return who gets what, for the report."""
        with report_to(progress):
            start_stage("writing the plan", planned.scored.n)
            return write_batches(planned, targets)

    def fit(self, model: ResponseModel, log: Log, *, seed: int, progress: Progress) -> tuple[ResponseModel, HeldOut]:
        """Fit the model to the log; return it, and what models that did not see a row expect of it."""
        with report_to(progress):
            start_stage("learning the response", len(log.seen))
            return model, learn_held_out(model, log, assign_folds(log, count_folds(len(log.seen)), seed))

    def examine(
        self, log: Log, held: HeldOut, *, seed: int, progress: Progress, propensities: Propensities | None = None
    ) -> tuple[Scores, Checkup]:
        """Score the log's held-out rows and check the log; propensities that are known are not estimated again."""
        return examine_held_out(log, held, seed, progress, propensities)

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
        return study_scores(
            log, scores, checkup, budget, estimator=estimator, seed=seed, confidence=confidence, shuffled=shuffled
        )

    def write_table(self, path: Path, table: pa.Table) -> None:
        """Write a table, all of it or nothing, in the format that the ending of the path names."""
        import pyarrow.csv as csv
        import pyarrow.feather as feather
        import pyarrow.parquet as pq

        writers = {".csv": csv.write_csv, ".feather": feather.write_feather, ".arrow": feather.write_feather}
        # Arrow takes only names that are UTF-8; an open file has none.
        with atomic_file(path) as part, part.open("wb") as sink:
            writers.get(path.suffix.lower(), pq.write_table)(table, sink)
