"""The compiled loop over customers. Nothing imports this file until it is needed: it brings numba with it.

A customer's probabilities minimise Σ_k s_k²/p_k + Σ_k h_k p_k with Σ p = 1 and p ≥ least, so p_k = max(least_k, s_k / √(a + h_k))
with one number a for each customer. The sum falls in a and is convex, so Newton from the left converges.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from largesse.records import Array

STEPS = 200
CLOSE = 1e-13


@njit(cache=True, nogil=True, error_model="numpy")
def spread_rows(spread: Array, terms: Array, prices: Array, least: Array, out: Array) -> tuple[Array, Array, float]:
    """Write the probabilities (n, K) and return Σ_ik p x_j (m,), the curvature (m, m) and the sum of the dual's rows.

    `spread` (n, K) is s, `terms` (m, n, K) the x_j whose sums are limited, `prices` (m,) their multipliers. Levels with a
    spread of 0 get what is least. At least one level of each customer has a positive spread.
    """
    m, n, K = terms.shape
    sums, curvature, dual = np.zeros(m), np.zeros((m, m)), 0.0
    h, q, mean = np.empty(K), np.empty(K), np.empty(m)
    for i in range(n):
        first = math.inf
        for k in range(K):
            h[k] = 0.0
            for j in range(m):
                h[k] += prices[j] * terms[j, i, k]
            if spread[i, k] > 0.0 and h[k] < first:
                first = h[k]
        a = 0.0  # the largest number that is too small: one level alone would get everything
        for k in range(K):
            if spread[i, k] > 0.0:
                a = max(a, spread[i, k] ** 2 - (h[k] - first))
        for _ in range(STEPS):
            total, slope = 0.0, 0.0
            for k in range(K):
                own = least[i, k]
                if spread[i, k] > 0.0:
                    root = math.sqrt(a + h[k] - first)
                    if spread[i, k] > own * root:
                        own = spread[i, k] / root
                        slope += 0.5 * own / (root * root)
                total += own
            if total <= 1.0 + CLOSE or slope == 0.0:
                break
            a += (total - 1.0) / slope
        total, weight = 0.0, 0.0
        for k in range(K):
            q[k], own = 0.0, least[i, k]
            if spread[i, k] > 0.0:
                root = math.sqrt(a + h[k] - first)
                if spread[i, k] > own * root:
                    own = spread[i, k] / root
                    q[k] = 0.5 * own / (root * root)
            out[i, k] = own
            total += own
            weight += q[k]
        for k in range(K):
            out[i, k] /= total
            if spread[i, k] > 0.0:
                dual += spread[i, k] ** 2 / out[i, k]
            dual += h[k] * out[i, k]
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
    return sums, curvature, dual
