"""How sure an ensemble is of its curves: the spread of its fold models, widened.

Fold models share most of their rows, so they differ less from each other than any of them does from the truth. Two things
say by how much. The delete-a-fold jackknife: M models that each miss one of M folds vary by √M / (M − 1) times the
standard error of a model of all rows. And held-out rows: cut into groups along random directions of features and level, a
group's mean residual d_g has variance v_g (sampling) + c²·s_g², with s_g the spread of the models' own means over the group;
so c² = Σ(d_g² − v_g) / Σs_g². The larger factor counts, and never one below one.

Groups are cut inside each fold: over all folds together residuals average to zero by construction, because what one
model has not seen the others have. With a few thousand 0/1 responses c is rough, and the jackknife is the floor
that it stands on; what is wrong about single customers, and about no direction, neither of them sees.
"""

from __future__ import annotations

import numpy as np

from largesse.records import Array

DIRECTIONS = 100
GROUPS = 4  # along each direction
ROWS = 50_000  # more do not make the factor better, only slower


def jackknife_factor(models: int) -> float:
    """Return the standard error of a model of all rows over the standard deviation of models that each miss a fold.

    >>> round(jackknife_factor(5), 2)
    1.79
    """
    return (models - 1) / float(np.sqrt(models))


def spread_factor(X: Array, residual: Array, scores: Array, fold: Array, weight: Array | None = None) -> float:
    """Return the factor ≥ 1 by which the standard deviation of M fold models is to be multiplied.

    Parameters
    ----------
    X
        What rows may differ in (n, p): features, and the level as columns.
    residual
        Of held-out rows (n,): the response less what the model that has not seen the row expected.
    scores
        What each model expects of each row (M, n), on the scale of the response.
    fold, weight
        Of the rows (n,).
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(fold))[:ROWS])
    weight = np.ones(len(fold)) if weight is None else weight
    along = _standardised(X[rows]) @ rng.normal(size=(X.shape[1], DIRECTIONS))
    apart = scores - scores.mean(axis=0)
    beyond = among = 0.0
    for f in np.unique(fold[rows]):
        mine = np.flatnonzero(fold[rows] == f)
        here = rows[mine]
        groups = _groups(along[mine])
        if groups.shape[1] > 1:
            more, base = _moments(residual[here][groups], apart[:, here][:, groups], weight[here][groups])
            beyond, among = beyond + more, among + base
    held_out = np.sqrt(max(beyond, 0.0) / among) if among > 0 else 0.0
    return max(1.0, jackknife_factor(len(scores)), float(held_out))


def _standardised(X: Array) -> Array:
    sd = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(sd > 0, sd, 1.0)


def _groups(along: Array) -> Array:
    """Return rows (GROUPS, size, directions) in groups of neighbours along each direction (n, directions)."""
    order = np.argsort(along, axis=0, kind="stable")
    size = len(order) // GROUPS
    return order[: size * GROUPS].reshape(GROUPS, size, along.shape[1])


def _moments(residual: Array, apart: Array, weight: Array) -> tuple[float, float]:
    """Return Σ(d² − v) and Σs² over groups, of rows (GROUPS, size, directions); `apart` has the models in front."""
    w = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    mean = (w * residual).sum(axis=1)
    # Weighted rows count for 1/Σw² plain ones; the same number corrects the variance for its own mean.
    noise = (w**2 * (residual - mean[:, None]) ** 2).sum(axis=1) / np.maximum(1.0 - (w**2).sum(axis=1), 1e-9)
    spread = ((w * apart).sum(axis=2) ** 2).sum(axis=0) / (len(apart) - 1)
    return float((mean**2 - noise).sum()), float(spread.sum())


def mean_bounds(curves: Array, factor: float, level: float) -> tuple[Array, Array]:
    """Return the ends (K,), (K,) of intervals around the mean of the mean curves (M, K) of M fold models."""
    from scipy.special import stdtrit

    half = float(stdtrit(len(curves) - 1, 0.5 + level / 2)) * factor * curves.std(axis=0, ddof=1)
    centre = curves.mean(axis=0)
    return centre - half, centre + half


def bounds(scores: Array, factor: float, level: float, *, rising: bool) -> tuple[Array, Array]:
    """Return lower and upper scores (n, K) that hold the truth with a probability, from the scores (M, n, K) of M models.

    `rising`: curves never fall in the level. Then the bounds are sorted, which never makes them hold a rising curve less
    often (Chernozhukov, Fernández-Val and Galichon 2009).
    """
    from scipy.special import stdtrit

    # A standard deviation of a handful of models is itself uncertain: Student's t with M − 1 degrees of freedom.
    reach = float(stdtrit(len(scores) - 1, 0.5 + level / 2)) * factor
    centre = scores.mean(axis=0).astype(np.float64)
    half = reach * scores.std(axis=0, ddof=1).astype(np.float64)
    low, high = centre - half, centre + half
    return (np.sort(low, axis=1), np.sort(high, axis=1)) if rising else (low, high)
