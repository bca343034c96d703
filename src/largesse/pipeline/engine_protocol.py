"""Protocol of an engine, which reads and scores rows on one machine or on a cluster.

A run touches rows only through an `Engine`: it reads the log, opens a table of customers, and scores customers.
`ScoredCustomers` answers the few questions that planning has, and writes the plan. `LocalEngine` is the engine of one machine; an engine
for a cluster is one more class that fulfils these two protocols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from largesse.allocation import BudgetPoint, PriceSums, count_levels_at_budgets, count_levels_of_plans
from largesse.campaign import Campaign
from largesse.evaluation import CustomerSample, PlanAverages, PlanCounts
from largesse.exploration import mix_in_uniform_levels
from largesse.policy import Policy
from largesse.records import Array, Customers, ExplorationSummary, Log, Progress, Scores
from largesse.stats import draw_levels_for_rows

if TYPE_CHECKING:
    import pyarrow as pa


class Engine(Protocol):
    """Interface of an engine that reads and scores rows where they are stored."""

    def read_log(self, campaign: Campaign, source: Any = None) -> Log:
        """Read and check the campaign's log, or another source with the same columns."""

    def open_customers(self, campaign: Campaign, source: Any, features: Mapping[str, str]) -> Any:
        """Open a customer table after a check of its features; ids are optional.

        `features` maps each feature to its kind in the log. Where the table is larger than memory, its rows are checked when
        they are scored.
        """

    def score_customer_table(
        self, policy: Policy, customers: Any, near: Path, progress: Progress, log_scores: Scores | None = None
    ) -> AbstractContextManager[ScoredCustomers]:
        """Yield the customers of an opened table with their predicted responses and costs.

        `log_scores` replace the model's predictions for the customers of the log, where costs are uncertain. Anything that does not
        fit into memory goes to files `near` a path, which are gone when the context ends.
        """


class ScoredCustomers(Protocol):
    """Interface of customers with their expected responses and costs, on any machine."""

    @property
    def n(self) -> int:
        """Number of customers."""

    def sum_plans_at_prices(self, prices: Sequence[float], /) -> PriceSums:
        """Return the total costs and responses of customers' plans at decreasing shadow prices.

        See `allocation.sum_plans_at_prices`.
        """

    def allocate(self, budget: float | None = None, *, total: float | None = None, scale: float = 1.0) -> PricedPlan:
        """Return the best plan within an average or total budget, with all costs multiplied by `scale`.

        See `allocation.allocate`.
        """

    def find_mean_cost_range(self, price: float, *, scale: float = 1.0) -> tuple[float, float]:
        """Return the average cost at a shadow price, with ties decided for the cheapest and for the dearest level.

        Costs are multiplied by `scale`.
        """

    def draw_costs(self, plan: PlanResult, seeds: Sequence[int], /) -> Array:
        """Return total costs (m,) of a plan with random exploration, one for each random seed (m,)."""

    def collect(self) -> tuple[Customers, Array, Array]:
        """Return all customers in memory with their curves (n, K) and expected costs (K,) or (n, K)."""

    def draw_customer_sample(self) -> CustomerSample:
        """Return a random sample of customers with their features and curves."""

    def sample_levels(self, plan: PlanResult) -> tuple[pa.Table, Array]:
        """Return the features and planned levels (m,) of a random sample of customers."""

    def write_plan_tables(self, plan: PlanResult, targets: Sequence[PlanOutputFile], progress: Progress) -> PlanCounts:
        """Write a plan atomically to its tables in the customers' order, and return its counts for the report."""


class PricedPlan(PlanAverages, Protocol):
    """Interface of a plan at the budget's shadow price, which decides levels batch by batch."""

    @property
    def bound(self) -> float:
        """Upper bound of the value of every plan within the budget."""

    def decide(self, rows: Array, curves: Array, costs: Array, /) -> Array:
        """Return the levels (n,) of a batch of customers from curves (n, K) and costs (1, K) or (n, K)."""


@dataclass(frozen=True)
class PlanOutputFile:
    """Path of the file that a plan is written to, and the way its text is written."""

    path: Path
    escaped: bool = False  # text that a spreadsheet would take for a formula gets an apostrophe before it


@dataclass(frozen=True, eq=False)
class PlanResult:
    """Plan of customers with its policy and totals."""

    plan: PricedPlan
    policy: Policy
    scale: float = 1.0  # factor of expected costs in planning
    ratio: float = 1.0  # factor of expected costs that gives real costs
    confidence: float | None = None  # probability that the plan keeps its budget; None: it is certain to
    explore: float = 0.0  # share of customers who get a level at random
    seed: int = 0  # of these levels
    points: tuple[BudgetPoint, ...] = ()  # plans at other budgets
    listed: Array | None = None  # (points, n) the levels of those plans, where no price makes them
    excuse: str = ""  # why there are no plans at other budgets
    propensity: Array | None = None  # (n,) of a plan that explores for a goal
    exploration: ExplorationSummary | None = None  # summary for the report

    def decide(self, rows: Array, curves: Array, costs: Array) -> tuple[Array, Array | None]:
        """Return the levels (n,) of a batch of customers and, if the plan explores, their propensities (n,).

        Customers are row numbers (n,), curves (n, K), and expected cost rows (1, K) or (n, K).
        """
        levels = self.plan.decide(rows, curves, costs if self.scale == 1.0 else costs * self.scale)
        if self.propensity is not None:
            return levels, self.propensity[rows]
        if not self.explore:
            return levels, None
        probabilities = mix_in_uniform_levels(np.eye(curves.shape[1])[levels], self.explore)
        drawn = draw_levels_for_rows(probabilities, rows, self.seed)
        return drawn, probabilities[np.arange(len(rows)), drawn]

    def draw_costs(self, batch: tuple[Array, Array, Array], seeds: Sequence[int]) -> Array:
        """Return total costs (m,) of a batch under random exploration, one for each random seed (m,)."""
        rows, curves, costs = batch
        costs, places = costs * self.scale, np.arange(len(rows))
        probabilities = mix_in_uniform_levels(
            np.eye(curves.shape[1])[self.plan.decide(rows, curves, costs)], self.explore
        )
        wide = np.broadcast_to(costs, curves.shape)
        return np.array([wide[places, draw_levels_for_rows(probabilities, rows, seed)].sum() for seed in seeds])

    def count_levels_at_other_budgets(
        self, batch: tuple[Array, Array, Array], groups: Array, n_groups: int
    ) -> tuple[Array, Array]:
        """Count the levels of customer groups at other budgets, with their expected costs.

        See `allocation.count_levels_at_budgets`.
        """
        if self.listed is not None:
            return count_levels_of_plans(self.listed[:, batch[0]], batch, groups, n_groups)
        return count_levels_at_budgets(self.points, batch, groups, n_groups, self.explore, self.seed)

    def make_plan_table(
        self, customer: pa.Array, decided: tuple[Array, Array | None], curves: Array, costs: Array
    ) -> pa.Table:
        """Return the plan's table of a batch: id, level, expected response, expected cost and propensity."""
        import pyarrow as pa

        (levels, propensity), rows = decided, np.arange(len(curves))
        paid = np.broadcast_to(costs, curves.shape)[rows, levels]
        names = pa.DictionaryArray.from_arrays(pa.array(levels.astype(np.int32)), pa.array(self.policy.levels.labels))
        columns = {
            "customer": customer,
            "level": names.cast(pa.string()),
            "level_number": levels.astype(np.int32),
            "expected_response": curves[rows, levels].astype(np.float64, copy=False),
            "expected_cost": np.asarray(paid if self.ratio == 1.0 else paid * self.ratio, dtype=np.float64),
        }
        return pa.table(columns if propensity is None else columns | {"propensity": propensity})
