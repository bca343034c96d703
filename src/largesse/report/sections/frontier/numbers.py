"""The frontier: value and spend of the best plan at each budget."""

from __future__ import annotations

from largesse.records import FrontierPoint, Log, Study
from largesse.report.formats import finite
from largesse.report.plain import plain_estimate
from largesse.report.section import Part, PlanStep
from largesse.report.stops import arrange_stops


def describe_frontier(_log: Log, study: Study) -> Part:
    """Return value and spend at each budget, the band for all budgets together, and what the model predicts."""
    return {"points": [_describe_point(point) for point in study.frontier]}


def _describe_point(point: FrontierPoint) -> Part:
    return {
        "budget": point.budget,
        "value": plain_estimate(point.value),
        "spend": plain_estimate(point.spend),
        "band": {"low": point.band[0], "high": point.band[1]},
        "promise": point.promise,
        "price": point.price,
        **({} if point.profit is None else {"profit": plain_estimate(point.profit)}),
    }


def describe_stops(step: PlanStep) -> Part:
    """Return the plans at other budgets and this one: what each costs and brings, its price, and the customers at each level."""
    stops = [
        {
            "budget": stop.budget,
            "spend": stop.spend,
            "value": stop.value,
            "price": finite(stop.price),
            "shares": (stop.counts[-1] / max(int(stop.counts[-1].sum()), 1)).tolist(),
            "counts": stop.counts[-1].tolist(),
            **({"own": True} if stop.own else {}),
            **({"pays": True} if stop.pays else {}),
        }
        for stop in arrange_stops(step)
    ]
    return {"stops": stops, **({"excuse": step.excuse} if step.excuse else {})}
