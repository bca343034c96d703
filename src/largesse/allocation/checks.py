"""What `allocate` and `frontier` are given, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.allocation.costs import expected_costs
from largesse.allocation.price.hull import as_rows
from largesse.errors import BudgetError, Problem, below_cheapest, budget_problems, refuse
from largesse.levels import Levels
from largesse.records import Array


def check_task(curves: Any, costs: Any) -> tuple[Array, Array]:
    """Return curves (n, K) and cost rows (1, K) or (n, K) as the compiled loops read them, or refuse them."""
    curves = np.asarray(curves)
    costs = expected_costs(costs, curves) if isinstance(costs, Levels) else np.asarray(costs)
    problems = []
    if curves.ndim != 2 or 0 in curves.shape:
        problems.append(
            Problem(f"curves have shape {curves.shape}", "give one row per customer and one column per level")
        )
    elif not _finite(curves):
        problems.append(
            Problem("curves hold missing or infinite numbers", "every customer needs a response at every level")
        )
    if curves.ndim == 2 and costs.shape not in ((curves.shape[1],), curves.shape):
        problems.append(Problem(f"costs have shape {costs.shape}, curves {curves.shape}", "give costs (K,) or (n, K)"))
    elif not _finite(costs) or costs.min(initial=0) < 0:
        problems.append(Problem("costs hold negative, missing or infinite numbers", "costs are zero or more"))
    refuse("allocate", problems)
    if costs.ndim == 1:
        costs = costs.astype(np.float64)
    return as_rows(curves, costs)


def _finite(values: Array) -> bool:
    """Whether all are finite numbers: a finite sum says so without a mask as large as they are."""
    if not (np.issubdtype(values.dtype, np.number) and np.isrealobj(values)):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def total_limit(n: int, budget: float | None, total: float | None) -> float:
    """Return the budget for all customers together."""
    if (budget is None) == (total is None):
        refuse(
            "allocate",
            [Problem("give either budget (average per customer) or total", "allocate(curves, costs, budget=1.7)")],
        )
    given = budget if total is None else total
    refuse("allocate", budget_problems(given, unlimited=True))
    return float(given or 0.0) * (n if total is None else 1)


def too_small(cheapest: float, limit: float, n: int, total: bool) -> BudgetError:
    """Return the error that names what the cheapest plan costs, in the unit the budget was given in."""
    unit = 1 if total else n
    return below_cheapest("allocate", limit / unit, cheapest / unit, "" if total else " per customer")
