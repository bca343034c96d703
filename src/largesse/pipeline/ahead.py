"""Work that is done ahead, in a thread beside: reading while others compute, writing while they go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from largesse.stats import cores

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST = 4  # threads; more would hold more batches in memory


def count_threads() -> int:
    """Return how many threads compute at once: the cores that this process may use, up to a few."""
    return min(cores(), MOST)


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Give items in their order; while one is worked on, the next is made in a thread beside."""
    coming, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        following: Future[Any] = pool.submit(next, coming, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, coming, end)
            yield item


def map_ahead(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Give the results of items in their order; as many are worked on at once as there are threads."""
    many = count_threads()
    with ThreadPoolExecutor(many) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > many:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def write_behind(work: Callable[[Item], None], most: int = 4) -> Iterator[Callable[[Item], None]]:
    """Give a function that lets items be worked on in a thread beside, in their order; at most a few of them wait."""
    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Future[None]] = deque()

        def add(item: Item) -> None:
            waiting.append(pool.submit(work, item))
            while len(waiting) > most:
                waiting.popleft().result()

        yield add
        while waiting:
            waiting.popleft().result()
