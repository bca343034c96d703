"""Compiler of encoders, fitted models and the decision into the expression graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from largesse.allocation import TIE
from largesse.data import CYCLES, SECONDS_PER_DAY, Encoder
from largesse.errors import Problem, fail
from largesse.policy.export.expression_graph import (
    Value,
    affine,
    clip,
    columns_of,
    constant,
    cumulate,
    exp,
    isotonic,
    join,
    larger,
    largest,
    log,
    logit,
    mean_columns,
    pick,
    sigmoid,
    smaller,
    softmax,
    take,
    where_less,
)
from largesse.records import Array, CellCondition
from largesse.response import (
    CONCAVE_EDGE,
    IRE,
    SIRE,
    TILT_REACH,
    TINY_PROBABILITY,
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

OUTPUT = ("level", "level_number", "expected_response", "expected_cost")
FEATURE_SOURCES = {"text": "text", "date": "seconds"}  # kinds of features that are not numbers
MAX_COST = float(np.finfo(np.float64).max)
USE_TREE = "make a policy tree, which every database can run: policy.to_tree(log)"


# -- the decision --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DecisionGraph:
    """Outputs of an exported policy for each customer, and its inputs besides the features."""

    level: Value  # (n, 1) a whole number
    response: Value  # (n, 1) expected at that level
    cost: Value  # (n, 1) expected at that level
    curves: Value  # (n, K)
    costs: Value  # (n, K)
    own_costs: tuple[Value, ...]  # cost columns of the table; a customer without a cost gets no level
    labels: tuple[str, ...]


def compile_policy(policy: Any, price: float) -> DecisionGraph:
    """Return the graph of a policy's decision at a price."""
    X = compile_features(policy.model.encoder_)
    curves = compile_curves(policy.model, X)
    columns = tuple(number(name) for name in policy.levels.cost_columns or ())
    costs = _compile_costs(policy, curves, X, columns)
    level = _decide(curves, costs, price, _compile_barred(policy))
    chosen = take(curves, level), take(costs, level)
    return DecisionGraph(level, *chosen, curves, costs, columns, policy.levels.labels)


def _compile_costs(policy: Any, curves: Value, X: Value, columns: tuple[Value, ...]) -> Value:
    """Return expected costs (n, K): `allocation.expected_costs` times the policy's scale."""
    levels = policy.levels
    if isinstance(policy.model, WithCosts):
        face = larger(compile_curves(policy.model.costs_, X), 0.0)
    elif columns:
        face = join(columns)
    else:
        face = constant(np.asarray(levels.common_costs))
    paid = face * larger(curves, 0.0) if levels.on_redemption else face
    if levels.contact_cost:
        paid = paid + np.where(np.arange(len(levels)) > 0, levels.contact_cost, 0.0)
    return paid if policy.scale == 1.0 else paid * policy.scale


def _compile_barred(policy: Any) -> Value | None:
    """Return the levels (n, K) that customers may not get, as ones; None if no level is barred."""
    cells, kinds = policy.options.cells.cells, policy.model.encoder_.kinds
    if not cells:
        return None
    barred: list[Value | None] = [None] * len(policy.levels)
    inside = constant(0.0)
    for cell in cells:
        conditions = [_compile_condition(condition, kinds[condition.feature]) for condition in cell.conditions]
        inside = reduce(lambda left, right: left * right, conditions)
        for level in cell.levels:
            known = barred[level]
            barred[level] = inside if known is None else larger(known, inside)
    barred[0] = None  # the cheapest is never barred
    return join([inside * 0.0 if part is None else part for part in barred])


def _compile_condition(condition: CellCondition, kind: str) -> Value:
    """Return one for customers who meet a condition, and zero for all others."""
    source = (
        number(condition.feature)
        if kind == "number"
        else Value(FEATURE_SOURCES[kind], (), 1, {"name": condition.feature})
    )
    return Value("inside", (source,), 1, {"condition": condition})


def _decide(curves: Value, costs: Value, price: float, barred: Value | None) -> Value:
    """Return the best level (n, 1) at a price, the cheapest of ties, as `allocation.decide_at_price` does."""
    charge = _charge(costs, price)
    worth = curves - charge
    if barred is not None:
        worth = where_less(0.5, barred, -MAX_COST, worth)
    size = largest(larger(curves, constant(0.0) - curves))
    enough = largest(worth) - (size + largest(charge)) * TIE
    # A level below the best worth gets a prohibitive cost.
    paid = columns_of(where_less(worth, enough, MAX_COST, costs))
    level, cost = constant(0.0), paid[0]
    for k, level_cost in enumerate(paid[1:], start=1):
        level, cost = where_less(level_cost, cost, float(k), level), smaller(cost, level_cost)
    return level


def _charge(costs: Value, price: float) -> Value:
    """Return price × costs, folded if costs are constant."""
    if costs.step == "constant":
        row: Array = price * costs.facts["row"]
        return constant(row)
    return costs * price


# -- features ------------------------------------------------------------------------------------------------------------


def compile_features(encoder: Encoder) -> Value:
    """Return the encoded features (n, p)."""
    blocks = [block for column in encoder.columns for block in _encode(column) if block.width]
    return join(blocks) if blocks else Value("constant", (), 0, {"row": constant(0.0).facts["row"][:0]})


def number(name: str) -> Value:
    """Return a raw column of numbers."""
    return Value("number", (), 1, {"name": name})


def _encode(column: Any) -> list[Value]:
    """Return the encoded columns of a feature."""
    name, width = column.name, len(column.names)
    if column.encoding in ("words", "means"):
        text = Value("text", (), 1, {"name": name})
        return [Value(column.encoding, (text,), width, {"column": column})]
    scale = column.scale
    if column.encoding == "number":
        return [Value("scaled", (number(name),), width, {"scale": scale, "unit": 1.0})]
    seconds = Value("seconds", (), 1, {"name": name})
    day = Value("scaled", (seconds,), len(scale.names(name)), {"scale": scale, "unit": SECONDS_PER_DAY})
    waves = [
        Value("wave", (seconds,), 1, {"per_second": 2 * math.pi / (CYCLES[cycle] * SECONDS_PER_DAY), "wave": wave})
        for cycle in column.cycles
        for wave in ("sin", "cos")
    ]
    return [day, *waves]


# -- models --------------------------------------------------------------------------------------------------------------


def compile_curves(model: ResponseModel, X: Value) -> Value:
    """Return the curves (n, K) of a fitted model for encoded features (n, p); refuse a model that cannot be exported."""
    compile_model = COMPILERS.get(type(model))
    if compile_model is None:
        got = f"{type(model).__name__} cannot be written as steps that a database or ONNX Runtime knows"
        fail("export", Problem(got, USE_TREE))
    return compile_model(model, X)


def _compile_linear(model: Any, X: Value) -> Value:
    fit = model.fit_
    score = affine(X, fit.coef[:, None], fit.intercept) + fit.level_effects
    return _times_amounts(_respond(score, fit.binary), model.amounts_, X)


def _compile_additive(model: Any, X: Value) -> Value:
    """Return lines and hinges; the line subtracted from every hinge goes into the coefficient of its feature."""
    fit, shape = model.fit_, model.shape_
    coef, intercept, p = fit.coef, fit.intercept, X.width
    lines, bends = coef[:p].copy(), None
    if shape.scale and shape.hinges.knots.size:
        hinges = shape.hinges
        weights = shape.scale * coef[p:].reshape(hinges.knots.shape)  # (m, q)
        np.subtract.at(lines, hinges.columns, (weights * hinges.slope).sum(axis=0))
        intercept = intercept - float((weights * hinges.intercept).sum())
        bent = pick(X, hinges.columns)
        bends = affine(join([larger(bent - knots, 0.0) for knots in hinges.knots]), weights.reshape(-1, 1))
    base = affine(X, lines[:, None], intercept)
    score = (base if bends is None else base + bends) + fit.level_effects
    return _times_amounts(_respond(score, fit.binary), model.amounts_, X)


def _compile_boosting(model: Any, X: Value) -> Value:
    trees = {"baseline": model.trees_.baseline, "trees": model.trees_.trees}
    return _respond(Value("trees", (X,), model.levels_, trees), model.binary_)


def _compile_thresholds(model: Any, X: Value) -> Value:
    low, high = model.range_
    begins = softmax(affine(X, model.lines_.coef, model.lines_.intercept))
    begins = where_less(begins, TINY_PROBABILITY, 0.0, begins)  # exponentials underflow at different numbers
    reached = smaller(cumulate(pick(begins, range(model.levels_))), 1.0)
    return reached if (low, high) == (0.0, 1.0) else reached * (high - low) + low


def _compile_proportional(model: Any, X: Value) -> Value:
    fit = model.fit_
    return exp(clip(affine(X, fit.coef[:, None]), fit.low, fit.high)) * fit.sizes


def _compile_with_costs(model: Any, X: Value) -> Value:
    return compile_curves(model.model_, X)


def _compile_hurdle(model: Any, X: Value) -> Value:
    return _times_amounts(compile_curves(model.chance_, X), model.amounts_, X)


def _compile_stack(model: Any, X: Value) -> Value:
    link, whole = model.blend_.link, model.whole_
    members = {
        m: _mean_scores(model.members_[m] if whole[m] is None else [whole[m]], X, link)
        for m in model.blend_.used_models
    }
    return _times_amounts(_blend(model.blend_, members), model.amounts_, X)


def _compile_network(model: Any, X: Value) -> Value:
    curves = compile_networks(model.fit_, X)
    return _times_amounts(Value("network", (curves,), curves.width), model.amounts_, X)


# -- parts ----------------------------------------------------------------------------------------------------------------


def _respond(score: Value, binary: bool) -> Value:
    return sigmoid(score) if binary else score


def _mean_scores(models: Sequence[ResponseModel], X: Value, link: Any) -> Value:
    """Return the mean over models of their scores on the scale of a link."""
    total = constant(0.0)
    for model in models:
        curves = compile_curves(model, X)
        score = logit(curves) if link.binary else curves / link.unit
        total = score if model is models[0] else total + score
    return total / float(len(models))


def _blend(blend: Any, members: dict[int, Value]) -> Value:
    """Return the curves of a blend from its members' scores (n, K)."""
    bases = {m: mean_columns(scores) for m, scores in members.items()}
    base = constant(0.0)
    for m, base_m in bases.items():
        base = base + base_m * float(blend.weights[m])
    out = base + blend.common
    if blend.tilt:
        along = clip((base - blend.middle) / blend.spread, -TILT_REACH, TILT_REACH) * float(blend.tilt)
        out = out + along * blend.lift
    for m in members:
        if blend.shares[m]:
            out = out + (members[m] - bases[m] - blend.centres[m]) * float(blend.shares[m])
    # A base with common increments never falls.
    scores = isotonic(out) if blend.tilt or any(blend.shares[m] for m in members) else out
    return sigmoid(scores) if blend.link.binary else scores * blend.link.unit


def _times_amounts(curves: Value, amounts: Any, X: Value) -> Value:
    if amounts is None:
        return curves
    base: Value = constant(amounts.intercept)
    if amounts.model is not None:
        score = pick(compile_curves(amounts.model, X), [0])
        base = clip(score, amounts.low, amounts.high) * amounts.slope + amounts.intercept
    return curves * exp(base + amounts.effects)


COMPILERS: dict[type[ResponseModel], Callable[[Any, Value], Value]] = {
    Linear: _compile_linear,
    Additive: _compile_additive,
    Boosting: _compile_boosting,
    Thresholds: _compile_thresholds,
    Proportional: _compile_proportional,
    WithCosts: _compile_with_costs,
    Hurdle: _compile_hurdle,
    Stack: _compile_stack,
    SIRE: _compile_network,
    IRE: _compile_network,
}


# -- networks: they compute in float32, these steps in float64 ------------------------------------------------------------


def compile_networks(fit: Any, X: Value) -> Value:
    """Return the curves (n, K) of `FoldNetworks`: the mean score of all networks, calibrated, as responses."""
    models = [{name: np.asarray(array[m]) for name, array in fit.params.items()} for m in range(len(fit.gate))]
    hidden = [_represent(fit.shape, params, X) for params in models]
    scores = [
        _scores(fit.shape, params, z, X, float(gate)) for params, z, gate in zip(models, hidden, fit.gate, strict=True)
    ]
    concave = fit.shape.head == "concave" and fit.shape.bounded
    mean = _mean([sigmoid(score) for score in scores] if concave else scores)
    if concave:
        mean = log(mean) - log(constant(1.0) - mean)
    slope, middle = fit.calibration.slope, fit.calibration.middle
    if slope != 1.0:
        mean = mean + (mean_columns(mean) - middle) * (slope - 1.0)
    curves = sigmoid(mean) if fit.scale.bounded else mean * fit.scale.deviation + fit.scale.mean
    if fit.correction is None:
        return curves
    moved = curves + _correction(fit.correction, hidden[: fit.folds], curves.width)
    return isotonic(clip(moved, 0.0, 1.0) if fit.scale.bounded else moved)


def _mean(parts: list[Value]) -> Value:
    total = parts[0]
    for term in parts[1:]:
        total = total + term
    return total / float(len(parts))


def _represent(shape: Any, params: dict[str, Any], X: Value) -> Value:
    z = X
    for j in range(shape.depth):
        score = affine(z, params[f"w{j}"], params[f"b{j}"])
        z = _elu(score) if shape.activation == "elu" else larger(score, 0.0)
    return z


def _scores(shape: Any, params: dict[str, Any], z: Value, X: Value, gate: float) -> Value:
    """Return scores (n, K) of representations; see `response.networks.layers` for the heads."""
    head, K = shape.head, shape.levels
    base = affine(X, params["skip"][:, None]) if shape.skip else constant(0.0)
    if head == "minmax":
        return _minmax(params, z, K) + base
    out = affine(z, params["head_w"], params["head_b"])
    if head == "free":
        return out + base
    if head == "cdf":
        return _cdf(out, K) + base
    if head == "concave" and shape.bounded:
        return _concave_logits(join([pick(out, range(K)), pick(out, [K]) - base]), K)
    first = pick(out, [0]) + base
    if K == 1:
        return first
    steps = _increments(head, params, pick(out, range(1, K)) * gate if head != "elastic" else pick(out, [1]) * gate, K)
    return join([first, cumulate(steps) + first])


def _increments(head: str, params: dict[str, Any], deviation: Value, K: int) -> Value:
    if head == "shrunk":
        return _softplus(deviation + np.asarray(params["steps"], dtype=np.float64))
    if head == "elastic":
        common = np.logaddexp(0.0, np.asarray(params["steps"], dtype=np.float64))
        return exp(clip(deviation, -5.0, 5.0)) * common
    steps = _softplus(deviation)
    if head != "concave":
        return steps
    backwards = range(K - 2, -1, -1)
    return pick(cumulate(pick(steps, backwards)), backwards)


def _cdf(out: Value, K: int) -> Value:
    """Return the logit of P(threshold ≤ k) from K+1 logits."""
    mass = softmax(out)
    below = cumulate(pick(mass, range(K)))
    backwards = pick(mass, range(K, 0, -1))
    above = pick(cumulate(backwards), range(K - 1, -1, -1))
    return log(below) - log(above)


def _concave_logits(out: Value, K: int) -> Value:
    mass = softmax(out)
    curve = pick(mass, [0])
    if K > 1:
        spread = pick(mass, range(1, K)) / np.arange(1.0, K)
        backwards = range(K - 2, -1, -1)
        steps = pick(cumulate(pick(spread, backwards)), backwards)
        curve = join([curve, cumulate(steps) + curve])
    inside = curve * (1 - 2 * CONCAVE_EDGE) + CONCAVE_EDGE
    return log(inside) - log(constant(1.0) - inside)


def _minmax(params: dict[str, Any], z: Value, K: int) -> Value:
    hidden = affine(z, params["head_w"], params["head_b"])
    step, out = np.abs(params["level_w"]).astype(np.float64), np.abs(params["out_w"])[:, None]
    scores = [affine(_elu(hidden + (k + 1) * step), out, float(params["out_b"])) for k in range(K)]
    return join(scores)


def _correction(correction: Any, hidden: list[Value], K: int) -> Value:
    """Return the correction of curves by the second stage."""
    if len(hidden) != len(correction.coef):
        fail("export", Problem("the second stage does not fit the networks", "fit the model again"))
    level = np.arange(K) - (K - 1) / 2
    level = level / max(float(np.sqrt((level**2).mean())), 1e-9)
    parts = []
    for z, coef, centre, scale in zip(hidden, correction.coef, correction.centre, correction.scale, strict=True):
        width = z.width
        constants, lines, slopes = coef[:K], coef[K : K + width], coef[K + width :]
        weights, bias = np.zeros((width, K)), constants.astype(np.float64)
        for coefficients, direction in ((lines, np.ones(K)), (slopes, level)):
            if len(coefficients):
                weights = weights + (coefficients / scale)[:, None] * direction
                bias = bias - float((coefficients / scale) @ centre) * direction
        parts.append(affine(z, weights, bias))
    return _mean(parts)


def _elu(value: Value) -> Value:
    # Above zero the second term vanishes.
    return larger(value, 0.0) + (exp(smaller(value, 0.0)) - 1.0)


def _softplus(value: Value) -> Value:
    size = larger(value, constant(0.0) - value)
    return larger(value, 0.0) + log(exp(constant(0.0) - size) + 1.0)
