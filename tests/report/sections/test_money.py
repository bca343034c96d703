from typing import Any

import pytest

from largesse.report.formats import Units
from largesse.report.sections.money.numbers import describe_money
from largesse.report.sections.money.view import view_money


def test_levels_add_up_to_the_plan(binary_run: Any) -> None:
    step = binary_run.plan
    rows = describe_money(step)["levels"]
    n = len(step.plan)
    assert sum(row["customers"] for row in rows) == n
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert sum(row["spend"] for row in rows) == pytest.approx(step.plan.spend * n)
    assert sum(row["spend_share"] for row in rows) == pytest.approx(1)
    assert sum(row["extra"] for row in rows) == pytest.approx(step.plan.value * n - binary_run.curves[:, 0].sum())


def test_the_cheapest_level_adds_nothing_and_has_no_cost_per_extra(binary_run: Any) -> None:
    first = describe_money(binary_run.plan)["levels"][0]
    assert (first["extra"], first["cost_per_extra"]) == (0.0, None)


def test_large_sums_are_written_each_in_their_own_style(binary: dict[str, Any]) -> None:
    for row, spend in zip(binary["money"]["levels"], (0.0, 1_470_000.0, 560_000.0), strict=True):
        row["spend"] = spend
    table = view_money(binary, Units("binary", "€"))["table"]
    assert [row["spend"] for row in table] == ["€0", "€1.47\u202fmillion", "€560,000"]


def test_what_was_done_before_stands_above_what_the_plan_does(binary: dict[str, Any]) -> None:
    for row, rows in zip(binary["support"]["overlap"], (60, 30, 10), strict=True):
        row["rows"] = rows
    labels = [row.label for row in view_money(binary, Units("binary", "€"))["figure"].rows]
    assert labels == ["Before", "Customers", "Spend"]
    assert (
        "none 60\u202f%, small 30\u202f%, big 10\u202f%"
        in view_money(binary, Units("binary", "€"))["figure"].rows[0].figure
    )
    binary["support"]["overlap"] = []
    assert [row.label for row in view_money(binary, Units("binary", "€"))["figure"].rows] == ["Customers", "Spend"]
