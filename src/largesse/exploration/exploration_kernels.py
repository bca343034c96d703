"""Compiled loops (numba) that compute level probabilities of an exploration.

A customer's probabilities minimise Σ_k s_k²/p_k + Σ_k h_k p_k with Σ p = 1 and p ≥ least, so p_k = max(least_k, s_k / √(a + h_k))
with one number a for each customer. The sum falls with a and is convex, so Newton from the left converges.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.records import Array

NEAR_WEIGHT, PLAN_WEIGHT = 0.25, 0.25  # the plan against its incumbent has weight 1
MIN_WEIGHT = 0.01  # of any level, also of one that no plan gives
NEWTON_STEPS = 200
MIXTURE_TOLERANCE = 1e-13

# Places in `rule`, the numbers that all customers share; then the incumbent's probabilities (K,).
LEARNING, LEAST, FLOOR, RULE = range(4)


@njit(cache=True, nogil=True, error_model="numpy")
def compute_exploration_probabilities(
    spread: Array, terms: Array, prices: Array, least: Array, out: Array
) -> tuple[Array, Array, float]:
    """Compute the level probabilities (n, K) at given dual prices, with the derivatives of the dual.

    `spread` (n, K) is s, `terms` (m, n, K) the x_j whose sums are limited, `prices` (m,) their multipliers. Levels with a
    spread of 0 get their smallest probability. At least one level of each customer has a positive spread.
    """
    m, n, K = terms.shape
    sums, curvature, dual = np.zeros(m), np.zeros((m, m)), 0.0
    h, q, mean = np.empty(K), np.empty(K), np.empty(m)
    for i in range(n):
        first = _price_levels(i, spread, terms, prices, h)
        a = _find_normalising_root(spread[i], least[i], h)
        weight = _write_probabilities_and_slopes(spread[i], least[i], h, a, out[i], q)
        for k in range(K):
            dual += (h[k] + first) * out[i, k]
            if spread[i, k] > 0.0:
                dual += spread[i, k] ** 2 / out[i, k]
        _add_customer_to_sums(i, terms, out, q, weight, mean, sums, curvature)
    return sums, curvature, dual


@njit(cache=True, nogil=True, error_model="numpy")
def _price_levels(i: int, spread: Array, terms: Array, prices: Array, h: Array) -> float:
    """Compute a customer's level costs at the dual prices, minus their minimum, and return the minimum."""
    first = math.inf
    for k in range(len(h)):
        h[k] = 0.0
        for j in range(len(prices)):
            h[k] += prices[j] * terms[j, i, k]
        if spread[i, k] > 0.0 and h[k] < first:
            first = h[k]
    for k in range(len(h)):
        h[k] -= first
    return first


@njit(cache=True, nogil=True, error_model="numpy")
def _find_normalising_root(spread: Array, least: Array, h: Array) -> float:
    """Find the constant in the Neyman allocation at which a customer's level probabilities add up to one."""
    a = 0.0  # the largest number that is too small: one level alone would get everything
    for k in range(len(h)):
        if spread[k] > 0.0:
            a = max(a, spread[k] ** 2 - h[k])
    for _ in range(NEWTON_STEPS):
        total, slope = 0.0, 0.0
        for k in range(len(h)):
            probability, fall = _compute_probability_and_slope(spread[k], least[k], a + h[k])
            total += probability
            slope += fall
        if total <= 1.0 + MIXTURE_TOLERANCE or slope == 0.0:
            break
        a += (total - 1.0) / slope
    return a


@njit(cache=True, nogil=True, error_model="numpy")
def _compute_probability_and_slope(spread: float, least: float, at: float) -> tuple[float, float]:
    """Return a level's probability in the Neyman allocation, and the negative of its derivative.

    The probability is max(least, spread / √at), and the derivative is with respect to `at`.
    """
    if spread > 0.0:
        root = math.sqrt(at)
        if spread > least * root:
            probability = spread / root
            return probability, 0.5 * probability / (root * root)
    return least, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _write_probabilities_and_slopes(spread: Array, least: Array, h: Array, a: float, out: Array, q: Array) -> float:
    """Write a customer's level probabilities and their derivatives (K,), and return the sum of the derivatives."""
    total, weight = 0.0, 0.0
    for k in range(len(h)):
        out[k], q[k] = _compute_probability_and_slope(spread[k], least[k], a + h[k])
        total += out[k]
        weight += q[k]
    for k in range(len(h)):
        out[k] /= total
    return weight


@njit(cache=True, nogil=True, error_model="numpy")
def _add_customer_to_sums(
    i: int, terms: Array, out: Array, q: Array, weight: float, mean: Array, sums: Array, curvature: Array
) -> None:
    """Add a customer's contribution to the gradient (m,) and the Hessian (m, m) of the dual objective."""
    m, _, K = terms.shape
    for j in range(m):
        mean[j] = 0.0
        for k in range(K):
            sums[j] += out[i, k] * terms[j, i, k]
            if weight > 0.0:
                mean[j] += q[k] * terms[j, i, k] / weight
    for j in range(m):
        for g in range(m):
            for k in range(K):
                curvature[j, g] += q[k] * (terms[j, i, k] - mean[j]) * (terms[g, i, k] - mean[g])


@njit(cache=True, nogil=True, error_model="numpy")
def compute_customer_probabilities(
    levels: tuple[int, int, int], h: Array, variance: Array, rule: Array, out: Array
) -> None:
    """Compute the level probabilities (K,) of one new customer by an exploration rule.

    `levels` are those of the plan and of two plans at other budgets, `h` (K,) is the cost of levels at the prices of value and
    budget, up to a constant.
    """
    K = len(h)
    spread, least, cost, q = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    first = h.min()
    for k in range(K):
        least[k], cost[k] = rule[LEAST], h[k] - first
        spread[k] = math.sqrt(_weigh_level_variance(k, levels, rule) * max(variance[k], rule[FLOOR]))
    _write_probabilities_and_slopes(spread, least, cost, _find_normalising_root(spread, least, cost), out, q)


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh_level_variance(k: int, levels: tuple[int, int, int], rule: Array) -> float:
    """Return the weight of one level's variance; see `weigh_level_variances`."""
    if rule[LEARNING]:
        return 1.0
    planned = 1.0 if k == levels[0] else 0.0
    weight = (planned - rule[RULE + k]) ** 2 + PLAN_WEIGHT * planned
    for near in levels[1:]:
        if (k == near) != (k == levels[0]):
            weight += NEAR_WEIGHT
    return max(weight, MIN_WEIGHT)
