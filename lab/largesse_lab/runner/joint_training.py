"""Fit several models concurrently; network trainings of the same kind are batched into one compiled program.

Each fit has a thread of its own, and one thread runs at a time. Where a fit trains networks, it hands in its job and waits.
Once every fit that has not ended waits, jobs that share a program are joined into one job, run in one call, and split
again. The models know nothing of this: `largesse.response.use_runner` puts the meeting in the place of the usual runner.
Every model sees the draws it would see alone, so that it becomes what it would have become alone, up to rounding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Condition, Thread
from typing import Any, TypeVar

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array, Log
from largesse.response.networks import TrainedNetworks, TrainingJob, run_job, use_runner
from largesse.stats import one_thread

T = TypeVar("T")


def fit_together(
    models: Sequence[Any], logs: Sequence[Log], *, tell: Callable[[float], None] | None = None
) -> list[Any]:
    """Fit each model to its own log, all at once, and return the fitted models.

    The others go on when a fit fails; the first failure is raised at the end. `tell` is called with the share of fits that
    have ended.

    >>> from largesse.worlds import simulate
    >>> from largesse.response import Linear
    >>> logs = [simulate("averaged", n=300, seed=seed).log for seed in (1, 2)]
    >>> [model.predict(logs[0]).shape for model in fit_together([Linear(), Linear()], logs)]
    [(300, 5), (300, 5)]
    """
    if len(models) != len(logs):
        refuse("fit_together", [Problem(f"{len(models)} models and {len(logs)} logs", "give each model its log")])
    if len({id(model) for model in models}) < len(models):
        refuse("fit_together", [Problem("one model is there twice", "give each log a model of its own")])
    return call_together([partial(model.fit, log) for model, log in zip(models, logs, strict=True)], tell=tell)


def call_together(calls: Sequence[Callable[[], T]], *, tell: Callable[[float], None] | None = None) -> list[T]:
    """Run independent callables that fit models, and return their results; see `fit_together`."""
    meeting = _Meeting(calls, tell)
    # Thread limits belong to the process: a fit must not lift them while another relies on them.
    with one_thread():
        threads = [Thread(target=meeting.attend, args=(i,), daemon=True) for i in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in meeting.errors:
        if error is not None:
            raise error
    return meeting.results


@dataclass(eq=False)
class _Waiting:
    """A job that a fit has handed in."""

    job: TrainingJob
    result: TrainedNetworks | None = None
    error: BaseException | None = None
    done: bool = False


class _Meeting:
    """The fit that holds `turn` runs; the last one to wait or to end does the work that all others wait for."""

    def __init__(self, calls: Sequence[Callable[[], Any]], tell: Callable[[float], None] | None) -> None:
        self.turn = Condition()
        self.calls, self.tell = calls, tell
        self.awake, self.ended = len(calls), 0
        self.waiting: list[_Waiting] = []
        self.results: list[Any] = [None] * len(calls)
        self.errors: list[BaseException | None] = [None] * len(calls)

    def attend(self, i: int) -> None:
        """Make one call: what its thread does."""
        with self.turn, use_runner(self.hand_in):
            try:
                self.results[i] = self.calls[i]()
            except BaseException as error:
                self.errors[i] = error
            self.ended += 1
            if self.tell:
                self.tell(self.ended / len(self.calls))
            self._sleep()

    def hand_in(self, job: TrainingJob) -> TrainedNetworks:
        """Wait until a job is done; return its result."""
        mine = _Waiting(job)
        self.waiting.append(mine)
        self._sleep()
        self.turn.wait_for(lambda: mine.done)
        if mine.error is not None:
            raise mine.error
        assert mine.result is not None
        return mine.result

    def _sleep(self) -> None:
        self.awake -= 1
        if self.awake == 0:
            self._work()

    def _work(self) -> None:
        waiting, self.waiting = self.waiting, []
        kinds: dict[Any, list[_Waiting]] = {}
        for one in waiting:
            kinds.setdefault((one.job.program, one.job.loop), []).append(one)
        for alike in kinds.values():
            _run(alike)
        self.awake = len(waiting)
        self.turn.notify_all()


def _run(waiting: list[_Waiting]) -> None:
    """Run jobs of one kind; every one of them gets the error of any."""
    try:
        results = run_jobs([one.job for one in waiting])
        for one, result in zip(waiting, results, strict=True):
            one.result = result
    except BaseException as error:
        for one in waiting:
            one.error = error
    for one in waiting:
        one.done = True


# -- joining ----------------------------------------------------------------------------------------------------------


def run_jobs(jobs: Sequence[TrainingJob]) -> list[TrainedNetworks]:
    """Run jobs of one program as one; equal jobs, as policies of one log for several budgets may be, are run once."""
    if len(jobs) == 1:
        return [run_job(jobs[0])]
    names = [_digest(job) for job in jobs]
    different = dict(zip(names, jobs, strict=True))
    if len(different) > 1 and not jobs[0].program.rows:
        return [run_job(job) for job in jobs]  # nothing says which of their arrays name rows
    several = list(different.values())
    whole = run_job(several[0] if len(several) == 1 else join_jobs(several))
    found = dict(zip(different, _split(whole, [len(job.seeds) for job in several]), strict=True))
    return [found[name] for name in names]


def join_jobs(jobs: Sequence[TrainingJob]) -> TrainingJob:
    """Return one job with the rows of all jobs one below another, and their models with rows named accordingly."""
    first = jobs[0]
    begin = offsets([len(job.data[0]) for job in jobs])
    own: list[Any] = []
    for i, part in enumerate(zip(*(job.own for job in jobs), strict=True)):
        if i in first.program.rows:
            own.append(side_by_side(part, begin))
        elif i - 1 in first.program.rows:
            own.append(side_by_side(part))
        else:
            own.append(_concatenate(part))
    return replace(
        first,
        data=tuple(np.concatenate(part) for part in zip(*(job.data for job in jobs), strict=True)),
        own=tuple(own),
        seeds=np.concatenate([job.seeds for job in jobs]),
        log=np.repeat(np.arange(len(jobs)), [len(job.seeds) for job in jobs]),
    )


def _concatenate(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], dict):
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return np.concatenate(parts)


def _split(whole: TrainedNetworks, sizes: Sequence[int]) -> Iterator[TrainedNetworks]:
    for first, many in zip(offsets(sizes), sizes, strict=True):
        mine = slice(first, first + many)
        params = {name: value[mine] for name, value in whole.params.items()}
        yield TrainedNetworks(params, whole.loss[mine], whole.look[mine])


def _digest(job: TrainingJob) -> bytes:
    """Return a name that two jobs share if they would end alike."""
    found = hashlib.blake2b()
    for part in _arrays((job.data, job.own, job.seeds)):
        found.update(f"{part.shape}{part.dtype}".encode())
        found.update(np.ascontiguousarray(part).data)
    return found.digest()


def _arrays(tree: Any) -> Iterator[Array]:
    if isinstance(tree, np.ndarray):
        yield tree
    else:
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _arrays(part)


def offsets(sizes: Sequence[int]) -> list[int]:
    """Return where each of several tables begins once they stand one below another.

    >>> offsets([3, 2, 4])
    [0, 3, 5]
    """
    return [0, *np.cumsum(sizes[:-1]).tolist()]


def side_by_side(tables: Sequence[Array], shift: Sequence[int] | None = None) -> Array:
    """Return tables (M_j, n_j) as one (ΣM, max n), short ones filled up with zeros; `shift` is then added to each.

    >>> side_by_side([np.array([[1, 2]]), np.array([[1, 2, 3]])], shift=[0, 10])
    array([[ 1,  2,  0],
           [11, 12, 13]])
    """
    longest = max(table.shape[1] for table in tables)
    wide = [np.pad(table, ((0, 0), (0, longest - table.shape[1]))) for table in tables]
    return np.concatenate(wide if shift is None else [t + t.dtype.type(s) for t, s in zip(wide, shift, strict=True)])
