"""A worker process of a service: answers on a socket that it is given, until it is told to stop or left alone."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from largesse.errors import LargesseError
from largesse.serve.ledger_context import LedgerSettings
from largesse.serve.settings import Settings, answer
from largesse.serve.telling import warn

INPUT = 0  # the standard input


def main() -> None:
    """Answer on the socket that the first line of the standard input names."""
    task: dict[str, Any] = json.loads(_read_line())
    number, token = task.pop("socket"), task.pop("token")
    ledger = task.pop("ledger")
    token_file = task.pop("token_file")
    settings = Settings(
        source=Path(task.pop("source")),
        token_file=None if token_file is None else Path(token_file),
        ledger=None if ledger is None else _read_ledger(ledger),
        **task,
    )
    threading.Thread(target=_leave_alone, daemon=True).start()
    try:
        with socket.socket(fileno=number) as where:
            answer(settings, token, where, lambda: None)
    except LargesseError as error:  # what was there when the service started is gone
        warn(str(error))
        sys.exit(2)


def _read_line() -> bytes:
    line = b""
    while not line.endswith(b"\n") and (more := os.read(INPUT, 65_536)):
        line += more
    return line


def _read_ledger(task: dict[str, Any]) -> LedgerSettings:
    most = task.pop("most")
    return LedgerSettings(**task, most=None if most is None else tuple(most))


def _leave_alone() -> None:
    """Stop when the standard input ends: whoever started this process is gone."""
    while os.read(INPUT, 1024):  # not by a file object: two threads would meet there when the process ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
