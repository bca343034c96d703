"""Thread pools for parallel fits, prefetching and background writing, and a limit for numerical threads.

On small matrices the threads of BLAS and OpenMP cost more than they save, and on a busy machine they wait for each other:
the demo took ten times as long. Fits that do not need each other wait for nothing: each has a thread of its own.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TypeVar

from largesse.progress import track

Item = TypeVar("Item")
Result = TypeVar("Result")

MIN_CELLS_FOR_THREADS = 5_000_000
MAX_QUEUED_BATCHES = 4


@contextmanager
def limit_to_one_thread(cells: int = 0) -> Iterator[None]:
    """Limit numerical libraries to one thread inside the block, unless the work is large.

    Work is large from `MIN_CELLS_FOR_THREADS` matrix cells on. Libraries that are first imported inside the block are not limited.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # comes with scikit-learn, which networks alone do not need
        cells = MIN_CELLS_FOR_THREADS
    if cells >= MIN_CELLS_FOR_THREADS:
        yield
        return
    with threadpool_limits(1):
        yield


def run_in_threads(jobs: Sequence[Callable[[], Result]], workers: int, *, tracked: bool = False) -> list[Result]:
    """Run functions in parallel threads, and return their results in the functions' order.

    `tracked` jobs count as parts of the current work, whose progress is shown.

    The first error ends the call. An interrupted caller does not wait for running jobs, and their threads do not keep the
    process alive.

    >>> run_in_threads([lambda: 1, lambda: 2, lambda: 3], workers=2)
    [1, 2, 3]
    """
    if min(workers, len(jobs)) < 2:
        return [job() for job in (track(jobs) if tracked else jobs)]
    results: dict[int, Result] = {}
    waiting, ended = queue.SimpleQueue[int](), queue.SimpleQueue[BaseException | None]()
    for place in range(len(jobs)):
        waiting.put(place)

    def work() -> None:
        while True:
            try:
                place = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                with limit_to_one_thread():  # OpenMP counts its threads separately for each thread
                    results[place] = jobs[place]()
                ended.put(None)
            except BaseException as error:  # the waiting thread raises it
                ended.put(error)

    try:
        with limit_to_one_thread():
            for _ in range(min(workers, len(jobs))):
                threading.Thread(target=work, daemon=True).start()
            for _ in track(jobs) if tracked else jobs:
                error = ended.get()
                if error is not None:
                    raise error
    finally:
        while not waiting.empty():  # jobs that have not begun are dropped
            with suppress(queue.Empty):
                waiting.get_nowait()
    return [results[place] for place in range(len(jobs))]


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prefetch(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items in order, while a background thread computes the next item."""
    source = iter(items)
    with ThreadPoolExecutor(1) as pool:
        upcoming: Future[list[Item]] = pool.submit(lambda: [*islice(source, 1)])
        while batch := upcoming.result():
            upcoming = pool.submit(lambda: [*islice(source, 1)])
            yield batch[0]


def map_in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Apply a function to items in several threads, and yield the results in the items' order."""
    threads = min(count_cores(), MAX_QUEUED_BATCHES)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def write_in_background(work: Callable[[Item], None]) -> Iterator[Callable[[Item], None]]:
    """Yield a function that queues items, which one background thread writes.

    The function blocks while the queue is full.
    """
    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Future[None]] = deque()

        def add(item: Item) -> None:
            waiting.append(pool.submit(work, item))
            if len(waiting) > MAX_QUEUED_BATCHES:
                waiting.popleft().result()

        yield add
        while waiting:
            waiting.popleft().result()
