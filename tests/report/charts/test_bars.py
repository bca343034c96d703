import re
import xml.etree.ElementTree as ET

import pytest

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.bars import (
    draw_balance_strip,
    draw_curve_strip,
    draw_gain_strip,
    draw_histogram_strip,
    draw_spend_strip,
    draw_stacked_strip,
)

AXIS = fit_axis([0.0, 1.0])
MISSING = {"estimate": None, "low": None, "high": None}
SOME = {"estimate": 0.5, "low": 0.4, "high": 0.6}


@pytest.mark.parametrize(
    "svg",
    [
        draw_gain_strip(AXIS, SOME, "a"),
        draw_gain_strip(AXIS, MISSING, "a"),
        draw_spend_strip(AXIS, SOME, None, "a"),
        draw_curve_strip(AXIS, SOME, SOME, 0.4, "a"),
        draw_curve_strip(AXIS, MISSING, MISSING, None, "a"),
        draw_balance_strip(AXIS, None, 0.2, 0.1, "a"),
        draw_histogram_strip(AXIS, [0.0, 0.5, None], [1.0, 0.0], 1.0, 0),
        draw_stacked_strip([0.2, None, 0.8], ["a", "b", "c"], "a"),
    ],
)
def test_a_strip_is_well_formed_and_has_words_whatever_is_missing(svg: str) -> None:
    root = ET.fromstring(svg)
    assert root.get("aria-label")
    assert "None" not in svg
    assert "nan" not in svg


def test_an_estimate_is_a_dot_with_a_capped_line() -> None:
    root = ET.fromstring(draw_gain_strip(AXIS, SOME, "a"))
    assert len(root.findall("line[@class='whisker gain']")) == 3
    assert [node.get("cx") for node in root.findall("circle")] == ["50.000%"]


def test_shares_fill_the_bar_and_narrow_ones_have_no_number() -> None:
    root = ET.fromstring(draw_stacked_strip([0.05, 0.95], ["a", "b"], "both"))
    widths = [node.get("width") for node in root.findall("rect") if node.get("class") is None]
    assert widths == ["5.000%", "95.000%"]
    assert [node.text for node in root.findall("text")] == ["95\u202f%"]


def test_marks_of_one_level_never_hide_each_other() -> None:
    drawn = draw_curve_strip(AXIS, SOME, SOME, 0.5, "a")
    dot = re.search(r'<circle[^>]* cy="([\d.]+)"', drawn)
    assert dot is not None
    marks = [float(y) for y in re.findall(r'<svg x="[\d.]+%" y="([\d.]+)"', drawn)]
    assert len(marks) == 2
    assert all(abs(y - float(dot[1])) > 5.5 + 4 for y in marks)
    assert abs(marks[0] - marks[1]) > 10
