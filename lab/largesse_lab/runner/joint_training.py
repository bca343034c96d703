"""Concurrent fits of several models whose network trainings of the same kind are batched into one compiled program.

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


def fit_together(models: Sequence[Any], logs: Sequence[Log]) -> list[Any]:
    """Fit each model to its own log, all at once, and return the fitted models.

    If a fit fails, the others end first; then the first failure is raised.

    >>> from largesse.worlds import simulate
    >>> from largesse.response import Linear
    >>> logs = [simulate("averaged", n=300, seed=seed).log for seed in (1, 2)]
    >>> [model.predict(logs[0]).shape for model in fit_together([Linear(), Linear()], logs)]
    [(300, 5), (300, 5)]
    """
    return call_together([partial(model.fit, log) for model, log in zip(models, logs, strict=True)])


def call_together(calls: Sequence[Callable[[], Called]]) -> list[Called]:
    """Run independent callables that fit models, and return their results; see `fit_together`."""
    batcher = _JobBatcher(calls)
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
class _PendingJob:
    job: TrainingJob
    result: TrainedNetworks | None = None
    error: BaseException | None = None
    done: bool = False


class _JobBatcher:
    """Calls that take turns; the last one to wait or to end runs the jobs of all that wait."""

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        self.turn = Condition()
        self.calls = calls
        self.n_running = len(calls)
        self.pending: list[_PendingJob] = []
        self.results: list[Any] = [None] * len(calls)
        self.errors: list[BaseException | None] = [None] * len(calls)

    def run_call(self, i: int) -> None:
        with self.turn, use_training_runner(self.submit):
            try:
                self.results[i] = self.calls[i]()
            except BaseException as error:
                self.errors[i] = error
            self._stop_running()

    def submit(self, job: TrainingJob) -> TrainedNetworks:
        """Wait until a job is done; return its result."""
        pending = _PendingJob(job)
        self.pending.append(pending)
        self._stop_running()
        self.turn.wait_for(lambda: pending.done)
        if pending.error is not None:
            raise pending.error
        assert pending.result is not None
        return pending.result

    def _stop_running(self) -> None:
        self.n_running -= 1
        if self.n_running:
            return
        batch, self.pending = self.pending, []
        by_program: dict[Any, list[_PendingJob]] = {}
        for pending in batch:
            by_program.setdefault((pending.job.program, pending.job.loop), []).append(pending)
        for same_program in by_program.values():
            _run_pending(same_program)
        self.n_running = len(batch)
        self.turn.notify_all()


def _run_pending(batch: list[_PendingJob]) -> None:
    """Run jobs of one program; an error of any is the error of all."""
    try:
        results = run_jobs([pending.job for pending in batch])
        for pending, result in zip(batch, results, strict=True):
            pending.result = result
    except BaseException as error:
        for pending in batch:
            pending.error = error
    for pending in batch:
        pending.done = True


# -- joined jobs ------------------------------------------------------------------------------------------------------


def run_jobs(jobs: Sequence[TrainingJob]) -> list[TrainedNetworks]:
    """Run jobs of one program together; equal jobs are run once."""
    if len(jobs) == 1:
        return [train_in_thread(jobs[0])]
    digests = [_digest_job(job) for job in jobs]
    distinct = dict(zip(digests, jobs, strict=True))
    if len(distinct) > 1 and not jobs[0].program.rows:
        return [train_in_thread(job) for job in jobs]  # it is unknown which of their arrays name rows
    several = list(distinct.values())
    trained = train_in_thread(several[0] if len(several) == 1 else join_jobs(several))
    results = dict(zip(distinct, _split_trained(trained, [len(job.seeds) for job in several]), strict=True))
    return [results[digest] for digest in digests]


def join_jobs(jobs: Sequence[TrainingJob]) -> TrainingJob:
    """Return one job with the rows of all jobs one below another, and their models with row numbers shifted accordingly."""
    first = jobs[0]
    starts = find_first_rows([len(job.data[0]) for job in jobs])
    joined: list[Any] = []
    for i, arrays in enumerate(zip(*(job.model_data for job in jobs), strict=True)):
        if i in first.program.rows:
            joined.append(stack_padded(arrays, starts))
        elif i - 1 in first.program.rows:  # weights of these rows
            joined.append(stack_padded(arrays))
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


def _split_trained(trained: TrainedNetworks, sizes: Sequence[int]) -> Iterator[TrainedNetworks]:
    for first, size in zip(find_first_rows(sizes), sizes, strict=True):
        models = slice(first, first + size)
        params = {name: value[models] for name, value in trained.params.items()}
        yield TrainedNetworks(params, trained.loss[models], trained.look[models])


def _digest_job(job: TrainingJob) -> bytes:
    """Return a hash of all that a job's result depends on."""
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


def find_first_rows(sizes: Sequence[int]) -> list[int]:
    """Return the first row of each of several tables that are stacked.

    >>> find_first_rows([3, 2, 4])
    [0, 3, 5]
    """
    return [0, *np.cumsum(sizes[:-1]).tolist()]


def stack_padded(tables: Sequence[Array], shift: Sequence[int] | None = None) -> Array:
    """Return tables (M_j, n_j) as one (ΣM, max n), short ones padded with zeros; `shift` is then added to each.

    >>> stack_padded([np.array([[1, 2]]), np.array([[1, 2, 3]])], shift=[0, 10])
    array([[ 1,  2,  0],
           [11, 12, 13]])
    """
    width = max(table.shape[1] for table in tables)
    padded = [np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in tables]
    return np.concatenate(
        padded if shift is None else [t + t.dtype.type(s) for t, s in zip(padded, shift, strict=True)]
    )
