"""Progress: stages, shares of their parts, time left, and their display."""

import io
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from largesse import progress
from largesse.progress import (
    ProgressTracker,
    advance,
    count_as_stage,
    format_duration,
    report_to,
    show_progress,
    start_stage,
    subrange,
    track,
    track_results,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that a test sets."""
    clock = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(progress, "time", clock)
    return clock


@pytest.fixture
def tracker() -> Iterator[ProgressTracker]:
    tracker = ProgressTracker()
    with report_to(tracker):
        yield tracker


def test_without_a_listener_nothing_happens() -> None:
    start_stage("fitting", 10)
    with subrange(0.0, 0.5), count_as_stage("fitting"):
        advance(0.5)
    assert list(track([1, 2], [3.0, 1.0])) == [1, 2]
    assert list(track_results(iter("ab"), 2)) == ["a", "b"]


def test_parts_subranges_and_results_of_others_add_up(tracker: ProgressTracker) -> None:
    start_stage("fitting", 10)
    shares = []
    for _ in track("ab", [3, 1]):
        for _ in track(range(2)):
            advance(0.5)
            shares.append(tracker.done)
    assert (shares, tracker.done) == ([0.1875, 0.5625, 0.8125, 0.9375], 1.0)
    start_stage("planning")
    with subrange(0.0, 0.8):
        list(track(range(4)))
        assert tracker.done == 0.8
    with subrange(0.8, 1.0):
        advance(0.5)
        advance(0.2)
        assert tracker.done == pytest.approx(0.9)  # it never falls
    start_stage("waiting")
    assert [(result, tracker.done) for result in track_results(iter("ab"), 2)] == [("a", 0.0), ("b", 0.5)]
    assert tracker.done == 1.0


def test_an_error_within_a_part_does_not_disturb_the_next_stage(tracker: ProgressTracker) -> None:
    def fail() -> None:
        for number in track([1, 0]):
            1 / number

    start_stage("fitting")
    with pytest.raises(ZeroDivisionError), subrange(0.0, 0.5):
        fail()
    start_stage("planning")
    advance(0.25)
    assert tracker.done == 0.25


def test_other_threads_do_not_move_it(tracker: ProgressTracker) -> None:
    start_stage("fitting")

    def work() -> None:
        with report_to(tracker):
            start_stage("elsewhere")
            list(track([1, 2]))
            advance(0.9)
            tracker("elsewhere", 0.9)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (tracker.stage, tracker.done) == ("fitting", 0.0)


def test_listeners_hear_stages_and_shares_of_their_block(tracker: ProgressTracker) -> None:
    start_stage("outside")
    heard: list[tuple[str, float]] = []
    with report_to(lambda *news: heard.append(news)) as listener:
        listener("reading", 0.0)
        start_stage("fitting")
        list(track("ab"))
    with report_to(None), report_to(tracker):
        advance(0.5)
    assert heard == [("reading", 0.0), ("fitting", 0.0), ("fitting", 0.5), ("fitting", 1.0)]
    assert (tracker.stage, tracker.done) == ("outside", 0.5)


def test_a_stage_within_a_stage_is_a_part_of_it(tracker: ProgressTracker) -> None:
    with count_as_stage("fitting", 7):
        with count_as_stage("within"):
            assert (tracker.stage, tracker.rows) == ("fitting", 7)
        assert tracker.stage == "fitting"
    assert tracker.stage == ""


def test_time_left_is_known_after_two_seconds_and_some_progress(
    tracker: ProgressTracker, clock: SimpleNamespace
) -> None:
    start_stage("fitting")
    clock.now += 5
    assert tracker.seconds_left is None
    advance(0.25)
    assert tracker.seconds_left == 15.0
    start_stage("planning")
    clock.now += 1
    advance(0.5)
    assert tracker.seconds_left is None
    tracker("second of four", 0.25)  # a stage that starts in the middle is moved by its caller only
    list(track("ab"))
    clock.now += 10
    assert (tracker.done, tracker.seconds_left) == (0.25, None)
    tracker("second of four", 0.5)
    assert (tracker.done, tracker.seconds_left) == (0.5, 20.0)


# -- display -------------------------------------------------------------------------------------------------------------


def test_a_long_stage_prints_a_line_now_and_then(capsys: pytest.CaptureFixture[str], clock: SimpleNamespace) -> None:
    with show_progress():
        start_stage("reading \x1b[2J", 5)
        clock.now += 1.9
        advance(1.0)
        start_stage("learning", 20_000)
        for _ in track(range(1000)):
            clock.now += 1.0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[0] == "learning · 20,000 rows · 0 % · about 16 min 38 s left"
    assert all("learning" in line for line in lines)
    assert 10 < len(lines) < 40  # ever fewer
    with show_progress(quiet=True) as listener:
        listener("reading", 0.0)
        start_stage("planning")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with show_progress():
        start_stage("learning the \x1b[2J response", 20_000)
        advance(0.5)
        end = time.monotonic() + 20
        while "50%" not in screen.getvalue() and time.monotonic() < end:  # the terminal is refreshed now and then
            time.sleep(0.02)
    assert "learning the \\x1b[2J response · 20,000 rows" in screen.getvalue()
    assert "50%" in screen.getvalue()


def test_times_have_two_units_at_most() -> None:
    assert [format_duration(s) for s in (0.2, 59.6, 3600)] == ["0 s", "1 min 0 s", "1 h 0 min"]
