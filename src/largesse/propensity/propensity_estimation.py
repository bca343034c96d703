"""Cross-fitted, calibrated and balanced propensities of the logged levels, and doubly robust scores.

The estimate is cross-fitted: a multinomial logistic regression, or boosted trees where they clearly predict held-out rows
better. It is then calibrated: held-out logits are shrunk, which leaves confounding in the comparison; a second regression,
on the logits of all rows, undoes the shrinkage, and `covariate_balancing` removes the remaining differences between feature means.
Kinds of customers who never got a level have probability zero for it, and do not count when its feature means are balanced.
Several logging policies are learnt separately and mixed: a row's propensity is the probability of its level, averaged over
the policies that may have chosen it. Nothing is clipped silently: the result holds the number of rows raised to the floor
and the weight removed by it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from largesse.data import Encoder, find_feature_kind
from largesse.progress import advance, track
from largesse.propensity.covariate_balancing import MAX_PROPENSITY_ROWS, balance_propensities, fit_logit_corrections
from largesse.propensity.positivity_violations import find_unsupported_cells, mark_supported_levels
from largesse.propensity.propensity_models import (
    CalibratedClassifier,
    Classifier,
    LogitCalibration,
    PropensityModel,
    PropensityScorer,
    select_centred_logits,
)
from largesse.records import Array, Log, Propensities, UnsupportedCells
from largesse.stats import (
    choose_by_one_standard_error,
    extract_trees,
    find_chosen_index,
    limit_to_one_thread,
    sample_rows,
    shuffle_rows,
    t_estimate,
)

MIN_PROPENSITY = 0.01
INVERSE_PENALTIES = (1.0, 0.1, 0.03, 0.01)  # of ridge regressions; the largest within one standard error is preferred
MAX_PROPENSITY_SELECTION_ROWS = 10_000  # more rows only make the choice slower
PROPENSITY_SELECTION_FOLDS = 3
MIN_TREE_ROWS_PER_LEVEL = 500  # or units: with fewer, trees only learn noise
MIN_LOGGER_ROWS = 200  # logging policies with fewer rows are pooled

FitClassifier: TypeAlias = Callable[[Array, Array, Array, int], Classifier]  # from X, target, weight, K


def estimate_propensities(
    log: Log,
    fold: Array,
    seed: int = 0,
    features: PropensityFeatures | None = None,
    cells: UnsupportedCells | None = None,
) -> Propensities:
    """Return the propensities of the logged levels, given in the log or estimated out of fold.

    Each row is predicted by models fitted without its `fold` (n,). `features` are the encoded features, and `cells` the
    cells without support, if they are already known. The models of a large log are fitted to its sample; one fitted to the whole
    sample predicts the other rows.
    """
    if log.propensity is not None:
        return Propensities(log.propensity, "given")
    features = encode_propensity_features(log, fold=fold, seed=seed) if features is None else features
    seen, seen_fold = log.seen, fold if log.sample is None else fold[log.sample.rows]
    cells = find_unsupported_cells(log, seed) if cells is None else cells
    supported = mark_supported_levels(cells, log)
    seen_supported = supported if supported is None or log.sample is None else supported[log.sample.rows]
    import sklearn.linear_model  # noqa: F401 — loads OpenMP: limits of threads hold only for libraries that are loaded

    with limit_to_one_thread():
        estimate = _estimate_level_probabilities(seen, seen_fold, seed, features)
        propensity = _select_logged_probabilities(estimate.probabilities, seen.level, seen_supported)
        propensity = balance_propensities(
            propensity, features.X, seen.level, seen.weights, seed, _find_assignment_units(seen), seen_supported
        )
        if log.sample is not None:
            propensity = _predict_rows_outside_log_sample(log, propensity, estimate.learn(), supported, seed)
    return replace(_raise_to_floor(propensity, log.weights, estimate.model), unsupported=cells)


def _select_logged_probabilities(probabilities: Array, level: Array, supported: Array | None) -> Array:
    """Return the probabilities (n,) of the logged levels, normalised over each row's supported levels.

    Those with support have a mask (n, K). An exception keeps its own probability.
    """
    own = probabilities[np.arange(len(level)), level]
    if supported is None:
        return own
    return np.asarray(own / np.maximum((probabilities * supported).sum(axis=1), own))


@dataclass(frozen=True, eq=False)
class _OutOfFoldLevelProbabilities:
    """Out-of-fold probabilities of all levels, and a function that fits their model to all rows."""

    probabilities: Array  # (n, K)
    model: str
    learn: Callable[[], PropensityScorer]


def _estimate_level_probabilities(
    log: Log, fold: Array, seed: int, features: PropensityFeatures
) -> _OutOfFoldLevelProbabilities:
    """Estimate the probabilities of all levels for each row of a log, out of fold.

    Several logging policies are learnt separately and mixed.
    """
    logger, K, weight = _pool_small_loggers(log), len(log.levels), log.weight
    level_rows = _ClassificationRows(features.X, log.level, log.weights, K, _find_assignment_units(log))
    if logger is None:
        levels_fit = _predict_classes_out_of_fold(level_rows, fold, seed)
        calibration = _fit_calibration(levels_fit.held, log.level, weight)

        def learn() -> PropensityScorer:
            return PropensityScorer(
                PropensityModel((CalibratedClassifier(levels_fit.learn(), calibration),)), features.encoder
            )

        return _OutOfFoldLevelProbabilities(calibration(levels_fit.held), levels_fit.name, learn)
    logger_encoder = Encoder()
    X_loggers = logger_encoder.fit_transform(log.confounders, logger, discrete=True, seed=seed, fold=fold)
    loggers_fit = _predict_classes_out_of_fold(
        _ClassificationRows(X_loggers, logger, log.weights, int(logger.max()) + 1), fold, seed
    )
    logger_calibration = _fit_calibration(loggers_fit.held, logger, weight)
    logger_shares, by_logger = logger_calibration(loggers_fit.held), []  # (n, S) the policy that a row like this meets
    mixture = np.zeros((len(log), K))
    for policy in range(logger_shares.shape[1]):
        levels_fit = _predict_classes_out_of_fold(level_rows, fold, seed, training=logger == policy)
        by_logger.append((levels_fit, _fit_calibration(levels_fit.held, log.level, weight, training=logger == policy)))
        mixture += logger_shares[:, [policy]] * by_logger[-1][1](levels_fit.held)

    def learn_mixture() -> PropensityScorer:
        classifiers = tuple(
            CalibratedClassifier(levels_fit.learn(), calibration) for levels_fit, calibration in by_logger
        )
        model = PropensityModel(classifiers, CalibratedClassifier(loggers_fit.learn(), logger_calibration))
        return PropensityScorer(model, features.encoder, logger_encoder)

    return _OutOfFoldLevelProbabilities(mixture, by_logger[-1][0].name, learn_mixture)


def _predict_rows_outside_log_sample(
    log: Log, sample_propensity: Array, scorer: PropensityScorer, supported: Array | None, seed: int
) -> Array:
    """Return the propensities (n,) of all rows of a large log, given the propensities (m,) of its sample.

    Rows outside the sample are balanced separately: a correction of the sample's chance imbalance would only add noise.
    """
    assert log.sample is not None
    propensity, K = np.empty(len(log)), len(log.levels)
    propensity[log.sample.rows] = sample_propensity
    outside = np.flatnonzero(log.outside)
    rows = outside[np.sort(shuffle_rows(len(outside), MAX_PROPENSITY_ROWS, seed))]
    encoded = np.concatenate(list(log.sample.map(scorer.encode_and_predict, None, rows)))
    X, units = encoded[:, :-K].astype(np.float32), _find_assignment_units(log)
    allowed = None if supported is None else supported[rows]
    tilts, propensity[rows] = fit_logit_corrections(
        _select_logged_probabilities(encoded[:, -K:], log.level[rows], allowed),
        X,
        log.level[rows],
        log.weights[rows],
        seed,
        None if units is None else units[rows],
        allowed,
    )
    if len(rows) < len(outside):
        balanced, start = replace(scorer, model=replace(scorer.model, tilts=tilts)), 0
        for predicted in log.sample.map(balanced, None, outside):
            rows = outside[start : start + len(predicted)]
            propensity[rows] = _select_logged_probabilities(
                predicted, log.level[rows], None if supported is None else supported[rows]
            )
            start += len(predicted)
            advance(start / len(outside))
    return propensity


def _find_assignment_units(log: Log) -> Array | None:
    """Return the assignment unit (n,) of each row, or None if levels were assigned row by row.

    None also if this is not known.
    """
    return None if log.unit is None or log.assigned is not log.unit.code else log.assigned


def _pool_small_loggers(log: Log) -> Array | None:
    """Return the logging policy (n,) of each row, with small policies pooled, or None for a single policy."""
    if log.logger is None:
        return None
    sizes = np.bincount(log.logger)
    _, logger = np.unique(np.where(sizes[log.logger] >= MIN_LOGGER_ROWS, log.logger, -1), return_inverse=True)
    return logger if logger.max() > 0 and np.bincount(logger).min() >= MIN_LOGGER_ROWS else None


def _raise_to_floor(estimates: Array, weight: Array, model: str) -> Propensities:
    """Raise small propensities to the minimum, and count the raised rows and the removed weight."""
    low = estimates < MIN_PROPENSITY
    raised = np.maximum(estimates, MIN_PROPENSITY)
    before, after = weight @ (1.0 / np.maximum(estimates, 1e-12)), weight @ (1.0 / raised)
    return Propensities(raised, "estimated", model, int(low.sum()), float(1.0 - after / before))


# -- cross-fitting ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _ClassificationRows:
    """Rows of a classification: features, classes and weights."""

    X: Array  # (n, p) features, encoded without the fold's own targets
    target: Array  # (n,) in 0..K−1
    weight: Array  # (n,)
    K: int
    group: Array | None = None  # (n,) codes of the units that got their classes together

    def take(self, rows: Array) -> _ClassificationRows:
        """Select rows by their indices."""
        group = None if self.group is None else self.group[rows]
        return _ClassificationRows(self.X[rows], self.target[rows], self.weight[rows], self.K, group)

    @property
    def unit_numbers(self) -> Array:
        """Number (n,) of each row's assignment unit; rows without units have numbers of their own."""
        return np.arange(len(self.target)) if self.group is None else np.unique(self.group, return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class _OutOfFoldClassProbabilities:
    """Out-of-fold class probabilities (n, K), the classifier's name, and a function that fits it to all rows."""

    held: Array
    name: str
    learn: Callable[[], Classifier]


def _predict_classes_out_of_fold(
    data: _ClassificationRows, fold: Array, seed: int, training: Array | None = None
) -> _OutOfFoldClassProbabilities:
    """Predict class probabilities out of fold, by classifiers fitted to rows in `training`."""
    training = np.ones(len(fold), dtype=bool) if training is None else training
    rng = np.random.default_rng(seed)
    name, fit = _choose_classifier(data.take(rng.permutation(np.flatnonzero(training))[:MAX_PROPENSITY_SELECTION_ROWS]))

    def learn(rows: Array) -> Classifier:
        return fit(data.X[rows], data.target[rows], data.weight[rows], data.K)

    probabilities = np.empty((len(fold), data.K))
    for f in track(np.unique(fold)):
        test = fold == f
        probabilities[test] = learn(rng.permutation(np.flatnonzero(training & ~test))[:MAX_PROPENSITY_ROWS])(
            data.X[test]
        )
    training_rows = np.random.default_rng(seed).permutation(np.flatnonzero(training))[:MAX_PROPENSITY_ROWS]
    return _OutOfFoldClassProbabilities(probabilities, name, lambda: learn(training_rows))


def _choose_classifier(data: _ClassificationRows) -> tuple[str, FitClassifier]:
    """Choose between boosted trees and logistic regression by held-out loss.

    Returns the name of the classifier and the function that fits it.

    Trees must be better than the best logistic regression by more than one standard error. Whole units are held out: the features
    of a village tell the level of its other rows, but not of other villages. Where regressions predict other units no better
    than the levels' shares do, as in a trial by village, the shares are chosen.
    """
    X, target, weight, K = data.X, data.target, data.weight, data.K
    if X.shape[1] == 0 or len(np.unique(target)) < 2:
        return "shares", _fit_class_shares
    units = data.unit_numbers
    fold = units % PROPENSITY_SELECTION_FOLDS
    inverse_penalty, logistic_losses = _compare_inverse_penalties(X, target, weight, K, fold)
    if units.max() + 1 >= MIN_TREE_ROWS_PER_LEVEL * K and _are_trees_better(
        X, target, weight, K, fold, logistic_losses
    ):
        return "boosting", _fit_trees
    if data.group is not None and logistic_losses @ weight >= weight @ _compute_held_out_losses(
        _fit_class_shares, X, target, weight, K, fold
    ):
        return "shares", _fit_class_shares
    return "logistic", make_logistic_fitter(inverse_penalty)


def choose_inverse_penalty(X: Array, target: Array, weight: Array, K: int) -> float:
    """Choose the inverse ridge penalty of a multinomial logistic regression by held-out loss.

    There are K classes (n,); X is (n, p).
    """
    X, target, weight = (
        X[:MAX_PROPENSITY_SELECTION_ROWS],
        target[:MAX_PROPENSITY_SELECTION_ROWS],
        weight[:MAX_PROPENSITY_SELECTION_ROWS],
    )
    return _compare_inverse_penalties(X, target, weight, K, np.arange(len(target)) % PROPENSITY_SELECTION_FOLDS)[0]


def _compare_inverse_penalties(X: Array, target: Array, weight: Array, K: int, fold: Array) -> tuple[float, Array]:
    """Choose an inverse ridge penalty by the one-standard-error rule, and return the lowest held-out losses (n,).

    Returns it and the held-out losses (n,) of the best one.

    In doubt the weaker penalty is chosen: effects of features that are shrunk away are no longer adjusted for.
    """
    losses = np.stack(
        [_compute_held_out_losses(make_logistic_fitter(C), X, target, weight, K, fold) for C in INVERSE_PENALTIES]
    )
    choice = find_chosen_index(choose_by_one_standard_error([f"{C:g}" for C in INVERSE_PENALTIES], losses, weight))
    return INVERSE_PENALTIES[choice], losses[int(np.argmin(losses @ weight))]


def _are_trees_better(X: Array, target: Array, weight: Array, K: int, fold: Array, logistic_losses: Array) -> bool:
    """Test if boosted trees have clearly lower held-out losses than logistic regressions.

    The difference must exceed one standard error.

    Often one fold shows that they do not.
    """
    first = fold == 0
    gain = logistic_losses[first] - _compute_test_losses(_fit_trees, X, target, weight, K, ~first, first)
    if t_estimate(gain, weight[first]).estimate <= 0:
        return False
    whole_gain = t_estimate(logistic_losses - _compute_held_out_losses(_fit_trees, X, target, weight, K, fold), weight)
    return whole_gain.estimate > whole_gain.se


def _compute_held_out_losses(fit: FitClassifier, X: Array, target: Array, weight: Array, K: int, fold: Array) -> Array:
    losses = np.empty(len(target))
    for f in np.unique(fold):
        losses[fold == f] = _compute_test_losses(fit, X, target, weight, K, fold != f, fold == f)
    return losses


def _compute_test_losses(
    fit: FitClassifier, X: Array, target: Array, weight: Array, K: int, train: Array, test: Array
) -> Array:
    """Return the log losses of test rows under a classifier that is fitted to training rows."""
    probabilities = fit(X[train], target[train], weight[train], K)(X[test])
    return -np.log(np.maximum(probabilities[np.arange(int(test.sum())), target[test]], MIN_PROPENSITY))


# -- classifiers ---------------------------------------------------------------------------------------------------


def _fit_class_shares(_X: Array, target: Array, weight: Array, K: int) -> Classifier:
    return Classifier(K, np.arange(K), shares=np.bincount(target, weights=weight, minlength=K) / weight.sum())


def make_logistic_fitter(inverse_penalty: float) -> FitClassifier:
    """Return a function that fits a multinomial logistic regression with an inverse ridge penalty."""
    from sklearn.linear_model import LogisticRegression

    return lambda *rows: _fit_sklearn(LogisticRegression(C=inverse_penalty, max_iter=200), *rows)


def _fit_trees(X: Array, target: Array, weight: Array, K: int) -> Classifier:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Bins of weighted rows are slow to find, and propensities need no fine ones.
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.1, max_leaf_nodes=8, max_bins=32, early_stopping=False, random_state=0
    )
    return _fit_sklearn(model, X, target, weight, K)


def _fit_sklearn(model: Any, X: Array, target: Array, weight: Array, K: int) -> Classifier:
    """Fit a scikit-learn classifier, and return its parameters as a `Classifier` record.

    It is fitted to X (n, p) and classes (n,).
    """
    from sklearn.exceptions import ConvergenceWarning

    if len(np.unique(target)) < 2:
        return _fit_class_shares(X, target, weight, K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, target, sample_weight=None if np.ptp(weight) == 0 else weight)
    if hasattr(model, "coef_"):
        return Classifier(K, model.classes_, coef=model.coef_, intercept=model.intercept_)
    return Classifier(K, model.classes_, intercept=np.ravel(model._baseline_prediction), trees=extract_trees(model))


# -- calibration ------------------------------------------------------------------------------------------------------


def _fit_calibration(
    probabilities: Array, target: Array, weight: Array | None, training: Array | None = None
) -> LogitCalibration:
    """Fit a calibration of class probabilities (n, K): a regression of classes on logits and squared logits.

    It is fitted to the rows in `training`.

    The calibration is not cross-fitted: it has few parameters and learns from levels, not from responses.
    """
    training = np.ones(len(target), dtype=bool) if training is None else training
    present, positions = np.unique(target[training], return_inverse=True)
    logits = select_centred_logits(probabilities, present)[training]
    calibration = LogitCalibration(present, logits.mean(axis=0), logits.std(axis=0), None)
    varies = (calibration.spread > 1e-6).any()
    if not varies or len(present) < 2 or training.sum() < 50 * len(present):
        return calibration
    row_weights = np.ones(int(training.sum())) if weight is None else weight[training] / weight[training].mean()
    classifier = make_logistic_fitter(100.0)(calibration.make_regressors(logits), positions, row_weights, len(present))
    return replace(calibration, classifier=classifier)


# -- encoded features ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PropensityFeatures:
    """Encoded features of rows of a log, for models that predict the level."""

    X: Array  # (m, p) float32
    rows: Array  # (m,) row numbers in the log
    names: tuple[str, ...]  # of the varying features
    sources: tuple[str, ...]  # (p,) feature of each column
    encoder: Encoder
    weight: Array | None = None  # (m,) if it differs from the log's: a sample has more rows of rare levels

    def sample(self, max_rows: int, seed: int = 0) -> PropensityFeatures:
        """Return a random sample of at most `max_rows` of the rows."""
        if len(self.rows) <= max_rows:
            return self
        rows = sample_rows(len(self.rows), max_rows, seed)
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, X=self.X[rows], rows=self.rows[rows], weight=weight)


def encode_propensity_features(
    log: Log, max_rows: int | None = None, seed: int = 0, fold: Array | None = None
) -> PropensityFeatures:
    """Encode the features of a log as a matrix, for models that predict the level.

    At most `max_rows` random rows are encoded; with folds (n,), text is encoded without the levels of a row's own fold.

    Of a large log, the sample is encoded. The words of a unit of assignment are left out: each had one level.

    >>> from largesse.data import log_from_arrays
    >>> encode_propensity_features(log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])).X.shape
    (4, 4)
    """
    seen, sample = log.seen, log.sample
    rows = np.arange(len(seen)) if max_rows is None else sample_rows(len(seen), max_rows, seed)
    encoded_log = seen if len(rows) == len(seen) else seen.take(rows)
    rows, weight = (rows, None) if sample is None else (sample.rows[rows], encoded_log.weight)
    encoder, table = Encoder(), encoded_log.confounders
    unit = seen.unit.column if seen.unit is not None and _find_assignment_units(seen) is not None else ""
    if unit in table.column_names and find_feature_kind(table.column(unit).type) == "text":
        table = table.drop_columns(unit)
    X = encoder.fit_transform(
        table, encoded_log.level, discrete=True, seed=seed, fold=None if fold is None else fold[rows]
    )
    return PropensityFeatures(X, rows, tuple(encoder.features), tuple(encoder.sources), encoder, weight)


# -- doubly robust scores --------------------------------------------------------------------------------------------


def compute_doubly_robust_scores(curves: Array, level: Array, outcome: Array, propensity: Array) -> Array:
    """Return doubly robust scores Γ (n, K) from out-of-fold curves f̂ (n, K) and propensities ρ (n,).

    Γ_ik = f̂(x_i, k) + 1{y_i = k} / ρ(y_i | x_i) · (r_i − f̂(x_i, k)).

    The mean of Γ is consistent if either the curves or the propensities are; their errors enter only as a product.

    >>> compute_doubly_robust_scores(np.array([[0.5, 0.5]]), np.array([1]), np.array([1.0]), np.array([0.5]))
    array([[0.5, 1.5]])
    """
    rows = np.arange(len(curves))
    gamma = curves.copy()
    gamma[rows, level] += (outcome - curves[rows, level]) / propensity
    return gamma
