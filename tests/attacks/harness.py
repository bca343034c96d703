"""Attacks on the product, each a function of a seed, run apart from each other and counted.

An attack makes one input from its seed, gives it to the product and says what came of it. A worker process does the work
of many seeds; when it dies or hangs, the seed that killed it is noted and another worker goes on with the next.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import select
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

GOOD = ("fine", "refused")
BAD = (
    "traceback",  # an exception that is not a message for people
    "crash",  # the process died of a signal
    "hang",
    "memory",  # more than the worker may have
    "half-written",  # something was left behind by a call that failed
    "mixed",  # parts of two runs beside each other
    "over budget",
    "false proof",  # a plan said to be within a gap of the best is not
    "wrong",  # a number differs from the plain computation
    "injected",  # a part of a page or a control sequence came from the data
)
MEMORY = 6 << 30  # bytes of its own that a worker may have
CHUNK = 50  # inputs that a worker gets at a time
LIFE = 500  # inputs after which a worker is replaced
PAUSE = 30.0  # seconds between two lines that say how far it is
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    """What came of one input."""

    kind: str
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.kind in GOOD


@dataclass(frozen=True)
class Attack:
    """A family of inputs: `module:function` takes a seed and returns an `Outcome`."""

    name: str
    where: str
    share: int  # of 10,000 inputs
    quick: int = 3  # seeds of the fast test
    seconds: float = 60.0  # after which an input counts as a hang

    def load(self) -> Callable[[int], Outcome]:
        module, function = self.where.split(":")
        return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]


@dataclass
class Tally:
    """What was tried and what was found, of one attack."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, Outcome]] = field(default_factory=list)

    def add(self, seed: int, outcome: Outcome) -> None:
        self.counts[outcome.kind] += 1
        if not outcome.good:
            self.failures.append((seed, outcome))


FINE = Outcome("fine")


def observe(work: Callable[[], Outcome | None]) -> Outcome:
    """Do some work and say what came of it; an error that is a message for people is a refusal."""
    from largesse.errors import LargesseError

    try:
        return work() or FINE
    except LargesseError as error:
        return judge_message(str(error))
    except MemoryError as error:
        return Outcome("memory", describe(error))
    except (Exception, SystemExit) as error:
        return Outcome("traceback", describe(error))


def judge_message(text: str) -> Outcome:
    """A refusal has a message that says something and can be printed."""
    if not text.strip():
        return Outcome("traceback", "an error without a message")
    odd = sorted({char for char in text if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160})
    return Outcome("injected", f"the message holds {odd}: {text[:200]!r}") if odd else Outcome("refused", text[:200])


def describe(error: BaseException) -> str:
    """Return the error, and the last place in the product that it passed."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "largesse" in frame.filename]
    place = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}: {str(error)[:200]}{place}"


# -- the worker ---------------------------------------------------------------------------------------------------------


def serve() -> None:
    """Read lines `name where seed` and answer each with an outcome; what the work prints goes nowhere."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDWR)
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error")
    for line in questions:
        where, seed = json.loads(line)
        outcome = run_one(Attack("", where, 0), seed)
        answers.write(json.dumps(asdict(outcome)) + "\n")
        answers.flush()


def run_one(attack: Attack, seed: int) -> Outcome:
    """Run an attack in this process."""
    work = attack.load()
    return observe(lambda: work(seed))


class Worker:
    """A process that runs attacks, with a limit of memory; the parent keeps the time."""

    def __init__(self) -> None:
        paths = [str(HERE), str(HERE.parent / "helpers"), str(HERE.parents[1] / "src")]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        env = {**os.environ, **threads, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, str(HERE / "harness.py"), "--serve"]
        pipe = subprocess.PIPE
        self.asked = 0
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env)

    def ask(self, attack: Attack, seed: int) -> Outcome:
        """Return what came of an input; a worker that died or hung is of no more use."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.asked += 1
        self.process.stdin.write(json.dumps([attack.where, seed]).encode() + b"\n")
        self.process.stdin.flush()
        if not self._wait(attack.seconds):
            return Outcome("hang", f"no answer in {attack.seconds:g} s")
        answer = self.process.stdout.readline()
        if not answer:
            return Outcome("crash", f"the worker ended with {self.process.wait()}")
        return Outcome(**json.loads(answer))

    def _wait(self, seconds: float) -> bool:
        """Wait for the answer while the worker works, but no longer than `seconds` of its own time, nor while it rests.

        Where other programs are busy, a worker gets a small part of the time: that is no hang.
        """
        begun = seen = spent(self.process.pid)
        rested = 0.0
        while not select.select([self.process.stdout], [], [], min(1.0, seconds))[0]:
            now = spent(self.process.pid)
            rested, seen = (0.0, now) if now > seen or runnable(self.process.pid) else (rested + 1.0, seen)
            if now - begun > seconds or rested > seconds:
                return False
        return True

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


def spent(pid: int) -> float:
    """Return the seconds that a process and its ended children have worked; without Linux, that have passed."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return time.monotonic()


def runnable(pid: int) -> bool:
    """Whether a process would work if it were let."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):
        return False


class Bench:
    """Workers that rest between two chunks of the same attack: starting one, and what it has fitted, takes a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resting: list[tuple[str, Worker]] = []

    def take(self, attack: Attack) -> Worker:
        """Return a worker that has not worked for another attack, nor for too long; others are stopped."""
        with self._lock:
            fit = [pair for pair in self._resting if pair[0] == attack.name and pair[1].asked < LIFE]
            over = [worker for name, worker in self._resting if name != attack.name or worker.asked >= LIFE]
            self._resting = fit[1:]
        for worker in over:
            worker.stop()
        return fit[0][1] if fit else Worker()

    def give_back(self, attack: Attack, worker: Worker) -> None:
        """Let a worker rest."""
        with self._lock:
            self._resting.append((attack.name, worker))

    def close(self) -> None:
        """Stop every worker."""
        for _, worker in self._resting:
            worker.stop()


def run_apart(attack: Attack, seeds: Iterable[int], bench: Bench | None = None) -> Iterator[tuple[int, Outcome]]:
    """Run an attack with many seeds in a worker, and in another wherever one is lost."""
    own = None if bench else Bench()
    bench = bench or own
    assert bench is not None
    worker = bench.take(attack)
    try:
        for seed in seeds:
            outcome = worker.ask(attack, seed)
            yield seed, outcome
            if outcome.kind in ("crash", "hang", "memory"):
                worker.stop()
                worker = Worker()
    finally:
        bench.give_back(attack, worker)
        if bench is own:
            bench.close()


# -- all of them --------------------------------------------------------------------------------------------------------


class Teller:
    """Says each failure when it is found, and now and then how far the inputs are; several threads may speak."""

    def __init__(self, count: int, say: Callable[[str], object], every: float = PAUSE) -> None:
        self.count, self.say, self.every = count, say, every
        self.done = self.failed = 0
        self.start = self.last = time.monotonic()
        self._lock = threading.Lock()

    def add(self, name: str, seed: int, outcome: Outcome) -> None:
        """Note what came of an input."""
        with self._lock:
            self.done += 1
            if not outcome.good:
                self.failed += 1
                self.say(f"FAILED: {name}, seed {seed}: {outcome.kind}: {outcome.detail}")
            if time.monotonic() - self.last >= self.every:
                self.last = time.monotonic()
                self.say(f"{self.took()}: {self.done:,} of {self.count:,} inputs, {self.failed:,} failures")

    def took(self) -> str:
        """Return the time since the start, in minutes and seconds."""
        minutes, seconds = divmod(round(time.monotonic() - self.start), 60)
        return f"{minutes} min {seconds:02d} s"


def run_all(
    attacks: Sequence[Attack], seed: int, count: int, jobs: int = 2, say: Callable[[str], object] = lambda _: None
) -> list[Tally]:
    """Run every attack with its share of `count` inputs, and say how far it is."""
    tallies = {attack.name: Tally(attack.name) for attack in attacks}
    whole = sum(attack.share for attack in attacks)
    ends = {attack.name: seed + max(round(count * attack.share / whole), 1) for attack in attacks}
    chunks = [
        (attack, range(first, min(first + CHUNK, ends[attack.name])))
        for attack in attacks
        for first in range(seed, ends[attack.name], CHUNK)
    ]
    # The longest first, so that no core waits at the end.
    chunks.sort(key=lambda chunk: -chunk[0].seconds)
    bench = Bench()
    teller = Teller(sum(end - seed for end in ends.values()), say)

    def work(chunk: tuple[Attack, range]) -> tuple[Attack, list[tuple[int, Outcome]]]:
        found = []
        for own, outcome in run_apart(*chunk, bench):
            teller.add(chunk[0].name, own, outcome)
            found.append((own, outcome))
        return chunk[0], found

    with ThreadPoolExecutor(jobs) as pool:
        for attack, found in pool.map(work, chunks):
            for own, outcome in found:
                tallies[attack.name].add(own, outcome)
    bench.close()
    worked = resource.getrusage(resource.RUSAGE_CHILDREN)
    say(f"{teller.took()} in all; the workers worked for {(worked.ru_utime + worked.ru_stime) / 60:.1f} min")
    return list(tallies.values())


def tabulate(tallies: Sequence[Tally]) -> str:
    """Return the table of what was tried, how often, and what was found; then each failure with its seed."""
    rows = [("what was tried", "tried", "fine", "refused", "what was found")]
    for tally in tallies:
        found = ", ".join(f"{tally.counts[kind]} {kind}" for kind in BAD if tally.counts[kind]) or "nothing"
        tried, fine, refused = tally.counts.total(), tally.counts["fine"], tally.counts["refused"]
        rows.append((tally.name, f"{tried:,}", f"{fine:,}", f"{refused:,}", found))
    whole = sum(tally.counts.total() for tally in tallies)
    bad = sum(len(tally.failures) for tally in tallies)
    rows.append(("all", f"{whole:,}", "", "", f"{bad:,} failures" if bad else "nothing"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}  {row[4]}"
        for row in rows
    ]
    return "\n".join([*lines, *(line for tally in tallies for line in list_failures(tally))])


def list_failures(tally: Tally) -> Iterator[str]:
    """Say each failure once, with the seeds that gave it: those whose words differ only in numbers are the same."""
    alike: dict[str, list[tuple[int, Outcome]]] = {}
    for seed, outcome in tally.failures:
        alike.setdefault(re.sub(r"[0-9]+", "0", outcome.detail)[:80], []).append((seed, outcome))
    for found in alike.values():
        seeds = ", ".join(str(seed) for seed, _ in found[:5]) + (f" and {len(found) - 5} more" if found[5:] else "")
        yield f"{tally.name}, seed {seeds}: {found[0][1].kind}: {found[0][1].detail}"


def main(words: Sequence[str]) -> int:
    """Run the attacks: SEED, COUNT and, if only some are wanted, their names."""
    from catalogue import ATTACKS

    seed, count = int(words[0]), int(words[1])
    chosen = [attack for attack in ATTACKS if not words[2:] or attack.name in words[2:]]
    if not chosen:
        sys.exit(f"there is no attack called so; there are: {', '.join(attack.name for attack in ATTACKS)}")
    tallies = run_all(chosen, seed, count, say=lambda text: print(text, flush=True))  # noqa: T201
    sys.stdout.write(tabulate(tallies) + "\n")
    return int(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        sys.exit(main(sys.argv[1:]))
