from typing import Any

import pytest

from largesse.report.numbers import DASH, Units
from largesse.report.sections.bounds import view_safety

EURO = Units("binary", "€")
Numbers = dict[str, Any]


def test_the_plan_stands_beside_a_simple_rule_and_everyone_the_same(binary: Numbers) -> None:
    rows = view_safety(binary, EURO)["rows"]
    assert [row["name"] for row in rows] == ["this plan", "a simple rule", "a random mix"]
    assert rows[-1]["gain"] == rows[-1]["least"] == DASH
    assert "(" in rows[0]["gain"]


def test_bound_verdict_and_table_agree(binary: Numbers) -> None:
    plan = binary["safety"]["options"][0]
    assert plan["gain"] == binary["versus"][0]["difference"]
    assert (plan["at_least"] > 0) == (plan["gain"]["low"] > 0)


@pytest.mark.parametrize(
    ("guaranteed", "excuse", "said"),
    [
        (0.5, "", "at least 50.0\u202f% with this plan and 50.0\u202f% with a simple rule, with 95 % confidence"),
        (None, "There is no guaranteed value: why.", "There is no guaranteed value: why."),
    ],
)
def test_the_guarantee_is_said_or_why_there_is_none(binary: Numbers, guaranteed: Any, excuse: str, said: str) -> None:
    binary["safety"]["excuse"] = excuse
    for row in binary["safety"]["options"]:
        row["guaranteed"] = guaranteed
    assert said in view_safety(binary, EURO)["guarantee"]
