"""How far the work is, and how long it will still take."""

import threading
from collections.abc import Iterator

import pytest

from largesse.progress import (
    Meter,
    advance,
    expect,
    report_to,
    stage_of,
    start_stage,
    subrange,
    track,
    track_results,
)


class Clock:
    """A clock that goes only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def meter(clock: Clock) -> Iterator[Meter]:
    meter = Meter(clock=clock)
    with report_to(meter):
        yield meter


def done(meter: Meter) -> float:
    assert meter.moment is not None
    return round(meter.moment.done, 6)


def left(meter: Meter) -> float | None:
    assert meter.moment is not None
    return None if meter.moment.left is None else round(meter.moment.left, 6)


def test_where_nobody_listens_nothing_happens() -> None:
    start_stage("fitting", 10)
    expect({"fitting": 1.0})
    with subrange(0.0, 0.5), stage_of("fitting"):
        advance(0.5)
    assert list(track([1, 2], [3.0, 1.0])) == [1, 2]
    assert list(track_results(iter("ab"), 2)) == ["a", "b"]


def test_parts_within_parts_are_shares_of_them(meter: Meter) -> None:
    start_stage("fitting", 10)
    seen = []
    for _ in track("ab", [3, 1]):
        for _ in track(range(2)):
            advance(0.5)
            seen.append(done(meter))
    assert seen == [0.1875, 0.5625, 0.8125, 0.9375]
    assert done(meter) == 1.0


def test_portions_are_done_in_turn(meter: Meter) -> None:
    start_stage("fitting")
    with subrange(0.0, 0.8):
        list(track(range(4)))
        assert done(meter) == 0.8
    with subrange(0.8, 1.0):
        advance(0.5)
        assert done(meter) == 0.9


def test_results_of_others_count_when_they_come(meter: Meter) -> None:
    start_stage("fitting")
    assert [(result, done(meter)) for result in track_results(iter("ab"), 2)] == [("a", 0.0), ("b", 0.5)]
    assert done(meter) == 1.0


def test_what_is_done_stays_done(meter: Meter) -> None:
    start_stage("fitting")
    advance(0.5)
    advance(0.2)
    assert done(meter) == 0.5


def test_an_error_within_a_part_does_not_disturb_what_follows(meter: Meter) -> None:
    def fail() -> None:
        for number in track([1, 0]):
            1 / number

    start_stage("fitting")
    with pytest.raises(ZeroDivisionError), subrange(0.0, 0.5):
        fail()
    start_stage("planning")
    advance(0.25)
    assert done(meter) == 0.25


def test_other_threads_do_not_move_it(meter: Meter) -> None:
    start_stage("fitting")

    def work() -> None:
        with report_to(meter):
            start_stage("elsewhere")
            list(track([1, 2]))
            advance(0.9)
            meter("elsewhere", 0.9)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert meter.moment is not None
    assert (meter.moment.stage, meter.moment.done) == ("fitting", 0.0)


def test_a_plain_listener_hears_stages_and_shares() -> None:
    heard: list[tuple[str, float]] = []
    with report_to(lambda stage, share: heard.append((stage, share))) as progress:
        progress("reading", 0.0)
        start_stage("fitting")
        list(track("ab"))
    assert heard == [("reading", 0.0), ("fitting", 0.0), ("fitting", 0.5), ("fitting", 1.0)]


def test_an_inner_listener_takes_over_for_its_block(meter: Meter) -> None:
    start_stage("fitting")
    heard: list[tuple[str, float]] = []
    with report_to(lambda *said: heard.append(said)):
        start_stage("inside")
    with report_to(None), report_to(meter):
        advance(0.5)
    assert heard == [("inside", 0.0)]
    assert done(meter) == 0.5


def test_a_stage_of_its_own_only_where_there_is_none(meter: Meter) -> None:
    with stage_of("fitting", 7):
        assert meter.moment is not None
        assert (meter.moment.stage, meter.moment.rows) == ("fitting", 7)
        with stage_of("within"):
            assert meter.moment.stage == "fitting"
    assert meter.moment is None
    assert [*meter.took] == ["fitting"]


# -- time left ------------------------------------------------------------------------------------------------------------


def test_time_left_carries_on_what_was_measured(meter: Meter, clock: Clock) -> None:
    start_stage("fitting")
    parts = track(range(4))
    next(parts)
    clock.now += 5
    assert left(meter) is None  # nothing is done yet
    next(parts)
    assert left(meter) == 15.0
    clock.now += 2
    assert left(meter) == 13.0


def test_a_part_that_takes_longer_makes_the_rest_longer(meter: Meter, clock: Clock) -> None:
    start_stage("fitting")
    parts = track(range(4))
    next(parts)
    clock.now += 5
    next(parts)
    clock.now += 15  # the second part has taken three times as long as the first
    assert left(meter) == 20.0  # it may be ready now, and half of the work with it


def test_a_stage_that_begins_in_the_middle_is_moved_by_its_caller_alone(meter: Meter, clock: Clock) -> None:
    meter("second of four", 0.25)
    list(track("ab"))
    clock.now += 10
    assert done(meter) == 0.25
    assert left(meter) is None
    meter("second of four", 0.5)
    assert left(meter) == 20.0
    assert meter.moment is not None
    assert meter.moment.done == 0.5


def test_nothing_is_known_in_the_first_two_seconds(meter: Meter, clock: Clock) -> None:
    start_stage("fitting")
    clock.now += 1
    advance(0.5)
    assert left(meter) is None


def test_stages_to_come_count_as_far_as_they_are_expected(meter: Meter, clock: Clock) -> None:
    expect({"reading": 2.0, "fitting": 20.0, "judging": 10.0})
    start_stage("reading")
    assert left(meter) == 32.0
    clock.now += 4  # twice as long as expected
    start_stage("fitting")
    assert left(meter) == 60.0
    clock.now += 10
    advance(0.5)
    assert left(meter) == 30.0  # fitting goes on as measured, judging as expected on a machine half as fast
    start_stage("judging")
    assert left(meter) == round(10.0 * 14 / 22, 6)


def test_no_time_is_known_of_a_stage_that_nobody_expected(meter: Meter) -> None:
    expect({"judging": 10.0})
    start_stage("fitting")
    assert left(meter) is None
