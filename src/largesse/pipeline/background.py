"""Background prefetching, mapping and writing in threads, in the order of the items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from largesse.stats import cores

Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_THREADS = 4  # more would hold more batches in memory


def count_threads() -> int:
    """Return how many threads compute at once: the cores that this process may use, up to a few."""
    return min(cores(), MAX_THREADS)


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items in their order; while the caller works on one, a thread makes the next."""
    coming, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        following: Future[Any] = pool.submit(next, coming, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, coming, end)
            yield item


def map_ahead(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the results of items in their order, computed by several threads."""
    threads = count_threads()
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def write_behind(work: Callable[[Item], None], queue_size: int = 4) -> Iterator[Callable[[Item], None]]:
    """Yield a function that queues items for one background thread; it waits while the queue is full."""
    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Future[None]] = deque()

        def add(item: Item) -> None:
            waiting.append(pool.submit(work, item))
            while len(waiting) > queue_size:
                waiting.popleft().result()

        yield add
        while waiting:
            waiting.popleft().result()
