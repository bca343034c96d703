from typing import Any

from largesse.report import render_report


def test_percentage_points_are_explained_only_where_they_are_used(
    binary: dict[str, Any], amount: dict[str, Any]
) -> None:
    assert "Percentage point (pp)" in render_report(binary)
    assert "Percentage point (pp)" not in render_report(amount)
