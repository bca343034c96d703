"""Predictions of a plan for the rows of a campaign's log, matched by customer id."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from largesse.allocation import allocate, decide_at_price, find_cost_correction
from largesse.errors import Problem, fail
from largesse.evaluation import (
    FoldPlanner,
    estimate_policy_value_and_spend,
    measure_spend_by_price,
    plan_each_fold,
    predict_mean_response,
)
from largesse.policy import Policy
from largesse.records import Array, Customers, Estimate, Log, Scores

if TYPE_CHECKING:
    import pyarrow as pa

CUSTOMER, REQUEST, PROPENSITY = "customer", "request", "propensity"  # columns of plans and of ledgers
N_RESAMPLES = 30
PRICE_SAMPLE_ROWS = 20_000
MIN_PRICE_ERROR = 0.01  # as a share of the price, which may jump between two customers


@dataclass(frozen=True, eq=False)
class PlanPrediction:
    """Planned levels, expected responses and costs for the rows of a new log, with prediction errors."""

    levels: Array  # (n,) int64: planned levels
    expected: Array  # (n,) planned response
    costs: Array  # (n,) planned cost
    curves: Array  # (n, K) responses that the model predicts today
    likely: Array | None = None  # (n,) probability of the level if the policy decides again and randomises
    propensity: Array | None = None  # (n,) of the planned levels, if they were drawn
    honest: Estimate | None = None  # correction of the mean response by held-out rows of the old log
    spend_error: float = 0.0  # standard error of the planned spend, as a share of it
    joined: int | None = None  # rows matched with the plan by id; None: the policy decided again
    outside: int = 0  # rows of the new log that are not in the plan
    price: float | None = None  # of the plan's budget
    price_now: Estimate | None = None  # of the same budget for today's customers, with the error of both


def predict_plan_for_log(policy: Policy, log: Log, budget: float | None = None) -> PlanPrediction:
    """Predict levels, responses and costs for a log's customers by the policy, without an earlier plan."""
    customers = Customers(log.features, log.customer, log.costs)
    curves, costs = _predict_without_calibration(policy, customers)
    levels, rows = decide_at_price(curves, costs * policy.scale, policy.price or 0.0), np.arange(len(log))
    probabilities = policy.probabilities(customers) if policy.draws else None
    paid = costs
    if policy.spending is not None and budget is not None:
        paid = costs * find_cost_correction(curves, costs, budget, policy.spending).ratio
    if probabilities is None:
        return PlanPrediction(levels, curves[rows, levels], paid[rows, levels], curves)
    expected, spend = ((probabilities * values).sum(axis=1) for values in (curves, paid))
    return PlanPrediction(levels, expected, spend, curves, probabilities[rows, levels])


def match_decisions(
    prediction: PlanPrediction, log: Log, decisions: pa.Table, *, served: bool
) -> tuple[Log, PlanPrediction]:
    """Match the rows of a log with the decisions of a plan or of a service, by customer id.

    Rows without a decision are left out. If no row matches, the policy's own prediction stays.
    """
    assert log.customer is not None
    ids = make_text_ids(decisions, CUSTOMER, requests=served and not has_unique_ids(decisions))
    planned, names = (np.asarray([str(value) for value in column.to_pylist()]) for column in (ids, log.customer))
    order = np.argsort(planned, kind="stable")
    place = np.minimum(np.searchsorted(planned[order], names), len(planned) - 1)
    matched = planned[order][place] == names
    if not matched.any() and served:
        hint = "give the ledger and the log of one campaign, with the ids that the service was asked with"
        fail("check", Problem("no customer of the new log is in the ledger", hint))
    if not matched.any():
        return log, replace(prediction, outside=len(log))
    # Sorted by id, so that ties and folds do not depend on the order of the log.
    rows = np.flatnonzero(matched)[np.argsort(names[matched], kind="stable")]
    at = order[place][rows]

    def column(name: str) -> Array:
        return np.asarray(decisions[name].to_numpy())[at]

    drawn = PROPENSITY in decisions.column_names
    return log.take(rows), replace(
        prediction,
        levels=column("level_number").astype(np.int64),
        expected=column("expected_response").astype(np.float64),
        costs=column("expected_cost").astype(np.float64),
        curves=prediction.curves[rows],
        likely=None,
        propensity=column(PROPENSITY).astype(np.float64) if drawn else None,
        joined=len(rows),
        outside=int((~matched).sum()),
    )


def add_prediction_errors(
    prediction: PlanPrediction,
    scores: Scores,
    budget: float,
    confidence: float,
    planned: float | None = None,
    planner: FoldPlanner | None = None,
) -> PlanPrediction:
    """Add the bias and the standard errors of a prediction, estimated on held-out rows of the old log.

    `planned` is the value that the plan stated for the log's own customers, which its model has seen; by default the
    value that held-out models predict. A `planner` plans the log's rows under the rules of the plan.
    """
    plan = plan_each_fold(scores, budget, measure_spend_by_price(scores), confidence, planner)
    value, spend = estimate_policy_value_and_spend(scores, plan.policy)
    if planned is None:
        planned = predict_mean_response(scores.curves, plan.policy, scores.weight)
    correction = Estimate(value.estimate - planned, value.se, value.low - planned, value.high - planned)
    uncertain = not scores.certain and spend.estimate > 0 and np.isfinite(spend.se)
    return replace(prediction, honest=correction, spend_error=spend.se / spend.estimate if uncertain else 0.0)


def find_budget_price(policy: Policy, log: Log, budget: float, planned: int, seed: int = 0) -> Estimate:
    """Estimate the shadow price at which the plan for a log's customers costs the budget.

    Its standard error, by resampling, includes that of the price of a plan for `planned` customers.
    """
    curves, costs = _predict_without_calibration(policy, Customers(log.features, log.customer, log.costs))
    costs = costs * policy.scale
    rng = np.random.default_rng(seed)
    sample = rng.permutation(len(curves))[:PRICE_SAMPLE_ROWS]
    price = _find_price(curves[sample], costs[sample], budget)
    resampled = [
        _find_price(curves[rows], costs[rows], budget) for rows in rng.choice(sample, (N_RESAMPLES, len(sample)))
    ]
    se = max(float(np.std(resampled)), MIN_PRICE_ERROR * price) * float(np.sqrt(1 + len(sample) / max(planned, 1)))
    return Estimate(price, se, price - 1.96 * se, price + 1.96 * se)


def _find_price(curves: Array, costs: Array, budget: float) -> float:
    return allocate(curves, costs, max(budget, float(costs.min(axis=1).mean()))).price


def _predict_without_calibration(policy: Policy, customers: Customers) -> tuple[Array, Array]:
    """Predict responses and costs (n, K) of customers, without cost calibration."""
    outlook = replace(policy, scale=1.0).expect(customers)
    return outlook.responses, np.ascontiguousarray(outlook.costs, dtype=np.float64)


# -- ids -----------------------------------------------------------------------------------------------------------------


def make_text_ids(table: pa.Table, key: str, *, requests: bool) -> pa.ChunkedArray:
    """Convert the customer ids of a table to text; `requests` prefixes each with the id of its request."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def as_text(name: str) -> pa.ChunkedArray:
        if table.column_names.count(name) > 1:
            fail("tables", Problem(f"a table has two columns {name!r}", "rename one of them"))
        try:
            return pc.cast(table[name], pa.string())
        except pa.ArrowException:
            hint = "give ids as text or whole numbers"
            fail("tables", Problem(f"the column {name!r} holds no ids, but {table[name].type}", hint))

    ids = as_text(key)
    return pc.binary_join_element_wise(as_text(REQUEST), ids, "\x1f") if requests else ids


def has_unique_ids(table: pa.Table) -> bool:
    """Test if every customer id occurs at most once."""
    import pyarrow.compute as pc

    return int(pc.count_distinct(table[CUSTOMER]).as_py()) == len(table)
