"""How far the work is: its stage, the rows of it, the share that is done and the time that is left.

What works says where it is: `start_stage` names a stage, `track` goes through its parts one after the other, `advance` says how
far the current part is, `send_message` says what is worth a line of its own. A context variable carries this to whoever listens
(`report_to`), so that no function has to pass it on; where nobody listens, nothing happens. Time left is what was measured,
carried on: the share of the stage that is done and the seconds it took, and for stages still to come the seconds that they
were expected to take.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeVar

from largesse.records import Progress

Part = TypeVar("Part")
ENOUGH = 2.0  # seconds of a stage, before which nothing is known about its speed
FASTEST, SLOWEST = 0.05, 20.0  # how much faster and slower than expected a machine may seem


@dataclass(frozen=True)
class Moment:
    """Where the work is at some time."""

    stage: str
    rows: int | None  # that the stage works on
    done: float  # share of the stage
    seconds: float  # since the stage began
    left: float | None  # seconds until the end of this stage and of those expected after it; None: not known yet


@dataclass(frozen=True)
class _Stage:
    name: str
    began: float
    rows: int | None = None
    first: float = 0.0  # share that was done when it began: then it is one of several, which are reported together
    done: float = 0.0  # share
    at: float = 0.0  # seconds of the stage that it took
    end: float = 1.0  # share that will be done when the current part is


class Meter:
    """Hears where the work is and knows the time left. It is itself a `Progress`, and tells another one, if given."""

    def __init__(self, listener: Progress | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._listener, self._clock = listener, clock
        self._stage: _Stage | None = None
        self._spans: list[tuple[float, float]] = []  # start and width of the current part, of the part within it, …
        self._expected: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self.tell: Callable[[str], None] | None = None  # shows a sentence that stays
        self._thread = threading.get_ident()

    # -- what works ------------------------------------------------------------------------------------------------------

    def __call__(self, stage: str, done: float, /) -> None:
        """Begin a stage, or say what share of the current one is done."""
        if not self._is_mine():
            return
        if self._stage is None or stage != self._stage.name:
            self.begin(stage)
            if self._stage is not None and done > 0.0:
                self._stage = replace(self._stage, first=done)
        self._spans = []
        self._say(done, 1.0)

    def begin(self, stage: str, rows: int | None = None) -> None:
        """Begin a stage that works on a number of rows; the one before it has ended."""
        if not self._is_mine():
            return
        self.end()
        self._spans = []
        self._stage = _Stage(stage, self._clock(), rows)
        if self._listener is not None:
            self._listener(stage, 0.0)

    def end(self) -> None:
        """End the current stage, if there is one."""
        if self._stage is not None and self._is_mine():
            self._took[self._stage.name] = self._took.get(self._stage.name, 0.0) + self._clock() - self._stage.began
            self._stage = None

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Expect stages to take some seconds each; those that have ended tell how this machine compares."""
        self._expected |= seconds

    def track(self, items: Iterable[Part], weights: Sequence[float]) -> Iterator[Part]:
        """Yield items; while each is worked on, it is the current part, as large as its weight says."""
        if not self._is_mine():
            yield from items
            return
        depth, total, before = len(self._spans), float(sum(weights)) or 1.0, 0.0
        start, width = self._span()
        try:
            for item, weight in zip(items, weights, strict=True):
                part = (start + width * before / total, width * weight / total)
                self._spans[depth:] = [part]
                self._say(part[0], sum(part))
                yield item
                before += weight
        finally:
            del self._spans[depth:]
        self._say(start + width, start + width)

    @contextmanager
    def portion(self, start: float, end: float) -> Iterator[None]:
        """Let the block be the current part: what lies between two shares of the part around it."""
        if not self._is_mine():
            yield
            return
        depth, (first, width) = len(self._spans), self._span()
        self._spans.append((first + width * start, width * (end - start)))
        self._say(first + width * start, first + width * end)
        try:
            yield
        finally:
            del self._spans[depth:]
        self._say(first + width * end, first + width * end)

    def advance(self, done: float) -> None:
        """Say what share of the current part is done."""
        start, width = self._span()
        self._say(start + width * done, start + width)

    def _span(self) -> tuple[float, float]:
        """Return where the current part starts, and its width: that of the stage, unless only the caller knows what it is."""
        if self._spans:
            return self._spans[-1]
        alone = self._stage is None or self._stage.first == 0.0
        return (0.0, 1.0) if alone or self._stage is None else (self._stage.done, 0.0)

    def _say(self, done: float, end: float) -> None:
        if self._stage is None or not self._is_mine():
            return
        done = min(max(done, self._stage.done), 1.0)  # what is done stays done
        news = done > self._stage.done
        self._stage = replace(self._stage, done=done, at=self._clock() - self._stage.began, end=max(end, done))
        if news and self._listener is not None:
            self._listener(self._stage.name, done)

    def _is_mine(self) -> bool:
        """Whether this is the thread that the meter follows: work that others share in is reported by the one who waits."""
        return threading.get_ident() == self._thread

    # -- who listens -----------------------------------------------------------------------------------------------------

    @property
    def moment(self) -> Moment | None:
        """Where the work is now; None between stages. Any thread may ask."""
        stage = self._stage
        if stage is None:
            return None
        seconds = self._clock() - stage.began
        return Moment(stage.name, stage.rows, stage.done, seconds, self._left(stage, seconds))

    @property
    def took(self) -> dict[str, float]:
        """Seconds that each stage took that has ended."""
        return dict(self._took)

    def _left(self, stage: _Stage, seconds: float) -> float | None:
        later = [name for name in self._expected if name not in self._took and name != stage.name]
        scale = self._scale()
        left = _carry_on(stage, seconds)
        if left is None and stage.name in self._expected:
            left = max(scale * self._expected[stage.name] - seconds, 0.0)
        return None if left is None else left + scale * sum(self._expected[name] for name in later)

    def _scale(self) -> float:
        """How much slower than expected this machine has been so far."""
        known = [name for name in self._expected if name in self._took]
        expected = sum(self._expected[name] for name in known)
        took = sum(self._took[name] for name in known)
        return min(max(took / expected, FASTEST), SLOWEST) if expected > 0 and took > 0 else 1.0


def _carry_on(stage: _Stage, seconds: float) -> float | None:
    """Return the seconds left of a stage if it goes on as fast as so far; None: too little of it is done to say."""
    gained = stage.done - stage.first
    if seconds < ENOUGH or gained <= 0.0:
        return None
    # A part that takes longer than those before it is at its end at most, and the rest will take longer, too.
    share = min(stage.first + gained * seconds / max(stage.at, 1e-9), stage.end)
    return seconds * (1.0 - share) / (share - stage.first)


# -- the current meter ---------------------------------------------------------------------------------------------------

_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def report_to(progress: Progress | None) -> Iterator[Progress]:
    """Let what is done inside the block, in this thread, report to `progress`; to the one before it if there is none."""
    current = _meter.get()
    if progress is None or progress is current:
        yield current or _ignore
        return
    meter = progress if isinstance(progress, Meter) else Meter(progress)
    token = _meter.set(meter)
    try:
        yield meter
        meter.end()
    finally:
        _meter.reset(token)


def start_stage(stage: str, rows: int | None = None) -> None:
    """Begin a stage of the work, on a number of rows; the one before it has ended."""
    if (meter := _meter.get()) is not None:
        meter.begin(stage, rows)


@contextmanager
def stage_of(stage: str, rows: int | None = None) -> Iterator[None]:
    """Let the block be a stage of its own, unless it is part of one already."""
    meter = _meter.get()
    alone = meter is not None and meter.moment is None
    if alone:
        start_stage(stage, rows)
    yield
    if alone and meter is not None:
        meter.end()


def expect(seconds: Mapping[str, float]) -> None:
    """Say how many seconds stages may take: the time left counts those that are still to come."""
    if (meter := _meter.get()) is not None:
        meter.expect(seconds)


def track(items: Collection[Part], weights: Sequence[float] | None = None) -> Iterator[Part]:
    """Go through the parts of the current work, each as much of it as its weight says: alike, without weights.

    What a part itself tracks is a share of that part.

    >>> heard = []
    >>> with report_to(lambda stage, done: heard.append(done)):
    ...     start_stage("fitting", rows=100)
    ...     squares = [number**2 for number in track([1, 2, 3, 4])]
    >>> squares, heard
    ([1, 4, 9, 16], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    meter = _meter.get()
    if meter is None:
        yield from items
    else:
        yield from meter.track(items, [1.0] * len(items) if weights is None else weights)


@contextmanager
def subrange(start: float, end: float) -> Iterator[None]:
    """Let the block be what lies between two shares of the current part: one of several things that are done in turn.

    What is tracked outside of a portion counts as all of the current part.
    """
    if (meter := _meter.get()) is None:
        yield
        return
    with meter.portion(start, end):
        yield


def track_results(items: Iterable[Part], many: int) -> Iterator[Part]:
    """Go through `many` results that others work on, as they come: what each took to come is a part of the work."""
    coming = iter(items)
    for _ in track(range(many)):
        yield next(coming)


def send_message(sentence: str) -> None:
    """Tell whoever listens something that is worth a line of its own."""
    if (meter := _meter.get()) is not None and meter.tell is not None:
        meter.tell(sentence)


def advance(done: float) -> None:
    """Say what share of the current part of the work is done."""
    if (meter := _meter.get()) is not None:
        meter.advance(done)


def _ignore(_stage: str, _done: float, /) -> None:
    """Tell nobody."""


@contextmanager
def call_every(look: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call `look` every so many seconds, in a thread of its own, while the block lasts."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(seconds):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
