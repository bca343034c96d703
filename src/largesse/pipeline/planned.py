"""A plan for customers who may be anywhere: what holds them, and what every batch of them gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from largesse.allocation import PricedPlan, Scored, Stop, count_levels, count_stops
from largesse.policy import Policy
from largesse.records import Array, Customers, ExplorationSummary, Plan

if TYPE_CHECKING:
    import pyarrow as pa


class ScoredCustomers(Scored, Protocol):
    """Customers with what is expected of them, wherever they are: see `allocation.Scored`."""

    def scaled(self, scale: float) -> Scored:
        """Return the same customers with costs that are multiplied."""

    def gather(self) -> tuple[Customers, Array, Array]:
        """Return all customers in memory: with all their features, curves (n, K) and expected costs (K,) or (n, K)."""


@dataclass(frozen=True)
class Target:
    """A file that a plan is written to."""

    path: Path
    escaped: bool = False  # text that a spreadsheet would take for a formula gets an apostrophe before it


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan for customers, and the policy that makes it."""

    plan: PricedPlan | Plan
    policy: Policy
    scored: ScoredCustomers
    scale: float = 1.0  # what expected costs are multiplied by to plan
    ratio: float = 1.0  # what they are multiplied by to be what is really paid
    confidence: float | None = None  # probability that the plan keeps its budget; None: it is certain to
    stops: tuple[Stop, ...] = ()  # plans at other budgets
    listed: Array | None = None  # (stops, n) the levels of those plans, where no price makes them
    excuse: str = ""  # why there are no plans at other budgets
    propensity: Array | None = None  # (n,) of a plan that explores for a purpose
    exploration: ExplorationSummary | None = None  # what the report says of it

    def decide(self, rows: Array, curves: Array, costs: Array) -> tuple[Array, Array | None]:
        """Return the levels (n,) of some customers and, where the plan explores, their propensities (n,).

        Customers are row numbers (n,), curves (n, K), and expected costs (1, K) or (n, K) as they are.
        """
        if isinstance(self.plan, Plan):
            return self.plan.levels[rows], None if self.propensity is None else self.propensity[rows]
        return self.plan.decide(rows, curves, costs if self.scale == 1.0 else costs * self.scale)

    def count_stops(self, batch: tuple[Array, Array, Array], groups: Array, many: int) -> Array:
        """Count (stops, many, K + 1) who gets what at other budgets, and what that is expected to cost.

        Customers are row numbers (n,), curves (n, K), expected costs as they are, and their groups (n, g) of `many`.
        """
        if self.listed is not None:
            return count_levels(self.stops, self.listed[:, batch[0]], *batch[1:], groups, many)
        explore, seed = (0.0, 0) if isinstance(self.plan, Plan) else (self.plan.rule.explore, self.plan.seed)
        return count_stops(self.stops, batch, groups, many, explore, seed)

    def show_costs(self, curves: Array, costs: Array) -> Array:
        """Return what is really paid (n, K), on average, at every level."""
        return np.broadcast_to(costs if self.ratio == 1.0 else costs * self.ratio, curves.shape)

    def tabulate(
        self, customer: pa.Array, decided: tuple[Array, Array | None], curves: Array, costs: Array
    ) -> pa.Table:
        """Return one row per customer: id, level, expected response, expected cost and, where the plan explores, propensity.

        `costs` (n, K) are those of `show_costs`.
        """
        import pyarrow as pa

        (levels, propensity), rows = decided, np.arange(len(curves))
        names = pa.DictionaryArray.from_arrays(pa.array(levels.astype(np.int32)), pa.array(self.policy.levels.labels))
        columns = {
            "customer": customer,
            "level": names.cast(pa.string()),
            "level_number": levels.astype(np.int32),
            "expected_response": curves[rows, levels].astype(np.float64, copy=False),
            "expected_cost": np.ascontiguousarray(costs[rows, levels], dtype=np.float64),
        }
        return pa.table(columns if propensity is None else columns | {"propensity": propensity})
