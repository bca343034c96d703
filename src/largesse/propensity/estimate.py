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
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from largesse.data import Encoder
from largesse.progress import advance, track
from largesse.propensity.balance import balance_propensities, learn_tilts
from largesse.propensity.models import (
    CalibratedClassifier,
    Classifier,
    LogitCalibration,
    PropensityModel,
    PropensityScorer,
    to_logits,
)
from largesse.records import Array, Log, Propensities
from largesse.stats import (
    chosen,
    collect_trees,
    mean_estimate,
    one_standard_error,
    one_thread,
    sample_rows,
    shuffle_rows,
)

FLOOR = 0.01
STRENGTHS = (1.0, 0.1, 0.03, 0.01)  # of the features: inverses of the ridge penalty; the strongest is preferred
CHOOSING_ROWS = 10_000  # more rows do not make the choice of a strength better, only slower
CHOOSING_FOLDS = 3
FITTING_ROWS = 200_000  # a propensity model learns nothing from further rows that its folds do not already show
TREE_ROWS = 500  # per level; with fewer, trees only learn noise
LOGGER_ROWS = 200  # a logging policy with fewer rows is learnt together with the others

Fit: TypeAlias = Callable[[Array, Array, Array, int], Classifier]  # from X, target, weight, K


def estimate_propensities(log: Log, fold: Array, seed: int = 0, features: LevelFeatures | None = None) -> Propensities:
    """Return the propensities of the logged levels: those of the log, or estimates.

    Rows of the same `fold` (n,) are predicted together. `features` spares encoding the whole log again. Of a large log, it is
    the sample that is learnt from; other rows are predicted by models of all of it.
    """
    if log.propensity is not None:
        return Propensities(log.propensity, "given")
    features = encode_for_levels(log, fold=fold, seed=seed) if features is None else features
    seen, inside = log.seen, fold if log.sample is None else fold[log.sample.rows]
    with one_thread():
        found = _estimate(seen, inside, seed, features)
        own = found.probabilities[np.arange(len(seen)), seen.level]
        own = balance_propensities(own, features.X, seen.level, seen.weights, seed)
        if log.sample is not None:
            own = _add_outside(log, own, found.learn(), seed)
    return _raise_to_floor(own, log.weights, found.model)


@dataclass(frozen=True, eq=False)
class _Estimated:
    """The probabilities of every level, held out, and a function that learns the model of other rows."""

    probabilities: Array  # (n, K)
    model: str
    learn: Callable[[], PropensityScorer]


def _estimate(log: Log, fold: Array, seed: int, features: LevelFeatures) -> _Estimated:
    """Estimate the probabilities of levels; several logging policies are learnt separately and mixed."""
    logger, K, weight = _loggers(log), len(log.levels), log.weight
    task = _Task(features.X, log.level, log.scaled_weights, K)
    if logger is None:
        found = _crossfit(task, fold, seed)
        calibration = _learn_calibration(found.held, log.level, weight)

        def learn() -> PropensityScorer:
            return PropensityScorer(
                PropensityModel((CalibratedClassifier(found.learn(), calibration),)), features.encoder
            )

        return _Estimated(calibration(found.held), found.name, learn)
    encoder = Encoder()
    of_loggers = encoder.fit_transform(log.features, logger, discrete=True, seed=seed, fold=fold)
    met = _crossfit(_Task(of_loggers, logger, log.scaled_weights, int(logger.max()) + 1), fold, seed)
    meets = _learn_calibration(met.held, logger, weight)
    shares, parts = meets(met.held), []  # (n, S) the policy that a row like this meets
    mixed = np.zeros((len(log), K))
    for s in range(shares.shape[1]):
        found = _crossfit(task, fold, seed, taught=logger == s)
        parts.append((found, _learn_calibration(found.held, log.level, weight, taught=logger == s)))
        mixed += shares[:, [s]] * parts[-1][1](found.held)

    def learn_mixture() -> PropensityScorer:
        levels = tuple(CalibratedClassifier(found.learn(), calibration) for found, calibration in parts)
        model = PropensityModel(levels, CalibratedClassifier(met.learn(), meets))
        return PropensityScorer(model, features.encoder, encoder)

    return _Estimated(mixed, parts[-1][0].name, learn_mixture)


def _add_outside(log: Log, own: Array, scorer: PropensityScorer, seed: int) -> Array:
    """Return the propensities (n,) of all rows of a large log, from those (m,) of its sample.

    Rows outside are balanced by themselves: what corrects the chance imbalance of the sample would only add noise to theirs.
    """
    assert log.sample is not None
    whole, K = np.empty(len(log)), len(log.levels)
    whole[log.sample.rows] = own
    outside = np.flatnonzero(log.outside)
    rows = outside[np.sort(shuffle_rows(len(outside), FITTING_ROWS, seed))]
    encoded = np.concatenate(list(log.sample.map(scorer.encode_and_predict, None, rows)))
    X, found = encoded[:, :-K].astype(np.float32), encoded[np.arange(len(rows)), log.level[rows] - K]
    tilts, whole[rows] = learn_tilts(found, X, log.level[rows], log.weights[rows], seed)
    if len(rows) < len(outside):
        balanced, start = replace(scorer, model=replace(scorer.model, tilts=tilts)), 0
        for found in log.sample.map(balanced, None, outside):
            rows = outside[start : start + len(found)]
            whole[rows] = found[np.arange(len(rows)), log.level[rows]]
            start += len(found)
            advance(start / len(outside))
    return whole


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


@dataclass(frozen=True, eq=False)
class _Crossfitted:
    """Held-out probabilities (n, K), the name of what estimated them, and how to learn it from all rows."""

    held: Array
    name: str
    learn: Callable[[], Classifier]


def _crossfit(task: _Task, fold: Array, seed: int, taught: Array | None = None) -> _Crossfitted:
    """Predict a target (n,), every fold by a model of the others; models learn from `taught` rows only."""
    taught = np.ones(len(fold), dtype=bool) if taught is None else taught
    rng = np.random.default_rng(seed)
    name, fit = _choose(task, rng.permutation(np.flatnonzero(taught))[:CHOOSING_ROWS])

    def learn(rows: Array) -> Classifier:
        return fit(task.X[rows], task.target[rows], task.weight[rows], task.K)

    found = np.empty((len(fold), task.K))
    for f in track(np.unique(fold)):
        test = fold == f
        found[test] = learn(rng.permutation(np.flatnonzero(taught & ~test))[:FITTING_ROWS])(task.X[test])
    every = np.random.default_rng(seed).permutation(np.flatnonzero(taught))[:FITTING_ROWS]
    return _Crossfitted(found, name, lambda: learn(every))


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
    found = fit(X[train], target[train], weight[train], K)(X[test])
    return -np.log(np.maximum(found[np.arange(int(test.sum())), target[test]], FLOOR))


# -- what is fitted ---------------------------------------------------------------------------------------------------


def _shares(_X: Array, target: Array, weight: Array, K: int) -> Classifier:
    return Classifier(K, np.arange(K), shares=np.bincount(target, weights=weight, minlength=K) / weight.sum())


def _logistic(strength: float) -> Fit:
    from sklearn.linear_model import LogisticRegression

    return lambda *rows: _fit(LogisticRegression(C=strength, max_iter=200), *rows)


def _trees(X: Array, target: Array, weight: Array, K: int) -> Classifier:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Bins of weighted rows are slow to find, and propensities need no fine ones.
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.1, max_leaf_nodes=8, max_bins=32, early_stopping=False, random_state=0
    )
    return _fit(model, X, target, weight, K)


def _fit(model: Any, X: Array, target: Array, weight: Array, K: int) -> Classifier:
    """Return a model of scikit-learn, fitted to X (n, p) and a target (n,), as arrays."""
    from sklearn.exceptions import ConvergenceWarning

    if len(np.unique(target)) < 2:
        return _shares(X, target, weight, K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, target, sample_weight=None if np.ptp(weight) == 0 else weight)
    if hasattr(model, "coef_"):
        return Classifier(K, model.classes_, coef=model.coef_, intercept=model.intercept_)
    return Classifier(K, model.classes_, intercept=np.ravel(model._baseline_prediction), trees=collect_trees(model))


# -- calibration ------------------------------------------------------------------------------------------------------


def _learn_calibration(
    found: Array, target: Array, weight: Array | None, taught: Array | None = None
) -> LogitCalibration:
    """Fit a regression of the target on the logits of probabilities (n, K) and on their squares, over all rows.

    Rows take part in their own calibration. It learns few numbers, from levels and not from responses, so cross-fitting
    stays valid.
    """
    taught = np.ones(len(target), dtype=bool) if taught is None else taught
    present, rows = np.unique(target[taught], return_inverse=True)
    logits = to_logits(found, present)[taught]
    calibration = LogitCalibration(present, logits.mean(axis=0), logits.std(axis=0), None)
    varies = (calibration.spread > 1e-6).any()
    if not varies or len(present) < 2 or taught.sum() < 50 * len(present):
        return calibration
    own = np.ones(int(taught.sum())) if weight is None else weight[taught] / weight[taught].mean()
    classifier = _logistic(100.0)(calibration.scale(logits), rows, own, len(present))
    return replace(calibration, classifier=classifier)


# -- encoded features ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LevelFeatures:
    """Encoded features of some rows of a log."""

    X: Array  # (m, p) float32
    rows: Array  # (m,) which rows of the log these are
    names: tuple[str, ...]  # the features that vary
    sources: tuple[str, ...]  # (p,) the feature that each column comes from
    encoder: Encoder
    weight: Array | None = (
        None  # (m,) of the rows, where it is not the log's: a sample has more of some levels than the log
    )

    def sample(self, most: int, seed: int = 0) -> LevelFeatures:
        """Return at most `most` of the rows, drawn at random."""
        if len(self.rows) <= most:
            return self
        drawn = sample_rows(len(self.rows), most, seed)
        weight = None if self.weight is None else self.weight[drawn]
        return replace(self, X=self.X[drawn], rows=self.rows[drawn], weight=weight)


def encode_for_levels(log: Log, most: int | None = None, seed: int = 0, fold: Array | None = None) -> LevelFeatures:
    """Encode the features of a log, or of at most `most` of its rows, drawn at random; of a fold (n,) without its levels.

    Of a large log, it is the sample that is encoded.

    >>> from largesse.data import log_from_arrays
    >>> encode_for_levels(log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])).X.shape
    (4, 4)
    """
    seen, sample = log.seen, log.sample
    rows = np.arange(len(seen)) if most is None else sample_rows(len(seen), most, seed)
    part = seen if len(rows) == len(seen) else seen.take(rows)
    rows, weight = (rows, None) if sample is None else (sample.rows[rows], part.weight)
    encoder = Encoder()
    X = encoder.fit_transform(
        part.features, part.level, discrete=True, seed=seed, fold=None if fold is None else fold[rows]
    )
    return LevelFeatures(X, rows, tuple(encoder.features), tuple(encoder.sources), encoder, weight)


# -- doubly robust scores --------------------------------------------------------------------------------------------


def correct_curves(curves: Array, level: Array, outcome: Array, propensity: Array) -> Array:
    """Return Γ_ik = f̂(x_i, k) + 1{y_i = k} / ρ(y_i | x_i) · (r_i − f̂(x_i, k)) for out-of-fold curves f̂ (n, K).

    Averaged over rows, Γ is right if either the curves or the propensities are; their errors enter only as a product.

    >>> correct_curves(np.array([[0.5, 0.5]]), np.array([1]), np.array([1.0]), np.array([0.5]))
    array([[0.5, 1.5]])
    """
    rows = np.arange(len(curves))
    gamma = curves.copy()
    gamma[rows, level] += (outcome - curves[rows, level]) / propensity
    return gamma
