"""Chapters of the loop: what summaries say, in tables, figures and sentences."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from largesse_lab.experiments import CHAPTERS, EXPERIMENTS, check_campaigns, next_log, pace_streams, power_sizes
from largesse_lab.page.page import write_page

MADE = {"command": "largesse experiment x", "machine": "two cores", "date": "2026-01-02", "repeats": 3}


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
CAMPAIGNS = [
    {"case": case, "answer": "fine" if not loud else "careful", "loud": loud, "found": bool(loud)}
    for case, loud in (
        ("nothing wrong", {}),
        ("nothing wrong", {"leaks": "careful"}),
        ("a column shifts by 0.2 sd", {"features": "careful"}),
        ("a column shifts by 0.3 sd", {"features": "careful", "price": "careful"}),
        ("responses 10 % below", {}),
    )
]
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
RECORDS = {"next_log": WORLDS, "check_campaigns": CAMPAIGNS, "power": TESTS, "pace_streams": STREAMS}


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    docs = tmp_path_factory.mktemp("docs")
    (docs / "results").mkdir()
    for name, records in RECORDS.items():
        summarise = EXPERIMENTS[name].summarise
        assert summarise is not None
        result = {"experiment": name, "made": MADE, "summary": summarise(records)}
        (docs / "results" / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")
    write_page(docs / "results", docs / "results.md", CHAPTERS)
    return docs


def test_every_chapter_has_its_table_its_figure_and_a_sentence_of_the_summary(docs: Path) -> None:
    first = (docs / "results.md").read_text(encoding="utf-8")
    for name in RECORDS:
        title = CHAPTERS[name].title
        (path,) = set(re.findall(rf"\[{title}\]\((results/[^)]+\.md)\)\.\*\*", first))
        page = (docs / path).read_text(encoding="utf-8")
        assert page.startswith(f"# {title}\n")
        assert "|---|" in page
        assert f"({'.'}/{name}.svg)" in page
        ET.parse(docs / "results" / f"{name}.svg")


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


def test_the_smallest_that_is_found_is_named(docs: Path) -> None:
    told = CHAPTERS["check_campaigns"].brief(check_campaigns.summarise(CAMPAIGNS))
    assert "Of 2 campaigns with nothing wrong, 50 % raise an alarm." in told
    assert told.endswith("more of it: a column shifts by 0.2 sd.")
    assert "nothing wrong: false alarms" in (docs / "results" / "check_campaigns.svg").read_text(encoding="utf-8")


def test_the_power_is_that_of_worlds_with_a_test() -> None:
    found = power_sizes.summarise(TESTS)
    assert [(kind["responses"], kind["worlds"]) for kind in found["kinds"]] == [
        ("yes/no", 1),
        ("amounts", 1),
        ("all", 2),
    ]
    assert found["left"] == {"too large": 1}
    assert "| all | 2 | 82.0 % ± 4.0 |" in power_sizes.tabulate(TESTS)
    assert "82.0 % ± 4.0" in CHAPTERS["power"].brief(found)


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
    assert "98.33 %" in CHAPTERS["pace_streams"].brief(found)


@pytest.mark.parametrize("name", RECORDS)
def test_no_records_make_an_empty_chapter(name: str) -> None:
    summarise = EXPERIMENTS[name].summarise
    assert summarise is not None
    assert CHAPTERS[name].brief(summarise([])) == ""
