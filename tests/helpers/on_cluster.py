"""Run a campaign on a cluster of two workers on this machine; kill an executor while customers are scored, and again later."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from largesse.pipeline import spark

killed: list[str] = []


def find_executors() -> list[int]:
    """Return the processes of executors below this one."""
    parents, found = {}, []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes()
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in words and b"--executor-id" in words:
                found.append(int(place.name))
    return [pid for pid in found if _is_below(pid, parents)]


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def kill_one(stage: str) -> None:
    """End an executor, whatever it does."""
    pid = min(find_executors())
    os.kill(pid, signal.SIGKILL)
    killed.append(stage)


def kill_while_scoring(near: Path) -> None:
    """End an executor when the first part of the spool is there: other tasks are still at work."""
    while not any(near.glob("**/.spool.*.part/*.arrow")):
        time.sleep(0.005)
    kill_one("scoring")


def follow(stage: str, _done: float) -> None:
    """Disturb the run."""
    if stage == "scoring customers" and not killer.is_alive() and not killed:
        killer.start()
    if stage == "writing the plan" and "writing" not in killed:
        kill_one("writing")


if __name__ == "__main__":
    campaign, out = sys.argv[1:]
    killer = threading.Thread(target=kill_while_scoring, args=[Path(out).parent], daemon=True)
    spark(campaign, out, master="local-cluster[2,1,1024]", progress=follow)
    sys.stdout.write(" ".join(killed))
