"""Experiments on the loop from one campaign to the next: summaries and their tables."""

from typing import Any

import pytest

from largesse_lab.experiments import EXPERIMENTS, achieved_power, exploration_precision, pace_streams


def text_of(name: str, records: list[dict[str, Any]]) -> str:
    experiment = EXPERIMENTS[name]
    return experiment.make_result_section(experiment.summarise(records)).join_paragraphs()


def interval(width: float, inside: bool | None, se: float = 0.1) -> dict[str, Any]:
    return {"width": width, "inside": inside, "error": 0.0, "se": se}


def world(seed: int, width: float, inside: bool, se: float = 0.1) -> dict[str, Any]:
    def way(name: str) -> dict[str, Any]:
        gain = interval(1.0 if name == "random" else width, inside, se)
        return {"gain": gain, "plan": interval(1.0, True), "own": interval(1.0, None), "given_up": 0.1}

    return {"seed": seed, "ways": {name: way(name) for name in exploration_precision.LOGGING_WAYS}, "plan_gain": 1.0}


def test_a_plan_that_is_the_mix_has_no_gain_and_worlds_without_room_are_counted() -> None:
    worlds = [world(1, 0.4, True), world(2, 0.4, True), world(3, 1.6, False), world(4, 0.0, False, se=0.0)]
    summary = exploration_precision.summarise(worlds)
    (row,) = [row for row in summary["rows"] if row["key"] == "gain" and row["way"] == "evaluation"]
    assert (row["judged"], row["worlds"], summary["equal"]) == (3, 3, 1)
    assert row["inside"] == pytest.approx(2 / 3)
    assert row["wider"] == pytest.approx(1 / 3)
    assert summary["widths"]["evaluation"]["share"][-1] == 1.0
    assert "66.7 % (20.8 to 93.9)" in text_of("next_log", worlds)
    with_refused = exploration_precision.summarise([*worlds, {"seed": 9, "ways": {}, "refused": "no"}])
    assert (with_refused["refused"], with_refused["rows"]) == (1, summary["rows"])


def test_the_power_is_that_of_worlds_with_a_test() -> None:
    tests = [
        {"response": "yes/no", "shown": 0.78},
        {"response": "amounts", "shown": 0.86},
        {"response": "yes/no", "shown": None, "why": "too large"},
    ]
    summary = achieved_power.summarise(tests)
    kinds = [(kind["responses"], kind["worlds"]) for kind in summary["kinds"]]
    assert kinds == [("yes/no", 1), ("amounts", 1), ("all", 2)]
    assert summary["left"] == {"too large": 1}
    assert "| all | 2 | 82.0 % ± 4.0 |" in text_of("power", tests)


def stream(seed: int, on_redemption: bool, value: float, kept: bool) -> dict[str, Any]:
    way = {"kept": kept, "value": value, "gain": value, "use": 0.99, "committed": 1.0}
    record = {"seed": seed, "customers": 10, "traits": {"on_redemption": on_redemption}, "priced": seed != 2}
    record |= {"rate": 0.1 if on_redemption else 0.0, "reserved": 0.8, "offline_use": 0.9}
    return record | {"ways": dict.fromkeys(pace_streams.PACING_NAMES, way)}


def test_overspent_streams_are_counted_and_budgets_that_do_not_bind_are_not_averaged() -> None:
    streams = [stream(1, False, 0.99, True), stream(2, True, 0.96, True), stream(3, True, 1.0, False)]
    summary = pace_streams.summarise(streams)
    at_once, later = summary["kinds"]
    assert at_once["streams"] == 1
    assert later["ways"]["paced"]["overspent"] == summary["overspent"]["paced"] == 1
    means = {"value": 0.98, "gain": 0.98, "use": 0.99, "reserved": 0.8}
    assert later["rates"][0] == {"low": 0.05, "high": 0.15, "streams": 2, **means}
    assert "| paced | 1 | 98.00 % |" in text_of("pace_streams", streams)
