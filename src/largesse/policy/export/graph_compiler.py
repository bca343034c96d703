"""Compiler of a policy (feature encoder, response model and shadow price) into an expression graph."""

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
    cumulate_columns,
    exp,
    find_row_maximum,
    isotonic,
    join_columns,
    larger,
    log,
    logit,
    make_constant,
    mean_columns,
    pick_columns,
    sigmoid,
    smaller,
    softmax,
    split_columns,
    take_indexed_column,
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
    """Expression graph of a policy: the level, expected response and expected cost of each customer."""

    level: Value  # (n, 1) a whole number
    response: Value  # (n, 1) expected at that level
    cost: Value  # (n, 1) expected at that level
    curves: Value  # (n, K)
    costs: Value  # (n, K)
    own_costs: tuple[Value, ...]  # cost columns of the table; a customer without a cost gets no level
    labels: tuple[str, ...]


def compile_policy(policy: Any, price: float) -> DecisionGraph:
    """Compile a policy at a shadow price into an expression graph that decides each customer's level."""
    X = compile_features(policy.model.encoder_)
    curves = compile_response_curves(policy.model, X)
    columns = tuple(read_number_column(name) for name in policy.levels.cost_columns or ())
    costs = _compile_costs(policy, curves, X, columns)
    level = _compile_decision(curves, costs, price, _compile_barred_levels(policy))
    chosen = take_indexed_column(curves, level), take_indexed_column(costs, level)
    return DecisionGraph(level, *chosen, curves, costs, columns, policy.levels.labels)


def _compile_costs(policy: Any, curves: Value, X: Value, columns: tuple[Value, ...]) -> Value:
    """Compile the expected costs (n, K) of customers, multiplied by the policy's cost correction."""
    levels = policy.levels
    if isinstance(policy.model, WithCosts):
        face = larger(compile_response_curves(policy.model.costs_, X), 0.0)
    elif columns:
        face = join_columns(columns)
    else:
        face = make_constant(np.asarray(levels.common_costs))
    paid = face * larger(curves, 0.0) if levels.on_redemption else face
    if levels.contact_cost:
        paid = paid + np.where(np.arange(len(levels)) > 0, levels.contact_cost, 0.0)
    return paid if policy.scale == 1.0 else paid * policy.scale


def _compile_barred_levels(policy: Any) -> Value | None:
    """Compile a mask (n, K) with ones at the levels that a customer may not get; None if no level is barred."""
    cells, kinds = policy.options.cells.cells, policy.model.encoder_.kinds
    if not cells:
        return None
    barred: list[Value | None] = [None] * len(policy.levels)
    inside = make_constant(0.0)
    for cell in cells:
        conditions = [_compile_condition(condition, kinds[condition.feature]) for condition in cell.conditions]
        inside = reduce(lambda left, right: left * right, conditions)
        for level in cell.levels:
            known = barred[level]
            barred[level] = inside if known is None else larger(known, inside)
    barred[0] = None  # the cheapest is never barred
    return join_columns([inside * 0.0 if part is None else part for part in barred])


def _compile_condition(condition: CellCondition, kind: str) -> Value:
    """Compile a feature condition into a column with 1 for customers who meet the condition, and 0 for others."""
    source = (
        read_number_column(condition.feature)
        if kind == "number"
        else Value(FEATURE_SOURCES[kind], (), 1, {"name": condition.feature})
    )
    return Value("inside", (source,), 1, {"condition": condition})


def _compile_decision(curves: Value, costs: Value, price: float, barred: Value | None) -> Value:
    """Compile the choice of the best level (n, 1) at a shadow price, the cheapest one if levels tie.

    The rule is that of `allocation.decide_at_price`.
    """
    charge = _multiply_by_price(costs, price)
    worth = curves - charge
    if barred is not None:
        worth = where_less(0.5, barred, -MAX_COST, worth)
    size = find_row_maximum(larger(curves, make_constant(0.0) - curves))
    enough = find_row_maximum(worth) - (size + find_row_maximum(charge)) * TIE
    # A level below the best worth gets a prohibitive cost.
    paid = split_columns(where_less(worth, enough, MAX_COST, costs))
    level, cost = make_constant(0.0), paid[0]
    for k, level_cost in enumerate(paid[1:], start=1):
        level, cost = where_less(level_cost, cost, float(k), level), smaller(cost, level_cost)
    return level


def _multiply_by_price(costs: Value, price: float) -> Value:
    """Multiply costs by the shadow price; constant costs stay a constant of the graph."""
    if costs.step == "constant":
        row: Array = price * costs.facts["row"]
        return make_constant(row)
    return costs * price


# -- features ------------------------------------------------------------------------------------------------------------


def compile_features(encoder: Encoder) -> Value:
    """Compile a feature encoder into the encoded features (n, p)."""
    blocks = [block for column in encoder.columns for block in _compile_feature(column) if block.width]
    return join_columns(blocks) if blocks else Value("constant", (), 0, {"row": make_constant(0.0).facts["row"][:0]})


def read_number_column(name: str) -> Value:
    """Return the graph node that reads a numeric column of the customer table."""
    return Value("number", (), 1, {"name": name})


def _compile_feature(column: Any) -> list[Value]:
    """Compile the encoding of one feature into its encoded columns."""
    name, width = column.name, len(column.names)
    if column.encoding in ("words", "means"):
        text = Value("text", (), 1, {"name": name})
        return [Value(column.encoding, (text,), width, {"column": column})]
    scale = column.scale
    if column.encoding == "number":
        return [Value("scaled", (read_number_column(name),), width, {"scale": scale, "unit": 1.0})]
    seconds = Value("seconds", (), 1, {"name": name})
    day = Value("scaled", (seconds,), len(scale.names(name)), {"scale": scale, "unit": SECONDS_PER_DAY})
    waves = [
        Value("wave", (seconds,), 1, {"per_second": 2 * math.pi / (CYCLES[cycle] * SECONDS_PER_DAY), "wave": wave})
        for cycle in column.cycles
        for wave in ("sin", "cos")
    ]
    return [day, *waves]


# -- models --------------------------------------------------------------------------------------------------------------


def compile_response_curves(model: ResponseModel, X: Value) -> Value:
    """Compile a fitted model into response curves (n, K); refuse a model that cannot be exported."""
    compile_model = COMPILERS.get(type(model))
    if compile_model is None:
        got = f"{type(model).__name__} cannot be written as steps that a database or ONNX Runtime knows"
        fail("export", Problem(got, USE_TREE))
    return compile_model(model, X)


def _compile_linear(model: Any, X: Value) -> Value:
    fit = model.fit_
    score = affine(X, fit.coef[:, None], fit.intercept) + fit.level_effects
    return _multiply_by_amounts(_apply_inverse_link(score, fit.binary), model.amounts_, X)


def _compile_additive(model: Any, X: Value) -> Value:
    """Compile an additive model: the sum of lines and hinge functions of the features.

    The line subtracted from every hinge goes into the coefficient of its feature.
    """
    fit, shape = model.fit_, model.shape_
    coef, intercept, p = fit.coef, fit.intercept, X.width
    lines, bends = coef[:p].copy(), None
    if shape.scale and shape.hinges.knots.size:
        hinges = shape.hinges
        weights = shape.scale * coef[p:].reshape(hinges.knots.shape)  # (m, q)
        np.subtract.at(lines, hinges.columns, (weights * hinges.slope).sum(axis=0))
        intercept = intercept - float((weights * hinges.intercept).sum())
        bent = pick_columns(X, hinges.columns)
        bends = affine(join_columns([larger(bent - knots, 0.0) for knots in hinges.knots]), weights.reshape(-1, 1))
    base = affine(X, lines[:, None], intercept)
    score = (base if bends is None else base + bends) + fit.level_effects
    return _multiply_by_amounts(_apply_inverse_link(score, fit.binary), model.amounts_, X)


def _compile_boosting(model: Any, X: Value) -> Value:
    trees = {"baseline": model.trees_.baseline, "trees": model.trees_.trees}
    return _apply_inverse_link(Value("trees", (X,), model.levels_, trees), model.binary_)


def _compile_thresholds(model: Any, X: Value) -> Value:
    low, high = model.range_
    begins = softmax(affine(X, model.lines_.coef, model.lines_.intercept))
    begins = where_less(begins, TINY_PROBABILITY, 0.0, begins)  # exponentials underflow at different numbers
    reached = smaller(cumulate_columns(pick_columns(begins, range(model.levels_))), 1.0)
    return reached if (low, high) == (0.0, 1.0) else reached * (high - low) + low


def _compile_proportional(model: Any, X: Value) -> Value:
    fit = model.fit_
    return exp(clip(affine(X, fit.coef[:, None]), fit.low, fit.high)) * fit.sizes


def _compile_with_costs(model: Any, X: Value) -> Value:
    return compile_response_curves(model.model_, X)


def _compile_hurdle(model: Any, X: Value) -> Value:
    return _multiply_by_amounts(compile_response_curves(model.chance_, X), model.amounts_, X)


def _compile_stack(model: Any, X: Value) -> Value:
    link, whole = model.blend_.link, model.whole_
    members = {
        m: _average_model_scores(model.members_[m] if whole[m] is None else [whole[m]], X, link)
        for m in model.blend_.used_models
    }
    return _multiply_by_amounts(_compile_blend(model.blend_, members), model.amounts_, X)


def _compile_network(model: Any, X: Value) -> Value:
    curves = compile_networks(model.fit_, X)
    return _multiply_by_amounts(Value("network", (curves,), curves.width), model.amounts_, X)


# -- parts ----------------------------------------------------------------------------------------------------------------


def _apply_inverse_link(score: Value, binary: bool) -> Value:
    return sigmoid(score) if binary else score


def _average_model_scores(models: Sequence[ResponseModel], X: Value, link: Any) -> Value:
    """Average the predictions of several models on the scale of a link function."""
    total = make_constant(0.0)
    for model in models:
        curves = compile_response_curves(model, X)
        score = logit(curves) if link.binary else curves / link.unit
        total = score if model is models[0] else total + score
    return total / float(len(models))


def _compile_blend(blend: Any, members: dict[int, Value]) -> Value:
    """Compile the weighted blend of stacked models from the scores (n, K) of each model."""
    bases = {m: mean_columns(scores) for m, scores in members.items()}
    base = make_constant(0.0)
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


def _multiply_by_amounts(curves: Value, amounts: Any, X: Value) -> Value:
    if amounts is None:
        return curves
    base: Value = make_constant(amounts.intercept)
    if amounts.model is not None:
        score = pick_columns(compile_response_curves(amounts.model, X), [0])
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
    """Compile an ensemble of neural networks (`FoldNetworkEnsemble`) into calibrated response curves (n, K)."""
    models = [{name: np.asarray(array[m]) for name, array in fit.params.items()} for m in range(len(fit.gate))]
    hidden = [_compile_representation(fit.shape, params, X) for params in models]
    scores = [
        _compile_head_scores(fit.shape, params, z, X, float(gate))
        for params, z, gate in zip(models, hidden, fit.gate, strict=True)
    ]
    concave = fit.shape.head == "concave" and fit.shape.bounded
    mean = _average_values([sigmoid(score) for score in scores] if concave else scores)
    if concave:
        mean = log(mean) - log(make_constant(1.0) - mean)
    slope, middle = fit.calibration.slope, fit.calibration.middle
    if slope != 1.0:
        mean = mean + (mean_columns(mean) - middle) * (slope - 1.0)
    curves = sigmoid(mean) if fit.scale.bounded else mean * fit.scale.deviation + fit.scale.mean
    if fit.correction is None:
        return curves
    moved = curves + _compile_correction(fit.correction, hidden[: fit.folds], curves.width)
    return isotonic(clip(moved, 0.0, 1.0) if fit.scale.bounded else moved)


def _average_values(parts: list[Value]) -> Value:
    total = parts[0]
    for term in parts[1:]:
        total = total + term
    return total / float(len(parts))


def _compile_representation(shape: Any, params: dict[str, Any], X: Value) -> Value:
    z = X
    for j in range(shape.depth):
        score = affine(z, params[f"w{j}"], params[f"b{j}"])
        z = _elu(score) if shape.activation == "elu" else larger(score, 0.0)
    return z


def _compile_head_scores(shape: Any, params: dict[str, Any], z: Value, X: Value, gate: float) -> Value:
    """Compile a network's output layer into scores (n, K) of the levels.

    `response.networks.layers` defines the kinds of output layers.
    """
    head, K = shape.head, shape.levels
    base = affine(X, params["skip"][:, None]) if shape.skip else make_constant(0.0)
    if head == "minmax":
        return _compile_minmax_scores(params, z, K) + base
    out = affine(z, params["head_w"], params["head_b"])
    if head == "free":
        return out + base
    if head == "cdf":
        return _compile_cdf_logits(out, K) + base
    if head == "concave" and shape.bounded:
        return _compile_concave_logits(join_columns([pick_columns(out, range(K)), pick_columns(out, [K]) - base]), K)
    first = pick_columns(out, [0]) + base
    if K == 1:
        return first
    steps = _compile_increments(
        head, params, pick_columns(out, range(1, K)) * gate if head != "elastic" else pick_columns(out, [1]) * gate, K
    )
    return join_columns([first, cumulate_columns(steps) + first])


def _compile_increments(head: str, params: dict[str, Any], deviation: Value, K: int) -> Value:
    if head == "shrunk":
        return _softplus(deviation + np.asarray(params["steps"], dtype=np.float64))
    if head == "elastic":
        common = np.logaddexp(0.0, np.asarray(params["steps"], dtype=np.float64))
        return exp(clip(deviation, -5.0, 5.0)) * common
    steps = _softplus(deviation)
    if head != "concave":
        return steps
    backwards = range(K - 2, -1, -1)
    return pick_columns(cumulate_columns(pick_columns(steps, backwards)), backwards)


def _compile_cdf_logits(out: Value, K: int) -> Value:
    """Compute logit P(threshold ≤ level) of each level from the K + 1 logits of a softmax."""
    mass = softmax(out)
    below = cumulate_columns(pick_columns(mass, range(K)))
    backwards = pick_columns(mass, range(K, 0, -1))
    above = pick_columns(cumulate_columns(backwards), range(K - 1, -1, -1))
    return log(below) - log(above)


def _compile_concave_logits(out: Value, K: int) -> Value:
    mass = softmax(out)
    curve = pick_columns(mass, [0])
    if K > 1:
        spread = pick_columns(mass, range(1, K)) / np.arange(1.0, K)
        backwards = range(K - 2, -1, -1)
        steps = pick_columns(cumulate_columns(pick_columns(spread, backwards)), backwards)
        curve = join_columns([curve, cumulate_columns(steps) + curve])
    inside = curve * (1 - 2 * CONCAVE_EDGE) + CONCAVE_EDGE
    return log(inside) - log(make_constant(1.0) - inside)


def _compile_minmax_scores(params: dict[str, Any], z: Value, K: int) -> Value:
    hidden = affine(z, params["head_w"], params["head_b"])
    step, out = np.abs(params["level_w"]).astype(np.float64), np.abs(params["out_w"])[:, None]
    scores = [affine(_elu(hidden + (k + 1) * step), out, float(params["out_b"])) for k in range(K)]
    return join_columns(scores)


def _compile_correction(correction: Any, hidden: list[Value], K: int) -> Value:
    """Compile the correction that a network's second fitting stage adds to its response curves."""
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
    return _average_values(parts)


def _elu(value: Value) -> Value:
    # Above zero the second term vanishes.
    return larger(value, 0.0) + (exp(smaller(value, 0.0)) - 1.0)


def _softplus(value: Value) -> Value:
    size = larger(value, make_constant(0.0) - value)
    return larger(value, 0.0) + log(exp(make_constant(0.0) - size) + 1.0)
