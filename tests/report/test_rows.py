"""Rows that several sections show."""

from typing import Any

from largesse.report.numbers import Units
from largesse.report.rows import describe_cost, view_legend

Numbers = dict[str, Any]


def test_a_level_that_is_called_by_its_cost_does_not_say_it_twice(binary: Numbers) -> None:
    euro = Units("binary", "€")
    assert [describe_cost(binary, euro, k) for k in range(3)] == ["costs €0.00", "costs €5.00", "costs €10.00"]
    binary["levels"][1]["name"] = "€5"
    assert [level["cost"] for level in view_legend(binary, euro)] == ["costs €0.00", "", "costs €10.00"]
    binary["levels"][1]["name"] = "5 USD"
    assert describe_cost(binary, Units("binary", "USD"), 1) == ""
    binary["levels"][1]["cost"] = None
    assert describe_cost(binary, euro, 1) == ""
