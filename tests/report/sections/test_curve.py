from typing import Any

import numpy as np

from largesse.report import render_report
from largesse.report.numbers import Units
from largesse.report.sections.curve import view_curve, view_groups

Numbers = dict[str, Any]
EURO = Units("binary", "€")


def test_raw_means_are_those_of_the_log(binary_run: Any) -> None:
    log = binary_run.log
    raw = [row["raw"]["estimate"] for row in binary_run.numbers["curve"]["levels"]]
    np.testing.assert_allclose(raw, [log.response[log.level == k].mean() for k in range(3)])


def test_each_level_shows_its_cost_and_all_three_means(binary: Numbers) -> None:
    rows = view_curve(binary, Units("binary", "€"))["figure"].rows
    assert [row.detail for row in rows] == ["costs €0.00", "costs €5.00", "costs €10.00"]
    for row in rows:
        assert row.figure.count('class="marker') == 2
        assert row.figure.count('class="dot honest"') == 1
        assert "interval" in row.figure


def test_intervals_of_levels_that_few_rows_had_are_dashed_and_the_legend_says_so(binary: dict[str, Any]) -> None:
    assert 'class="whisker honest few"' not in render_report(binary)
    binary["support"]["overlap"][1] |= {"rows": 200, "effective": 12.0}
    page = render_report(binary)
    assert 'class="whisker honest few"' in page
    assert "dashed: fewer than 30 rows of the log had the level" in page
    assert "too few rows to say" in page


def test_curves_of_groups_are_dashed_where_few_rows_had_the_level(binary: dict[str, Any]) -> None:
    (feature, *_) = binary["curve"]["features"]
    for group in feature["groups"]:
        for k, point in enumerate(group["levels"]):
            point |= {"effective": 40.0, "rows": 7 if k == 2 else 90}
    view = view_groups(feature, ["none", "small", "big"], EURO)
    assert view["few"]
    for shown in view["groups"]:
        assert shown["figure"].count('class="curve few"') == 1
        assert shown["figure"].count('class="curve"') == 1
        assert shown["figure"].count('class="dot honest"') == 2
        assert shown["cells"][2].startswith("model ")
        assert shown["cells"][2].endswith(", 7 rows")
    assert "the curve is the model’s guess alone" in render_report(binary)
