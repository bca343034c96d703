"""Everything the report shows, as one dict of plain numbers and words: records in, JSON out.

The dict is put together from three parts that a run folder keeps: what was learnt (`fit_part`), who gets what
(`plan_part`) and what it will bring (`evaluation_part`). `numbers` joins them; `words` finds the sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.levels import Levels
from largesse.records import Array, Choice, Estimate, FrontierPoint, Log, Overlap, Plan, Reference, Study
from largesse.report.formats import Units
from largesse.report.words import headline, spending, verdict
from largesse.version import __version__


def fit_part(
    name: str, choices: Sequence[Choice], log: Log, spread: tuple[Array, Array] | None = None
) -> dict[str, Any]:
    """Return what was learnt: the model, what else was tried, and between what ends (K,) its mean curve lies."""
    tried = [
        {"of": c.of, "name": c.name, "loss": c.loss, "difference": c.difference, "se": c.se, "chosen": c.chosen}
        for c in choices
    ]
    low, high = ([None] * len(log.levels),) * 2 if spread is None else (end.tolist() for end in spread)
    return {
        "model": {"name": name, "tried": tried, "low": low, "high": high},
        "response": {"name": log.response_name, "kind": "binary" if log.binary else "amount"},
        "levels": [
            {"name": label, "cost": cost}
            for label, cost in zip(log.levels.labels, _face_values(log.levels), strict=True)
        ],
        "on_redemption": log.levels.on_redemption,
        "fingerprint": log.fingerprint,
    }


def _face_values(levels: Levels) -> list[float | None]:
    common = levels.common_costs
    return [None] * len(levels) if common is None else common.tolist()


def plan_part(
    plan: Plan, curves: Array, costs: Array, labels: Sequence[str], who: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return who gets what and where the money goes; costs are the expected ones (n, K)."""
    rows, n = np.arange(len(plan)), len(plan)
    value, spend = curves[rows, plan.levels], costs[rows, plan.levels]
    extra, more = value - curves[:, 0], spend - costs[:, 0]
    total = float(spend.sum())
    money = []
    for k, label in enumerate(labels):
        here = plan.levels == k
        gained, paid = float(extra[here].sum()), float(spend[here].sum())
        money.append(
            {
                "name": label,
                "customers": int(here.sum()),
                "share": float(here.mean()),
                "spend": paid,
                "spend_share": paid / total if total > 0 else 0.0,
                "extra": gained,
                "cost_per_extra": float(more[here].sum()) / gained if gained > 0 and k > 0 else None,
            }
        )
    return {
        "customers": n,
        "budget": {"average": _finite(plan.budget), "total": _finite(plan.budget * n)},
        "planned": {"value": plan.value, "spend": plan.spend, "price": plan.price, "gap": plan.gap},
        "money": money,
        "who": who,
    }


def evaluation_part(log: Log, study: Study) -> dict[str, Any]:
    """Return what the plan will bring, judged from the log: the answer, the frontier, the curve, the log's checkup."""
    result, found, labels = study.evaluation, study.checkup, log.levels.labels
    return {
        "budget": _finite(result.budget),
        "log": {
            "rows": result.rows,
            "clusters": result.clusters,
            "propensity": result.propensity,
            "clipped": result.clipped,
            "clipped_weight": result.clipped_weight,
        },
        "value": {
            "estimate": result.value,
            "low": result.value_interval[0],
            "high": result.value_interval[1],
            "se": result.value_se,
        },
        "spend": {
            "estimate": result.spend,
            "low": result.spend_interval[0],
            "high": result.spend_interval[1],
            "se": result.spend_se,
        },
        "estimator": result.estimator,
        "promise": result.promise,
        "versus": [_reference(r) for r in result.references],
        "versus_uniform": [_reference(r) for r in result.uniform],
        "per_spend": _estimate(result.per_spend),
        "gain_per_spend": _estimate(result.gain_per_spend),
        "ways": [{"name": name, **_estimate(value)} for name, value in study.estimates.items()],
        "qini": {
            "area": _estimate(study.cost_curve.area),
            "points": [
                {"spend": p.spend, **_whiskers(p.gain), "uniform": p.uniform, "difference": _estimate(p.difference)}
                for p in study.cost_curve.points
            ],
        },
        "frontier": [_frontier_point(point) for point in study.frontier],
        "uniform": [
            {"name": every.name, "spend": every.spend.estimate, **_whiskers(every.value)} for every in result.uniform
        ],
        "curve": [
            {"name": every.name, **_whiskers(every.value), "model": float(own), "raw": raw.estimate}
            for every, own, raw in zip(result.uniform, study.mean_curve, found.raw, strict=True)
        ],
        **overlap_part(labels, found.overlap),
        "doctor": [{"about": f.topic, "answer": f.answer, "text": f.text} for f in found.findings],
        "warnings": [{"severity": finding.answer, "text": finding.text} for finding in result.warnings],
    }


def overlap_part(labels: Sequence[str], seen: Overlap) -> dict[str, Any]:
    """Return how well the log covers each level, and how alike the levels' customers are."""
    return {
        "overlap": [
            {
                "name": label,
                "rows": int(r),
                "effective": float(e),
                "smallest": float(s),
                "verdict": answer,
            }
            for label, r, e, s, answer in zip(
                labels, seen.rows, seen.effective, seen.smallest, seen.answers, strict=True
            )
        ],
        "propensities": {"edges": seen.edges.tolist(), "counts": seen.counts.tolist()},
        "balance": [
            {
                "feature": name,
                "before": float(b),
                "after": float(a),
                "levels_before": levels_before.tolist(),
                "levels_after": levels_after.tolist(),
            }
            for name, b, a, levels_before, levels_after in zip(
                seen.features, seen.before, seen.after, *seen.by_level, strict=True
            )
        ],
    }


def _reference(reference: Reference) -> dict[str, Any]:
    return {
        "name": reference.name,
        "detail": reference.detail,
        "value": _estimate(reference.value),
        "spend": _estimate(reference.spend),
        "difference": _estimate(reference.difference),
    }


def _frontier_point(point: FrontierPoint) -> dict[str, Any]:
    return {
        "budget": point.budget,
        "spend": point.spend.estimate,
        "spend_low": point.spend.low,
        "spend_high": point.spend.high,
        **_whiskers(point.value),
        "band_low": point.band[0],
        "band_high": point.band[1],
        "promise": point.promise,
        "price": point.price,
    }


def _whiskers(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.estimate, "low": estimate.low, "high": estimate.high}


def _estimate(estimate: Estimate | None) -> dict[str, float]:
    if estimate is None:
        estimate = Estimate(*[math.nan] * 4)
    return {"estimate": estimate.estimate, "low": estimate.low, "high": estimate.high, "se": estimate.se}


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


@dataclass(frozen=True)
class Heading:
    """What a page says of its campaign: its title, the unit of money and the seed."""

    title: str
    unit: str
    seed: int


def numbers(heading: Heading, fit: dict[str, Any], plan: dict[str, Any], evaluation: dict[str, Any]) -> dict[str, Any]:
    """Join the three parts into the dict that the page is made from."""
    units = Units(fit["response"]["kind"], heading.unit)
    return {
        "title": heading.title,
        "unit": heading.unit,
        "version": __version__,
        "seed": heading.seed,
        **fit,
        "customers": plan["customers"],
        "budget": plan["budget"],
        "money": plan["money"],
        "who": plan["who"],
        **{key: evaluation[key] for key in ("log", "frontier", "uniform", "overlap", "propensities", "balance")},
        "curve": [
            {**row, "model_low": low, "model_high": high}
            for row, low, high in zip(evaluation["curve"], fit["model"]["low"], fit["model"]["high"], strict=True)
        ],
        # A folder judged by an older version has none of these.
        "estimator": evaluation.get("estimator", "dr"),
        **{key: evaluation.get(key) for key in ("qini", "doctor", "ways", "versus_uniform")},
        "answer": {
            "headline": headline(units, fit["response"]["name"], plan, evaluation),
            "verdict": verdict(units, evaluation),
            "value": evaluation["value"],
            "spend": evaluation["spend"],
            "promise": evaluation["promise"],
            "price": plan["planned"]["price"],
            "gain_per_spend": evaluation.get("gain_per_spend"),
            "versus": evaluation["versus"],
        },
        "warnings": [*spending(units, plan, evaluation), *evaluation["warnings"]],
    }
