"""Fitted response models as steps: what `model._curves` computes, for targets that know no Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from largesse.errors import Problem, fail
from largesse.policy.export.networks import network_curves
from largesse.policy.export.values import (
    Value,
    affine,
    average,
    clip,
    constant,
    cumulate,
    exp,
    isotonic,
    join,
    larger,
    logit,
    pick,
    sigmoid,
    smaller,
    softmax,
)
from largesse.response import (
    IRE,
    SIRE,
    TILT_REACH,
    Additive,
    Boosting,
    Hurdle,
    Linear,
    Proportional,
    ResponseModel,
    Stack,
    Thresholds,
    WithCosts,
)

SCORE_CARD = "make a score card, which every database can run: policy.to_score_card(log)"


def write_curves(model: ResponseModel, X: Value) -> Value:
    """Return the curves (n, K) of a fitted model for encoded features (n, p); refuse a model that has no such form."""
    write = WRITERS.get(type(model))
    if write is None:
        got = f"{type(model).__name__} cannot be written as steps that a database or ONNX Runtime knows"
        fail("export", Problem(got, SCORE_CARD))
    return write(model, X)


def _write_linear(model: Any, X: Value) -> Value:
    fit = model.fit_
    score = affine(X, fit.coef[:, None], fit.intercept) + fit.level_effects
    return _times_amounts(_respond(score, fit.binary), model.amounts_, X)


def _write_additive(model: Any, X: Value) -> Value:
    """Return lines and hinges: the line that is taken off every hinge goes into the coefficient of its feature."""
    fit, shape = model.fit_, model.shape_
    coef, intercept, p = fit.coef, fit.intercept, X.width
    lines, bends = coef[:p].copy(), None
    if shape.scale and shape.hinges.knots.size:
        hinges = shape.hinges
        own = shape.scale * coef[p:].reshape(hinges.knots.shape)  # (m, q)
        np.subtract.at(lines, hinges.columns, (own * hinges.slope).sum(axis=0))
        intercept = intercept - float((own * hinges.intercept).sum())
        bent = pick(X, hinges.columns)
        bends = affine(join([larger(bent - knots, 0.0) for knots in hinges.knots]), own.reshape(-1, 1))
    base = affine(X, lines[:, None], intercept)
    score = (base if bends is None else base + bends) + fit.level_effects
    return _times_amounts(_respond(score, fit.binary), model.amounts_, X)


def _write_boosting(model: Any, X: Value) -> Value:
    trees = {"baseline": model.trees_.baseline, "trees": model.trees_.trees}
    return _respond(Value("trees", (X,), model.levels_, trees), model.binary_)


def _write_thresholds(model: Any, X: Value) -> Value:
    low, high = model.range_
    begins = softmax(affine(X, model.lines_.coef, model.lines_.intercept))
    reached = smaller(cumulate(pick(begins, range(model.levels_))), 1.0)
    return reached if (low, high) == (0.0, 1.0) else reached * (high - low) + low


def _write_proportional(model: Any, X: Value) -> Value:
    fit = model.fit_
    return exp(clip(affine(X, fit.coef[:, None]), fit.low, fit.high)) * fit.sizes


def _write_with_costs(model: Any, X: Value) -> Value:
    return write_curves(model.model_, X)


def _write_hurdle(model: Any, X: Value) -> Value:
    return _times_amounts(write_curves(model.chance_, X), model.amounts_, X)


def _write_stack(model: Any, X: Value) -> Value:
    link, whole = model.blend_.link, model.whole_
    members = {
        m: _mean_scores(model.members_[m] if whole[m] is None else [whole[m]], X, link) for m in model.blend_.used
    }
    return _times_amounts(_blend(model.blend_, members), model.amounts_, X)


def _write_network(model: Any, X: Value) -> Value:
    return _times_amounts(network_curves(model.fit_, X), model.amounts_, X)


# -- parts ----------------------------------------------------------------------------------------------------------------


def _respond(score: Value, binary: bool) -> Value:
    return sigmoid(score) if binary else score


def _mean_scores(models: Sequence[ResponseModel], X: Value, link: Any) -> Value:
    """Return the mean over models of their scores on the scale of a link."""
    total = constant(0.0)
    for model in models:
        curves = write_curves(model, X)
        score = logit(curves) if link.binary else curves / link.unit
        total = score if model is models[0] else total + score
    return total / float(len(models))


def _blend(blend: Any, members: dict[int, Value]) -> Value:
    """Return the curves of a blend from its members' scores (n, K)."""
    bases = {m: average(scores) for m, scores in members.items()}
    base = constant(0.0)
    for m, own in bases.items():
        base = base + own * float(blend.weights[m])
    out = base + blend.common
    if blend.tilt:
        along = clip((base - blend.middle) / blend.spread, -TILT_REACH, TILT_REACH) * float(blend.tilt)
        out = out + along * blend.lift
    for m in members:
        if blend.shares[m]:
            out = out + (members[m] - bases[m] - blend.centres[m]) * float(blend.shares[m])
    # A base and common increments, which never fall, need no second look.
    scores = isotonic(out) if blend.tilt or any(blend.shares[m] for m in members) else out
    return sigmoid(scores) if blend.link.binary else scores * blend.link.unit


def _times_amounts(curves: Value, amounts: Any, X: Value) -> Value:
    if amounts is None:
        return curves
    base: Value = constant(amounts.intercept)
    if amounts.model is not None:
        said = pick(write_curves(amounts.model, X), [0])
        base = clip(said, amounts.low, amounts.high) * amounts.slope + amounts.intercept
    return curves * exp(base + amounts.effects)


WRITERS: dict[type[ResponseModel], Callable[[Any, Value], Value]] = {
    Linear: _write_linear,
    Additive: _write_additive,
    Boosting: _write_boosting,
    Thresholds: _write_thresholds,
    Proportional: _write_proportional,
    WithCosts: _write_with_costs,
    Hurdle: _write_hurdle,
    Stack: _write_stack,
    SIRE: _write_network,
    IRE: _write_network,
}
