"""Plans on logs of random simulated worlds, and coverage of the intervals that evaluations state about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation import Constraints, add_cheapest_level, allocate, expected_costs, find_cost_correction
from largesse.evaluation import compute_scores, measure_spend_by_price, restrict_scores_to_support
from largesse.policy import Policy
from largesse.propensity import estimate_propensities, find_unsupported_cells, mark_supported_levels
from largesse.records import Array, Estimate, HeldOutPredictions, Log, Propensities, Scores
from largesse.response import Linear, make_model
from largesse.stats import assign_folds, limit_to_one_thread
from largesse.worlds import RandomLog
from largesse_lab.pages.markdown import NUMBER_DASH, Section, format_share, format_table
from largesse_lab.pages.method_comparison import Summary

PLAN_PENALTY = 0.03  # of the linear model: a fixed one, so that many logs can be judged
TRUTH_SLACK = 1e-9  # relative, of an interval's ends


@dataclass(frozen=True, eq=False)
class ScoredLog:
    """Log with its out-of-fold scores and the policy of a model fitted to all rows."""

    log: Log
    held: HeldOutPredictions
    propensities: Propensities
    scores: Scores
    policy: Policy

    def without_support_limits(self) -> ScoredLog:
        """Return a copy whose policy may also use levels without support in the log."""
        policy = replace(self.policy, bar_unsupported=False)
        return replace(self, scores=compute_scores(self.log, self.held, self.propensities), policy=policy)

    def with_row_weights(self, weight: Array) -> ScoredLog:
        """Return a copy whose scores have row weights (n,)."""
        return replace(self, scores=replace(self.scores, weight=weight))

    def plan(self, customers: Any, budget: float, constraints: Constraints | None = None) -> Array:
        """Return the planned levels (n,) of customers within a budget."""
        expected = self.policy.expect(customers)
        curves, costs = expected.responses, expected.costs
        scale = find_cost_correction(curves, costs, budget, self.policy.spending).scale
        return np.asarray(allocate(curves, costs * scale, budget, constraints=constraints).levels)


@limit_to_one_thread()
def fit_and_score_log(log: Log, seed: int, name: str = "") -> ScoredLog:
    """Fit a response model to a log, and return its out-of-fold scores and its policy.

    The default model is linear; plans stay within the support of the log.
    """
    model = make_model(name, seed) if name else Linear(penalty=PLAN_PENALTY, seed=seed)
    held = model.fit_held_out(log, assign_folds(log, 5, seed))
    propensities, cells = estimate_propensities(log, held.fold, seed), find_unsupported_cells(log, seed)
    scores = restrict_scores_to_support(
        compute_scores(log, held, propensities), add_cheapest_level(mark_supported_levels(cells, log))
    )
    spending = measure_spend_by_price(scores)
    policy = Policy(
        model, log.levels, spending=None if spending is None else spending.curve_of_all_folds, unsupported=cells
    )
    return ScoredLog(log, held, propensities, scores, policy)


def compute_true_value_and_spend(customers: RandomLog, log: Log, levels: Array) -> tuple[float, float]:
    """Return the true mean value and spend of levels (n,) for simulated customers."""
    rows, truth = np.arange(len(levels)), customers.truth
    costs = np.broadcast_to(expected_costs(log.levels, truth), truth.shape)
    return float(truth[rows, levels].mean()), float(costs[rows, levels].mean())


def list_interval_and_truth(estimate: Estimate, truth: float) -> list[float | None]:
    """Return an estimate, its interval's ends and the truth as a list, with None for missing numbers."""
    numbers = (estimate.estimate, estimate.low, estimate.high, truth)
    return [float(number) if np.isfinite(number) else None for number in numbers]


def measure_interval_coverage(stated: Iterable[Sequence[float | None]]) -> tuple[float | None, int]:
    """Return the share of intervals that contain the truth, and the number of intervals.

    >>> measure_interval_coverage([[1.0, 0.5, 1.5, 1.2], [1.0, 0.5, 1.5, 1.6], [1.0, None, None, 1.0]])
    (0.5, 2)
    """
    hits = []
    for _, low, high, truth in stated:
        if low is not None and high is not None and truth is not None:
            slack = TRUTH_SLACK * max(abs(truth), abs(low), abs(high))
            hits.append(low - slack <= truth <= high + slack)
    return (float(np.mean(hits)) if hits else None), len(hits)


def format_coverage(stated: Iterable[Sequence[float | None]]) -> str:
    """Format the share of intervals that contain the truth as a percentage with its 95 % interval."""
    return format_share(*measure_interval_coverage(stated))


def format_bias(stated: Iterable[Sequence[float | None]]) -> str:
    """Format the mean error ± its standard error, in half-widths of the intervals."""
    errors = [
        (estimate - truth) / ((high - low) / 2)
        for estimate, low, high, truth in stated
        if estimate is not None and low is not None and high is not None and truth is not None and high > low
    ]
    if len(errors) < 2:
        return NUMBER_DASH
    return f"{np.mean(errors):+.2f} ± {np.std(errors, ddof=1) / np.sqrt(len(errors)):.2f}".replace("-", "−")


def add_tables_by_rows(section: Section, summary: Summary, *, columns: Sequence[str]) -> None:
    """Add one table per number of log rows to a result section."""
    for size in summary["sizes"]:
        title = f"## {size['worlds']} worlds, logs of {size['rows']:,} rows"
        section.add(title, format_table(columns, size["table"]))
