"""Detection of levels that a group of customers never got (support holes), and coverage of the plan's value.

Each seed is a world (`largesse.worlds.draw_world`) of which two logs are drawn for the same customers: one as the world's policy
gives levels, and one with one or two holes: a category, a range or a pair of conditions whose customers never get one
level. A hole counts as found if four of five of its customers are barred from the level. Of the log with holes, the
plan at half of the dearest level's cost is judged as in a run, and compared with the true value of the written plan for the log's
customers. `allowed` is the same with `unsupported = "allow"`, `blind` the interval of that plan without bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.evaluation import estimate_policy_value_and_spend, find_value_bounds, plan_each_fold
from largesse.propensity import find_unsupported_cells, mark_supported_levels
from largesse.records import Array, Log, Progress
from largesse.stats import limit_to_one_thread
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.markdown import Section, format_share, format_table
from largesse_lab.pages.method_comparison import Summary, list_distinct_values
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.plan_interval_coverage import (
    ScoredLog,
    compute_true_value_and_spend,
    fit_and_score_log,
    format_bias,
    format_coverage,
    list_interval_and_truth,
)
from largesse_lab.runner.random_customer_groups import GROUP_KINDS, RandomCustomerGroup, draw_customer_group
from largesse_lab.runner.record_cache import RecordCache

HOLE_SEEDS, HOLE_LOG_ROWS = (0, 199), 2000
MAX_JUDGED_ROWS = 4000  # of larger logs, holes are searched and no plan is judged
HOLE_STREAM = 11
MIN_EXPECTED_ROWS = 10.0  # that would have got the level in a hole
EXPECTED_EDGES = (10.0, 20.0, 40.0, np.inf)
FOUND_SHARE = 0.8  # of the customers of a hole
MAX_HOLES = 2


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log size and simulated world: planted and detected support holes, and coverage."""
    seeds = select_requested_seeds(request, HOLE_SEEDS[0], HOLE_SEEDS[1] - HOLE_SEEDS[0] + 1)
    keys = [(seed, size) for size in request.sizes or [HOLE_LOG_ROWS] for seed in seeds]
    return RecordCache(request.out, ("world", "rows")).measure_each(keys, _measure_world, progress)


@dataclass(frozen=True, eq=False)
class SupportHole:
    """Group of customers and the level that none of them gets in the log."""

    group: RandomCustomerGroup
    inside: Array  # (n,) bool
    level: int
    expected: float  # rows that would have got the level


def draw_support_holes(customers: RandomLog, rng: np.random.Generator) -> list[SupportHole]:
    """Draw one or two groups of customers with a level of zero propensity."""
    holes: list[SupportHole] = []
    rest = customers.propensities.copy()
    for _ in range(int(rng.integers(1, MAX_HOLES + 1))):
        for _ in range(50):
            group = draw_customer_group(customers.table, rng)
            if group is None:
                continue
            inside, level = group.find_members(customers.table), int(rng.integers(rest.shape[1]))
            left = np.delete(rest, level, axis=1).sum(axis=1)
            expected = float(rest[inside, level].sum())
            if expected >= MIN_EXPECTED_ROWS and left[inside].min() > 0:
                holes.append(SupportHole(group, inside, level, expected))
                rest[inside, level] = 0.0
                break
    return holes


def _measure_world(seed: int, rows: int) -> dict[str, Any]:
    world, rng = draw_world(seed), np.random.default_rng([HOLE_STREAM, seed])
    customers = world.draw_fresh(rows, HOLE_STREAM)
    holes = draw_support_holes(customers, rng)
    whole, _ = _draw_log(world, rows, customers.propensities)
    with limit_to_one_thread():
        alarms = find_unsupported_cells(whole, seed)
    record: dict[str, Any] = {
        "world": seed,
        "rows": rows,
        "levels": world.traits.levels,
        "features": world.traits.features,
        "way": world.traits.log,
        "alarms": [f"{cell}: {', '.join(map(str, cell.levels))}" for cell in alarms.cells],
        "barred": float(alarms.barred),
        "holes": [],
    }
    if not holes:
        return record
    propensities = customers.propensities.copy()
    for hole in holes:
        propensities[hole.inside, hole.level] = 0.0
    propensities /= propensities.sum(axis=1, keepdims=True)
    log, drawn = _draw_log(world, rows, propensities)
    with limit_to_one_thread():
        cells = find_unsupported_cells(log, seed)
    supported = mark_supported_levels(cells, log)
    supported = np.ones(propensities.shape, dtype=bool) if supported is None else supported
    for hole in holes:
        barred = float((~supported[hole.inside, hole.level]).mean())
        kinds = {"kind": hole.group.kind, "level": hole.level, "share": float(hole.inside.mean())}
        record["holes"].append({**kinds, "expected": hole.expected, "barred": barred})
    record["too many"] = float((~supported & (propensities > 0)).sum() / (propensities > 0).sum())
    record["cells"] = [f"{cell}: {', '.join(map(str, cell.levels))}" for cell in cells.cells]
    if rows <= MAX_JUDGED_ROWS:
        with limit_to_one_thread():
            record |= _evaluate_plans(world, fit_and_score_log(log, seed), drawn, supported)
    return record


def _draw_log(world: RandomWorld, rows: int, propensities: Array) -> tuple[Log, RandomLog]:
    """Draw a log of random customers with given propensities (n, K)."""
    drawn = world.draw_next(rows, lambda _table: propensities, HOLE_STREAM)
    log = drawn.log
    return (log if world.traits.known else replace(log, propensity=None)), drawn


def _evaluate_plans(
    world: RandomWorld, fitted: ScoredLog, drawn: RandomLog, supported: Array
) -> dict[str, list[float | None]]:
    log, budget, allowed, stated = fitted.log, world.budgets[1], fitted.without_support_limits(), {}
    for name, kept in (("barred", fitted), ("allowed", allowed)):
        truth = compute_true_value_and_spend(drawn, log, kept.plan(log, budget))[0]
        plan = plan_each_fold(kept.scores, budget)
        value, _ = estimate_policy_value_and_spend(kept.scores, plan.policy)
        bounds = find_value_bounds(kept.scores, plan.policy, supported)
        stated[f"{name} value"] = list_interval_and_truth(
            replace(value, low=value.low + bounds[0], high=value.high + bounds[1]), truth
        )
    return {**stated, "blind value": list_interval_and_truth(value, truth)}


# -- the summary -------------------------------------------------------------------------------------------------------


def summarise(records: Records) -> Summary:
    """Return the detection and coverage tables of each number of rows."""
    sizes = sorted(list_distinct_values(records, "rows"))
    return {"sizes": [_summarise_size(size, [r for r in records if r["rows"] == size]) for size in sizes]}


def _summarise_size(rows: int, records: Records) -> dict[str, Any]:
    judged = [record for record in records if record["holes"]]
    all_found = [record for record in judged if min(hole["barred"] for hole in record["holes"]) >= FOUND_SHARE]
    sure = [record for record in judged if min(hole["expected"] for hole in record["holes"]) >= EXPECTED_EDGES[-2]]
    groups = (("all", judged), ("40 rows or more expected in every hole", sure), ("all holes found", all_found))
    return {
        "rows": rows,
        "worlds": len(records),
        "with holes": len(judged),
        "all found": _write_hit_share([record in all_found for record in judged]),
        "alarms": _write_hit_share([bool(record["alarms"]) for record in records]),
        "too many": float(np.mean([record["too many"] for record in judged])) if judged else 0.0,
        "found": _tabulate_holes([hole for record in judged for hole in record["holes"]]),
        "coverage": [
            _write_coverage_row(name, some) for name, some in groups if any("barred value" in r for r in some)
        ],
        "alarm ways": [
            [way, str(len(some)), _write_hit_share([bool(record["alarms"]) for record in some])]
            for way in sorted({record["way"] for record in records})
            if (some := [record for record in records if record["way"] == way])
        ],
    }


def _tabulate_holes(holes: Records) -> list[list[str]]:
    """Return the table rows of detection rates: all support holes, by kind, and by expected number of rows."""
    groups = [("all", holes)]
    groups += [(f"kind: {kind}", [hole for hole in holes if hole["kind"] == kind]) for kind in GROUP_KINDS]
    for low, high in pairwise(EXPECTED_EDGES):
        name = f"{low:g} to {high:g}" if np.isfinite(high) else f"{low:g} or more"
        groups.append((f"{name} rows expected", [hole for hole in holes if low <= hole["expected"] < high]))
    return [
        [
            name,
            str(len(some)),
            _write_hit_share([hole["barred"] >= FOUND_SHARE for hole in some]),
            f"{np.mean([hole['barred'] for hole in some]):.1%}",
        ]
        for name, some in groups
        if some
    ]


def _write_coverage_row(name: str, records: Records) -> list[str]:
    kinds, records = ("barred value", "allowed value", "blind value"), [r for r in records if "barred value" in r]
    covered = [format_coverage([record[kind] for record in records]) for kind in kinds]
    return [name, str(len(records)), *covered, format_bias([record["barred value"] for record in records])]


def _write_hit_share(hits: Sequence[bool]) -> str:
    return format_share(float(np.mean(hits)) if hits else None, len(hits))


HOLE_COLUMNS = ("barred: covered", "allowed: covered", "blind: covered", "bias, barred")


def fill(section: Section, summary: Summary) -> None:
    """Add the tables of each number of rows to the result section."""
    for size in summary["sizes"]:
        section.add(
            f"## Logs of {size['rows']:,} rows",
            f"{size['with holes']} of {size['worlds']} worlds have holes. All holes of a world are found in {size['all found']} of "
            f"them. Without holes, {size['alarms']} of the logs have an alarm. Of the levels that customers could get in "
            f"logs with holes, {size['too many']:.2%} are barred.",
            format_table(["holes", "n", "found", "customers barred"], size["found"]),
            format_table(["worlds", "n", *HOLE_COLUMNS], size["coverage"]) if size["coverage"] else "",
            format_table(["logs without holes", "n", "false alarms"], size["alarm ways"]),
        )


HOLES_EXPERIMENT = Experiment(
    "holes",
    "Levels that a kind of customers never got",
    measure,
    summarise,
    fill,
    setup="""\
A seed draws a whole world. In its log one or two kinds of customers, 5 to 40 % of all, never get one level: a category of a feature, a
range of one, or a pair of such conditions. At least 10 of them would otherwise have got the level. A linear model learns from
the log, and its plan is judged at half of the dearest level's cost; of logs with more than 4,000 rows, none is.

- **Found**: at least four of five customers of a hole are barred from its level.
- **Covered**: share of 95 % intervals of the plan's value that contain the true value of the written plan for the log's
  customers. **Barred**: the plan keeps to the support, which is the default. **Allowed**: with `unsupported = "allow"`; the interval has
  bounds for levels without support. **Blind**: the interval of that plan without bounds, as if no hole were known.
- **Bias** is the mean error of the estimate, in half-widths of its interval.
- **False alarms** are holes reported in logs of the same customers without holes. In worlds with the way *rule*, a level
  may be given to one customer in a hundred only.""",
    random_worlds=True,
    one_thread=True,
)
