"""Link functions between scores and responses, and loss functions with first and second derivatives.

A score is a logit where responses are 0/1, and the response itself where they are amounts.
"""

from __future__ import annotations

import numpy as np

from largesse.records import Array

MAX_SCORE = 1e300  # twice this is still finite
PROBABILITY_MARGIN = (
    1e-6  # probabilities are held this far from 0 and 1, so that their logits and log losses stay finite
)


def sigmoid(score: Array) -> Array:
    """Return 1 / (1 + exp(−score)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * score))


def logit(probability: Array, inside: float = PROBABILITY_MARGIN) -> Array:
    """Return the log-odds of probabilities, clipped to [`inside`, 1 − `inside`].

    >>> logit(np.array([0.5, 1.0]), inside=0.1).round(3)
    array([0.   , 2.197])
    """
    held = np.clip(probability, inside, 1.0 - inside)
    return np.log(held) - np.log1p(-held)


def softmax(scores: Array) -> Array:
    """Return probabilities (n, K) proportional to exp(scores), without overflow.

    Infinite scores count as ±`MAX_SCORE`.

    >>> softmax(np.array([[np.inf, np.inf, 0.0]]))
    array([[0.5, 0.5, 0. ]])
    """
    scores = np.clip(scores, -MAX_SCORE, MAX_SCORE)
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def compute_loss(score: Array, response: Array, binary: bool) -> Array:
    """Return the loss (n,) of scores: log loss for binary responses, else half the squared error."""
    if binary:
        return np.logaddexp(0.0, score) - response * score
    return 0.5 * (score - response) ** 2


def compute_loss_slope(score: Array, response: Array, binary: bool) -> Array:
    """Return the first derivative (n,) of the log loss or squared error with respect to the scores."""
    return (sigmoid(score) if binary else score) - response


def compute_loss_curvature(score: Array, binary: bool) -> Array:
    """Return the second derivative (n,) of the log loss or squared error with respect to the scores."""
    if not binary:
        return np.ones(len(score))
    expected = sigmoid(score)
    return expected * (1.0 - expected)
