"""Hyperparameter search of SIRE and IRE by cross-validation: candidates of penalty and kappa.

A candidate is a pair (penalty, κ). All fold networks of several candidates are trained in one program. The search goes
stepwise: the start of the common curve and the penalty at the first κ, then κ, then more members of the winner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from largesse.progress import track
from largesse.propensity import compute_doubly_robust_scores, estimate_propensities
from largesse.records import Array, CandidateLoss, Log
from largesse.response.ensemble_calibration import HeldOutScores, ScoreCalibration, fit_score_calibration
from largesse.response.fold_ensemble import predict_held_out
from largesse.response.level_effect_estimation import scale_doses
from largesse.response.linear import Linear, fit_regression_by_fold
from largesse.response.networks.doubly_robust_correction import ChosenCorrection, fit_correction
from largesse.response.networks.fitted_networks import FoldNetworkEnsemble, ResponseScale, mark_lowest_loss
from largesse.response.networks.network_settings import FIRST_STEP, STARTS, Balance, NetworkShape, Training
from largesse.response.networks.training_runner_hook import train_networks
from largesse.response.networks.training_types import TrainedNetworks, TrainingJob, TrainingLoop
from largesse.response.regression_grid import RegressionRows
from largesse.stats import (
    assign_folds,
    choose_by_one_standard_error,
    choose_lowest_loss,
    compute_loss,
    find_chosen_index,
    limit_to_one_thread,
    logit,
    sample_rows,
    sigmoid,
)

DR_FOLDS = 5
SETTINGS_SEARCH_ROWS = 20_000  # on which settings are chosen; the final networks learn from all rows
MIN_STEPS = 3  # per epoch; with fewer steps, the number of epochs grows
STRETCH = 10  # epochs between two checks whether all networks have stopped
CALIBRATION_ROWS = 50_000  # to which the calibration of the mean is fitted

Candidate = tuple[float, float]  # penalty on deviations, κ


@dataclass(frozen=True, eq=False)
class NetworkSearchSettings:
    """Settings of a hyperparameter search: its candidates, and the training of their networks."""

    head: str
    penalties: tuple[float, ...]  # the most shrunk first
    kappas: tuple[float, ...]  # the first is used while the penalty is chosen
    kappa_rule: str  # "loss", "dr" or "loggers"
    shape: NetworkShape
    training: Training
    balance: Balance
    members: int
    orthogonal: bool
    seed: int


@dataclass(frozen=True, eq=False)
class NetworkSearchTask:
    """Data of a hyperparameter search: the log, its encoded features and its folds."""

    X: Array  # (n, p) encoded features
    log: Log
    fold: Array  # (n,)
    parts: Array  # the folds that are held out, each by one network
    level_weight: Array  # (n, K) one at the row's own level; for a dose between two knots, shared between them
    scale: ResponseScale

    @cached_property
    def held_out_rows(self) -> Array:
        """Indices of the rows in the held-out folds."""
        return np.flatnonzero(np.isin(self.fold, self.parts))

    def sample_rows(self, most: int, seed: int) -> NetworkSearchTask:
        """Return the search data for a random sample of at most `most` rows.

        The whole task is returned if it is small, or if a fold would have no rows.
        """
        rows = sample_rows(len(self.fold), most, seed)
        if len(rows) == len(self.fold) or not np.isin(self.parts, self.fold[rows]).all():
            return self
        log, level_weight = self.log.take(rows), self.level_weight[rows]
        return NetworkSearchTask(self.X[rows], log, self.fold[rows], self.parts, level_weight, self.scale)

    @cached_property
    def held_out_log(self) -> Log:
        """Log of the rows in the held-out folds."""
        return self.log.take(self.held_out_rows)


@dataclass(frozen=True, eq=False)
class NetworkSearchResult:
    """Result of a hyperparameter search: the best networks, and the losses of all candidates."""

    networks: FoldNetworkEnsemble
    start: tuple[CandidateLoss, ...]
    shrinkage: tuple[CandidateLoss, ...]
    kappa: tuple[CandidateLoss, ...]
    correction: tuple[CandidateLoss, ...]


def encode_one_hot_levels(log: Log) -> Array:
    """Return one-hot encoded levels (n, K) of a log's rows in float32."""
    return np.eye(len(log.levels), dtype=np.float32)[log.level]


def search_networks(recipe: NetworkSearchSettings, task: NetworkSearchTask) -> NetworkSearchResult:
    """Search for the best hyperparameters, and return the networks trained with them.

    The search uses a sample of a large log.
    """
    starts = STARTS if recipe.training.start == "auto" else (recipe.training.start,)
    kappa, some = recipe.kappas[0], task
    if len(starts) * len(recipe.penalties) * len(recipe.kappas) > 1:
        some = task.sample_rows(SETTINGS_SEARCH_ROWS, recipe.seed)
    with limit_to_one_thread(task.X.size * len(task.parts) * len(recipe.penalties)):
        searches = [NetworkSettingsSearch(recipe, some, start) for start in starts]
        jobs = [*([len(recipe.penalties)] * len(starts)), len(recipe.kappas) - 1, recipe.members - 1]  # fold networks
        turns = track(range(len(jobs)), jobs)
        for search in searches:
            next(turns)
            search.train_candidates([(penalty, kappa) for penalty in recipe.penalties])
        shrinkage = [search.choose_penalty() for search in searches]
        penalties = [recipe.penalties[find_chosen_index(choices)] for choices in shrinkage]
        losses = np.array([s.losses[penalty, kappa] for s, penalty in zip(searches, penalties, strict=True)])
        start = choose_lowest_loss(list(starts), losses, some.held_out_log.weight, some.held_out_log.cluster)
        best_start = find_chosen_index(start)
        search, penalty = searches[best_start], penalties[best_start]
        next(turns)
        search.train_candidates([(penalty, other) for other in recipe.kappas[1:]])
        choices = search.choose_kappa(penalty)
        best = (penalty, recipe.kappas[find_chosen_index(choices)])
        next(turns)
        if some is not task:
            search = NetworkSettingsSearch(recipe, task, starts[best_start])
            search.train_candidates([best])
        search.train_more_members(best)
    second = search.fit_candidate_correction(best) if recipe.orthogonal else ChosenCorrection(None, ())
    return NetworkSearchResult(
        search.calibrate_candidate(best, second), start, shrinkage[best_start], choices, second.choices
    )


class NetworkSettingsSearch:
    """Hyperparameter search from one initial curve: trained fold networks and held-out losses of candidates."""

    def __init__(self, recipe: NetworkSearchSettings, task: NetworkSearchTask, start: str) -> None:
        self.recipe, self.task, self.start = recipe, task, start
        self.params: dict[Candidate, dict[str, Array]] = {}
        self.scores: dict[Candidate, Array] = {}  # (held rows, K)
        self.losses: dict[Candidate, Array] = {}  # (held rows,)

    # -- training -------------------------------------------------------------------------------------------------

    def train_candidates(self, candidates: list[Candidate]) -> None:
        """Train the fold networks of several candidates in one compiled program."""
        if not candidates:
            return
        task = self.task
        trained = self._train_fold_networks(candidates, task.fold, task.parts)
        for i, candidate in enumerate(candidates):
            self.params[candidate] = _select_model_block(trained.params, i, len(task.parts))
            self.scores[candidate] = self._predict_held_out_scores(
                candidate, self.params[candidate], task.fold, task.parts
            )
            self.losses[candidate] = self._compute_losses(self.scores[candidate], task.held_out_rows)

    def train_more_members(self, best: Candidate) -> None:
        """Train additional fold networks of a candidate from other random initial weights.

        The score of each fold is then the mean over its members.
        """
        members, task = self.recipe.members, self.task
        if members < 2:
            return
        trained = self._train_fold_networks([best] * (members - 1), task.fold, task.parts, np.arange(1, members))
        scores = self.scores[best]
        for i in range(members - 1):
            scores = scores + self._predict_held_out_scores(
                best, _select_model_block(trained.params, i, len(task.parts)), task.fold, task.parts
            )
        self.scores[best] = scores / members
        params = self.params[best]
        self.params[best] = {name: np.concatenate([params[name], trained.params[name]]) for name in params}

    def _train_fold_networks(
        self, candidates: list[Candidate], fold: Array, parts: Array, member: Array | None = None
    ) -> TrainedNetworks:
        """Train one network per candidate and fold, on the rows of all other folds.

        Training stops early by the loss on the fold itself.
        """
        from largesse.response.networks.batched_training import stack_row_sets
        from largesse.response.networks.sire_training import count_steps_per_epoch, make_sire_program

        recipe, task, many = self.recipe, self.task, len(candidates)
        weight = task.log.weight
        weight = np.ones(len(fold)) if weight is None else weight / weight.mean()
        train_rows, train_weight = stack_row_sets([np.flatnonzero(fold != held_fold) for held_fold in parts], weight)
        stop_rows, stop_weight = stack_row_sets([np.flatnonzero(fold == held_fold) for held_fold in parts], weight)
        sets = (train_rows, train_weight, stop_rows, stop_weight)
        rows = train_rows.shape[1]
        more = max(1, MIN_STEPS // max(1, rows // recipe.training.batch))  # epochs of small logs have few steps
        training = replace(
            recipe.training, epochs=recipe.training.epochs * more, patience=recipe.training.patience * more
        )
        balance = (
            recipe.balance if any(kappa > 0 for kappa in recipe.kappas) else None
        )  # one program for all candidates
        penalty, kappa = (np.repeat(each, len(parts)) for each in np.array(candidates).T)
        model_data = (
            *(np.tile(array, (many, 1)) for array in sets),
            kappa.astype(np.float32),
            np.where(np.isinf(penalty), 0.0, penalty).astype(np.float32),
            _make_gates(penalty),
            np.tile(self._make_start_curves(fold, parts), (many, 1)).astype(np.float32),
        )
        # The same seeds for every candidate: they differ by the candidate alone. Members differ by the seed alone.
        shift = np.zeros(many, np.int64) if member is None else member
        seeds = np.tile(recipe.seed * 1009 + np.arange(len(parts)), many) + np.repeat(shift, len(parts)) * 7919
        steps = count_steps_per_epoch(rows, training.batch)
        loop = TrainingLoop(training.epochs, steps, training.patience, STRETCH)
        response = task.scale.standardise(task.log.response)
        data = tuple(np.asarray(array, np.float32) for array in (task.X, task.level_weight, response))
        return train_networks(
            TrainingJob(make_sire_program(recipe.shape, training, balance, rows), loop, data, model_data, seeds)
        )

    def _make_start_curves(self, fold: Array, parts: Array) -> Array:
        """Return the initial scores (folds, K) of the networks, NaN for random initial scores."""
        task, K = self.task, len(self.task.log.levels)
        if self.start == "regression":
            return fit_regression_curves(task.X, task.log, fold, parts, task.scale)
        curve = make_initial_curve(task.log, task.scale) if self.start == "guess" else np.full(K, np.nan)
        return np.tile(curve, (len(parts), 1))

    # -- held-out rows --------------------------------------------------------------------------------------------

    def _predict_held_out_scores(
        self, candidate: Candidate, params: dict[str, Array], fold: Array, parts: Array
    ) -> Array:
        """Return the scores (rows, K) of held-out rows, each by the network trained without the row's fold."""
        from largesse.response.networks.sire_training import predict_scores

        out = np.empty((len(fold), self.recipe.shape.levels))
        gate = _make_gates(np.array(candidate[:1]))
        for j, part in enumerate(parts):
            params_of_part = {name: value[j : j + 1] for name, value in params.items()}
            out[fold == part] = predict_scores(params_of_part, self.task.X[fold == part], self.recipe.shape, gate)[0]
        return out[np.isin(fold, parts)]

    def _compute_losses(self, scores: Array, rows: Array) -> Array:
        """Return the losses (rows,) of selected rows at their logged levels."""
        scores_at_level = (scores * self.task.level_weight[rows]).sum(axis=1)
        response = self.task.scale.standardise(self.task.log.response[rows])
        return compute_loss(scores_at_level, response, self.task.scale.bounded)

    # -- choosing -------------------------------------------------------------------------------------------------

    def choose_penalty(self) -> tuple[CandidateLoss, ...]:
        """Choose the strongest penalty within one standard error of the lowest held-out loss.

        It is chosen at the first κ.

        Returns all penalties as candidates.
        """
        recipe, held = self.recipe, self.task.held_out_log
        losses = np.array([self.losses[penalty, recipe.kappas[0]] for penalty in recipe.penalties])
        return choose_by_one_standard_error([f"{p:g}" for p in recipe.penalties], losses, held.weight, held.cluster)

    def choose_kappa(self, penalty: float) -> tuple[CandidateLoss, ...]:
        """Choose the HSIC strength κ with the lowest loss or risk by the criterion `kappa_rule`.

        The paper's criterion is the held-out loss.

        Returns all κ as candidates.
        """
        kappas, held = self.recipe.kappas, self.task.held_out_log
        names = [f"{kappa:g}" for kappa in kappas]
        if self.recipe.kappa_rule == "loggers":
            return mark_lowest_loss(names, self._measure_left_out_logger_risks(penalty))
        risk = self._measure_increment_risks if self.recipe.kappa_rule == "dr" else self.losses.__getitem__
        return choose_lowest_loss(
            names, np.array([risk((penalty, kappa)) for kappa in kappas]), held.weight, held.cluster
        )

    def _measure_increment_risks(self, candidate: Candidate) -> Array:
        """Return squared distances (rows,) between predicted and doubly robust level increments of held-out rows."""
        scores, scale = self.scores[candidate], self.task.scale
        curves = sigmoid(scores) if scale.bounded else scores * scale.deviation
        return ((self._robust_increments - np.diff(curves, axis=1)) ** 2).sum(axis=1)

    @cached_property
    def _robust_increments(self) -> Array:
        """Doubly robust increments of the response between levels (rows, K−1) of the held-out rows.

        The curves are those of a cross-fitted `Linear`.
        """
        log, seed = self.task.log, self.recipe.seed
        fold = assign_folds(log, DR_FOLDS, seed)
        curves = predict_held_out(Linear(seed=seed), log, fold).curves
        scores = compute_doubly_robust_scores(
            curves, log.level, log.response, estimate_propensities(log, fold, seed).own
        )
        return np.diff(scores, axis=1)[self.task.held_out_rows]

    def _measure_left_out_logger_risks(self, penalty: float) -> Array:
        """Return each κ's mean loss on the rows of every logging policy, by networks trained without this policy."""
        log = self.task.log
        assert log.logger is not None
        parts = np.unique(log.logger)
        candidates = [(penalty, kappa) for kappa in self.recipe.kappas]
        trained = self._train_fold_networks(candidates, log.logger, parts)
        risks = []
        for i, candidate in enumerate(candidates):
            scores = self._predict_held_out_scores(
                candidate, _select_model_block(trained.params, i, len(parts)), log.logger, parts
            )
            risks.append(np.average(self._compute_losses(scores, np.arange(len(log))), weights=log.weight))
        return np.array(risks)

    # -- finishing ------------------------------------------------------------------------------------------------

    def fit_candidate_correction(self, best: Candidate) -> ChosenCorrection:
        """Fit the doubly robust corrections of a candidate's fold networks on held-out rows."""
        from largesse.response.networks.sire_training import compute_representations

        task, shape = self.task, self.recipe.shape
        rho = estimate_propensities(task.log, task.fold, self.recipe.seed).own
        curves = np.empty((len(task.log), len(task.log.levels)))
        curves[task.held_out_rows] = task.scale.convert_scores_to_responses(self.scores[best])
        held = [task.fold == held_fold for held_fold in task.parts]
        params = self.params[best]
        z = [
            compute_representations({name: value[j : j + 1] for name, value in params.items()}, task.X[rows], shape)[0]
            for j, rows in enumerate(held)
        ]
        logs = [task.log.take(rows) for rows in held]
        return fit_correction(z, [curves[rows] for rows in held], logs, [rho[rows] for rows in held])

    def calibrate_candidate(self, best: Candidate, second: ChosenCorrection) -> FoldNetworkEnsemble:
        """Return the fold networks of a candidate with their calibration and correction."""
        penalty, kappa = best
        params = self.params[best]
        models = len(next(iter(params.values())))
        networks = FoldNetworkEnsemble(
            shape=self.recipe.shape,
            scale=self.task.scale,
            params=params,
            gate=np.repeat(_make_gates(np.array([penalty])), models),
            folds=len(self.task.parts),
            kappa=kappa,
            penalty=penalty,
            calibration=ScoreCalibration(),
            correction=second.correction,
        )
        # A second stage corrects the curves as they are, and a stretched logit need not be concave as a probability.
        fixed = second.correction is not None or (self.recipe.head == "concave" and self.task.scale.bounded)
        calibration = ScoreCalibration() if fixed else self._calibrate(best, networks)
        return replace(networks, calibration=calibration)

    def _calibrate(self, best: Candidate, networks: FoldNetworkEnsemble) -> ScoreCalibration:
        """Calibrate the mean score of several fold networks on held-out rows.

        A single network is not calibrated.
        """
        task = self.task
        if networks.folds < 2:
            return ScoreCalibration()
        some = np.arange(len(task.held_out_rows))[:: -(-len(task.held_out_rows) // CALIBRATION_ROWS)]
        rows = task.held_out_rows[some]
        held = HeldOutScores(
            self.scores[best][some],
            task.level_weight[rows],
            task.scale.standardise(task.log.response[rows]),
            task.scale.bounded,
            task.log.weights[rows],
        )
        return fit_score_calibration(held, networks.scores(task.X[rows]))


def _make_gates(penalty: Array) -> Array:
    """Return factors (models,) of customer-specific increments: zero for an infinite penalty, else one."""
    return np.where(np.isinf(penalty), 0.0, 1.0).astype(np.float32)


def _select_model_block(params: dict[str, Array], i: int, size: int) -> dict[str, Array]:
    """Return the parameters of the i-th group of `size` models."""
    return {name: value[i * size : (i + 1) * size] for name, value in params.items()}


REGRESSION_ROWS = 20_000  # to which the regressions of the start are fitted
BASE_PREDICTOR_RIDGE = 0.03


def make_initial_curve(log: Log, scale: ResponseScale) -> Array:
    """Return initial scores (K,) with small equal increments around the mean response."""
    K = len(log.levels)
    middle = scale.standardise(np.average(log.response, weights=log.weight))
    if scale.bounded:
        middle = logit(middle, inside=0.0) if 0 < middle < 1 else np.zeros(())
    return middle + FIRST_STEP * (np.arange(K) - (K - 1) / 2)


def fit_regression_curves(X: Array, log: Log, fold: Array, parts: Array, scale: ResponseScale) -> Array:
    """Return the mean scores (folds, K) of linear regressions, each fitted without one held-out fold."""
    some = np.arange(len(log))[:: -(-len(log) // REGRESSION_ROWS)]
    response = scale.standardise(log.response[some])
    weight = log.weights[some]
    cluster = None if log.cluster is None else log.cluster[some]
    K, doses = len(log.levels), scale_doses(log.levels)
    rows = RegressionRows(X[some], log.level[some], response, weight, K, scale.bounded, doses, cluster)
    fits = fit_regression_by_fold(rows, fold[some], BASE_PREDICTOR_RIDGE)
    middle = (weight / weight.sum()) @ X[some]
    order = np.unique(fold[some]).tolist()
    curves = []
    for part in parts.tolist():
        fit = fits[order.index(part)]
        curves.append(fit.intercept + middle @ fit.coef + fit.level_effects)
    return np.array(curves)
