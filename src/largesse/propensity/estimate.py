"""The probability with which each row's own level was chosen: from the log where it says so, else estimated.

The estimate is cross-fitted: a multinomial logistic regression, or boosted trees where they clearly predict held-out rows
better. It is then calibrated. Held-out logits are shrunk, and what shrinking removes from a propensity stays in the
comparison as confounding; a second regression, on the logits of all rows, restores it, and `balance` removes what
features still differ by. Several logging policies are learnt apart and mixed: a row's propensity is the probability of
its level under whichever policy might have met it. Nothing is clipped silently: the result says how many rows were raised
to the floor and how much weight that removed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from largesse.data import Encoder
from largesse.progress import track
from largesse.propensity.balance import balance_propensities
from largesse.propensity.encoding import LevelFeatures, encode_for_levels
from largesse.records import Array, Log, Propensities
from largesse.stats import chosen, mean_estimate, one_standard_error, one_thread

FLOOR = 0.01
STRENGTHS = (1.0, 0.1, 0.03, 0.01)  # of the features: inverses of the ridge penalty; the strongest is preferred
CHOOSING_ROWS = 10_000  # more rows do not make the choice of a strength better, only slower
CHOOSING_FOLDS = 3
FITTING_ROWS = 200_000  # a propensity model learns nothing from further rows that its folds do not already show
TREE_ROWS = 500  # per level; with fewer, trees only learn noise
LOGGER_ROWS = 200  # a logging policy with fewer rows is learnt together with the others

Fit: TypeAlias = Callable[[Array, Array, Array, Array, int], Array]  # X, level, weight, asked, K → probabilities (m, K)


def estimate_propensities(log: Log, fold: Array, seed: int = 0, features: LevelFeatures | None = None) -> Propensities:
    """Return the propensities of the logged levels: those of the log, or estimates.

    Rows of the same `fold` (n,) are predicted together. `features` spares encoding the whole log again.
    """
    if log.propensity is not None:
        return Propensities(log.propensity, "given")
    X = (encode_for_levels(log, fold=fold, seed=seed) if features is None else features).X
    with one_thread():
        probabilities, model = estimate_probabilities(log, fold, seed, X)
        own = probabilities[np.arange(len(log)), log.level]
        own = balance_propensities(own, X, log.level, log.weights, seed)
    return _raise_to_floor(own, log.weights, model)


def estimate_probabilities(log: Log, fold: Array, seed: int = 0, X: Array | None = None) -> tuple[Array, str]:
    """Return the probabilities (n, K) of every level, from models that did not see the row, and the models' name.

    `X` (n, p) are the encoded features, where they are known already.
    """
    X = encode_for_levels(log, fold=fold, seed=seed).X if X is None else X
    logger, K = _loggers(log), len(log.levels)
    if logger is None:
        found, model = _crossfit(_Task(X, log.level, log.scaled_weights, K), fold, seed)
        return _calibrate(found, log.level, log.weight), model
    of_loggers = Encoder().fit_transform(log.features, logger, discrete=True, seed=seed, fold=fold)
    met, _ = _crossfit(_Task(of_loggers, logger, log.scaled_weights, int(logger.max()) + 1), fold, seed)
    met = _calibrate(met, logger, log.weight)  # (n, S): which policy a row like this meets
    mixed, model = np.zeros((len(log), len(log.levels))), ""
    for s in range(met.shape[1]):
        found, model = _crossfit(_Task(X, log.level, log.scaled_weights, K), fold, seed, taught=logger == s)
        mixed += met[:, [s]] * _calibrate(found, log.level, log.weight, taught=logger == s)
    return mixed, model


def _loggers(log: Log) -> Array | None:
    """Return the logging policy (n,) of every row, small ones pooled; None if there is only one."""
    if log.logger is None:
        return None
    sizes = np.bincount(log.logger)
    _, logger = np.unique(np.where(sizes[log.logger] >= LOGGER_ROWS, log.logger, -1), return_inverse=True)
    return logger if logger.max() > 0 and np.bincount(logger).min() >= LOGGER_ROWS else None


def _raise_to_floor(found: Array, weight: Array, model: str) -> Propensities:
    """Raise the smallest propensities to the floor, and count what that changed."""
    low = found < FLOOR
    own = np.maximum(found, FLOOR)
    before, after = weight @ (1.0 / np.maximum(found, 1e-12)), weight @ (1.0 / own)
    return Propensities(own, "estimated", model, int(low.sum()), float(1.0 - after / before))


# -- cross-fitting ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Task:
    """What is to be predicted from what."""

    X: Array  # (n, p) encoded features, those of a fold without its own targets
    target: Array  # (n,) in 0..K−1
    weight: Array  # (n,)
    K: int


def _crossfit(task: _Task, fold: Array, seed: int, taught: Array | None = None) -> tuple[Array, str]:
    """Return the probabilities (n, K) of a target (n,) and the model's name; a fold learns from the others' `taught` rows."""
    taught = np.ones(len(fold), dtype=bool) if taught is None else taught
    rng = np.random.default_rng(seed)
    name, fit = _choose(task, rng.permutation(np.flatnonzero(taught))[:CHOOSING_ROWS])
    found = np.empty((len(fold), task.K))
    for f in track(np.unique(fold)):
        test = fold == f
        rows = rng.permutation(np.flatnonzero(taught & ~test))[:FITTING_ROWS]
        found[test] = fit(task.X[rows], task.target[rows], task.weight[rows], task.X[test], task.K)
    return found, name


def _choose(task: _Task, rows: Array) -> tuple[str, Fit]:
    """Return what predicts held-out rows best: a strength of the logistic regression, or trees.

    Trees must be better than the best strength by more than one standard error.
    """
    X, target, weight, K = task.X[rows], task.target[rows], task.weight[rows], task.K
    if X.shape[1] == 0 or len(np.unique(target)) < 2:
        return "shares", _shares
    fold = np.arange(len(rows)) % CHOOSING_FOLDS
    strength, least = _strength(X, target, weight, K, fold)
    if len(rows) >= TREE_ROWS * K and _trees_win(X, target, weight, K, fold, least):
        return "boosting", _trees
    return "logistic", _logistic(strength)


def choose_strength(X: Array, target: Array, weight: Array, K: int) -> float:
    """Return the strength of a logistic regression of a target (n,) of K kinds on X (n, p), chosen by held-out rows."""
    X, target, weight = X[:CHOOSING_ROWS], target[:CHOOSING_ROWS], weight[:CHOOSING_ROWS]
    return _strength(X, target, weight, K, np.arange(len(target)) % CHOOSING_FOLDS)[0]


def _strength(X: Array, target: Array, weight: Array, K: int, fold: Array) -> tuple[float, Array]:
    """Return the largest strength within one paired standard error of the least log loss, and the least's losses (n,).

    If rows cannot decide, the features are trusted more rather than less: what is shrunk away is no longer adjusted for.
    """
    losses = np.stack([_held_out_losses(_logistic(C), X, target, weight, K, fold) for C in STRENGTHS])
    kept = chosen(one_standard_error([f"{C:g}" for C in STRENGTHS], losses, weight))
    return STRENGTHS[kept], losses[int(np.argmin(losses @ weight))]


def _trees_win(X: Array, target: Array, weight: Array, K: int, fold: Array, others: Array) -> bool:
    """Whether trees beat held-out losses (n,) by more than a standard error; one fold suffices to see that they do not."""
    first = fold == 0
    gain = others[first] - _losses(_trees, X, target, weight, K, ~first, first)
    if mean_estimate(gain, weight[first]).estimate <= 0:
        return False
    more = mean_estimate(others - _held_out_losses(_trees, X, target, weight, K, fold), weight)
    return more.estimate > more.se


def _held_out_losses(fit: Fit, X: Array, target: Array, weight: Array, K: int, fold: Array) -> Array:
    losses = np.empty(len(target))
    for f in np.unique(fold):
        losses[fold == f] = _losses(fit, X, target, weight, K, fold != f, fold == f)
    return losses


def _losses(fit: Fit, X: Array, target: Array, weight: Array, K: int, train: Array, test: Array) -> Array:
    """Return the log loss of the rows of `test` under a fit to those of `train`."""
    found = fit(X[train], target[train], weight[train], X[test], K)
    return -np.log(np.maximum(found[np.arange(int(test.sum())), target[test]], FLOOR))


# -- what is fitted ---------------------------------------------------------------------------------------------------


def _shares(_X: Array, target: Array, weight: Array, asked: Array, K: int) -> Array:
    return np.tile(np.bincount(target, weights=weight, minlength=K) / weight.sum(), (len(asked), 1))


def _logistic(strength: float) -> Fit:
    from sklearn.linear_model import LogisticRegression

    return lambda *rows: _fit(LogisticRegression(C=strength, max_iter=200), *rows)


def _trees(X: Array, target: Array, weight: Array, asked: Array, K: int) -> Array:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Bins of weighted rows are slow to find, and propensities need no fine ones.
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.1, max_leaf_nodes=8, max_bins=32, early_stopping=False, random_state=0
    )
    return _fit(model, X, target, weight, asked, K)


def _fit(model: Any, X: Array, target: Array, weight: Array, asked: Array, K: int) -> Array:
    """Return the probabilities (m, K) of the rows `asked` (m, p), learnt from X (n, p) and a target (n,)."""
    from sklearn.exceptions import ConvergenceWarning

    if len(np.unique(target)) < 2:
        return _shares(X, target, weight, asked, K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, target, sample_weight=None if np.ptp(weight) == 0 else weight)
    found = np.zeros((len(asked), K))
    found[:, model.classes_] = model.predict_proba(asked)
    return found


# -- calibration ------------------------------------------------------------------------------------------------------


def _calibrate(found: Array, target: Array, weight: Array | None, taught: Array | None = None) -> Array:
    """Return probabilities (n, K) after a regression of the target on their logits and squared logits, over all rows.

    Rows take part in their own calibration. It learns few numbers, from levels and not from responses, so cross-fitting
    stays valid.
    """
    taught = np.ones(len(target), dtype=bool) if taught is None else taught
    present, rows = np.unique(target[taught], return_inverse=True)
    logits = np.log(np.maximum(found[:, present], 1e-4))
    logits -= logits.mean(axis=1, keepdims=True)
    spread = logits[taught].std(axis=0)
    logits = (logits - logits[taught].mean(axis=0))[:, spread > 1e-6] / spread[spread > 1e-6]
    logits = np.column_stack([logits, logits**2])
    if logits.shape[1] == 0 or len(present) < 2 or taught.sum() < 50 * len(present):
        return found
    own = np.ones(int(taught.sum())) if weight is None else weight[taught] / weight[taught].mean()
    out = np.zeros(found.shape)
    out[:, present] = _logistic(100.0)(logits[taught], rows, own, logits, len(present))
    return out
