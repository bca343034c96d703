"""Many fits at once: the network trainings of all of them meet, and those that are alike run as one program.

Each fit has a thread of its own, and one thread runs at a time. Where a fit would train, it hands in its job and waits;
once every fit that has not ended waits, jobs of one kind are joined, run in one call, and their results handed back.
`fit` knows nothing of this. Every model draws the chance it would draw alone, so that it becomes what it would have
become alone, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from threading import Condition, Thread
from typing import Any, TypeVar

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array, Log
from largesse.stats import one_thread

Run = Callable[[list[Any]], list[Any]]
T = TypeVar("T")


def fit_together(
    models: Sequence[Any], logs: Sequence[Log], *, tell: Callable[[float], None] | None = None
) -> list[Any]:
    """Fit each model to its own log, all at once; return the models, fitted.

    A fit that fails does not keep the others from ending; the first failure is then raised. `tell` hears the share of
    fits that have ended.

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
    """Return what calls return that fit models, of which none waits for another; see `fit_together`."""
    meeting = _Meeting(calls, tell)
    # Limits on threads are the process's: a fit may not lift them while another counts on them.
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


def met(kind: Hashable, job: Any, run: Run) -> Any:
    """Return `run([job])[0]`; in a meeting, jobs of one kind are run in one call, and each gets its own result."""
    meeting = _here.get()
    return run([job])[0] if meeting is None else meeting.handed_in(_Job(kind, job, run))


@dataclass(eq=False)
class _Job:
    kind: Hashable
    given: Any
    run: Run
    result: Any = None
    error: BaseException | None = None
    done: bool = False


class _Meeting:
    """Whoever holds `turn` runs; the last one that would wait, or that ends, does the work that all others wait for."""

    def __init__(self, calls: Sequence[Callable[[], Any]], tell: Callable[[float], None] | None) -> None:
        self.turn = Condition()
        self.calls, self.tell = calls, tell
        self.awake, self.ended = len(calls), 0
        self.jobs: list[_Job] = []
        self.results: list[Any] = [None] * len(calls)
        self.errors: list[BaseException | None] = [None] * len(calls)

    def attend(self, i: int) -> None:
        """Make one call: what its thread does."""
        _here.set(self)  # every thread has a context of its own
        with self.turn:
            try:
                self.results[i] = self.calls[i]()
            except BaseException as error:
                self.errors[i] = error
            self.ended += 1
            if self.tell:
                self.tell(self.ended / len(self.calls))
            self._sleep()

    def handed_in(self, job: _Job) -> Any:
        """Wait until a job is done; return its result."""
        self.jobs.append(job)
        self._sleep()
        self.turn.wait_for(lambda: job.done)
        if job.error is not None:
            raise job.error
        return job.result

    def _sleep(self) -> None:
        self.awake -= 1
        if self.awake == 0:
            self._work()

    def _work(self) -> None:
        jobs, self.jobs = self.jobs, []
        kinds: dict[Hashable, list[_Job]] = {}
        for job in jobs:
            kinds.setdefault(job.kind, []).append(job)
        for alike in kinds.values():
            _run(alike)
        self.awake = len(jobs)
        self.turn.notify_all()


_here: ContextVar[_Meeting | None] = ContextVar("meeting", default=None)


def _run(jobs: list[_Job]) -> None:
    """Run jobs of one kind; what goes wrong is every one's error."""
    try:
        results = jobs[0].run([job.given for job in jobs])
        for job, result in zip(jobs, results, strict=True):
            job.result = result
    except BaseException as error:
        for job in jobs:
            job.error = error
    for job in jobs:
        job.given, job.done = None, True


# -- joining ----------------------------------------------------------------------------------------------------------


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


def groups(models: int, at_once: int) -> list[Array]:
    """Return the places of models in groups of one size, so that all share a compiled program; the last may come again.

    >>> groups(7, 3)
    [array([0, 1, 2]), array([3, 4, 5]), array([6, 6, 6])]
    >>> groups(8, 5)
    [array([0, 1, 2, 3]), array([4, 5, 6, 7])]
    """
    many = -(-models // max(at_once, 1))
    size = -(-models // many)
    return [np.minimum(np.arange(first, first + size), models - 1) for first in range(0, many * size, size)]
