"""A process that decides and redeems against a ledger, and notes on disk what it was told: `kill -9` is welcome.

python ledger_worker.py ADDRESS NAME REQUESTS NOTES
"""

import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

CUSTOMERS = 4


def work(address: str, name: str, requests: int, notes: Path) -> None:
    from largesse.serve import open_ledger
    from support.ledgers import Dearest, make_offers

    text = notes.read_text() if notes.exists() else ""
    done = text.count("\n")
    notes.write_text(text[: text.rfind("\n") + 1])  # without a line that is half written
    with open_ledger(address) as ledger, notes.open("a") as file:
        for i in range(done, requests):
            request, customers = f"{name}-{i}", [f"{name}-{i}-{j}" for j in range(CUSTOMERS)]
            decided = ledger.decide(request, make_offers(customers), Dearest())
            if decided.levels[0] and i % 2:
                ledger.redeem(request, customers[0], 1 + i % 4)
            file.write(f"{request} {' '.join(map(str, decided.levels))}\n")
            file.flush()


class Workers:
    """Several such processes against one ledger. A process that has imported everything forks them."""

    def __init__(self, address: str, folder: Path, many: int, requests: int) -> None:
        self.folder, self.requests = folder, requests
        self.names = [f"w{i}" for i in range(many)]
        path = os.pathsep.join(filter(None, sys.path))
        self._parent = subprocess.Popen(
            [sys.executable, __file__, address, str(requests), str(folder)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.running = {name: self._start(name) for name in self.names}

    def _start(self, name: str) -> int:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(f"{name}\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def _notes(self, name: str) -> Path:
        return self.folder / f"{name}.txt"

    def wait_for(self, answers: int) -> None:
        """Wait until so many requests were answered."""
        while len(self.answered()) < answers:
            self.check()
            time.sleep(0.01)

    def kill_one(self, rng: random.Random) -> None:
        """Kill a worker at once, and start another in its place."""
        name = rng.choice(self.names)
        with suppress(ProcessLookupError):  # it may have finished
            os.kill(self.running[name], signal.SIGKILL)
        self.running[name] = self._start(name)

    def check(self) -> None:
        """Fail if a worker did."""
        assert self._parent.poll() is None
        failed = sorted(self.folder.glob("*.error"))
        assert not failed, failed[0].read_text()

    def join(self) -> None:
        """Wait until all workers are done."""
        self.wait_for(self.requests * len(self.names))

    def stop(self) -> None:
        """End what still runs."""
        for pid in self.running.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._parent.communicate()

    def answered(self) -> dict[str, list[int]]:
        """Return the levels that every answered request was told; a last line that is half written does not count."""
        lines = []
        for name in self.names:
            text = self._notes(name).read_text() if self._notes(name).exists() else ""
            lines += [line.split() for line in text.split("\n")[:-1]]
        return {request: list(map(int, levels)) for request, *levels in lines}


def check_ledger(address: str, workers: Workers, total: int) -> None:
    """Every answer is in the ledger once, with the levels that were told; it adds up, and is within its total."""
    from largesse.serve import DECISION_COLUMNS, open_ledger

    with open_ledger(address) as ledger:
        standing, audit, rows = ledger.standing(), ledger.audit(), list(ledger.decisions())
    assert audit.differences == {}
    assert standing.spent + standing.promised <= total
    told = workers.answered()
    assert len(told) == workers.requests * len(workers.names)
    kept: dict[str, list[int]] = {}
    for row in rows:
        kept.setdefault(row[DECISION_COLUMNS.index("request")], []).append(row[DECISION_COLUMNS.index("level")])
    assert kept == told
    assert set(Counter(row[DECISION_COLUMNS.index("customer")] for row in rows).values()) == {1}
    face, paid = (sum(row[DECISION_COLUMNS.index(word)] or 0 for row in rows) for word in ("face", "paid"))
    redeemed = sum(
        row[DECISION_COLUMNS.index("face")] for row in rows if row[DECISION_COLUMNS.index("paid")] is not None
    )
    assert (standing.spent, standing.promised) == (paid, face - redeemed)


def fork_workers(address: str, requests: int, folder: Path) -> None:
    """Start a worker for every name that comes in, and say its process id."""
    import largesse.serve  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        name = line.strip()
        pid = os.fork()
        if pid:
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            continue
        try:
            work(address, name, requests, folder / f"{name}.txt")
        except BaseException:
            (folder / f"{name}.error").write_text(traceback.format_exc())
        os._exit(0)


if __name__ == "__main__":
    fork_workers(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
