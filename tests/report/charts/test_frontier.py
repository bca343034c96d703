"""The frontier figure: what is drawn, and where its labels stand."""

import math
import re
import xml.etree.ElementTree as ET

import pytest

from largesse.report.charts.frontier import DESK, PHONE, Chart, Point, Size, draw_frontier
from largesse.report.numbers import Units


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
