"""Engine of one machine: customers' expected responses and costs in memory or in mapped files.

A table that is larger than memory is read in batches, each customer is scored once, and curves and own costs go to files
next to the output, which are mapped into memory. They are gone when the command ends, however it ends. Features and ids are
read again when the plan is written.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from largesse.allocation import (
    PriceSums,
    add_cheapest_level,
    allocate,
    check_curves_and_costs,
    decide_at_price,
    sum_plans_at_prices,
)
from largesse.campaign import Campaign
from largesse.data import read_log
from largesse.errors import BudgetError, Problem, fail
from largesse.evaluation import (
    MAX_SUMMARY_ROWS,
    CustomerSample,
    PlanCounts,
    choose_explaining_features,
    count_planned_levels,
    index_feature_groups,
)
from largesse.io import ScratchFile, scratch_file
from largesse.pipeline.customer_sources import (
    CustomerSource,
    CustomerStream,
    make_in_memory_source,
    open_customer_table,
)
from largesse.pipeline.customer_table_validation import find_repeated_hashes, hash_customers
from largesse.pipeline.engine_protocol import PlanOutputFile, PlanResult
from largesse.pipeline.table_writer import open_writer
from largesse.policy import AllowedLevels, Policy
from largesse.progress import advance, report_to, start_stage
from largesse.propensity import mark_supported_levels
from largesse.records import Array, Customers, Log, Plan, Progress, Scores
from largesse.response import ModelScorer, predict_curves_and_costs
from largesse.stats import count_cores, map_in_threads, prefetch, write_in_background

if TYPE_CHECKING:
    import pyarrow as pa

SCORING_BATCH_ROWS = 1 << 18
HASH_MULTIPLIER = 0x9E3779B97F4A7C15


@final
class LocalEngine:
    """Engine of one machine (`Engine` protocol).

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
        log = read_log(
            campaign.source if source is None else source,
            levels=campaign.levels,
            most_rows=campaign.most_rows,
            seed=campaign.seed,
            response_value=campaign.response_value,
            **roles,
        )
        if campaign.response_unit and log.binary and log.response.any():  # unknown without a buyer
            got = f"response_unit is {campaign.response_unit!r}, but {log.response_name!r} is yes or no"
            fail("log", Problem(got, "remove response_unit; response_value = … says what a yes is worth"))
        return log

    def open_customers(self, campaign: Campaign, source: Any, features: Any) -> Customers | CustomerStream:
        """Read and check a customer table, or open it for batches if it is too large."""
        return open_customer_table(campaign, source, features, self.rows)

    @contextmanager
    def score_customer_table(
        self, policy: Policy, customers: Any, near: Path, progress: Progress, log_scores: Scores | None = None
    ) -> Iterator[LocalCustomers]:
        """Yield customers with predicted responses and costs, in memory or in temporary files next to `near`.

        `log_scores` replace the model's predictions.
        """
        source = make_in_memory_source(customers) if isinstance(customers, Customers) else customers
        with ExitStack() as stack:
            with report_to(progress):
                start_stage("scoring customers", source.n)
                if log_scores is not None:
                    expected = np.broadcast_to(log_scores.expected_costs, log_scores.curves.shape)
                    curves, costs = check_curves_and_costs(log_scores.curves, expected)
                    scored = LocalCustomers(source, curves, costs, _sample_features(policy, source), log_scores.fold)
                elif isinstance(customers, Customers):
                    predicted, paid = predict_curves_and_costs(policy.model, customers, tracked=True)
                    curves, costs = check_curves_and_costs(
                        *policy.options.expect_outcomes(
                            predicted, paid, policy.options.mark_allowed(customers.features)
                        )
                    )
                    scored = LocalCustomers(source, curves, costs, _sample_features(policy, source))
                elif isinstance(source, CustomerStream):
                    scored = _score_batches(policy, source, stack, near)
                else:
                    scored = _score_large_log(policy, source, stack, near)
            yield scored


@dataclass(frozen=True, eq=False)
class FeatureSample:
    """Features of a random sample: the customers with the smallest hashes of row numbers."""

    rows: Array  # (m,) rising
    features: pa.Table


def hash_row_numbers(rows: Array) -> Array:
    """Return a reproducible random number (n,) for each row number."""
    x = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(HASH_MULTIPLIER)  # after Steele, Lea and Flood's SplitMix64
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def choose_sample_rows(rows: Array, size: int) -> Array:
    """Return the sorted positions (m,) of a random sample of at most `size` row numbers (n,)."""
    return np.arange(len(rows)) if len(rows) <= size else np.sort(np.argpartition(hash_row_numbers(rows), size)[:size])


@dataclass(frozen=True, eq=False)
class LocalCustomers:
    """Customers of the local engine with curves and expected costs as arrays (`ScoredCustomers` protocol)."""

    source: CustomerSource | CustomerStream
    curves: Array  # (n, K)
    costs: Array  # (1, K) or (n, K), as expected
    sample: FeatureSample
    fold: Array | None = None  # (n,) held-out customers, whose curves are those of their fold's models

    @property
    def n(self) -> int:
        """Number of customers."""
        return len(self.curves)

    def batch(self, start: int, count: int) -> tuple[Array, Array, Array]:
        """Return the row numbers, curves and costs of consecutive customers."""
        rows = np.arange(start, min(start + count, self.n))
        return rows, self.curves[start : start + count], self._rows_of_costs(slice(start, start + count))

    def sum_plans_at_prices(self, prices: Sequence[float], /) -> PriceSums:
        """Return the total costs and responses of customers' plans at decreasing shadow prices."""
        starts = range(0, self.n, SCORING_BATCH_ROWS)
        sums = map_in_threads(
            lambda start: sum_plans_at_prices(*self.batch(start, SCORING_BATCH_ROWS)[1:], prices), starts
        )
        return functools.reduce(operator.add, sums)

    def allocate(self, budget: float | None = None, *, total: float | None = None, scale: float = 1.0) -> Plan:
        """Return the best plan within an average or total budget, with all costs multiplied by `scale`.

        Each fold of held-out customers is planned within the average, like the folds of an evaluation: at a common price, folds
        whose models expect more by chance would be preferred.
        """
        costs = self.costs if len(self.costs) > 1 else self.costs[0]
        costs = costs if scale == 1.0 else costs * scale
        plan = allocate(self.curves, costs, budget, total=total)
        return plan if self.fold is None else _plan_by_fold(plan, self.curves, costs, self.fold)

    def find_mean_cost_range(self, price: float, *, scale: float = 1.0) -> tuple[float, float]:
        """Return the average cost at a shadow price, with ties decided for the cheapest and for the dearest level."""

        def add_ends(start: int) -> Array:
            rows, curves, costs = self.batch(start, SCORING_BATCH_ROWS)
            costs, place = costs if scale == 1.0 else costs * scale, np.arange(len(rows))
            wide = np.broadcast_to(costs, curves.shape)
            ends = [decide_at_price(curves, costs, price, dearest=dearest) for dearest in (False, True)]
            return np.array([wide[place, levels].sum() for levels in ends])

        low, high = (
            functools.reduce(operator.add, map_in_threads(add_ends, range(0, self.n, SCORING_BATCH_ROWS))) / self.n
        )
        return float(low), float(high)

    def draw_costs(self, plan: PlanResult, seeds: Sequence[int], /) -> Array:
        """Return total costs (m,) of a plan with random exploration, one for each random seed (m,)."""
        starts = range(0, self.n, SCORING_BATCH_ROWS)
        costs = map_in_threads(lambda start: plan.draw_costs(self.batch(start, SCORING_BATCH_ROWS), seeds), starts)
        return functools.reduce(operator.add, costs)

    def collect(self) -> tuple[Customers, Array, Array]:
        """Return all customers in memory with their curves (n, K) and expected costs (K,) or (n, K)."""
        import pyarrow as pa

        parts = list(self.source.read(self.source.features))
        features = pa.concat_tables([part.features for part in parts]).unify_dictionaries()
        ids = None if parts[0].customer is None else pa.concat_arrays([part.customer for part in parts])
        return Customers(features, ids), self.curves, self.costs if len(self.costs) > 1 else self.costs[0]

    def draw_customer_sample(self) -> CustomerSample:
        """Return a random sample of customers with their features and curves."""
        return CustomerSample(self.sample.features, self.curves[self.sample.rows])

    def sample_levels(self, plan: PlanResult) -> tuple[pa.Table, Array]:
        """Return the features and planned levels (m,) of a random sample of customers."""
        rows = self.sample.rows
        return self.sample.features, plan.decide(rows, self.curves[rows], self._rows_of_costs(rows))[0]

    def write_plan_tables(self, plan: PlanResult, targets: Sequence[PlanOutputFile], progress: Progress) -> PlanCounts:
        """Write a plan atomically to its tables in the customers' order, and return its counts for the report."""
        import pyarrow as pa

        # The features that explain most of the plan are chosen on a sample of the customers.
        features = choose_explaining_features(*self.sample_levels(plan))

        def write_part(part: Customers, start: int) -> PlanCounts:
            batch = self.batch(start, len(part))
            rows, curves, costs = batch
            decided = plan.decide(*batch)
            add(
                plan.make_plan_table(pa.array(rows) if part.customer is None else part.customer, decided, curves, costs)
            )
            groups = index_feature_groups(features, part.features)
            paid = costs if plan.ratio == 1.0 else costs * plan.ratio
            return count_planned_levels(
                features, groups, decided[0], (rows, curves, paid), plan.count_levels_at_other_budgets(batch, *groups)
            )

        with report_to(progress), ExitStack() as stack:
            start_stage("writing the plan", self.n)
            writers = [stack.enter_context(open_writer(target)) for target in targets]

            def write_parts(table: pa.Table) -> None:
                for writer in writers:
                    writer.write(table)

            add = stack.enter_context(write_in_background(write_parts))
            start, counts = 0, list[PlanCounts]()
            for part in prefetch(self.source.read([grouped.feature for grouped in features])):
                counts = [functools.reduce(operator.add, [*counts, write_part(part, start)])]
                start += len(part)
                advance(start / self.n)
        return counts[0]

    def _rows_of_costs(self, rows: Any) -> Array:
        return self.costs[rows] if len(self.costs) > 1 else self.costs


def _plan_by_fold(plan: Plan, curves: Array, costs: Array, fold: Array) -> Plan:
    """Return a plan whose levels are planned separately in each fold.

    Unchanged if the cheapest plan of a fold costs more.
    """
    levels, costs = np.empty_like(plan.levels), np.broadcast_to(costs, curves.shape)
    try:
        for f in np.unique(fold):
            rows = fold == f
            levels[rows] = allocate(curves[rows], costs[rows], plan.budget).levels
    except BudgetError:
        return plan
    rows = np.arange(len(levels))
    spend = min(float(costs[rows, levels].mean()), plan.budget)
    return replace(plan, levels=levels, value=float(curves[rows, levels].mean()), spend=spend)


def _sample_features(policy: Policy, source: CustomerSource) -> FeatureSample:
    """Return the features of a random sample of customers."""
    rows, table = source.sample
    places = choose_sample_rows(rows, MAX_SUMMARY_ROWS)
    return FeatureSample(rows[places], table.select(list(policy.model.encoder_.features)).take(places))


def _score_batches(policy: Policy, source: CustomerStream, stack: ExitStack, near: Path) -> LocalCustomers:
    """Score customers batch by batch, with curves and costs in temporary files."""
    import pyarrow as pa

    names, levels = list(policy.model.encoder_.features), policy.levels
    chosen = choose_sample_rows(np.arange(source.n), MAX_SUMMARY_ROWS)
    files = [stack.enter_context(scratch_file(near)) for _ in range(2)]  # curves, and costs where they differ
    sampled, hashes, start, wrong = [], [np.zeros(0, np.uint64)], 0, False
    for part, suspect in prefetch(source.read_rows(names)):
        wrong |= bool(suspect.any())
        if part.customer is not None:
            hashes.append(hash_customers(part.customer))
        if not wrong:  # else only what is wrong with others is still of interest
            allowed = policy.options.mark_allowed(part.features)
            costs = _append_scores(files, policy.options, *predict_curves_and_costs(policy.model, part), allowed)
            places = np.searchsorted(chosen, [start, start + len(part)])
            sampled.append(part.features.take(chosen[slice(*places)] - start))
        start += len(part)
        advance(start / source.n)
    repeated = find_repeated_hashes(np.concatenate(hashes))
    if wrong or len(repeated):
        source.refuse_rows(repeated)
    sample = FeatureSample(chosen, pa.concat_tables(sampled).unify_dictionaries())
    curves, own = (_map_array_file(file, len(levels)) for file in files)
    return LocalCustomers(source, curves, own if len(own) else np.atleast_2d(costs), sample)


def _score_large_log(policy: Policy, source: CustomerSource, stack: ExitStack, near: Path) -> LocalCustomers:
    """Score the rows of a log larger than memory, with curves and costs in temporary files."""
    assert source.log is not None and source.log.sample is not None  # noqa: PT018 - only such logs are not in memory
    log, sample, levels, start = source.log, source.log.sample, policy.levels, 0
    log_rows = np.arange(len(log)) if source.rows is None else source.rows
    allowed = add_cheapest_level(mark_supported_levels(policy.options.cells, log))
    files = [stack.enter_context(scratch_file(near)) for _ in range(2)]
    scorer = ModelScorer(policy.model, count_cores())
    for scored in sample.map(scorer, scorer.features, log_rows):
        rows = log_rows[start : start + len(scored)]
        curves, paid = scored[:, : len(levels)], None if log.costs is None else log.costs[rows]
        paid = scored[:, len(levels) :] if scored.shape[1] > len(levels) else paid
        costs = _append_scores(files, policy.options, curves, paid, None if allowed is None else allowed[rows])
        start += len(scored)
        advance(start / source.n)
    curves, own = (_map_array_file(file, len(levels)) for file in files)
    return LocalCustomers(source, curves, own if len(own) else np.atleast_2d(costs), _sample_features(policy, source))


def _append_scores(
    files: Sequence[ScratchFile], options: AllowedLevels, curves: Array, paid: Array | None, allowed: Array | None
) -> Array:
    """Append curves (n, K) and costs to their files, and return the costs."""
    curves, costs = options.expect_outcomes(curves, paid, allowed)
    for file, values in zip(files, check_curves_and_costs(curves, costs)[: costs.ndim], strict=False):
        file.append(np.ascontiguousarray(values, dtype=np.float64).data.cast("B"))
    return costs


def _map_array_file(file: ScratchFile, width: int) -> Array:
    """Return a file of doubles as a memory-mapped array (n, width)."""
    file.finish()
    size = os.fstat(file.file.fileno()).st_size
    if not size:
        return np.zeros((0, width))
    return np.asarray(np.memmap(file.file, dtype=np.float64, mode="r", shape=(size // (8 * width), width)))
