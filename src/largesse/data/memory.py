"""How much memory a table may take: what this machine has."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup/memory.max")  # what a container may use
UNKNOWN = 1 << 40


@cache
def memory_limit() -> int:
    """Return the bytes of memory that this machine, or the container, has."""
    limits = [UNKNOWN]
    if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # not a container, or one without a limit
        limits.append(int(CGROUP.read_text(encoding="ascii")))
    return min(limit for limit in limits if limit > 0)


def write_size(size: float) -> str:
    """Write a number of bytes for people.

    >>> write_size(3_200_000_000)
    '3.2 GB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
