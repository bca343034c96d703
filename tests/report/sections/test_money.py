from typing import Any

from largesse.report.numbers import Units
from largesse.report.sections.money import view_money


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
