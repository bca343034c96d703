"""With which probability each row's own level was chosen: from the log when it says so, else estimated.

The estimate is cross-fitted: a multinomial logistic regression, or boosted trees where held-out rows clearly prefer
them. It is then calibrated: held-out log-odds are shrunk ones, and what shrinking takes from a propensity stays in the
comparison as confounding, so a second regression on the log-odds of all rows gives it back, and `balance` removes what
features still differ by. Several logging policies are learnt apart and mixed: a row's propensity is then that of its
level under whichever policy might have met it. Nothing is clipped silently: how many rows were raised to the floor, and
how much weight that took, comes back with the numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from largesse.data import Encoder
from largesse.propensity.balance import balance_propensities
from largesse.records import Array, Log, Propensities
from largesse.stats import chosen, mean_estimate, one_standard_error, one_thread

FLOOR = 0.01
STRENGTHS = (1.0, 0.1, 0.03, 0.01)  # of the features: inverses of the ridge penalty; the strongest is preferred
CHOOSING_ROWS = 10_000  # more rows do not make the choice of a strength better, only slower
CHOOSING_FOLDS = 3
FITTING_ROWS = 200_000  # a propensity model learns nothing from further rows that its folds do not already show
TREE_ROWS = 500  # per level; with fewer, trees only learn noise
LOGGER_ROWS = 200  # a logging policy with fewer rows is learnt together with the others

Fit: TypeAlias = Callable[[Array, Array, Array, Array, int], Array]  # X, level, weight, asked, K → chances (m, K)


def estimate_propensities(log: Log, fold: Array, seed: int = 0) -> Propensities:
    """Return the propensities of the logged levels; `fold` (n,) says which rows are predicted together."""
    if log.propensity is not None:
        return Propensities(log.propensity, "given")
    weight = np.ones(len(log)) if log.weight is None else log.weight
    with one_thread():
        chances, model = estimate_probabilities(log, fold, seed)
        X = Encoder().fit_transform(log.features, log.level, discrete=True, seed=seed).astype(np.float64)
        found = balance_propensities(chances[np.arange(len(log)), log.level], X, log.level, weight, seed)
    return _raised(found, weight, model)


def estimate_probabilities(log: Log, fold: Array, seed: int = 0) -> tuple[Array, str]:
    """Return the chances (n, K) of every level for rows whose own levels did not train them, and what estimated them."""
    logger = _loggers(log)
    if logger is None:
        chances, model = _crossfitted(log, log.level, len(log.levels), fold, seed)
        return _calibrated(chances, log.level, log.weight), model
    met, _ = _crossfitted(log, logger, int(logger.max()) + 1, fold, seed)
    met = _calibrated(met, logger, log.weight)  # (n, S): which policy a row like this meets
    mixed, model = np.zeros((len(log), len(log.levels))), ""
    for s in range(met.shape[1]):
        chances, model = _crossfitted(log, log.level, len(log.levels), fold, seed, taught=logger == s)
        mixed += met[:, [s]] * _calibrated(chances, log.level, log.weight, taught=logger == s)
    return mixed, model


def _loggers(log: Log) -> Array | None:
    """Return the logging policy (n,) of every row, small ones joined; None where there is only one."""
    if log.logger is None:
        return None
    sizes = np.bincount(log.logger)
    _, logger = np.unique(np.where(sizes[log.logger] >= LOGGER_ROWS, log.logger, -1), return_inverse=True)
    return logger if logger.max() > 0 and np.bincount(logger).min() >= LOGGER_ROWS else None


def _raised(found: Array, weight: Array, model: str) -> Propensities:
    """Return propensities with the lowest raised to the floor, and what that changed."""
    low = found < FLOOR
    own = np.maximum(found, FLOOR)
    before, after = weight @ (1.0 / np.maximum(found, 1e-12)), weight @ (1.0 / own)
    return Propensities(own, "estimated", model, int(low.sum()), float(1.0 - after / before))


# -- cross-fitting ----------------------------------------------------------------------------------------------------


def _crossfitted(
    log: Log, target: Array, K: int, fold: Array, seed: int, taught: Array | None = None
) -> tuple[Array, str]:
    """Return the chances (n, K) of a target (n,), each fold's from the other folds' rows among those `taught`."""
    weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
    taught = np.ones(len(log), dtype=bool) if taught is None else taught
    rng = np.random.default_rng(seed)
    name, fit = _chosen(log, target, weight, K, rng.permutation(np.flatnonzero(taught))[:CHOOSING_ROWS], seed)
    chances = np.empty((len(log), K))
    for f in np.unique(fold):
        test = fold == f
        rows = rng.permutation(np.flatnonzero(taught & ~test))[:FITTING_ROWS]
        encoder = Encoder()
        X = encoder.fit_transform(log.features.take(rows), target[rows], discrete=True, seed=seed)
        asked = encoder.transform(log.features.take(np.flatnonzero(test)))
        chances[test] = fit(X, target[rows], weight[rows], asked, K)
    return chances, name


def _chosen(log: Log, target: Array, weight: Array, K: int, rows: Array, seed: int) -> tuple[str, Fit]:
    """Return what predicts held-out rows best: a strength of the logistic regression, or trees.

    Trees must be better than the best strength by more than one standard error.
    """
    target, weight = target[rows], weight[rows]
    X = Encoder().fit_transform(log.features.take(rows), target, discrete=True, seed=seed)
    if X.shape[1] == 0 or len(np.unique(target)) < 2:
        return "shares", _shares
    fold = np.arange(len(rows)) % CHOOSING_FOLDS
    strength, least = _strength(X, target, weight, K, fold)
    if len(rows) >= TREE_ROWS * K and _trees_win(X, target, weight, K, fold, least):
        return "boosting", _trees
    return "logistic", _logistic(strength)


def choose_strength(X: Array, target: Array, weight: Array, K: int) -> float:
    """Return the strength of a logistic regression of a target (n,) of K kinds on X (n, p) that held-out rows advise."""
    X, target, weight = X[:CHOOSING_ROWS], target[:CHOOSING_ROWS], weight[:CHOOSING_ROWS]
    return _strength(X, target, weight, K, np.arange(len(target)) % CHOOSING_FOLDS)[0]


def _strength(X: Array, target: Array, weight: Array, K: int, fold: Array) -> tuple[float, Array]:
    """Return the largest strength within one paired standard error of the least log loss, and the least's losses (n,).

    Where rows cannot tell, the features are trusted more rather than less: what is shrunk away is no longer adjusted for.
    """
    losses = np.stack([_held_out(_logistic(C), X, target, weight, K, fold) for C in STRENGTHS])
    kept = chosen(one_standard_error([f"{C:g}" for C in STRENGTHS], losses, weight))
    return STRENGTHS[kept], losses[int(np.argmin(losses @ weight))]


def _trees_win(X: Array, target: Array, weight: Array, K: int, fold: Array, others: Array) -> bool:
    """Whether trees beat held-out losses (n,) by more than a standard error; one fold is enough to see that they do not."""
    first = fold == 0
    gain = others[first] - _losses(_trees, X, target, weight, K, ~first, first)
    if mean_estimate(gain, weight[first]).estimate <= 0:
        return False
    more = mean_estimate(others - _held_out(_trees, X, target, weight, K, fold), weight)
    return more.estimate > more.se


def _held_out(fit: Fit, X: Array, target: Array, weight: Array, K: int, fold: Array) -> Array:
    losses = np.empty(len(target))
    for f in np.unique(fold):
        losses[fold == f] = _losses(fit, X, target, weight, K, fold != f, fold == f)
    return losses


def _losses(fit: Fit, X: Array, target: Array, weight: Array, K: int, train: Array, test: Array) -> Array:
    """Return the log loss of the rows of `test` under a fit to those of `train`."""
    chances = fit(X[train], target[train], weight[train], X[test], K)
    return -np.log(np.maximum(chances[np.arange(int(test.sum())), target[test]], FLOOR))


# -- what is fitted ---------------------------------------------------------------------------------------------------


def _shares(_X: Array, target: Array, weight: Array, asked: Array, K: int) -> Array:
    return np.tile(np.bincount(target, weights=weight, minlength=K) / weight.sum(), (len(asked), 1))


def _logistic(strength: float) -> Fit:
    from sklearn.linear_model import LogisticRegression

    return lambda *rows: _fitted(LogisticRegression(C=strength, max_iter=200), *rows)


def _trees(X: Array, target: Array, weight: Array, asked: Array, K: int) -> Array:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Bins of weighted rows are slow to find, and propensities need no fine ones.
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.1, max_leaf_nodes=8, max_bins=32, early_stopping=False, random_state=0
    )
    return _fitted(model, X, target, weight, asked, K)


def _fitted(model: Any, X: Array, target: Array, weight: Array, asked: Array, K: int) -> Array:
    """Return the chances (m, K) of the rows `asked` (m, p), learnt from X (n, p) and a target (n,)."""
    from sklearn.exceptions import ConvergenceWarning

    if len(np.unique(target)) < 2:
        return _shares(X, target, weight, asked, K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, target, sample_weight=None if np.ptp(weight) == 0 else weight)
    chances = np.zeros((len(asked), K))
    chances[:, model.classes_] = model.predict_proba(asked)
    return chances


# -- calibration ------------------------------------------------------------------------------------------------------


def _calibrated(chances: Array, target: Array, weight: Array | None, taught: Array | None = None) -> Array:
    """Return chances (n, K) after a regression of the target on their own log-odds and these squared: all rows.

    Rows teach their own calibration. It learns few numbers, from levels and not from responses, so no row judges itself
    by it.
    """
    taught = np.ones(len(target), dtype=bool) if taught is None else taught
    present, rows = np.unique(target[taught], return_inverse=True)
    odds = np.log(np.maximum(chances[:, present], 1e-4))
    odds -= odds.mean(axis=1, keepdims=True)
    spread = odds[taught].std(axis=0)
    odds = (odds - odds[taught].mean(axis=0))[:, spread > 1e-6] / spread[spread > 1e-6]
    odds = np.column_stack([odds, odds**2])
    if odds.shape[1] == 0 or len(present) < 2 or taught.sum() < 50 * len(present):
        return chances
    own = np.ones(int(taught.sum())) if weight is None else weight[taught] / weight[taught].mean()
    out = np.zeros(chances.shape)
    out[:, present] = _logistic(100.0)(odds[taught], rows, own, odds, len(present))
    return out
