"""Axes, colours, rows and curves as SVG."""

import math
import re
import xml.etree.ElementTree as ET

import pytest

from largesse.report.charts.axes import fit_axis, thin_ticks
from largesse.report.charts.curve_chart import DESK, PHONE, Chart, Point, Size, draw_frontier
from largesse.report.charts.palette import DARK_LEVELS, LIGHT_LEVELS, choose_ink, contrast, spread_colours
from largesse.report.charts.row_charts import (
    draw_balance_strip,
    draw_curve_strip,
    draw_gain_strip,
    draw_histogram_strip,
    draw_spend_strip,
    draw_stacked_strip,
)
from largesse.report.number_format import Units

AXIS = fit_axis([0.0, 1.0])
MISSING = {"estimate": None, "low": None, "high": None}
SOME = {"estimate": 0.5, "low": 0.4, "high": 0.6}


@pytest.mark.parametrize("values", [[], [None], [3.0], [0.0], [-1e-9, 1e9], [0.00012, 0.00013], [-5, -4.99]])
def test_axes_hold_their_numbers_and_have_few_round_ticks(values: list[float | None]) -> None:
    for snug in (False, True):
        found = fit_axis(values, 5, snug)
        assert found.low < found.high
        assert 1 <= len(found.ticks) <= 9
        slack = 1e-6 * (found.high - found.low)
        assert all(found.low - slack <= v <= found.high + slack for v in values if v is not None)


@pytest.mark.parametrize("reach", [0.0011, 0.9, 1.1, 1.9, 2.1, 4.9, 5.1, 9.9, 18.5])
@pytest.mark.parametrize("target", [3, 4, 5])
def test_an_axis_that_ends_at_its_data_has_three_ticks_or_more(reach: float, target: int) -> None:
    for low in (-reach, 0.0, 0.31 * reach):
        assert len(fit_axis([low, reach], target, snug=True).ticks) >= 3


def test_ticks_are_thinned_until_they_do_not_touch() -> None:
    kept = thin_ticks([0, 5, 10, 20, 30], [6] * 5)
    assert kept == [0, 2, 4]
    assert thin_ticks([0, 1], [50, 50]) == [0]


@pytest.mark.parametrize("stops", [LIGHT_LEVELS, DARK_LEVELS])
@pytest.mark.parametrize("depth", range(2, 13))
def test_colours_of_levels_are_ordered_by_lightness_and_carry_readable_text(stops: tuple[str, ...], depth: int) -> None:
    colours = spread_colours(stops, depth)
    white = [contrast(colour, "#ffffff") for colour in colours]
    assert white == sorted(white, reverse=stops is DARK_LEVELS)
    assert min(contrast(colour, choose_ink(colour)) for colour in colours) >= 4.5


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


def estimate(middle: float, half: float) -> dict[str, float]:
    return {"estimate": middle, "low": middle - half, "high": middle + half}


def make_chart(gap: int | None = None) -> Chart:
    curve = [
        Point(
            0.1 * k,
            estimate(math.nan if k == gap else 0.3 + 0.1 * math.log1p(k), 0.02),
            f"budget {k}",
            band={"low": 0.2, "high": 0.7},
            beside=0.35 + 0.1 * math.log1p(k),
        )
        for k in range(10)
    ]
    squares = [Point(0.4 * k, estimate(0.3 + 0.1 * k, 0.03), f"level {k}", label=f"level {k}") for k in range(3)]
    chosen = Point(0.45, estimate(0.48, 0.02), "", label="this plan")
    return Chart(curve, "Value at each budget", "budget", "value", Units("binary", "€"), squares, chosen)


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_everything_is_drawn_inside_and_labels_do_not_cover_each_other(size: Size) -> None:
    root = ET.fromstring(draw_frontier(make_chart(), size))
    assert len(root.findall("circle[@class='stop']")) == 10
    assert len(root.findall("rect[@class='uniform']")) == 3
    assert len(root.findall("circle[@class='chosen']")) == 1
    labels = [node for node in root.findall("text") if str(node.get("class")).endswith("-label")]
    assert [node.text for node in labels] == ["this plan", "level 0", "level 1", "level 2"]
    places = {(node.get("x"), node.get("y")) for node in labels}
    assert len(places) == 4
    assert all(0 <= float(x or -1) <= size.width and 0 <= float(y or -1) <= size.height for x, y in places)


def test_a_missing_number_leaves_a_gap() -> None:
    def count_curves(svg: str) -> int:
        return len(re.findall(r'class="curve"', svg))

    assert count_curves(draw_frontier(make_chart(), DESK)) == 1
    assert count_curves(draw_frontier(make_chart(gap=4), DESK)) == 2


def test_every_stop_carries_its_sentence_for_the_reader_and_the_script() -> None:
    svg = draw_frontier(make_chart(), DESK)
    for k in range(10):
        assert f'data-readout="budget {k}"' in svg
        assert f"<title>budget {k}</title>" in svg


def test_a_chart_without_plan_and_squares_is_drawn() -> None:
    chart = make_chart()
    svg = draw_frontier(Chart(chart.curve[:1], "", "", "", chart.units), DESK)
    assert "band-line" in svg  # the interval of a single budget is a bar
    assert 'class="curve"' not in svg
