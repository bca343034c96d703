"""Small line charts of equal scale, one per group of customers.

As in `row_charts`, horizontal places are percentages and everything else is pixels. Colours below the line name the levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from largesse.report.charts.axes import Axis
from largesse.report.charts.svg import make_element, make_text_element, make_tooltip
from largesse.report.number_format import Numbers, NumberStyle, finite_or_none

TOP, BOTTOM, PANEL_HEIGHT = 8, 118, 138
LABEL_WIDTH = 25.0  # per cent, for the numbers of the axis
SWATCH_SIZE = 10


def draw_group_panel(axis: Axis, style: NumberStyle, points: Sequence[Numbers], label: str) -> str:
    """Draw the response curve of one group of customers over the levels, with estimates and intervals.

    `points` have ``model``, ``value`` with ``estimate``, ``low`` and ``high``, and ``few``: one for each level.
    """

    def place_vertically(value: float) -> float:
        return BOTTOM - axis.place(value) * (BOTTOM - TOP)

    marks = []
    for tick in axis.ticks:
        marks.append(
            make_element(
                "line",
                x1=f"{LABEL_WIDTH}%",
                x2="100%",
                y1=place_vertically(tick),
                y2=place_vertically(tick),
                class_="grid",
            )
        )
        marks.append(make_text_element(style.text(tick), x=0, y=place_vertically(tick) + 4))
    places = [f"{LABEL_WIDTH + (100 - LABEL_WIDTH) * (k + 0.5) / len(points):.2f}%" for k in range(len(points))]
    for (left, x1), (right, x2) in pairwise(zip(points, places, strict=True)):
        a, b = finite_or_none(left["model"]), finite_or_none(right["model"])
        if a is not None and b is not None:
            kind = "curve few" if left["few"] or right["few"] else "curve"
            marks.append(
                make_element("line", x1=x1, x2=x2, y1=place_vertically(a), y2=place_vertically(b), class_=kind)
            )
    for k, (point, x) in enumerate(zip(points, places, strict=True)):
        estimate, low, high = (finite_or_none(point["value"].get(end)) for end in ("estimate", "low", "high"))
        if low is not None and high is not None and not point["few"]:
            marks.append(
                make_element(
                    "line", x1=x, x2=x, y1=place_vertically(low), y2=place_vertically(high), class_="whisker honest"
                )
            )
        if estimate is not None and not point["few"]:
            marks.append(make_element("circle", cx=x, cy=place_vertically(estimate), r=4.5, class_="dot honest"))
        box = {"x": -SWATCH_SIZE / 2, "width": SWATCH_SIZE, "height": SWATCH_SIZE, "rx": 2}
        swatch = make_element("rect", **box, style=f"fill:var(--level-{k})", class_="square")
        marks.append(make_element("svg", swatch, x=x, y=BOTTOM + 8, overflow="visible"))
    frame = {"class_": "panel strip", "width": "100%", "height": PANEL_HEIGHT, "role": "img", "aria_label": label}
    return make_element("svg", make_tooltip(label), *marks, **frame)
