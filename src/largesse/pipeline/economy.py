"""A run within a time: what it costs is measured on some rows of the log, and what does not fit is left out.

Two fits of samples say how the time grows with rows; the later stages are timed on one of them. If the whole run fits into
the time, nothing is left out. If not, the boosting of small trees goes first, which takes about half of the default's fit,
and then the model learns from fewer rows. What was left out becomes part of the campaign: the run folder says it, and the
campaign in it gives the same model and plan again, without a clock.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from largesse.campaign import Campaign
from largesse.errors import Problem, fail
from largesse.pipeline import steps
from largesse.pipeline.engine import Engine
from largesse.progress import expect, report_to, send_message, start_stage
from largesse.records import HeldOut, Log
from largesse.report import write_seconds
from largesse.response import keep_fits, own_costs
from largesse.stats import assign_folds, draw_clusters, draw_rows

WARM = 500  # rows of a fit that is not timed
FIRST = 2_000  # rows of the first fit that is
AHEAD = 8  # times as many rows as the second fit has, at most, are reckoned with from it
MOST = 50_000  # rows on which the later stages are timed
GROWTH, LATER = (
    1.15,
    0.8,
)  # how the times of a fit, before that is measured, and of later stages grow with rows: as powers
FLATTEST, STEEPEST = 0.7, 1.3  # what is measured of it is taken to lie between
SPARE = 0.85  # of the time that is left is planned for
# The model without the boosting of small trees. On random worlds these bring 0.01 to 0.02 of skill; from 2,000 to 20,000
# rows, twice as many rows bring 0.09.
SMALLER = {"auto": "quick", "stack": "quick"}
UNITS = {"h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}
LEAST = 5_000  # rows that are never too many
LONGEST = 366 * 86_400.0


@dataclass(frozen=True)
class Economy:
    """What a run is to leave out, and why."""

    model: str
    most_rows: int | str  # that the model learns from; "auto": as many as fit into memory
    left_out: tuple[str, ...] = ()  # in sentences

    def apply(self, campaign: Campaign) -> Campaign:
        """Return the campaign without what is left out."""
        return replace(campaign, model=self.model, most_rows=self.most_rows)


def read_time(text: str) -> float:
    """Return the seconds of a time such as 10m, 1h30m or 90s.

    >>> read_time("10m"), read_time("1h30m"), read_time("90 s")
    (600.0, 5400.0, 90.0)
    """
    words = re.findall(r"(\d+(?:\.\d+)?)\s*(h|min|m|s)", text.strip().lower())
    seconds = sum(float(number) * UNITS[unit] for number, unit in words)
    if "".join(number + unit for number, unit in words) != "".join(text.lower().split()) or not 0 < seconds <= LONGEST:
        fail("time", Problem(f"--time is {text!r}", "give hours, minutes or seconds: 10m, 1h30m, 90s"))
    return seconds


class Clock:
    """The time that a run may take, from when it began."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.now = seconds, now
        self._began = now()

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.seconds - (self.now() - self._began)


def economise(campaign: Campaign, log: Log, customers: int, engine: Engine, clock: Clock) -> Economy:
    """Measure what a run costs, for so many customers, and say what it is to leave out to keep within the time."""
    whole, most = Economy(campaign.model, campaign.most_rows), len(log.seen)
    if most <= LEAST:
        send_message(f"the log is too small to leave anything out for the sake of {write_seconds(clock.seconds)}")
        return whole
    start_stage("measuring how long it takes", most)
    pilot = _Pilot(campaign, log, customers, engine, clock)
    room = pilot.reckon(most)
    if room >= most:
        send_message(
            f"the whole run will take about {write_seconds(pilot.whole(most), rounded=True)}: nothing is left out"
        )
        pilot.announce(most)
        return whole
    model, left_out = campaign.model, []
    within = f"To keep within {write_seconds(clock.seconds)}, "
    if smaller := SMALLER.get(model):
        model = smaller
        left_out.append(f"{within}the boosting of small trees was left out.")
        room = pilot.reckon_with(model)
    rows = most
    if room < most:
        rows = min(max(_round_down(room), LEAST), most)
        left_out.append(f"{within}the model learnt from {rows:,} of {len(log):,} rows, drawn at random.")
    for sentence in left_out:
        send_message(sentence)
    pilot.announce(rows)
    expected = pilot.whole(rows)
    if expected > clock.left:
        send_message(f"even so it will take about {write_seconds(expected, rounded=True)} from now")
    return Economy(model, campaign.most_rows if rows == most else rows, tuple(left_out))


class _Pilot:
    """Times fits of samples of a log, and what follows a fit."""

    def __init__(self, campaign: Campaign, log: Log, customers: int, engine: Engine, clock: Clock) -> None:
        self._campaign, self._log, self._engine, self._clock = campaign, log, engine, clock
        self._customers = customers
        self._growth = GROWTH
        self._rows, self._seconds = 0, 0.0  # of the last fit
        self._examined = (1, 0.0)  # rows and seconds of examining some of the log
        self._rest = 0.0  # seconds of the other stages after the fit

    def reckon(self, most: int) -> int:
        """Return how many of `most` rows the campaign's model can learn from in the time that is left."""
        self._time_fit(WARM)  # what is loaded and compiled on first use takes its time only once
        fitted = self._time_fit(FIRST)
        first = self._seconds
        self._time_later(fitted)
        second = min(self._room(), most) // AHEAD
        if second > 2 * FIRST:
            self._time_fit(second)
            growth = math.log(self._seconds / first) / math.log(self._rows / FIRST)
            self._growth = min(max(growth, FLATTEST), STEEPEST)
        return self._room()

    def reckon_with(self, model: str) -> int:
        """Return how many rows another model can learn from, if its time grows with rows as that of the campaign's does."""
        self._campaign = replace(self._campaign, model=model)
        self._time_fit(self._rows)
        return self._room()

    def whole(self, rows: int) -> float:
        """Return the seconds that a fit of some rows, and what follows it, will take."""
        return self._fit(rows) + self._later(rows)

    def announce(self, rows: int) -> None:
        """Say how long the stages of a run are expected to take: the time left then counts all of them."""
        expect({"learning the response": self._fit(rows), "examining the log": self._later(rows)})

    def _fit(self, rows: int) -> float:
        return self._seconds * float(rows / self._rows) ** self._growth

    def _later(self, rows: int) -> float:
        """Return the seconds after a fit; how levels were chosen is learnt from the rows of the fit, too."""
        looked, seconds = self._examined
        return seconds * max(rows / looked, 0.5) ** LATER + self._rest

    def _room(self) -> int:
        """Return the rows of a fit that ends in time."""
        left, low, high = SPARE * self._clock.left, 0, len(self._log.seen) + 1
        while high - low > 1:  # all of `low` rows are in time, and all of `high` are not
            middle = (low + high) // 2
            low, high = (middle, high) if self.whole(middle) <= left else (low, middle)
        return low

    def _time_fit(self, rows: int) -> steps.Fitted:
        sample = self._draw(rows)
        with report_to(_ignore) as quiet, keep_fits(None):
            start = self._clock.now()
            fitted = steps.fit(self._campaign, sample, self._engine, quiet)
        self._rows, self._seconds = len(sample), max(self._clock.now() - start, 1e-3)
        return fitted

    def _time_later(self, fitted: steps.Fitted) -> None:
        """Time scoring, examining and judging on some rows."""
        campaign, n = self._campaign, len(self._log)
        sample = self._draw(min(max(n // AHEAD, 2 * FIRST), MOST))
        start = self._clock.now()
        curves = fitted.model.predict(sample)
        scored = self._clock.now() - start
        held = HeldOut(curves, assign_folds(sample, seed=campaign.seed), own_costs(fitted.model, sample))
        with report_to(_ignore) as quiet:
            start = self._clock.now()
            examined = steps.examine(campaign, sample, held, self._engine, quiet)
            self._examined = (len(sample), self._clock.now() - start)
            start = self._clock.now()
            steps.judge(campaign, sample, examined, campaign.planning.average(len(sample)), "dr", self._engine)
        judged = (self._clock.now() - start) * (n / len(sample)) ** LATER
        # Rows that the model does not learn from are scored by it, as customers are.
        self._rest = judged + scored * (n + self._customers) / len(sample)

    def _draw(self, rows: int) -> Log:
        seen, seed = self._log.seen, self._campaign.seed
        if len(seen) <= rows:
            return seen
        if seen.cluster is not None:
            return seen.take(draw_clusters(seen.cluster, rows, seed))
        return seen.take(draw_rows(seen.level, len(seen.levels), rows, seed)[0])


def _round_down(rows: int) -> int:
    """Return a round number of rows, no larger.

    >>> _round_down(123_456), _round_down(999)
    (120000, 990)
    """
    digit = 10 ** max(len(str(rows)) - 2, 0)
    return rows // digit * digit


def _ignore(_stage: str, _done: float, /) -> None:
    """Tell nobody."""
