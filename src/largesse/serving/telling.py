"""What a service tells whoever started it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from largesse.errors import make_visible

LATE = 3.0  # seconds after which whoever waits is told what for


def say(text: str) -> None:
    """Print a line, now."""
    sys.stdout.write(make_visible(text) + "\n")
    sys.stdout.flush()


def hush(_: str) -> None:
    """Say nothing."""


def warn(text: str) -> None:
    """Print a warning, now."""
    sys.stderr.write(make_visible(f"largesse: {text}") + "\n")
    sys.stderr.flush()


@contextmanager
def warn_if_late(text: str) -> Iterator[None]:
    """Print a warning, if what is done meanwhile takes longer than a moment."""
    timer = threading.Timer(LATE, warn, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
