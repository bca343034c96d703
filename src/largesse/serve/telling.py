"""What a service tells whoever started it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from largesse.errors import make_visible

LATE = 3.0  # seconds after which whoever waits is told what for


def say(text: str) -> None:
    """Print a line, now."""
    _tell(sys.stdout, text)


def hush(_: str) -> None:
    """Say nothing."""


def warn(text: str) -> None:
    """Print a warning, now."""
    _tell(sys.stderr, f"largesse: {text}")


def _tell(stream: TextIO, text: str) -> None:
    """Print a line; where nobody reads any more, the service goes on, and what it says goes nowhere."""
    try:
        stream.write(make_visible(text) + "\n")
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
