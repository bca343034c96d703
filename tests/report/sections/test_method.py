import re
from typing import Any

import pytest

from largesse.evaluation import ESTIMATORS
from largesse.report.numbers import Units
from largesse.report.sections.method import view_method
from largesse.response import describe_model, list_models

Numbers = dict[str, Any]
EURO = Units("binary", "€")


def test_every_estimator_is_shown_with_its_words_and_the_one_used_is_marked(binary: Numbers) -> None:
    rows = view_method(binary, EURO)["estimates"]
    assert [row["name"] for row in rows] == list(ESTIMATORS)
    assert [row["name"] for row in rows if "(used above)" in row["words"]] == ["dr"]


def test_the_estimate_used_is_the_value_of_the_plan(binary: Numbers) -> None:
    used = next(row for row in binary["method"]["estimates"] if row["name"] == "dr")
    assert (used["estimate"], used["se"]) == pytest.approx((binary["value"]["estimate"], binary["value"]["se"]))


def test_candidates_stand_together_with_losses_written_alike(binary: Numbers) -> None:
    groups = view_method(binary, EURO)["groups"]
    assert [group["title"] for group in groups] == ["Which model?", "Choice of the strength"]
    first = groups[0]["rows"]
    assert [(row["loss"], row["difference"], row["chosen"]) for row in first] == [
        ("0.190", "0.000", True),
        ("0.192", "+0.002", False),
    ]
    assert "whisker" not in first[0]["strip"]  # the best is no worse than itself
    assert "whisker" in first[1]["strip"]


def test_every_model_is_described_in_plain_words_and_every_choice_asks_a_question(binary: Numbers) -> None:
    for entry in list_models().values():
        way = describe_model(entry.kind.__name__)
        assert way.endswith(".")
        assert not re.search(r"stack|bend|shrink|penalt|kernel|HSIC|increment", way)
    binary["method"]["tried"] = [{**row, "of": "increments of the stack"} for row in binary["method"]["tried"]]
    assert [group["title"] for group in view_method(binary, EURO)["groups"]] == [
        "Does a level add the same for everybody?"
    ]


def test_the_price_of_the_last_step_is_told_where_money_still_buys(binary: Numbers) -> None:
    assert view_method(binary, EURO)["price"].endswith("responses")
    binary["planned"] |= {"price": 0.0}
    assert view_method(binary, EURO)["price"] == ""
