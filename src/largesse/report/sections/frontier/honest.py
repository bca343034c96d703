"""What the log says of plans at any budget: as judged where it was judged, and between two judged budgets on the line.

A plan that mixes the plans of two budgets at random spends and brings what lies on the line between them. So the value there is
the honest value of something that can be done, and the plan for that very budget should do no worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from largesse.report.formats import finite
from largesse.report.section import Numbers

ENDS = ("estimate", "low", "high")


@dataclass(frozen=True)
class Honest:
    """Value and gain over giving everyone the same at one budget; None where the log does not say."""

    value: Mapping[str, Any] | None
    gain: Mapping[str, Any] | None
    between: bool = True  # whether the budget lies between two that were judged


def judge_own(numbers: Numbers) -> Honest:
    """Return value and gain of the plan itself."""
    versus = numbers.get("versus") or [{}]
    return Honest(numbers["value"], versus[0].get("difference"), between=False)


def judge_budget(numbers: Numbers, budget: float) -> Honest:
    """Return value and gain at a budget."""
    points = numbers["frontier"]["points"]
    value = interpolate(points, budget)
    return Honest(value, _judge_gain(numbers, budget, value), not is_judged(points, budget))


def is_judged(points: Sequence[Mapping[str, Any]], budget: float) -> bool:
    """Whether a budget is one of those that were judged."""
    judged = (finite(row["budget"]) for row in points)
    return any(one is not None and math.isclose(one, budget, rel_tol=1e-9) for one in judged)


def interpolate(points: Sequence[Mapping[str, Any]], budget: float, key: str = "value") -> dict[str, float] | None:
    """Return the estimate at a budget between two of the points', on the line between them; None beyond their ends."""
    for left, right in pairwise(points):
        a, b = finite(left.get("budget")), finite(right.get("budget"))
        if a is None or b is None or not a <= budget <= b * (1 + 1e-9) or a == b:
            continue
        part, found = min((budget - a) / (b - a), 1.0), {}
        for end in ENDS:
            low, high = finite(left[key].get(end)), finite(right[key].get(end))
            if low is None or high is None:
                return None
            found[end] = low + part * (high - low)
        return found
    return None


def _judge_gain(numbers: Numbers, budget: float, value: Mapping[str, float] | None) -> dict[str, float] | None:
    """Return the value less that of the best mix of levels at the same spend; as uncertain as beside it.

    The best mix bends where it reaches a level, so it is computed at the spend itself, not on a line.
    """
    spend = interpolate(numbers["frontier"]["points"], budget, "spend")
    width = interpolate(numbers["targeting"]["points"], budget, "difference")
    mix = None if spend is None else value_best_mix(numbers["uniform"], spend["estimate"])
    if value is None or mix is None or width is None:
        return None
    gain = value["estimate"] - mix
    return {"estimate": gain, **{end: gain + width[end] - width["estimate"] for end in ("low", "high")}}


def value_best_mix(uniform: Sequence[Mapping[str, Any]], spend: float) -> float | None:
    """Return the largest value of a random mix of levels, the same for everybody, at an average spend.

    >>> levels = [{"spend": {"estimate": s}, "value": {"estimate": v}} for s, v in ((0, 1), (1, 2), (2, 4))]
    >>> value_best_mix(levels, 1.0), value_best_mix(levels, 3.0)
    (2.5, 4.0)
    """
    both = ((finite(row["spend"]["estimate"]), finite(row["value"]["estimate"])) for row in uniform)
    known = sorted((max(cost, 0.0), value) for cost, value in both if cost is not None and value is not None)
    within = [(cost, value) for cost, value in known if cost <= spend * (1 + 1e-12)]
    if not within:
        return known[0][1] if known else None
    best = max(value for _, value in within)
    for cost, value in within:
        for dear, more in known:
            if dear > spend * (1 + 1e-12):
                best = max(best, value + (more - value) * (spend - cost) / (dear - cost))
    return best
