"""Coverage of value intervals of plans with constraints besides the budget, on random simulated worlds.

Each seed is a world (`largesse.worlds.draw_world`). Its log is planned at half of the dearest level's cost under four kinds of random
rules: caps, minimum shares, budgets of segments, and barred and fixed levels. The plan is judged as in a run: each fold is planned
under its part of the rules. The truth is that of the written plan, for the log's customers and for as many new ones. `without` is the
interval of the plan without rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from largesse.allocation import Constraints
from largesse.errors import LargesseError
from largesse.evaluation import ConstrainedFoldPlanner, estimate_policy_value_and_spend, plan_each_fold
from largesse.records import Array, Progress
from largesse.stats import limit_to_one_thread
from largesse.worlds import RandomWorld, draw_world
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
from largesse_lab.runner.random_customer_groups import RandomCustomerGroup, draw_customer_group
from largesse_lab.runner.record_cache import RecordCache

RULE_SEEDS, RULE_LOG_ROWS = (0, 199), 2000
RULE_STREAM = 14
RULE_KINDS = ("caps", "shares", "segment budgets", "barred and fixed")
N_FIXED_SHARE = 0.05  # of the customers whose level is fixed


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per number of rows and simulated world: coverage under each kind of constraint."""
    seeds = select_requested_seeds(request, RULE_SEEDS[0], RULE_SEEDS[1] - RULE_SEEDS[0] + 1)
    keys = [(seed, size) for size in request.sizes or [RULE_LOG_ROWS] for seed in seeds]
    return RecordCache(request.out, ("world", "rows")).measure_each(keys, _measure_world, progress)


@dataclass(frozen=True, eq=False)
class RandomPlanRules:
    """Random constraints of a plan that apply to any customers of a world."""

    cap_shares: dict[int, float] = field(default_factory=dict)
    shares: dict[int, float] = field(default_factory=dict)
    segments: tuple[RandomCustomerGroup, ...] = ()
    segment_budgets: dict[str, float] = field(default_factory=dict)  # per customer of all
    barred: RandomCustomerGroup | None = None
    least_barred: int = 0
    fixed_level: int | None = None

    def make_constraints(self, table: pa.Table, levels: int, seed: int) -> Constraints:
        """Return the constraints for given customers; those with a fixed level are drawn at random."""
        n, eligible, segment = len(table), None, None
        if self.segments:
            code = np.zeros(n, dtype=np.int64)
            for place, group in enumerate(self.segments, 1):
                code[group.find_members(table) & (code == 0)] = place
            segment = np.array([f"s{place}" for place in range(len(self.segments) + 1)])[code]
        if self.barred is not None:
            eligible = np.ones((n, levels), dtype=bool)
            eligible[np.ix_(self.barred.find_members(table), np.arange(levels) >= self.least_barred)] = False
            fixed = np.random.default_rng(seed).random(n) < N_FIXED_SHARE
            eligible[fixed] = np.arange(levels) == self.fixed_level
        present = set() if segment is None else set(segment.tolist())
        return Constraints(
            eligible=eligible,
            caps={level: int(share * n) for level, share in self.cap_shares.items()},
            shares=self.shares,
            segment=segment,
            segment_budgets={name: part * n for name, part in self.segment_budgets.items() if name in present},
        )


def draw_plan_rules(
    kind: str, table: pa.Table, costs: Array, budget: float, rng: np.random.Generator
) -> RandomPlanRules | None:
    """Draw feasible random constraints of one kind; None if the customers have no suitable group."""
    K = len(costs)
    if kind == "caps":
        capped = rng.permutation(np.arange(1, K))[: int(rng.integers(1, 3))]
        return RandomPlanRules(cap_shares={int(level): float(rng.uniform(0.02, 0.3)) for level in capped})
    if kind == "shares":
        level = int(rng.integers(K))
        most = min(0.4, 0.8 * budget / costs[level]) if costs[level] > 0 else 0.4
        return RandomPlanRules(shares={level: float(rng.uniform(0.3, 1.0) * most)})
    groups = [draw_customer_group(table, rng, (0.1, 0.6)) for _ in range(int(rng.integers(1, 4)))]
    segments = tuple(group for group in groups if group is not None)
    if not segments:
        return None
    if kind == "segment budgets":
        sizes = [float(group.find_members(table).mean()) for group in segments]
        limits = {f"s{k}": float(budget * size * rng.uniform(0.2, 1.2)) for k, size in enumerate(sizes, 1)}
        return RandomPlanRules(segments=segments, segment_budgets=limits)
    affordable = np.flatnonzero(costs <= 0.5 * budget / N_FIXED_SHARE)
    return RandomPlanRules(
        barred=segments[0], least_barred=int(rng.integers(1, K)), fixed_level=int(rng.choice(affordable))
    )


def _measure_world(seed: int, rows: int) -> dict[str, Any]:
    world, rng = draw_world(seed), np.random.default_rng([RULE_STREAM, seed])
    fitted = fit_and_score_log(world.draw_log(rows).log, seed)
    record: dict[str, Any] = {"world": seed, "rows": rows, "way": world.traits.log, "rules": {}}
    for kind in RULE_KINDS:
        rules = draw_plan_rules(kind, fitted.log.features, world.doses, world.budgets[1], rng)
        if rules is not None:
            with limit_to_one_thread():
                record["rules"][kind] = _evaluate_constrained_plan(world, fitted, rules, seed)
    return record


def _evaluate_constrained_plan(
    world: RandomWorld, fitted: ScoredLog, rules: RandomPlanRules, seed: int
) -> dict[str, Any]:
    log, budget, n, K = fitted.log, world.budgets[1], len(fitted.log), len(fitted.log.levels)
    fresh, own = world.draw_fresh(n, RULE_STREAM), world.draw_log(n)
    constraints = rules.make_constraints(log.features, K, seed)
    try:
        levels = fitted.plan(log, budget, constraints)
        new_levels = fitted.plan(fresh.table, budget, rules.make_constraints(fresh.table, K, seed + 1))
    except LargesseError as error:
        return {"impossible": str(error)}
    truth, new = (
        compute_true_value_and_spend(own, log, levels)[0],
        compute_true_value_and_spend(fresh, log, new_levels)[0],
    )
    try:
        plan = plan_each_fold(fitted.scores, budget, planner=ConstrainedFoldPlanner(constraints, n))
    except LargesseError as error:
        return {"refused": str(error), "truth": truth}
    value, spend = estimate_policy_value_and_spend(fitted.scores, plan.policy)
    free = estimate_policy_value_and_spend(fitted.scores, plan_each_fold(fitted.scores, budget).policy)[0]
    return {
        "truth": truth,
        "same": float((levels == fitted.plan(log, budget)).mean()),
        "own value": list_interval_and_truth(value, truth),
        "new value": list_interval_and_truth(value, new),
        "own spend": list_interval_and_truth(spend, float(np.asarray(world.doses)[levels].mean())),
        "without value": list_interval_and_truth(free, truth),
    }


# -- the summary -------------------------------------------------------------------------------------------------------


def summarise(records: Records) -> Summary:
    """Return the coverage tables of each number of rows."""
    sizes = sorted(list_distinct_values(records, "rows"))
    return {"sizes": [_summarise_size(size, [r for r in records if r["rows"] == size]) for size in sizes]}


def _summarise_size(rows: int, records: Records) -> dict[str, Any]:
    parts = [(record, kind, rules) for record in records for kind, rules in record["rules"].items()]
    groups = [("all", [rules for _, _, rules in parts])]
    groups += [(kind, [rules for _, other, rules in parts if other == kind]) for kind in RULE_KINDS]
    groups += [
        (f"log: {way}", [rules for record, _, rules in parts if record["way"] == way])
        for way in sorted({record["way"] for record in records})
    ]
    return {
        "rows": rows,
        "worlds": len(records),
        "table": [_write_coverage_row(name, some) for name, some in groups if some],
    }


def _write_coverage_row(name: str, rules: Records) -> list[str]:
    possible = [part for part in rules if "impossible" not in part]
    refused = [part for part in possible if "refused" in part]
    judged = [part for part in possible if "refused" not in part]
    kinds = ("own value", "new value", "own spend", "without value")
    return [
        name,
        str(len(possible)),
        format_share(len(refused) / len(possible) if possible else None, len(possible)),
        *(format_coverage([part[kind] for part in judged]) for kind in kinds),
        format_bias([part["own value"] for part in judged]),
        f"{np.mean([part['same'] for part in judged]):.0%}" if judged else "–",
    ]


RULE_COLUMNS = (
    "n", "not judged", "value, own customers", "value, new customers", "spend", "value without rules", "bias", "unchanged",
)  # fmt: skip


RULES_EXPERIMENT = Experiment(
    "rules",
    "Plans under rules",
    measure,
    summarise,
    partial(add_tables_by_rows, columns=["rules", *RULE_COLUMNS]),
    setup="""\
A seed draws a whole world and its log. A linear model learns from the log, and plans at half of the dearest level's cost under four kinds
of random rules: caps of one or two levels (2 to 30 % of the customers), a minimum share of a level (up to 40 %), budgets of one to three
segments (0.2 to 1.2 times their part of the budget), and levels barred for a group together with 5 % of the customers whose level is fixed.

- **Value, own customers**: share of 95 % intervals that contain the true value of the written plan for the log's customers. **New
  customers**: that of a plan by the same rules for as many new ones. **Spend**: the same for the cost of the written plan.
- **Value without rules**: the interval of the plan that ignores the rules, and the true value of the written plan.
- **Not judged**: the folds cannot keep the rules, and the product says so. Rules that no plan can keep are left out.
- **Bias**: mean error of the estimate, in half-widths of its interval. **Unchanged**: customers whose level the rules leave as it is.""",
    random_worlds=True,
    one_thread=True,
)
