"""Coverage of value and spend intervals when the plan's customers differ from the log's.

Each seed is a world (`largesse.worlds.draw_world`). Customers are drawn with odds exp(s · z): z is one standardised feature, a sum of
several, or the true response to the cheapest level, and the strength s is random. Their table is planned for, and the plan
is judged as in a run: the scores of the log are weighted to the customers. The truth is that of the written plan for these customers.
`unweighted` are the intervals of the same plan from the log's own customers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from largesse.allocation import expected_costs
from largesse.evaluation import (
    CustomerSample,
    check_customer_shift,
    estimate_policy_value_and_spend,
    measure_spend_by_price,
    plan_each_fold,
    weight_log_to_customers,
)
from largesse.levels import Levels
from largesse.records import Array, Progress
from largesse.stats import limit_to_one_thread
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.markdown import format_share
from largesse_lab.pages.method_comparison import Summary, list_distinct_values
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.plan_interval_coverage import (
    ScoredLog,
    add_tables_by_rows,
    compute_true_value_and_spend,
    fit_and_score_log,
    format_bias,
    format_coverage,
    list_interval_and_truth,
)
from largesse_lab.runner.record_cache import RecordCache

SHIFT_SEEDS, SHIFT_LOG_ROWS = (0, 199), 2000
SHIFT_MODEL = "auto"
SHIFT_STREAM, POOL_STREAM = 12, 13
POOL_SIZE, SHIFTED_CUSTOMERS = 10_000, 1500
SHIFT_KINDS = ("one feature", "several features", "response")
SHIFT_STRENGTHS = (0.3, 1.2)  # shifts of the mean, in standard deviations, if scores are normal
STRENGTH_EDGES = (0.3, 0.6, 0.9, 1.2)
N_SHIFTED_FEATURES = 4
MAX_SHIFT_REFUND = 0.3  # the largest share of an amount that is paid back on redemption


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per number of rows and simulated world: intervals and truth under covariate shift."""
    seeds = select_requested_seeds(request, SHIFT_SEEDS[0], SHIFT_SEEDS[1] - SHIFT_SEEDS[0] + 1)
    keys = [(seed, size) for size in request.sizes or [SHIFT_LOG_ROWS] for seed in seeds]
    return RecordCache(request.out, ("world", "rows")).measure_each(keys, _measure_world, progress)


def _measure_world(seed: int, rows: int) -> dict[str, Any]:
    world, rng = draw_world(seed), np.random.default_rng([SHIFT_STREAM, seed])
    pool = world.draw_fresh(POOL_SIZE, POOL_STREAM)
    levels = make_levels_with_payment(world, seed)
    log = replace(world.draw_log(rows).log, levels=levels)
    costs = np.broadcast_to(expected_costs(levels, pool.truth), pool.truth.shape)
    budget = float(rng.uniform(0.25, 0.6) * costs[:, -1].mean())
    fitted = fit_and_score_log(log, seed, SHIFT_MODEL)
    kind, strength = SHIFT_KINDS[seed % len(SHIFT_KINDS)], float(rng.uniform(*SHIFT_STRENGTHS))
    with limit_to_one_thread():
        judged = _evaluate_on_shifted_customers(fitted, draw_shifted_customers(pool, kind, strength, rng), budget, seed)
    return {
        "world": seed,
        "rows": rows,
        "kind": kind,
        "strength": strength,
        "paid": "on redemption" if levels.on_redemption else "always",
        "way": world.traits.log,
        "features": world.traits.features,
        **judged,
    }


def make_levels_with_payment(world: RandomWorld, seed: int) -> Levels:
    """Return a world's levels, paid on redemption if the seed is odd and responses are never negative."""
    if seed % 2 == 0 or world.traits.response == "gaussian":
        return Levels(costs=world.doses)
    amounts = world.traits.response == "amounts"
    face = (MAX_SHIFT_REFUND if amounts else 1.0) * world.doses / world.doses[-1]
    return Levels(costs=face, on_redemption="per unit" if amounts else True)


def draw_shifted_customers(pool: RandomLog, kind: str, strength: float, rng: np.random.Generator) -> RandomLog:
    """Draw customers from a pool with odds that rise with a covariate score."""
    odds = np.exp(strength * _compute_shift_scores(pool, kind, rng))
    rows = rng.choice(len(pool), SHIFTED_CUSTOMERS, replace=False, p=odds / odds.sum())
    arrays = {name: getattr(pool, name)[rows] for name in ("level", "response", "propensities", "truth")}
    return replace(pool, table=pool.table.take(rows), **arrays)


def _compute_shift_scores(pool: RandomLog, kind: str, rng: np.random.Generator) -> Array:
    """Return the standardised scores (n,) by which shifted customers are drawn."""
    if kind == "response":
        return _standardise(pool.truth[:, 0])
    names = rng.permutation(pool.table.column_names)[: 1 if kind == "one feature" else N_SHIFTED_FEATURES]
    return _standardise(
        sum(rng.choice([-1.0, 1.0]) * _convert_column_to_scores(pool.table.column(n), rng) for n in names)
    )


def _convert_column_to_scores(column: pa.ChunkedArray, rng: np.random.Generator) -> Array:
    """Return the standardised values (n,) of a column; categories get random values."""
    values = column.to_pylist()
    if pa.types.is_string(column.type):
        words = sorted({value for value in values if value is not None})
        numbers = dict(zip(words, rng.normal(size=len(words)), strict=True))
        values = [numbers.get(value) for value in values]
    known = np.array([np.nan if value is None else float(value) for value in values])
    return np.nan_to_num(_standardise(known))


def _standardise(values: Array) -> Array:
    """Return values (n,) with mean 0 and standard deviation 1, clipped to ±3."""
    spread = np.nanstd(values)
    return np.clip((values - np.nanmean(values)) / (spread if spread > 0 else 1.0), -3.0, 3.0)


def _evaluate_on_shifted_customers(fitted: ScoredLog, customers: RandomLog, budget: float, seed: int) -> dict[str, Any]:
    log, policy = fitted.log, fitted.policy
    sample = CustomerSample(customers.table, policy.expect(customers.table).responses)
    weight, shift = weight_log_to_customers(log, policy.expect(log).responses, sample, seed)
    findings = check_customer_shift(shift)
    truth = compute_true_value_and_spend(customers, log, fitted.plan(customers.table, budget))
    stated: dict[str, Any] = {
        "answers": sorted({finding.answer for finding in findings}),
        "effective": shift.effective,
        "unknown": shift.unknown,
        "gaps": len(shift.remaining),
        "truth": list(truth),
    }
    for name, kept in (("weighted", fitted.with_row_weights(weight)), ("unweighted", fitted)):
        plan = plan_each_fold(kept.scores, budget, measure_spend_by_price(kept.scores))
        for measure_name, estimate, true in zip(
            ("value", "spend"), estimate_policy_value_and_spend(kept.scores, plan.policy), truth, strict=True
        ):
            stated[f"{name} {measure_name}"] = list_interval_and_truth(estimate, true)
    return stated


# -- the summary -------------------------------------------------------------------------------------------------------


def summarise(records: Records) -> Summary:
    """Return the coverage tables of each number of rows."""
    sizes = sorted(list_distinct_values(records, "rows"))
    return {"sizes": [_summarise_size(size, [r for r in records if r["rows"] == size]) for size in sizes]}


def _summarise_size(rows: int, records: Records) -> dict[str, Any]:
    groups = [("all", records)]
    groups += [(kind, [record for record in records if record["kind"] == kind]) for kind in SHIFT_KINDS]
    for low, high in pairwise(STRENGTH_EDGES):
        groups.append((f"strength {low} to {high}", [record for record in records if low <= record["strength"] < high]))
    for field, prefix in (("paid", "paid "), ("way", "log: ")):
        for value in sorted({record[field] for record in records}):
            groups.append((f"{prefix}{value}", [record for record in records if record[field] == value]))
    return {
        "rows": rows,
        "worlds": len(records),
        "table": [_write_coverage_row(name, some) for name, some in groups if some],
    }


def _write_coverage_row(name: str, shifts: Sequence[dict[str, Any]]) -> list[str]:
    refused = [shift for shift in shifts if "no" in shift["answers"]]
    answered = [shift for shift in shifts if "no" not in shift["answers"]]
    cells = [format_share(len(refused) / len(shifts), len(shifts))]
    for measure_name in ("value", "spend"):
        cells.append(format_coverage([shift[f"weighted {measure_name}"] for shift in answered]))
        cells.append(format_bias([shift[f"weighted {measure_name}"] for shift in answered]))
        cells.append(format_coverage([shift[f"unweighted {measure_name}"] for shift in shifts]))
    return [name, str(len(shifts)), *cells]


SHIFT_COLUMNS = (
    "n", "cannot say", "value covered", "bias", "unweighted", "spend covered", "bias", "unweighted",
)  # fmt: skip


SHIFTS_EXPERIMENT = Experiment(
    "shifts",
    "Customers who are not those of the log",
    measure,
    summarise,
    partial(add_tables_by_rows, columns=["customers", *SHIFT_COLUMNS]),
    setup="""\
A seed draws a whole world and its log. Then 1,500 other customers are drawn by one feature, by the sum of four features, or by the true
response to the cheapest level: a third of the worlds each. Odds are exp(s · z), with a standardised score z and a strength s
between 0.3 and 1.2. The default model learns from the log. Every other world pays its incentives on redemption.

- **Value covered**, **spend covered**: share of 95 % intervals that contain the truth of the written plan for these customers, where the
  log can speak for them. A total is this value times the number of customers, so it is covered as often.
- **Cannot say**: share of the tables for which the answer is *no*.
- **Unweighted**: the intervals without weights, those of the log's own customers, for all tables.
- **Bias**: mean error of the estimate, in half-widths of its interval.""",
    random_worlds=True,
    one_thread=True,
)
