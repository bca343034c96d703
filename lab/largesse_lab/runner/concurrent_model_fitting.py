"""Concurrent fits of several models, whose networks are trained in one batched program.

Each fit has a thread of its own, and one thread runs at a time. A fit that trains networks submits its job and waits. Once all
running fits wait, jobs that share a program are joined into one job, run in one call, and split again. The models do not know:
`largesse.response.networks.use_training_runner` replaces the usual runner. Every model sees the draws that it would see alone, so that
it becomes what it would have become alone, up to rounding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Condition, Thread
from typing import Any, TypeVar

import numpy as np

from largesse.records import Array, Log
from largesse.response.networks import TrainedNetworks, TrainingJob, train_in_thread, use_training_runner
from largesse.stats import limit_to_one_thread

Called = TypeVar("Called")


def fit_models_together(models: Sequence[Any], logs: Sequence[Log]) -> list[Any]:
    """Fit each model to its own log with batched network training, and return the fitted models.

    If a fit fails, the others end first; then the first failure is raised.

    >>> from largesse.worlds import simulate
    >>> from largesse.response import Linear
    >>> logs = [simulate("averaged", n=300, seed=seed).log for seed in (1, 2)]
    >>> [model.predict(logs[0]).shape for model in fit_models_together([Linear(), Linear()], logs)]
    [(300, 5), (300, 5)]
    """
    return run_fitting_calls_together([partial(model.fit, log) for model, log in zip(models, logs, strict=True)])


def run_fitting_calls_together(calls: Sequence[Callable[[], Called]]) -> list[Called]:
    """Run functions that fit models concurrently with batched network training, and return their results."""
    batcher = _TrainingJobBatcher(calls)
    # Thread limits belong to the process: a fit must not lift them while another relies on them.
    with limit_to_one_thread():
        threads = [Thread(target=batcher.run_call, args=(i,), daemon=True) for i in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in batcher.errors:
        if error is not None:
            raise error
    return batcher.results


@dataclass(eq=False)
class _PendingTrainingJob:
    job: TrainingJob
    result: TrainedNetworks | None = None
    error: BaseException | None = None
    done: bool = False


class _TrainingJobBatcher:
    """Scheduler of concurrent fits that collects their training jobs and runs them as one batch.

    Calls run one at a time; the last one to wait or to end runs all waiting jobs.
    """

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        self.turn = Condition()
        self.calls = calls
        self.n_running = len(calls)
        self.pending: list[_PendingTrainingJob] = []
        self.results: list[Any] = [None] * len(calls)
        self.errors: list[BaseException | None] = [None] * len(calls)

    def run_call(self, i: int) -> None:
        with self.turn, use_training_runner(self.submit):
            try:
                self.results[i] = self.calls[i]()
            except BaseException as error:
                self.errors[i] = error
            self._run_jobs_when_all_wait()

    def submit(self, job: TrainingJob) -> TrainedNetworks:
        """Submit a training job, wait for its batch, and return the trained networks."""
        pending = _PendingTrainingJob(job)
        self.pending.append(pending)
        self._run_jobs_when_all_wait()
        self.turn.wait_for(lambda: pending.done)
        if pending.error is not None:
            raise pending.error
        assert pending.result is not None
        return pending.result

    def _run_jobs_when_all_wait(self) -> None:
        self.n_running -= 1
        if self.n_running:
            return
        batch, self.pending = self.pending, []
        by_program: dict[Any, list[_PendingTrainingJob]] = {}
        for pending in batch:
            by_program.setdefault((pending.job.program, pending.job.loop), []).append(pending)
        for same_program in by_program.values():
            _run_pending_jobs(same_program)
        self.n_running = len(batch)
        self.turn.notify_all()


def _run_pending_jobs(batch: list[_PendingTrainingJob]) -> None:
    """Run waiting training jobs with the same compiled function as one batch; pass an error to all of them."""
    try:
        results = run_training_jobs([pending.job for pending in batch])
        for pending, result in zip(batch, results, strict=True):
            pending.result = result
    except BaseException as error:
        for pending in batch:
            pending.error = error
    for pending in batch:
        pending.done = True


# -- joined jobs ------------------------------------------------------------------------------------------------------


def run_training_jobs(jobs: Sequence[TrainingJob]) -> list[TrainedNetworks]:
    """Run training jobs with the same compiled function as one batch; run equal jobs once."""
    if len(jobs) == 1:
        return [train_in_thread(jobs[0])]
    digests = [_hash_training_job(job) for job in jobs]
    distinct = dict(zip(digests, jobs, strict=True))
    if len(distinct) > 1 and not jobs[0].program.rows:
        return [train_in_thread(job) for job in jobs]  # it is unknown which of their arrays name rows
    several = list(distinct.values())
    trained = train_in_thread(several[0] if len(several) == 1 else join_training_jobs(several))
    results = dict(zip(distinct, _split_trained_networks(trained, [len(job.seeds) for job in several]), strict=True))
    return [results[digest] for digest in digests]


def join_training_jobs(jobs: Sequence[TrainingJob]) -> TrainingJob:
    """Join several training jobs into one job with concatenated data and shifted row numbers."""
    first = jobs[0]
    starts = list_first_rows([len(job.data[0]) for job in jobs])
    joined: list[Any] = []
    for i, arrays in enumerate(zip(*(job.model_data for job in jobs), strict=True)):
        if i in first.program.rows:
            joined.append(stack_padded_tables(arrays, starts))
        elif i - 1 in first.program.rows:  # weights of these rows
            joined.append(stack_padded_tables(arrays))
        elif isinstance(arrays[0], dict):
            joined.append({name: np.concatenate([array[name] for array in arrays]) for name in arrays[0]})
        else:
            joined.append(np.concatenate(arrays))
    return replace(
        first,
        data=tuple(np.concatenate(arrays) for arrays in zip(*(job.data for job in jobs), strict=True)),
        model_data=tuple(joined),
        seeds=np.concatenate([job.seeds for job in jobs]),
        log=np.repeat(np.arange(len(jobs)), [len(job.seeds) for job in jobs]),
    )


def _split_trained_networks(trained: TrainedNetworks, sizes: Sequence[int]) -> Iterator[TrainedNetworks]:
    for first, size in zip(list_first_rows(sizes), sizes, strict=True):
        models = slice(first, first + size)
        params = {name: value[models] for name, value in trained.params.items()}
        yield TrainedNetworks(params, trained.loss[models], trained.look[models])


def _hash_training_job(job: TrainingJob) -> bytes:
    """Return a hash of a training job's data, model arrays and seeds."""
    digest = hashlib.blake2b()
    for array in _iterate_arrays((job.data, job.model_data, job.seeds)):
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def _iterate_arrays(tree: Any) -> Iterator[Array]:
    if isinstance(tree, np.ndarray):
        yield tree
    else:
        for branch in tree.values() if isinstance(tree, dict) else tree:
            yield from _iterate_arrays(branch)


def list_first_rows(sizes: Sequence[int]) -> list[int]:
    """Return the first row number of each table in a stack of tables.

    >>> list_first_rows([3, 2, 4])
    [0, 3, 5]
    """
    return [0, *np.cumsum(sizes[:-1]).tolist()]


def stack_padded_tables(tables: Sequence[Array], shift: Sequence[int] | None = None) -> Array:
    """Stack tables (M_j, n_j) of different widths into one (ΣM, max n), padded with zeros.

    `shift` is added to the values of each table.

    >>> stack_padded_tables([np.array([[1, 2]]), np.array([[1, 2, 3]])], shift=[0, 10])
    array([[ 1,  2,  0],
           [11, 12, 13]])
    """
    width = max(table.shape[1] for table in tables)
    padded = [np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in tables]
    return np.concatenate(
        padded if shift is None else [t + t.dtype.type(s) for t, s in zip(padded, shift, strict=True)]
    )
