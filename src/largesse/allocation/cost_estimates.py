"""Expected cost of each level for each customer, if costs are paid at once or on redemption."""

from __future__ import annotations

import numpy as np

from largesse.errors import Problem, fail
from largesse.levels import Levels
from largesse.records import Array


def expected_costs(levels: Levels, curves: Array, costs: Array | None = None) -> Array:
    """Return expected costs, (K,) if they are the same for all customers, else (n, K).

    Parameters
    ----------
    levels
        Says whether a cost is always paid, or is a face value paid as far as the customer responds, and the cost of
        contact at any level above the first.
    curves
        (n, K) expected responses.
    costs
        (n, K) each customer's own costs, or the predictions of a model of observed costs; None when `levels` holds them.

    Examples
    --------
    >>> levels = Levels(costs=[0, 10], on_redemption=True)
    >>> expected_costs(levels, np.array([[0.2, 0.5]]))
    array([[0., 5.]])
    """
    face = costs if costs is not None else levels.common_costs
    if face is None and levels.observed:
        hint = (
            "fit a model of them, too, and give what it expects: WithCosts(Stack()).fit(log).predict_costs(customers)"
        )
        fail("costs", Problem("costs are observed: no list says what a level costs", hint))
    if face is None:
        hint = f"read the table with levels=…, so that {levels.cost_columns} are found"
        fail("costs", Problem("costs are per customer, but this table was read without them", hint))
    # A response below zero (a refund, say) does not pay a coupon back.
    expected = face * np.maximum(curves, 0.0) if levels.on_redemption else face
    if not levels.contact_cost:
        return expected
    return expected + np.where(np.arange(len(levels)) > 0, levels.contact_cost, 0.0)
