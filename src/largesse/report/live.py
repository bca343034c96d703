"""What is shown while it works: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from largesse.errors import make_visible
from largesse.progress import Meter, Moment, call_every, report_to
from largesse.records import Progress

if TYPE_CHECKING:
    from rich.console import Console

SHORT = 2.0  # seconds; a stage that takes no longer gets no line
OFTEN, SELDOM = 10.0, 0.2  # seconds between two lines of a stage, and at least this share of what it has taken
TICK = 0.5  # seconds between two looks at the clock


@contextmanager
def show_progress(quiet: bool = False) -> Iterator[Progress]:
    """Show the stage, its rows and the time left of what is done inside the block, on the standard error.

    A terminal shows a bar. Elsewhere, stages of more than two seconds print a line now and then.

    >>> from largesse.response import Linear
    >>> from largesse.worlds import simulate
    >>> with show_progress():
    ...     model = Linear().fit(simulate("averaged", n=500).log)
    """
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda _stage, _done: None
        return
    meter = Meter()
    with _show_bar(meter, console) if console.is_terminal else _print_lines(meter), report_to(meter):
        yield meter


@contextmanager
def _show_bar(meter: Meter, console: Console) -> Iterator[None]:
    from rich import progress as bars
    from rich.text import Text

    class Now(bars.ProgressColumn):
        """Asks the meter whenever the terminal is refreshed, and moves the bar along."""

        max_refresh = 0.2

        def render(self, task: bars.Task) -> Text:
            moment = meter.moment
            if moment is None:
                return Text("")
            # A stage that does not say how far it is shows a moving bar.
            bar.update(task.id, total=1.0 if moment.done > 0 else None, completed=moment.done)
            return Text(make_visible(write_moment(moment)))

    with bars.Progress(Now(), bars.BarColumn(), bars.TimeElapsedColumn(), console=console, transient=True) as bar:
        meter.tell = lambda sentence: bar.console.print(Text(make_visible(sentence)), soft_wrap=True)
        bar.add_task("", total=None)
        yield


@contextmanager
def _print_lines(meter: Meter) -> Iterator[None]:
    lines = Lines(meter, _write_line)
    meter.tell = _write_line
    try:
        with call_every(lines.look, TICK):
            yield
    finally:
        lines.look()


def _write_line(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads the standard error any more
        sys.stderr.write(make_visible(line) + "\n")
        sys.stderr.flush()


class Lines:
    """Prints lines about a meter, whenever it is told to look: few, and none about what is short."""

    def __init__(self, meter: Meter, show: Callable[[str], None]) -> None:
        self._meter, self._show = meter, show
        self._stage, self._next = (
            "",
            SHORT,
        )  # what the last line was about, and the seconds of it at which to print again

    def look(self) -> None:
        """Print a line if it is time for one."""
        moment = self._meter.moment
        if self._stage and (moment is None or moment.stage != self._stage):
            if self._stage in (took := self._meter.took):
                self._show(f"{self._stage}: {write_seconds(took[self._stage])}")
            self._stage, self._next = "", SHORT
        if moment is not None and moment.seconds >= self._next:
            self._show(write_moment(moment))
            self._stage, self._next = moment.stage, moment.seconds + max(OFTEN, SELDOM * moment.seconds)


def write_moment(moment: Moment) -> str:
    """Write where the work is.

    >>> write_moment(Moment("learning the response", 20_000, 0.43, 30.0, 130.0))
    'learning the response · 20,000 rows · 43 % · about 2 min left'
    >>> write_moment(Moment("reading", None, 0.0, 3.0, None))
    'reading'
    """
    rows = [] if moment.rows is None else [f"{moment.rows:,} rows"]
    share = [f"{int(100 * moment.done)} %"] if moment.done > 0 else []
    left = [] if moment.left is None else [write_left(moment.left)]
    return " · ".join([moment.stage, *rows, *share, *left])


def write_left(seconds: float) -> str:
    """Write the time left, no more exactly than it can be known.

    >>> write_left(4), write_left(34), write_left(80), write_left(400), write_left(9000)
    ('a few seconds left', 'about 40 s left', 'about 1 min left', 'about 7 min left', 'about 2 h 30 min left')
    """
    if seconds < 10:
        return "a few seconds left"
    if seconds < 60:
        seconds = -(-seconds // 10) * 10
    return f"about {write_seconds(seconds, rounded=True)} left"


def write_seconds(seconds: float, *, rounded: bool = False) -> str:
    """Write a time; `rounded` to minutes if it is longer than one, and to tens of them beyond an hour.

    >>> write_seconds(3.4), write_seconds(127), write_seconds(127, rounded=True), write_seconds(3600)
    ('3 s', '2 min 7 s', '2 min', '1 h')
    """
    whole = round(seconds)
    if rounded and whole >= 60:
        whole = round(whole / 60) * 60 if whole < 3600 else round(whole / 600) * 600
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"
