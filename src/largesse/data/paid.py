"""Costs that are observed: what each row of a log really cost, where no list of prices says it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from largesse.data.checks import MOST_RESPONSE, Check
from largesse.errors import Problem, plural
from largesse.levels import Levels
from largesse.records import Array


def settle_costs(levels: Levels, named: bool, check: Check) -> Levels:
    """Return the levels with costs as the log has them: observed if their column is named."""
    if levels.observed and not named:
        hint = "name the column with what each row cost: cost_column=…"
        check.problems.append(Problem("costs are observed, but no column says what was paid", hint))
    if levels.observed or not named:
        return levels
    said = {"on_redemption": levels.on_redemption, "contact_cost": levels.contact_cost, "costs": levels.cost_columns}
    if clash := [word for word, on in said.items() if on]:
        hint = "a column of observed costs holds all that a row cost: keep one of the two"
        check.problems.append(Problem(f"a cost column is named, and {clash[0]} says how levels are paid", hint))
        return levels
    if any(levels.costs):
        check.notes.append("costs are observed: the costs listed for the levels are not used")
    return replace(levels, observed=True)


def read_paid(check: Check, name: str, outcome: Array) -> Array | None:
    """Return what each row cost (n,): zero or more, and not zero throughout; rows without a response need none."""
    values = check.read_numbers(name, "cost")
    if values is None:
        return None
    known = np.isfinite(outcome)
    bad = known & ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        check.add_problem(
            f"the cost {name!r} is missing, infinite or negative in {plural(int(bad.sum()), 'row')}",
            "write what the row cost, 0 if nothing was paid",
        )
    elif values[known].max(initial=0.0) > MOST_RESPONSE:
        hint = f"numbers beyond {MOST_RESPONSE:g} cannot be computed with: is it a code for missing? Else use a larger unit"
        check.add_problem(f"the cost {name!r} is as large as {values[known].max():g}", hint)
    elif not values[known].any():
        check.add_problem(f"the cost {name!r} is 0 in every row", "name the column with what was paid")
    return values
