"""Progress of long computations: stages, completed share, and display on a terminal.

Working code reports: `start_stage` names a stage, `track` iterates over its parts, `advance` gives the share of the current part
that is done. A context variable carries the reports to the listener (`report_to`), so that no function has to pass it on; without a
listener nothing happens. `show_progress` shows them as a bar on a terminal, elsewhere as lines.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from largesse.errors import make_visible
from largesse.records import Progress

if TYPE_CHECKING:
    from rich.console import Console

Part = TypeVar("Part")
MIN_STAGE_SECONDS = 2.0  # shorter stages have no forecast of their end, and print no line
MIN_LINE_SECONDS, MIN_LINE_SHARE = (
    10.0,
    0.2,
)  # between two lines of a stage: seconds, and a share of its time so far


class ProgressTracker:
    """Current stage and completed share of a computation, reported to a callback.

    A tracker is itself a `Progress`.
    """

    def __init__(self, listener: Progress | None = None) -> None:
        self.listener = listener
        self.stage = ""  # empty between stages
        self.rows: int | None = None  # of the stage
        self.done = 0.0  # share of the stage
        self._began = 0.0
        self._first = (
            0.0  # completed share when the stage began; not zero if only the caller knows the parts of the stage
        )
        self._spans: list[tuple[float, float]] = []  # start and width of the current part, of the part within it, …
        self._thread = threading.get_ident()

    @property
    def is_creating_thread(self) -> bool:
        """True in the thread that created the tracker.

        Work shared with other threads is reported by the waiting thread.
        """
        return threading.get_ident() == self._thread

    def __call__(self, stage: str, done: float, /) -> None:
        """Start a stage, or report the completed share of the current stage."""
        if not self.is_creating_thread:
            return
        if stage != self.stage:
            self.start(stage)
            self._first = done
        self._spans = []
        self._report(done)

    def start(self, stage: str, rows: int | None = None) -> None:
        """Start a stage, and end the previous stage."""
        self.end()
        self.stage, self.rows, self.done, self._first, self._spans = stage, rows, 0.0, 0.0, []
        self._began = time.monotonic()
        if self.listener is not None:
            self.listener(stage, 0.0)

    def end(self) -> None:
        """End the current stage."""
        if self.is_creating_thread:
            self.stage = ""

    def track(self, items: Iterable[Part], weights: Sequence[float]) -> Iterator[Part]:
        """Yield items, and report the completed share by their weights."""
        total, before = float(sum(weights)) or 1.0, 0.0
        for item, weight in zip(items, weights, strict=True):
            with self.subrange(before / total, (before + weight) / total):
                yield item
            before += weight

    @contextmanager
    def subrange(self, start: float, end: float) -> Iterator[None]:
        """Scale the progress inside a with-block to a range of the current stage."""
        depth, (first, width) = len(self._spans), self._current_span
        self._spans.append((first + width * start, width * (end - start)))
        try:
            yield
        finally:
            del self._spans[depth:]
        self._report(first + width * end)

    def advance(self, done: float) -> None:
        """Report the completed share of the current range."""
        start, width = self._current_span
        self._report(start + width * done)

    @property
    def seconds(self) -> float:
        """Seconds since the stage began."""
        return time.monotonic() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining seconds of the stage; None if too little is done."""
        gained = self.done - self._first
        if not self.stage or self.seconds < MIN_STAGE_SECONDS or gained <= 0.0:
            return None
        return self.seconds * (1.0 - self.done) / gained

    @property
    def _current_span(self) -> tuple[float, float]:
        if self._spans:
            return self._spans[-1]
        return (0.0, 1.0) if self._first == 0.0 else (self.done, 0.0)

    def _report(self, done: float) -> None:
        done = min(done, 1.0)
        if self.stage and done > self.done:  # the completed share never falls
            self.done = done
            if self.listener is not None:
                self.listener(self.stage, done)


# -- reporting -----------------------------------------------------------------------------------------------------------

_current: ContextVar[ProgressTracker | None] = ContextVar("tracker", default=None)


def _get_tracker() -> ProgressTracker | None:
    tracker = _current.get()
    return tracker if tracker is not None and tracker.is_creating_thread else None


@contextmanager
def report_to(progress: Progress | None) -> Iterator[Progress]:
    """Report the progress of a with-block, in this thread, to a callback.

    None is the current listener.
    """
    current = _current.get()
    if progress is None or progress is current:
        yield current or _ignore_progress
        return
    tracker = progress if isinstance(progress, ProgressTracker) else ProgressTracker(progress)
    token = _current.set(tracker)
    try:
        yield tracker
        tracker.end()
    finally:
        _current.reset(token)


def _ignore_progress(_stage: str, _done: float, /) -> None:
    """Ignore a progress report."""


def start_stage(stage: str, rows: int | None = None) -> None:
    """Start a named stage of the computation, and end the previous stage."""
    if (tracker := _get_tracker()) is not None:
        tracker.start(stage, rows)


@contextmanager
def count_as_stage(stage: str, rows: int | None = None) -> Iterator[None]:
    """Count a with-block as a stage, unless another stage contains it."""
    tracker = _get_tracker()
    if tracker is None or tracker.stage:
        yield
        return
    tracker.start(stage, rows)
    yield
    tracker.end()


def track(items: Collection[Part], weights: Sequence[float] | None = None) -> Iterator[Part]:
    """Yield items, and report the completed share of the current stage.

    Inner calls report shares of the current part.

    >>> heard = []
    >>> with report_to(lambda stage, done: heard.append(done)):
    ...     start_stage("fitting", rows=100)
    ...     squares = [number**2 for number in track([1, 2, 3, 4])]
    >>> squares, heard
    ([1, 4, 9, 16], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    tracker = _get_tracker()
    if tracker is None:
        return iter(items)
    return tracker.track(items, [1.0] * len(items) if weights is None else weights)


def track_results(items: Iterable[Part], n: int) -> Iterator[Part]:
    """Yield results of parallel workers as they arrive, and report the completed share."""
    arriving = iter(items)
    for _ in track(range(n)):
        yield next(arriving)


@contextmanager
def subrange(start: float, end: float) -> Iterator[None]:
    """Scale the progress inside a with-block to a range of the current stage.

    Work that is tracked outside of any subrange counts as all of the current part.
    """
    if (tracker := _get_tracker()) is None:
        yield
        return
    with tracker.subrange(start, end):
        yield


def advance(done: float) -> None:
    """Report the completed share of the current stage or range."""
    if (tracker := _get_tracker()) is not None:
        tracker.advance(done)


# -- showing -------------------------------------------------------------------------------------------------------------


@contextmanager
def show_progress(quiet: bool = False) -> Iterator[Progress]:
    """Show the progress of a with-block on the standard error.

    The stage, its rows and the remaining time are shown.
    A terminal shows a bar. Elsewhere, stages of more than two seconds print a line now and then.

    >>> from largesse.response import Linear
    >>> from largesse.worlds import simulate
    >>> with show_progress():
    ...     model = Linear().fit(simulate("averaged", n=500).log)
    """
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield _ignore_progress
        return
    tracker = ProgressTracker()
    with _show_bar(tracker, console) if console.is_terminal else _print_lines(tracker), report_to(tracker):
        yield tracker


@contextmanager
def _show_bar(tracker: ProgressTracker, console: Console) -> Iterator[None]:
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(_stage: str, done: float) -> None:
            if done == 0.0:
                bar.reset(
                    task, total=None, description=make_visible(_describe_progress(tracker))
                )  # a moving bar until the first report
            else:
                bar.update(task, total=1.0, completed=done)

        tracker.listener = show
        yield


@contextmanager
def _print_lines(tracker: ProgressTracker) -> Iterator[None]:
    stage, next_line = "", MIN_STAGE_SECONDS

    def show(_stage: str, done: float) -> None:
        nonlocal stage, next_line
        if done == 0.0:
            stage, next_line = _describe_progress(tracker), MIN_STAGE_SECONDS
        elif tracker.seconds >= next_line:
            left = tracker.seconds_left
            more = [] if left is None or done == 1.0 else [f"about {format_duration(left)} left"]
            _write_terminal_line(" · ".join([stage, f"{int(100 * done)} %", *more]))
            next_line = tracker.seconds + max(MIN_LINE_SECONDS, MIN_LINE_SHARE * tracker.seconds)

    tracker.listener = show
    yield


def _describe_progress(tracker: ProgressTracker) -> str:
    return tracker.stage if tracker.rows is None else f"{tracker.stage} · {tracker.rows:,} rows"


def _write_terminal_line(line: str) -> None:
    with suppress(OSError, ValueError):  # the standard error is closed
        sys.stderr.write(make_visible(line) + "\n")
        sys.stderr.flush()


def format_duration(seconds: float) -> str:
    """Format a duration in its two largest units.

    >>> format_duration(3.4), format_duration(127), format_duration(9_065)
    ('3 s', '2 min 7 s', '2 h 31 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
