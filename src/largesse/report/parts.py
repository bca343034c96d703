"""The numbers of a run, as JSON types: one part per step of the run, and all parts joined for the page.

A part holds the facts of its step and, under each section's name, what that section takes from the step.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from largesse.levels import Levels
from largesse.records import Evaluation, Log, Study
from largesse.report.plain import plain_estimate, plain_finding, plain_profit, plain_reference, plain_response
from largesse.report.section import FitStep, Numbers, Part, PlanStep
from largesse.report.sections import SECTIONS
from largesse.version import __version__


@dataclass(frozen=True)
class Heading:
    """What a page says of its campaign: its title, the units of costs and response, the seed, and the day it was made."""

    title: str
    unit: str
    seed: int
    made: str = ""  # in words: 16 November 2026
    response_unit: str = ""


def describe_fit(step: FitStep) -> Part:
    """Return what was learnt: the model, the response and the levels."""
    levels = step.log.levels
    return {
        "model": {"name": step.model},
        "response": plain_response(step.log),
        "levels": [
            {"name": label, "cost": cost} for label, cost in zip(levels.titles, _list_costs(levels), strict=True)
        ],
        "on_redemption": bool(levels.on_redemption),
        "observed": levels.observed,
        "fingerprint": step.log.fingerprint,
        **({} if step.log.sample is None else {"sample": {"rows": len(step.log.seen), "of": len(step.log)}}),
        **{section.name: section.fit(step) for section in SECTIONS if section.fit},
    }


def describe_plan(step: PlanStep) -> Part:
    """Return what was planned: for how many customers, within which budget, and what the model expects of it."""
    plan = step.plan
    return {
        "customers": len(plan),
        "budget": {"average": _finite(plan.budget), "total": _finite(plan.budget * len(plan))},
        "planned": {"value": plan.value, "spend": plan.spend, "price": plan.price, "gap": plan.gap}
        | ({} if step.confidence is None else {"confidence": step.confidence}),
        **({"shadow": dict(step.shadow)} if step.shadow else {}),
        **({"exploration": dict(step.exploration)} if step.exploration else {}),
        **{section.name: section.plan(step) for section in SECTIONS if section.plan},
    }


def describe_study(log: Log, study: Study) -> Part:
    """Return what the plan will bring, estimated from the log: value, spend, comparisons and warnings."""
    found = study.evaluation
    return {
        "budget": _finite(found.budget),
        "log": _describe_log(found),
        "estimator": found.estimator,
        **_describe_totals(found),
        "promise": found.promise,
        "per_spend": plain_estimate(found.per_spend),
        "gain_per_spend": plain_estimate(found.gain_per_spend),
        **({} if found.profit is None else {"profit": plain_profit(found.profit, study.best)}),
        "versus": [plain_reference(reference) for reference in found.references],
        "uniform": [plain_reference(reference) for reference in found.uniform],
        "warnings": [plain_finding(finding) for finding in found.warnings],
        **{section.name: section.study(log, study) for section in SECTIONS if section.study},
    }


def join_parts(heading: Heading, fit: Numbers, plan: Numbers, evaluation: Numbers) -> Part:
    """Join the parts of all steps into the numbers of the page.

    What a section took from several steps is put together; of two facts of one name, the plan's stands.
    """
    joined: Part = {**asdict(heading), "version": __version__}
    for part in (evaluation, fit, plan):
        for key, value in part.items():
            both = isinstance(value, dict) and isinstance(joined.get(key), dict)
            joined[key] = {**joined[key], **value} if both else value
    return joined | {section.name: section.joint(joined) for section in SECTIONS if section.joint}


def _describe_log(found: Evaluation) -> Part:
    return {
        "rows": found.rows,
        "clusters": found.clusters,
        "propensity": found.propensity,
        "clipped": found.clipped,
        "clipped_weight": found.clipped_weight,
    }


def _describe_totals(found: Evaluation) -> Part:
    value, spend = found.value_interval, found.spend_interval
    return {
        "value": {"estimate": found.value, "low": value[0], "high": value[1], "se": found.value_se},
        "spend": {"estimate": found.spend, "low": spend[0], "high": spend[1], "se": found.spend_se},
    }


def _list_costs(levels: Levels) -> list[float | None]:
    """Return what each level costs; nothing where costs are each customer's own."""
    common = levels.common_costs
    return [None] * len(levels) if common is None else common.tolist()


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
