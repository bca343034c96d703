"""The numbers of a run: JSON types, one form for every estimate, one key for every section."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from largesse.evaluation import summarise_jointly, summarise_study
from largesse.io import read_record, to_json
from largesse.records import FitSummary, JointSummary, PlanSummary, StudySummary, summarise_fit
from largesse.report import Heading, join_parts


@pytest.fixture(scope="module")
def parts(binary_run: Any) -> tuple[dict[str, Any], ...]:
    run = binary_run
    fit = summarise_fit("Linear", "Words.", (), run.log)
    judged = summarise_study(run.study)
    return tuple(to_json(part) for part in (fit, run.summary, judged, summarise_jointly(run.summary, judged)))


def find_estimates(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "estimate" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from find_estimates(inner)


def test_every_part_is_json_and_its_record_comes_back(parts: tuple[dict[str, Any], ...]) -> None:
    for part, kind in zip(parts, (FitSummary, PlanSummary, StudySummary, JointSummary), strict=True):
        state = json.loads(json.dumps(part, allow_nan=False))
        assert to_json(read_record(kind, state)) == state


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (lambda part: part.pop("value"), "value"),
        (lambda part: part.update(more=1), "more"),
        (lambda part: part["value"].update(low="x"), "value/low"),
        (lambda part: part["frontier"]["points"][2].update(budget=[]), "frontier/points/2/budget"),
        (lambda part: part["log"].update(rows=1.5), "log/rows"),
    ],
)
def test_a_damaged_part_is_refused_with_its_place(parts: tuple[dict[str, Any], ...], spoil: Any, place: str) -> None:
    state = copy.deepcopy(parts[2])
    spoil(state)
    with pytest.raises(ValueError, match=place):
        read_record(StudySummary, state)


def test_an_estimate_has_one_form_everywhere(parts: tuple[dict[str, Any], ...]) -> None:
    found = [estimate for part in parts for estimate in find_estimates(part)]
    assert len(found) > 50
    for estimate in found:
        assert {"estimate", "low", "high", "se"} <= estimate.keys()
        if estimate["low"] is not None:
            assert estimate["low"] <= estimate["estimate"] <= estimate["high"]


def test_joining_puts_together_what_a_section_took_from_several_steps(parts: tuple[dict[str, Any], ...]) -> None:
    joined = join_parts(Heading("Autumn", "€", 7), *parts)
    assert {"tried", "estimates"} == joined["method"].keys()
    assert {"headline", "verdict", "warnings"} == joined["answer"].keys()
    assert joined["budget"] == parts[1]["budget"]  # of plan and evaluation, the plan's stands
    assert (joined["title"], joined["unit"], joined["seed"]) == ("Autumn", "€", 7)


def test_value_and_spend_are_those_of_the_evaluation(binary_run: Any, parts: tuple[dict[str, Any], ...]) -> None:
    found, shown = binary_run.study.evaluation, parts[2]
    assert (shown["value"]["estimate"], shown["value"]["low"]) == (found.value, found.value_interval[0])
    assert (shown["spend"]["estimate"], shown["spend"]["high"]) == (found.spend, found.spend_interval[1])
    assert [row["name"] for row in shown["uniform"]] == list(binary_run.log.levels.labels)
