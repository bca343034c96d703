"""Several processes behind one port: a process that dies is started again, and all stop together."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from largesse.serve.settings import Settings
from largesse.serve.telling import warn

TICK = 0.1  # seconds between two looks at the processes
CALM = 5.0  # seconds that a process must live to be started again at once
PAUSE, LONGEST = 1.0, 60.0  # seconds before one that did not is started again, at first and at most
GRACE = 10.0  # seconds to stop


def supervise(settings: Settings, token: str | None, where: socket.socket, started: Callable[[], None]) -> None:
    """Keep as many workers alive as wanted, until SIGINT or SIGTERM comes."""
    over = threading.Event()
    before = {number: signal.signal(number, lambda *_: over.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    crew = [_Member(settings, token, where) for _ in range(settings.workers)]
    try:
        started()
        while not over.wait(TICK):
            for member in crew:
                member.keep_alive()
    finally:
        for member in crew:
            member.stop()
        deadline = time.monotonic() + GRACE
        for member in crew:
            member.wait(max(deadline - time.monotonic(), 0.0))
        for number, handler in before.items():
            signal.signal(number, handler)


class _Member:
    """One worker process, or the next one."""

    def __init__(self, settings: Settings, token: str | None, where: socket.socket) -> None:
        self._settings, self._token, self._where = settings, token, where
        self._died: float | None = None
        self._pause = 0.0
        self._start()

    def _start(self) -> None:
        number = self._where.fileno()
        # The token, too: its file may be another by now, and all processes must let in the same.
        task = json.dumps({**asdict(self._settings), "token": self._token, "socket": number}, default=str)
        command = [sys.executable, "-m", "largesse.serve.worker"]
        # The standard input stays open: its end tells the worker that nobody looks after it any more.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[number])  # noqa: S603  ourselves
        assert self._process.stdin is not None
        self._process.stdin.write(task.encode() + b"\n")
        self._process.stdin.flush()
        self._begun, self._died = time.monotonic(), None

    def keep_alive(self) -> None:
        """Start the next process where the last one has died; after one that died at once, a moment later."""
        if self._process.poll() is None:
            return
        now = time.monotonic()
        if self._died is None:
            self._note_end(now)
            warn(f"a worker process has ended ({_describe_end(self._process.returncode)}); another one is started")
        if now >= self._next:
            try:
                self._start()
            except OSError as error:  # no memory, or too many processes: that may pass
                warn(f"no worker process can be started now ({error.strerror}); it is tried again")
                self._begun = now
                self._note_end(now)

    def _note_end(self, now: float) -> None:
        """Note that the process is gone; the sooner it went, and the more often, the longer the next one waits."""
        soon = now - self._begun < CALM
        self._pause = min(max(2 * self._pause, PAUSE), LONGEST) if soon else 0.0
        self._died, self._next = now, now + self._pause

    def stop(self) -> None:
        """Ask the process to stop."""
        if self._process.poll() is None:
            self._process.terminate()

    def wait(self, seconds: float) -> None:
        """Wait until it has; then make it."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _describe_end(code: int) -> str:
    """Say how a process ended.

    >>> _describe_end(-9), _describe_end(2)
    ('SIGKILL', 'exit code 2')
    """
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"
