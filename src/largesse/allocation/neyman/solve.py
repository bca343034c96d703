"""From limits on sums to probabilities: the dual has one price for each limit, and Newton finds them.

    minimise  mean_i Σ_k s_ik² / p_ik   subject to  mean_i Σ_k p_ik x_jik ≤ t_j,  Σ_k p_ik = 1,  p_ik ≥ least_ik.

The dual is concave in the prices of the limits, and smooth. Its gradient is by how much each limit is broken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array

STEPS = 100
HALVINGS = 30
ROUNDING = 1e-12
CLOSE = 1e-9  # of a limit's own scale
RISE = 1e-4  # the share of what the gradient promises that a step must bring
TINY = 1e-12  # a price below this share of the largest is taken for zero where its limit is kept


@dataclass(frozen=True, eq=False)
class Spread:
    """Probabilities and the prices of the limits that shape them."""

    probabilities: Array  # (n, K)
    prices: Array  # (m,)
    broken: float  # by how much the most broken limit is, as a share of its scale


def spread_probabilities(spread: Array, terms: Array, limits: Array, least: Array, start: Array) -> Spread:
    """Return the probabilities that minimise mean Σ spread²/p within the limits.

    Parameters
    ----------
    spread
        s (n, K): standard deviations, times the weight of the level in what is estimated; at least one of each row is above 0.
    terms, limits
        x (m, n, K) and t (m,).
    least
        (n, K) the least probability of each level.
    start
        (m,) prices to begin with.
    """
    from largesse.allocation.neyman.kernels import spread_rows

    n = len(spread)
    out = np.empty(spread.shape)
    scale = np.maximum(np.abs(terms).mean(axis=(1, 2)), 1e-300)

    def look(prices: Array) -> tuple[Array, Array, float]:
        sums, curvature, dual = spread_rows(spread, terms, prices, least, out)
        return (sums / n - limits) / scale, curvature / n / np.outer(scale, scale), dual / n - float(prices @ limits)

    # All prices are in units of the limits' own scales.
    prices = np.maximum(start, 0.0) * scale
    slack, curvature, dual = look(prices / scale)
    for _ in range(STEPS):
        free = (prices > TINY * prices.max(initial=0.0)) | (slack > 0)
        prices = np.where(free, prices, 0.0)
        if np.abs(slack[free]).max(initial=0.0) < CLOSE:
            break
        step = np.zeros(len(prices))
        part = curvature[np.ix_(free, free)]
        step[free] = np.linalg.solve(part + 1e-12 * (np.trace(part) + 1e-300) * np.eye(len(part)), slack[free])
        noise = ROUNDING * (abs(dual) + float(prices.sum()))  # of the dual, a difference of large numbers
        for halving in range(HALVINGS):
            tried = np.maximum(prices + step * 0.5**halving, 0.0)  # the projected Newton step of Bertsekas
            found = look(tried / scale)
            if found[2] >= dual + RISE * float(slack @ (tried - prices)) - noise:
                break
        else:
            break
        prices, (slack, curvature, dual) = tried, found
    look(prices / scale)
    return Spread(out, prices / scale, float(slack.max(initial=0.0)))
