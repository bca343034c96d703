from typing import Any

import numpy as np

from largesse.report.formats import Units
from largesse.report.sections.curve.numbers import describe_curve
from largesse.report.sections.curve.view import view_curve

Numbers = dict[str, Any]


def test_raw_means_are_those_of_the_log(binary_run: Any) -> None:
    log = binary_run.log
    raw = [row["raw"]["estimate"] for row in describe_curve(log, binary_run.study)["levels"]]
    np.testing.assert_allclose(raw, [log.response[log.level == k].mean() for k in range(3)])


def test_each_level_shows_its_cost_and_all_three_means(binary: Numbers) -> None:
    rows = view_curve(binary, Units("binary", "€"))["figure"].rows
    assert [row.detail for row in rows] == ["costs €0", "costs €5", "costs €10"]
    for row in rows:
        assert row.figure.count('class="marker') == 2
        assert row.figure.count('class="dot honest"') == 1
        assert "interval" in row.figure
