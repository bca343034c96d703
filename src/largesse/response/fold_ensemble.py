"""Ensembles of one model per fold: out-of-fold predictions of a log, and mean predictions of new customers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.io import Arrays, State
from largesse.progress import advance, report_to, start_stage, subrange, track
from largesse.records import Array, HeldOutPredictions, Log, LogSample, Progress
from largesse.response.level_effect_estimation import Link
from largesse.response.response_model import ResponseModel, compute_in_blocks, copy_unfitted, copy_with_encoder
from largesse.stats import count_cores, run_in_threads

if TYPE_CHECKING:
    import pyarrow as pa

HELD_OUT = "judging it on held-out rows"  # the stage that takes most of an evaluation's time
OUTSIDE = "scoring rows that were not learnt from"


def fit_fold_copies(
    models: Sequence[ResponseModel], X: Array, log: Log, fold: Array, owner: ResponseModel
) -> tuple[tuple[ResponseModel, ...], ...]:
    """Fit a copy of each model without each fold of a log, in parallel threads if possible.

    X are encoded features (n, p).

    Returns the fold models of each model. They share the owner's encoder: customers are then encoded once, not once per model.
    """
    blank = [copy_with_encoder(model, log, owner.encoder_) for model in models]
    jobs = [member.fold_jobs(X, log, fold) for member in blank]
    free = [m for m, member in enumerate(blank) if member.threads]
    workers = min((blank[m].count_workers(X) for m in free), default=1)
    others = [m for m in range(len(models)) if m not in free]
    share = len(others) / len(models)
    with subrange(0.0, share):
        alone = {m: run_in_threads(jobs[m], 1, tracked=True) for m in track(others)}
    # The longest first: those of single models with all folds in one job.
    order = sorted(free, key=lambda m: len(jobs[m]))
    with subrange(share, 1.0):
        done = iter(run_in_threads([job for m in order for job in jobs[m]], workers, tracked=True))
    results = alone | {m: [next(done) for _ in jobs[m]] for m in order}
    fitted = [[model for members in results[m] for model in members] for m in range(len(models))]
    for member, copies in zip(blank, fitted, strict=True):
        member.harmonise_fold_models(copies, log, fold)
    return tuple(map(tuple, fitted))


def score_held_out_rows(models: Sequence[ResponseModel], X: Array, fold: Array, link: Link) -> Array:
    """Return the out-of-fold scores (n, K) of rows, each by the model fitted without the row's fold."""
    scores = np.empty((len(X), models[0].levels_))
    for model, f in zip(models, np.unique(fold), strict=True):
        scores[fold == f] = link.to_scores(model._curves(X[fold == f]))
    return scores


def average_member_scores(models: Sequence[ResponseModel], X: Array, link: Link) -> Array:
    """Return the scores (n, K) of new customers, averaged over several fitted models.

    X are features (n, p).
    """
    total = np.zeros((len(X), models[0].levels_))
    for model in models:
        total += link.to_scores(model._curves(X))
    return total / len(models)


def predict_held_out(model: Any, log: Log, fold: Array, progress: Progress | None = None) -> HeldOutPredictions:
    """Return out-of-fold predictions of a log by copies of a model that are fitted without each fold.

    The model is any object with `fit(log)` and `predict(features)`.

    Response models of this package share one encoding of the log and one choice of settings; others are refitted. Of a large log,
    rows outside the sample are predicted by a copy that is fitted to the whole sample.
    """
    if log.sample is not None:
        return _predict_large_log(model, log, log.sample, fold, progress)
    if not isinstance(model, ResponseModel):
        return HeldOutPredictions(_refit_per_fold(model, log, fold, progress), fold)
    with report_to(progress):
        if progress:
            start_stage(HELD_OUT, len(log))
        return model.predict_held_out(log, fold)


def _predict_large_log(
    model: Any, log: Log, sample: LogSample, fold: Array, progress: Progress | None
) -> HeldOutPredictions:
    held = predict_held_out(model, sample.log, fold[sample.rows], progress)
    fitted = copy_unfitted(model).fit(sample.log)
    with report_to(progress):
        start_stage(OUTSIDE, len(log))
        return predict_rows_outside_log_sample(held, log, fold, fitted)


def _refit_per_fold(model: Any, log: Log, fold: Array, progress: Progress | None) -> Array:
    """Return out-of-fold curves (n, K) of a log by copies of a model that are refitted for each fold."""
    parts = np.unique(fold)
    curves = np.empty((len(log), len(log.levels)))
    with report_to(progress):
        if progress:
            start_stage(HELD_OUT, len(log))
        for f in track(parts):
            test = fold == f
            curves[test] = copy_unfitted(model).fit(log.take(~test)).predict(log.take(test).features)
    return curves


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """Function from feature tables to response curves by a fitted model, which can be sent to other processes.

    It is sent to other machines as JSON and arrays.
    """

    model: Any
    workers: int = 1  # threads

    def __call__(self, table: pa.Table) -> Array:
        """Return the response curves (n, K) of a feature table, followed by expected costs if costs are observed.

        The costs are K more columns.
        """
        if not isinstance(self.model, ResponseModel):
            return np.asarray(self.model.predict(table))
        X, of_costs = self.model.encode(table), getattr(self.model, "costs_", None)
        curves = compute_in_blocks(self.model._curves, X, self.workers)
        if of_costs is None:
            return curves
        return np.hstack([curves, np.maximum(compute_in_blocks(of_costs._curves, X, self.workers), 0.0)])

    @property
    def features(self) -> list[str] | None:
        """Names of the feature columns that the model needs, or None for all columns."""
        return list(self.model.encoder_.features) if isinstance(self.model, ResponseModel) else None

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_model_scorer, (type(self.model).__name__, *self.model.state())


def restore_model_scorer(kind: str, state: State, arrays: Arrays) -> ModelScorer:
    """Restore a `ModelScorer` from the JSON and arrays of its model."""
    kinds: list[Any] = [ResponseModel]
    for parent in kinds:
        kinds += parent.__subclasses__()
    known = {subclass.__name__: subclass for subclass in kinds}
    return ModelScorer(known[kind].from_state(state, arrays, known))


def predict_rows_outside_log_sample(held: HeldOutPredictions, log: Log, fold: Array, model: Any) -> HeldOutPredictions:
    """Extend out-of-fold predictions of a large log's sample to the log's other rows, by a fitted model.

    The fitted model predicts the rows outside the sample, which it has not seen.
    """
    assert log.sample is not None
    n, K, outside, start = len(log), held.curves.shape[1], np.flatnonzero(log.outside), 0
    curves = _copy_into_matrix(held.curves, log.sample.rows, n)
    costs = None if held.costs is None else _copy_into_matrix(held.costs, log.sample.rows, n)
    scorer = ModelScorer(model, count_cores())
    for batch in log.sample.map(scorer, scorer.features, outside):
        rows = outside[start : start + len(batch)]
        curves[rows] = batch[:, :K]
        if costs is not None and batch.shape[1] > K:
            costs[rows] = batch[:, K:]
        start += len(batch)
        advance(start / len(outside))
    moved = held.shuffled
    shuffled = None if moved is None else replace(moved, rows=log.sample.rows[moved.rows])
    return HeldOutPredictions(curves, fold, costs, shuffled)


def _copy_into_matrix(values: Array, rows: Array, n: int) -> Array:
    """Copy rows into a new matrix (n, K) at given positions, and leave all other rows uninitialised."""
    whole = np.empty((n, values.shape[1]))
    whole[rows] = values
    return whole
