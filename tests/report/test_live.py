"""What is shown while it works."""

import io
import sys
import time

import pytest

from largesse.progress import Meter, advance, start_stage
from largesse.report import live, show_progress


class Clock:
    """A clock that goes only when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_short_stage_prints_no_line() -> None:
    clock, printed = Clock(), list[str]()
    meter = Meter(clock=clock)
    lines = live.Lines(meter, printed.append)
    meter("reading", 0.0)
    clock.now += 1.9
    lines.look()
    meter("planning", 0.0)
    lines.look()
    assert printed == []


def test_a_long_stage_prints_its_rows_its_share_the_time_left_and_what_it_took() -> None:
    clock, printed = Clock(), list[str]()
    meter = Meter(clock=clock)
    lines = live.Lines(meter, printed.append)
    meter.begin("learning the response", 20_000)
    for share in (0.0, 0.1, 0.2, 0.9):
        clock.now = 100 * share + 2.5
        meter.advance(share)
        lines.look()
        lines.look()  # too soon for another line
    meter.end()
    lines.look()
    lines.look()
    assert printed == [
        "learning the response · 20,000 rows",
        "learning the response · 20,000 rows · 10 % · about 2 min left",
        "learning the response · 20,000 rows · 20 % · about 2 min left",
        "learning the response · 20,000 rows · 90 % · about 20 s left",
        "learning the response: 1 min 32 s",
    ]


def test_lines_become_fewer_the_longer_it_takes() -> None:
    clock, printed = Clock(), list[str]()
    meter = Meter(clock=clock)
    lines = live.Lines(meter, printed.append)
    meter.begin("learning the response")
    for second in range(36_000):
        clock.now = float(second)
        lines.look()
    assert 20 < len(printed) < 60


def test_lines_go_to_the_standard_error_where_it_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SHORT", 0.0)
    monkeypatch.setattr(live, "TICK", 0.001)
    with show_progress():
        start_stage("reading \x1b[2J", 5)
        time.sleep(0.2)
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" not in err
    assert err.splitlines()[0].endswith("· 5 rows")
    assert err.splitlines()[-1].endswith(": 0 s")


def test_quiet_shows_nothing_and_hears_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SHORT", 0.0)
    with show_progress(quiet=True) as progress:
        progress("reading", 0.0)
        start_stage("planning")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with show_progress() as progress:
        assert isinstance(progress, Meter)
        start_stage("learning the response", 20_000)
        advance(0.5)
        shown = "learning the response · 20,000 rows · 50 %"
        end = time.monotonic() + 20
        while shown not in screen.getvalue() and time.monotonic() < end:  # the terminal is refreshed now and then
            time.sleep(0.02)
    assert shown in screen.getvalue()
