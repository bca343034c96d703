"""The plans at other budgets, this one among them: what each brings and costs, and who gets what."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation import choose_unit, total_of
from largesse.records import Array
from largesse.report.section import PlanStep


@dataclass(frozen=True, eq=False)
class CountedStop:
    """The plan at one budget: averages per customer, the customers of every group at each level, and their mean cost."""

    budget: float
    spend: float
    value: float
    price: float
    counts: Array  # (groups + 1, K); everyone comes last
    paid: Array  # (groups,) in all
    own: bool = False  # whether it is the plan of the run
    pays: bool = False  # whether it takes every step that brings what it costs, and no other


def arrange_stops(step: PlanStep) -> list[CountedStop]:
    """Return the plans at other budgets and, among them, that of the run, by their budgets.

    A stop at which everyone gets what the plan of the run gives is left out: it would be the same plan twice.
    """
    plan, tally, unit = step.plan, step.tally, choose_unit(step.stops)
    others = [
        CountedStop(
            stop.budget,
            stop.spend,
            stop.value,
            stop.price,
            each[:, :-1],
            each[:-1, -1] * (unit * stop.ratio),
            pays=stop.pays,
        )
        for stop, each in zip(step.stops, tally.stops, strict=True)
    ]
    if not others or not math.isfinite(plan.budget):
        return others
    paid = np.array([total_of(part) for part in tally.paid])
    own = CountedStop(
        plan.budget, plan.spend, plan.value, plan.price, np.vstack([tally.grouped, tally.counts]), paid, own=True
    )
    kept = _leave_out(others, own)
    pays = any(stop.pays for stop in others) and not any(stop.pays for stop in kept)
    return sorted([replace(own, pays=pays), *kept], key=lambda stop: stop.budget)


def _leave_out(stops: Iterable[CountedStop], own: CountedStop) -> list[CountedStop]:
    return [
        stop
        for stop in stops
        if not (np.array_equal(stop.counts, own.counts) and math.isclose(stop.value, own.value, rel_tol=1e-9))
    ]
