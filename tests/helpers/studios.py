"""A studio as a user starts it: the command, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = "from largesse.cli import main; main()"


@contextmanager
def open_studio(folder: Path, *options: str) -> Iterator[str]:
    """Run `largesse studio` for a folder and give its address, with the token; stop it afterwards."""
    command = [
        sys.executable,
        "-c",
        COMMAND,
        "studio",
        "--folder",
        str(folder),
        "--no-browser",
        "--port",
        "0",
        *options,
    ]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found, f"the studio said {line!r}"
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
