"""Checks of the arguments of `allocate` and `frontier`."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.allocation.cost_estimates import expected_costs
from largesse.allocation.price.upper_hulls import convert_to_kernel_arrays
from largesse.errors import BudgetError, Problem, find_budget_problems, make_below_cheapest_error, refuse
from largesse.levels import Levels
from largesse.records import Array

MAX_NUMBER = 1e150  # that a response or cost may be: sums and products of larger ones have no floats
MIN_COST = 1e-130  # costs between zero and this cannot be divided by
DTYPE_NAMES = {"b": "true and false", "c": "complex numbers", "M": "dates", "m": "times", "U": "text", "S": "text"}


def check_curves_and_costs(curves: Any, costs: Any) -> tuple[Array, Array]:
    """Check curves (n, K) and costs, and convert them to the layout of the compiled loops.

    Cost rows are (1, K) or (n, K).
    """
    problems: list[Problem] = []
    table = read_finite_array(curves, "curves", problems)
    if table is not None and (table.ndim != 2 or 0 in table.shape):
        hint = "give one row per customer and one column per level"
        problems.append(Problem(f"curves have shape {table.shape}", hint))
        table = None
    paid = _read_costs(costs, table, problems)
    refuse("allocate", problems)
    assert table is not None
    assert paid is not None
    return convert_to_kernel_arrays(table, paid.astype(np.float64) if paid.ndim == 1 else paid)


def _read_costs(costs: Any, curves: Array | None, problems: list[Problem]) -> Array | None:
    """Convert costs to an array (K,) or (n, K), and add problems of invalid costs to a list.

    Curves are None if they are invalid.
    """
    if isinstance(costs, Levels):
        if curves is None:
            return None
        if len(costs) != curves.shape[1]:
            got = f"there are {len(costs)} levels, but curves have shape {curves.shape}"
            problems.append(Problem(got, "give one column per level"))
            return None
        with np.errstate(over="ignore"):
            costs = expected_costs(costs, curves)
    paid = read_finite_array(costs, "costs", problems)
    if paid is None:
        return None
    if curves is not None and paid.shape not in ((curves.shape[1],), curves.shape):
        problems.append(Problem(f"costs have shape {paid.shape}, curves {curves.shape}", "give costs (K,) or (n, K)"))
    elif paid.min(initial=0) < 0:
        problems.append(Problem("costs hold negative numbers", "costs are zero or more"))
    elif paid.dtype == np.float64 and ((paid < MIN_COST) & (paid > 0)).any():
        problems.append(Problem(f"costs hold numbers below {MIN_COST:g}", "give zero, or costs in a smaller unit"))
    return paid


def read_finite_array(values: Any, name: str, problems: list[Problem]) -> Array | None:
    """Convert values to an array of finite floats, and add problems of invalid values to a list.

    Invalid values give None.
    """
    missing = Problem(f"{name} hold missing or infinite numbers", "every customer needs a number at every level")
    try:
        table = np.asarray(values)
    except (TypeError, ValueError, OverflowError):  # rows of different lengths, say
        problems.append(Problem(f"{name} are not a table", "give rows of numbers, all of one length"))
        return None
    if table.dtype.kind not in "iuf":
        words = DTYPE_NAMES.get(table.dtype.kind, "objects")
        problems.append(Problem(f"{name} hold {words}, not numbers (dtype {table.dtype})", "give numbers"))
        return None
    if np.ma.is_masked(values):
        problems.append(missing)
        return None
    if table.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            table = table.astype(np.float64)
    if not _are_moderate_numbers(table):
        large = Problem(f"{name} hold numbers beyond {MAX_NUMBER:g}", "give them in a larger unit")
        problems.append(large if np.isfinite(table).all() else missing)
        return None
    return table


def _are_moderate_numbers(values: Array) -> bool:
    """Test if all values are finite and small enough to be added up.

    One sum tests this without a mask.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype == np.float32:
            return bool(np.isfinite(values.sum()) or np.isfinite(values).all())
        line = values.ravel(order="K")
        return bool(np.isfinite(np.dot(line, line)) or (np.abs(line) <= MAX_NUMBER).all())


def compute_total_budget(n: int, budget: float | None, total: float | None) -> float:
    """Return the total budget of n customers, given as a total or as an average per customer."""
    if (budget is None) == (total is None):
        refuse(
            "allocate",
            [Problem("give either budget (average per customer) or total", "allocate(curves, costs, budget=1.7)")],
        )
    amount = budget if total is None else total
    refuse("allocate", find_budget_problems(amount, unlimited=True))
    return float(amount or 0.0) * (n if total is None else 1)


def make_budget_error(cheapest: float, limit: float, n: int, total: bool) -> BudgetError:
    """Return the error for a budget below the cost of the cheapest plan."""
    unit = 1 if total else n
    return make_below_cheapest_error("allocate", limit / unit, cheapest / unit, "" if total else " per customer")
