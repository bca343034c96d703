"""Axes, colours, rows and curves as SVG."""

import math
import re
import xml.etree.ElementTree as ET

import pytest

from largesse.report.charts.axes import fit_axis, select_tick_labels
from largesse.report.charts.curve_chart import DESK, PHONE, ChartSize, CurveChart, CurvePoint, draw_curve_chart
from largesse.report.charts.palette import (
    DARK_LEVELS,
    LIGHT_LEVELS,
    choose_text_colour,
    compute_contrast_ratio,
    spread_colours,
)
from largesse.report.charts.row_charts import (
    draw_balance_strip,
    draw_gain_strip,
    draw_histogram_strip,
    draw_level_mean_strip,
    draw_spend_strip,
    draw_stacked_strip,
)
from largesse.report.number_format import Units

AXIS = fit_axis([0.0, 1.0])
MISSING = {"estimate": None, "low": None, "high": None}
ESTIMATE = {"estimate": 0.5, "low": 0.4, "high": 0.6}


@pytest.mark.parametrize("values", [[], [None], [3.0], [0.0], [-1e-9, 1e9], [0.00012, 0.00013], [-5, -4.99]])
def test_axes_hold_their_numbers_and_have_few_round_ticks(values: list[float | None]) -> None:
    for snug in (False, True):
        axis = fit_axis(values, 5, snug)
        assert axis.low < axis.high
        assert 1 <= len(axis.ticks) <= 9
        slack = 1e-6 * (axis.high - axis.low)
        assert all(axis.low - slack <= v <= axis.high + slack for v in values if v is not None)


@pytest.mark.parametrize("reach", [0.0011, 0.9, 1.1, 1.9, 2.1, 4.9, 5.1, 9.9, 18.5])
@pytest.mark.parametrize("target", [3, 4, 5])
def test_an_axis_that_ends_at_its_data_has_three_ticks_or_more(reach: float, target: int) -> None:
    for low in (-reach, 0.0, 0.31 * reach):
        assert len(fit_axis([low, reach], target, snug=True).ticks) >= 3


def test_ticks_are_thinned_until_they_do_not_touch() -> None:
    assert select_tick_labels([0, 5, 10, 20, 30], [6] * 5) == [0, 2, 4]
    assert select_tick_labels([0, 1], [50, 50]) == [0]


@pytest.mark.parametrize("stops", [LIGHT_LEVELS, DARK_LEVELS])
@pytest.mark.parametrize("depth", range(2, 13))
def test_colours_of_levels_are_ordered_by_lightness_and_carry_readable_text(stops: tuple[str, ...], depth: int) -> None:
    colours = spread_colours(stops, depth)
    white = [compute_contrast_ratio(colour, "#ffffff") for colour in colours]
    assert white == sorted(white, reverse=stops is DARK_LEVELS)
    assert min(compute_contrast_ratio(colour, choose_text_colour(colour)) for colour in colours) >= 4.5


@pytest.mark.parametrize(
    "svg",
    [
        draw_gain_strip(AXIS, ESTIMATE, "a"),
        draw_gain_strip(AXIS, MISSING, "a"),
        draw_spend_strip(AXIS, ESTIMATE, None, "a"),
        draw_level_mean_strip(AXIS, ESTIMATE, ESTIMATE, 0.4, "a"),
        draw_level_mean_strip(AXIS, MISSING, MISSING, None, "a"),
        draw_balance_strip(AXIS, None, 0.2, 0.1, "a"),
        draw_histogram_strip(AXIS, [0.0, 0.5, None], [1.0, 0.0], 1.0, 0),
        draw_stacked_strip([0.2, None, 0.8], ["a", "b", "c"], "a"),
    ],
)
def test_a_strip_is_well_formed_and_has_a_label_with_any_number_missing(svg: str) -> None:
    assert ET.fromstring(svg).get("aria-label")
    assert not re.search("None|nan", svg)


def test_strips_show_intervals_shares_and_marks_that_do_not_hide_each_other() -> None:
    gain = ET.fromstring(draw_gain_strip(AXIS, ESTIMATE, "a"))
    assert len(gain.findall("line[@class='whisker gain']")) == 3  # a line with two caps
    assert [node.get("cx") for node in gain.findall("circle")] == ["50.000%"]
    shares = ET.fromstring(draw_stacked_strip([0.05, 0.95], ["a", "b"], "both"))
    widths = [node.get("width") for node in shares.findall("rect") if node.get("class") is None]
    assert widths == ["5.000%", "95.000%"]
    assert [node.text for node in shares.findall("text")] == ["95\u202f%"]  # the narrow one has no room
    curve = ET.fromstring(draw_level_mean_strip(AXIS, ESTIMATE, ESTIMATE, 0.5, "a"))
    (dot,) = (float(node.get("cy", "")) for node in curve.findall("circle"))
    marks = [float(node.get("y", "")) for node in curve.findall("svg")]
    assert len(marks) == 2
    assert all(abs(y - dot) > 5.5 + 4 for y in marks)
    assert abs(marks[0] - marks[1]) > 10


def estimate(middle: float, half: float) -> dict[str, float]:
    return {"estimate": middle, "low": middle - half, "high": middle + half}


def make_chart(gap: int | None = None) -> CurveChart:
    curve = [
        CurvePoint(
            0.1 * k,
            estimate(math.nan if k == gap else 0.3 + 0.1 * math.log1p(k), 0.02),
            f"budget {k}",
            band={"low": 0.2, "high": 0.7},
            dashed=0.35 + 0.1 * math.log1p(k),
        )
        for k in range(10)
    ]
    squares = [CurvePoint(0.4 * k, estimate(0.3 + 0.1 * k, 0.03), f"level {k}", label=f"level {k}") for k in range(3)]
    chosen = CurvePoint(0.45, estimate(0.48, 0.02), "", label="this plan")
    return CurveChart(curve, "Value at each budget", "budget", "value", Units("binary", "€"), squares, chosen)


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_everything_is_drawn_inside_and_labels_do_not_cover_each_other(size: ChartSize) -> None:
    svg = draw_curve_chart(make_chart(), size)
    root = ET.fromstring(svg)
    stops = root.findall("circle[@class='stop']")
    words = [f"budget {k}" for k in range(10)]  # for the reader and for the script
    assert [node.get("data-readout") for node in stops] == [node.findtext("title") for node in stops] == words
    assert len(root.findall("rect[@class='uniform']")) == 3
    assert len(root.findall("circle[@class='chosen']")) == 1
    labels = [node for node in root.findall("text") if str(node.get("class")).endswith("-label")]
    assert [node.text for node in labels] == ["this plan", "level 0", "level 1", "level 2"]
    places = {(node.get("x"), node.get("y")) for node in labels}
    assert len(places) == 4
    assert all(0 <= float(x or -1) <= size.width and 0 <= float(y or -1) <= size.height for x, y in places)


def test_a_missing_number_leaves_a_gap_and_a_single_point_is_drawn() -> None:
    assert draw_curve_chart(make_chart(), DESK).count('class="curve"') == 1
    assert draw_curve_chart(make_chart(gap=4), DESK).count('class="curve"') == 2
    chart = make_chart()
    alone = draw_curve_chart(CurveChart(chart.curve[:1], "", "", "", chart.units), DESK)
    assert "band-line" in alone  # the interval of a single budget is a bar
    assert 'class="curve"' not in alone
