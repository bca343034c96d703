"""Run a campaign on a cluster of two workers on this machine; kill an executor in each stage."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from largesse.pipeline import run_on_spark

killed: list[str] = []
begun: list[str] = []


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


def kill_soon(stage: str) -> None:
    """End an executor a moment after a stage has begun: its tasks are at work."""
    time.sleep(1.0)
    kill_one(stage)


STAGES = {"scoring customers": "scoring", "planning": "planning", "writing the plan": "writing"}


def follow(stage: str, _done: float) -> None:
    """Disturb the run, once in each stage."""
    if stage in STAGES and STAGES[stage] not in begun:
        begun.append(STAGES[stage])
        threading.Thread(target=kill_soon, args=[STAGES[stage]], daemon=True).start()


if __name__ == "__main__":
    campaign, out = sys.argv[1:]
    run_on_spark(campaign, out, master="local-cluster[2,1,1024]", progress=follow)
    sys.stdout.write(" ".join(killed))
