"""Fitted networks of SIRE and IRE as steps. The networks compute in float32, these steps in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.errors import Problem, fail
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
    log,
    pick,
    sigmoid,
    smaller,
    softmax,
)
from largesse.response import CONCAVE_EDGE


def network_curves(fit: Any, X: Value) -> Value:
    """Return the curves (n, K) of `FoldNetworks`: the mean score of all networks, calibrated, as responses."""
    models = [{name: np.asarray(part[m]) for name, part in fit.params.items()} for m in range(len(fit.gate))]
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
        mean = mean + (average(mean) - middle) * (slope - 1.0)
    curves = sigmoid(mean) if fit.scale.bounded else mean * fit.scale.deviation + fit.scale.mean
    if fit.correction is None:
        return curves
    moved = curves + _correction(fit.correction, hidden[: fit.folds], curves.width)
    return isotonic(clip(moved, 0.0, 1.0) if fit.scale.bounded else moved)


def _mean(parts: list[Value]) -> Value:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
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
    """Return what the second stage adds to curves."""
    if len(hidden) != len(correction.coef):
        fail("export", Problem("the second stage does not fit the networks", "fit the model again"))
    level = np.arange(K) - (K - 1) / 2
    level = level / max(float(np.sqrt((level**2).mean())), 1e-9)
    parts = []
    for z, coef, centre, scale in zip(hidden, correction.coef, correction.centre, correction.scale, strict=True):
        width = z.width
        constants, lines, slopes = coef[:K], coef[K : K + width], coef[K + width :]
        weights, bias = np.zeros((width, K)), constants.astype(np.float64)
        for own, along in ((lines, np.ones(K)), (slopes, level)):
            if len(own):
                weights = weights + (own / scale)[:, None] * along
                bias = bias - float((own / scale) @ centre) * along
        parts.append(affine(z, weights, bias))
    return _mean(parts)


def _elu(value: Value) -> Value:
    # Above zero it is the value itself: the exponential of the smaller of it and zero, less one, is then zero.
    return larger(value, 0.0) + (exp(smaller(value, 0.0)) - 1.0)


def _softplus(value: Value) -> Value:
    size = larger(value, constant(0.0) - value)
    return larger(value, 0.0) + log(exp(constant(0.0) - size) + 1.0)
