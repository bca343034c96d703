"""One thread for small work.

On a small matrix the threads of BLAS and OpenMP cost more than they bring, and on a machine that is busy with something
else they wait for each other: the demo took ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

SMALL = 5_000_000  # cells


@contextmanager
def threads_for(cells: int) -> Iterator[None]:
    """Hold the numerical libraries that are loaded to one thread while the work is on fewer than `SMALL` cells."""
    if cells >= SMALL:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
