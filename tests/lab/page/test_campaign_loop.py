"""Chapters of the loop: what summaries say, in tables, figures and sentences."""

from typing import Any

import pytest

from largesse_lab.experiments import next_log, pace_streams, power_sizes


def _interval(width: float, inside: bool | None, se: float = 0.1) -> dict[str, Any]:
    return {"width": width, "inside": inside, "error": 0.0, "se": se}


def _world(seed: int, width: float, inside: bool, se: float = 0.1) -> dict[str, Any]:
    ways = {
        way: {
            "gain": _interval(1.0 if way == "random" else width, inside, se),
            "plan": _interval(1.0, True),
            "own": _interval(1.0, None),
            "given_up": 0.1,
        }
        for way in next_log.WAYS
    }
    return {"seed": seed, "ways": ways, "plan_gain": 1.0}


WORLDS = [_world(1, 0.4, True), _world(2, 0.4, True), _world(3, 1.6, False), _world(4, 0.0, False, se=0.0)]
TESTS = [
    {"response": "yes/no", "shown": 0.78},
    {"response": "amounts", "shown": 0.86},
    {"response": "yes/no", "shown": None, "why": "too large"},
]


def _stream(seed: int, later: bool, value: float, kept: bool) -> dict[str, Any]:
    way = {"kept": kept, "value": value, "gain": value, "use": 0.99, "committed": 1.0}
    return {
        "seed": seed,
        "customers": 10,
        "traits": {"on_redemption": later},
        "rate": 0.1 if later else 0.0,
        "priced": seed != 2,
        "reserved": 0.8,
        "offline_use": 0.9,
        "ways": dict.fromkeys(pace_streams.NAMES, way),
    }


STREAMS = [_stream(1, False, 0.99, True), _stream(2, True, 0.96, True), _stream(3, True, 1.0, False)]


def test_a_plan_that_is_the_mix_has_no_gain_to_miss() -> None:
    found = next_log.summarise(WORLDS)
    (row,) = [row for row in found["rows"] if row["key"] == "gain" and row["way"] == "evaluation"]
    assert (row["judged"], row["worlds"], found["equal"]) == (3, 3, 1)
    assert row["inside"] == pytest.approx(2 / 3)
    assert row["wider"] == pytest.approx(1 / 3)
    assert found["widths"]["evaluation"]["share"][-1] == 1.0
    assert "66.7 % (20.8 to 93.9)" in next_log.tabulate(WORLDS)


def test_worlds_without_room_to_explore_are_counted() -> None:
    found = next_log.summarise([*WORLDS, {"seed": 9, "ways": {}, "refused": "no"}])
    assert found["refused"] == 1
    assert found["rows"] == next_log.summarise(WORLDS)["rows"]


def test_the_power_is_that_of_worlds_with_a_test() -> None:
    found = power_sizes.summarise(TESTS)
    assert [(kind["responses"], kind["worlds"]) for kind in found["kinds"]] == [
        ("yes/no", 1),
        ("amounts", 1),
        ("all", 2),
    ]
    assert found["left"] == {"too large": 1}
    assert "| all | 2 | 82.0 % ± 4.0 |" in power_sizes.tabulate(TESTS)


def test_overspent_streams_are_counted_and_free_budgets_are_not_used_up() -> None:
    found = pace_streams.summarise(STREAMS)
    at_once, later = found["kinds"]
    assert at_once["streams"] == 1
    assert later["ways"]["paced"]["overspent"] == found["overspent"]["paced"] == 1
    assert later["rates"][0] == {
        "low": 0.05,
        "high": 0.15,
        "streams": 2,
        "value": 0.98,
        "gain": 0.98,
        "use": 0.99,
        "reserved": 0.8,
    }
    assert "| paced | 1 | 98.00 % |" in pace_streams.tabulate(STREAMS)
