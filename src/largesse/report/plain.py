"""Records as JSON types. An estimate is always written as estimate, low, high and se."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from largesse.records import BestBudget, Estimate, Finding, Log, Profit, Reference


def plain_estimate(estimate: Estimate | None) -> dict[str, float]:
    """Return an estimate as a dict; one that is missing has no numbers."""
    if estimate is None:
        estimate = Estimate(*[math.nan] * 4)
    return {"estimate": estimate.estimate, "low": estimate.low, "high": estimate.high, "se": estimate.se}


def plain_reference(reference: Reference) -> dict[str, Any]:
    """Return a comparison as a dict."""
    return {
        "name": reference.name,
        "detail": reference.detail,
        "value": plain_estimate(reference.value),
        "spend": plain_estimate(reference.spend),
        "difference": plain_estimate(reference.difference),
        **({} if reference.profit is None else {"profit": plain_estimate(reference.profit)}),
        **(
            {}
            if reference.profit_difference is None
            else {"profit_difference": plain_estimate(reference.profit_difference)}
        ),
    }


def plain_profit(profit: Profit, best: BestBudget | None) -> dict[str, Any]:
    """Return what is left after costs as a dict, with the budget that leaves most."""
    return {
        "response_value": profit.response_value,
        "own": plain_estimate(profit.own),
        "gain": plain_estimate(profit.gain),
        "returned": plain_estimate(profit.returned),
        **({} if best is None else {"best": {**asdict(best), "profit": plain_estimate(best.profit)}}),
    }


def plain_finding(finding: Finding) -> dict[str, str]:
    """Return a finding as a dict."""
    return {"topic": finding.topic, "answer": finding.answer, "text": finding.text}


def plain_response(log: Log) -> dict[str, str]:
    """Return the name of a log's response, and whether it is yes or no or an amount."""
    return {"name": log.response_name, "kind": "binary" if log.binary else "amount"}
