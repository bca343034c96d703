"""Run a campaign on a cluster of two workers on this machine, and kill one executor whenever a stage of planning begins."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from largesse.runs import spark


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


def kill_one(stage: str, _done: float) -> None:
    """End an executor when customers have been scored: what it keeps of them is lost."""
    if stage not in killed and stage in ("planning", "writing the plan"):
        killed.append(stage)
        pid = min(find_executors())
        os.kill(pid, signal.SIGKILL)
        sys.stdout.write(f"{stage}: killed {pid}\n")


killed: list[str] = []

if __name__ == "__main__":
    campaign, out = sys.argv[1:]
    spark(campaign, out, master="local-cluster[2,1,1024]", progress=kill_one)
    assert killed == ["planning", "writing the plan"], killed
