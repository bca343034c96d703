"""One model per fold: each predicts the rows it has not seen, all of them together predict new customers.

How certain the ensemble is of its curves: the spread of its fold models, widened. Fold models share most of their rows, so
they differ less from each other than any of them does from the truth. Two things say by how much. The delete-a-fold
jackknife: M models that each miss one of M folds vary by √M / (M − 1) times the standard error of a model of all rows. And
held-out rows: cut into groups along random directions of features and level, a group's mean residual d_g has variance
v_g (sampling) + c²·s_g², with s_g the spread of the models' own means over the group; so c² = Σ(d_g² − v_g) / Σs_g². The
larger factor counts, and never one below one.

Groups are cut inside each fold: over all folds together residuals average to zero by construction, because what one model
has not seen the others have. With a few thousand 0/1 responses c is rough, and the jackknife is its floor. Neither sees
errors about single customers that lie along no direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from largesse.errors import Problem
from largesse.records import Array, Log, Progress
from largesse.response.base import ResponseModel, blank_copy, fresh
from largesse.response.blend import link
from largesse.stats import shuffle_rows, standardise, t_quantile

DIRECTIONS = 100
GROUPS = 4  # along each direction
ROWS = 50_000  # more do not make the factor better, only slower

HELD_OUT = "judging it on held-out rows"  # the stage that takes most of an evaluation's time


def fit_folds(model: ResponseModel, X: Array, log: Log, fold: Array, owner: ResponseModel) -> list[ResponseModel]:
    """Return copies of a model, each fitted without one fold of the encoded features (n, p) and the log.

    They share the owner's encoder: customers are then encoded once, not once for every model.
    """
    return blank_copy(model, log, owner.encoder_).fold_models(X, log, fold)


def held_out_scores(models: Sequence[ResponseModel], X: Array, fold: Array, binary: bool) -> Array:
    """Return the linked scores (n, K) of encoded rows (n, p), each from the model that did not see it."""
    scores = np.empty((len(X), models[0].levels_))
    for model, f in zip(models, np.unique(fold), strict=True):
        scores[fold == f] = link(model._curves(X[fold == f]), binary)
    return scores


def mean_scores(models: Sequence[ResponseModel], X: Array, binary: bool) -> Array:
    """Return the mean over models of the linked scores (n, K) of new customers (n, p)."""
    total = np.zeros((len(X), models[0].levels_))
    for model in models:
        total += link(model._curves(X), binary)
    return total / len(models)


def out_of_fold_curves(model: Any, log: Log, fold: Array, progress: Progress | None = None) -> Array:
    """Return the curves (n, K) of a log, each fold's predicted by a copy of the model fitted to the other folds."""
    parts = np.unique(fold)
    curves = np.empty((len(log), len(log.levels)))
    for done, f in enumerate(parts):
        if progress:
            progress(HELD_OUT, done / len(parts))
        test = fold == f
        curves[test] = fresh(model).fit(log.take(~test)).predict(log.take(test).features)
    if progress:
        progress(HELD_OUT, 1.0)
    return curves


# -- intervals ------------------------------------------------------------------------------------------------------------


def check_coverage(coverage: float) -> list[Problem]:
    """Say whether the probability of an interval is not one."""
    hint = "the probability of an interval lies between 0 and 1, as 0.9"
    return [] if 0 < coverage < 1 else [Problem(f"coverage={coverage!r}", hint)]


def jackknife_factor(models: int) -> float:
    """Return the standard error of a model of all rows over the standard deviation of models that each miss a fold.

    >>> round(jackknife_factor(5), 2)
    1.79
    """
    return (models - 1) / float(np.sqrt(models))


def spread_factor(X: Array, residual: Array, scores: Array, fold: Array, weight: Array) -> float:
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
    rows = np.sort(shuffle_rows(len(fold), ROWS, rng))
    along = standardise(X[rows])
    along = along @ rng.normal(size=(along.shape[1], DIRECTIONS))
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


def bounds(values: Array, factor: float, coverage: float, *, rising: bool = False) -> tuple[Array, Array]:
    """Return the ends (…, K) of intervals that hold the truth with a probability, from what M fold models say (M, …, K).

    `rising`: curves never fall in the level. Then the ends are sorted, which never makes them hold a rising curve less
    often (Chernozhukov, Fernández-Val and Galichon 2009).
    """
    # A standard deviation of a handful of models is itself uncertain: Student's t with M − 1 degrees of freedom.
    reach = t_quantile(len(values) - 1, coverage) * factor
    centre = values.mean(axis=0).astype(np.float64)
    half = reach * values.std(axis=0, ddof=1).astype(np.float64)
    low, high = centre - half, centre + half
    return (np.sort(low, axis=-1), np.sort(high, axis=-1)) if rising else (low, high)
