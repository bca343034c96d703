"""One model per fold: each predicts the rows it has not seen, all of them together predict new customers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.progress import advance, report_to, start_stage, subrange, track
from largesse.records import Array, HeldOut, Log, Progress, Sample
from largesse.response.base import ResponseModel, blank_copy, copy_unfitted
from largesse.response.level_effects import Link
from largesse.stats import side_by_side

if TYPE_CHECKING:
    import pyarrow as pa

HELD_OUT = "judging it on held-out rows"  # the stage that takes most of an evaluation's time
OUTSIDE = "scoring rows that were not learnt from"


def fit_folds(model: ResponseModel, X: Array, log: Log, fold: Array, owner: ResponseModel) -> list[ResponseModel]:
    """Return copies of a model, each fitted without one fold of the encoded features (n, p) and the log.

    They share the owner's encoder: customers are then encoded once, not once for every model.
    """
    return list(fit_members([model], X, log, fold, owner)[0])


def fit_members(
    models: Sequence[ResponseModel], X: Array, log: Log, fold: Array, owner: ResponseModel
) -> tuple[tuple[ResponseModel, ...], ...]:
    """Return what `fit_folds` returns for each of several models; where threads pay, all their fits are done side by side."""
    blank = [blank_copy(model, log, owner.encoder_) for model in models]
    jobs = [one.fold_jobs(X, log, fold) for one in blank]
    free = [m for m, one in enumerate(blank) if one.threads]
    workers = min((blank[m].workers(X) for m in free), default=1)
    others = [m for m in range(len(models)) if m not in free]
    share = len(others) / len(models)
    with subrange(0.0, share):
        alone = {m: side_by_side(jobs[m], 1, tracked=True) for m in track(others)}
    # The longest first: those of single models with all folds in one job.
    order = sorted(free, key=lambda m: len(jobs[m]))
    with subrange(share, 1.0):
        done = iter(side_by_side([job for m in order for job in jobs[m]], workers, tracked=True))
    found = alone | {m: [next(done) for _ in jobs[m]] for m in order}
    return tuple(tuple(one for part in found[m] for one in part) for m in range(len(models)))


def held_out_scores(models: Sequence[ResponseModel], X: Array, fold: Array, link: Link) -> Array:
    """Return the linked scores (n, K) of encoded rows (n, p), each from the model that did not see it."""
    scores = np.empty((len(X), models[0].levels_))
    for model, f in zip(models, np.unique(fold), strict=True):
        scores[fold == f] = link.to_scores(model._curves(X[fold == f]))
    return scores


def mean_scores(models: Sequence[ResponseModel], X: Array, link: Link) -> Array:
    """Return the mean over models of the linked scores (n, K) of new customers (n, p)."""
    total = np.zeros((len(X), models[0].levels_))
    for model in models:
        total += link.to_scores(model._curves(X))
    return total / len(models)


def predict_held_out(model: Any, log: Log, fold: Array, progress: Progress | None = None) -> HeldOut:
    """Return what copies of a model (anything with `fit(log)` and `predict(features)`), fitted without a fold, expect of it.

    Response models of this package share one encoding of the log and what they choose; others are fitted anew. Of a large log,
    rows outside of the sample are predicted by a copy that is fitted to all of the sample.
    """
    if log.sample is not None:
        return _predict_around(model, log, log.sample, fold, progress)
    if not isinstance(model, ResponseModel):
        return HeldOut(_refit_per_fold(model, log, fold, progress), fold)
    with report_to(progress):
        if progress:
            start_stage(HELD_OUT, len(log))
        return model.predict_held_out(log, fold)


def _predict_around(model: Any, log: Log, sample: Sample, fold: Array, progress: Progress | None) -> HeldOut:
    held = predict_held_out(model, sample.log, fold[sample.rows], progress)
    fitted = copy_unfitted(model).fit(sample.log)
    features = list(fitted.encoder_.features) if isinstance(fitted, ResponseModel) else None
    with report_to(progress):
        start_stage(OUTSIDE, len(log))
        return add_outside(held, log, fold, features, lambda table: (fitted.predict(table), None))


def _refit_per_fold(model: Any, log: Log, fold: Array, progress: Progress | None) -> Array:
    """Return the curves (n, K) of a log, each fold's predicted by a copy of the model fitted to the other folds."""
    parts = np.unique(fold)
    curves = np.empty((len(log), len(log.levels)))
    with report_to(progress):
        if progress:
            start_stage(HELD_OUT, len(log))
        for f in track(parts):
            test = fold == f
            curves[test] = copy_unfitted(model).fit(log.take(~test)).predict(log.take(test).features)
    return curves


def add_outside(
    held: HeldOut,
    log: Log,
    fold: Array,
    features: Sequence[str] | None,
    expect: Callable[[pa.Table], tuple[Array, Array | None]],
) -> HeldOut:
    """Return what is expected of all rows of a large log: `held` of its sample, and of the others what `expect` says.

    `expect` gets tables with these features and returns curves and, where costs are observed, expected costs.
    """
    assert log.sample is not None
    n, outside, start = len(log), log.outside, 0
    curves, costs = _spread(held.curves, log.sample.rows, n), None
    if held.costs is not None:
        costs = _spread(held.costs, log.sample.rows, n)
    for batch in log.sample.batches(features):
        here = outside[start : start + len(batch)]
        rows = start + np.flatnonzero(here)
        curves[rows], spent = expect(batch.filter(here))
        if costs is not None and spent is not None:
            costs[rows] = spent
        start += len(batch)
        advance(start / n)
    moved = held.shuffled
    shuffled = None if moved is None else replace(moved, rows=log.sample.rows[moved.rows])
    return HeldOut(curves, fold, costs, shuffled)


def _spread(part: Array, rows: Array, n: int) -> Array:
    """Return a matrix (n, K) with some of its rows."""
    whole = np.empty((n, part.shape[1]))
    whole[rows] = part
    return whole
