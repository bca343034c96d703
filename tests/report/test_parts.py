"""The numbers of a run: JSON types, one form for every estimate, one key for every section."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from largesse.report import Heading, describe_fit, describe_plan, describe_study, join_parts
from largesse.report.sections import SECTIONS


@pytest.fixture(scope="module")
def parts(binary_run: Any) -> tuple[dict[str, Any], ...]:
    run = binary_run
    return describe_fit(run.fit), describe_plan(run.plan), describe_study(run.log, run.study)


def find_estimates(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "estimate" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from find_estimates(inner)


def test_every_part_is_json_and_comes_back_equal(parts: tuple[dict[str, Any], ...]) -> None:
    for part in parts:
        assert json.loads(json.dumps(part, allow_nan=False)) == part


def test_an_estimate_has_one_form_everywhere(parts: tuple[dict[str, Any], ...]) -> None:
    found = [estimate for part in parts for estimate in find_estimates(part)]
    assert len(found) > 50
    for estimate in found:
        assert {"estimate", "low", "high", "se"} <= estimate.keys()
        assert estimate["low"] <= estimate["estimate"] <= estimate["high"]


def test_what_a_section_takes_lies_under_its_name(parts: tuple[dict[str, Any], ...]) -> None:
    fit, plan, study = parts
    for section in SECTIONS:
        assert (section.name in fit) == (section.fit is not None)
        assert (section.name in plan) == (section.plan is not None)
        assert (section.name in study) == (section.study is not None)


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


def test_an_unlimited_budget_is_missing_and_shadow_prices_are_kept(binary_run: Any) -> None:
    plan = replace(binary_run.plan.plan, budget=math.inf)
    shown = describe_plan(replace(binary_run.plan, plan=plan, shadow={"at most 3 at 'big'": 0.5}))
    assert shown["budget"] == {"average": None, "total": None}
    assert shown["shadow"] == {"at most 3 at 'big'": 0.5}
