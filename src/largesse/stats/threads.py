"""One thread for linear algebra, and for small work.

On small matrices the threads of BLAS and OpenMP cost more than they save, and on a busy machine they wait for each other:
the demo took ten times as long. Growing many trees is worth the threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SMALL = 5_000_000  # cells


@contextmanager
def one_thread(cells: int = 0) -> Iterator[None]:
    """Hold the numerical libraries that are loaded to one thread, unless the work is on `SMALL` cells or more."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # comes with scikit-learn, which networks alone do not need
        cells = SMALL
    if cells >= SMALL:
        yield
        return
    with threadpool_limits(1):
        yield


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
