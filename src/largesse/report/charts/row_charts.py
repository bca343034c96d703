"""Small SVG strips for the rows of a table: dots, bars and intervals.

Horizontal places are percentages and everything else is pixels, so a strip fills any width while its text and strokes keep
their size: the same strip fits a phone, a desk and paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from largesse.report.charts.axes import Axis, select_tick_labels
from largesse.report.charts.svg import estimate_text_width, make_element, make_text_element, make_tooltip
from largesse.report.number_format import Numbers, NumberStyle, finite_or_none, write_percent

STRIP_HEIGHT = 30
MIDDLE = STRIP_HEIGHT / 2
SIDE_MARGIN = 2.0  # per cent left free at both ends, so that nothing at the ends is cut
MARKER_DISTANCE = 12.5  # pixels from a dot to the marks above and below it
TICK_FONT = 12.5
NARROW_STRIP = 150  # pixels; a strip in print and on a small screen is no narrower
STRIP_WIDTHS = (200, 250, 300, 350, 400, 500, 600)  # from which the style sheet shows more ticks
MIN_LABELLED_SHARE = 0.13  # a smaller segment is narrower than its own text on a phone


def draw_gain_strip(axis: Axis, difference: Numbers, label: str, *, hollow: bool = False) -> str:
    """Draw a gain as a dot with its interval and a line at zero."""
    whisker = _draw_dot_with_interval(axis, difference, "before" if hollow else "gain")
    return _draw_strip(label, _draw_grid(axis), _draw_vertical_line(axis, 0.0, "zero"), whisker)


def draw_spend_strip(axis: Axis, spend: Numbers, budget: Any, label: str) -> str:
    """Draw a spend as a dot with its interval and the budget as a line."""
    return _draw_strip(
        label,
        _draw_baseline(),
        _draw_vertical_line(axis, budget, "limit"),
        _draw_dot_with_interval(axis, spend, "spend"),
    )


def draw_value_strip(axis: Axis, value: Numbers, label: str) -> str:
    """Draw a value as a dot with its interval."""
    return _draw_strip(label, _draw_grid(axis), _draw_dot_with_interval(axis, value, "honest"))


def draw_waterfall_strip(axis: Axis, start: float, end: Numbers, level: int, label: str) -> str:
    """Draw one step of a waterfall chart: a bar in a level's colour, with the interval of its end."""
    stop = finite_or_none(end.get("estimate"))
    if stop is None:
        return _draw_strip(label, _draw_grid(axis))
    left, right = sorted((start, stop))
    box = {
        "x": _write_x_position(axis, left),
        "width": _write_x_width(axis, left, right),
        "y": 5,
        "height": STRIP_HEIGHT - 10,
    }
    bar = make_element("rect", **box, class_="step", style=f"fill:var(--level-{level})")
    whiskers = [_draw_interval_line(axis, end, kind) for kind in ("halo", "step")]
    return _draw_strip(label, _draw_grid(axis), bar, _draw_vertical_line(axis, start, "begin"), *whiskers)


def draw_level_mean_strip(
    axis: Axis, value: Numbers, raw: Numbers, model: float | None, label: str, *, few: bool = False
) -> str:
    """Draw a level's mean response: estimate with interval, the model's mean and the unweighted mean.

    The three stand at different heights, so none hides another. The interval is dashed if `few` rows had the level.
    """
    middle = MARKER_DISTANCE + 6.5
    return _draw_strip(
        label,
        _draw_grid(axis, 2 * middle),
        _draw_marker(axis, raw.get("estimate"), "M-4,-4 L4,4 M-4,4 L4,-4", "raw", middle + MARKER_DISTANCE),
        _draw_marker(axis, model, "M0,-5 L5,0 L0,5 L-5,0 Z", "model", middle - MARKER_DISTANCE),
        _draw_dot_with_interval(axis, value, "honest few" if few else "honest", middle),
        height=2 * middle,
    )


def draw_balance_strip(axis: Axis, before: Any, after: Any, limit: float, label: str) -> str:
    """Draw a feature's imbalance between levels before and after weighting, and the limit of imbalance."""
    link = ""
    if finite_or_none(before) is not None and finite_or_none(after) is not None:
        ends = {"x1": _write_x_position(axis, before), "x2": _write_x_position(axis, after), "y1": MIDDLE, "y2": MIDDLE}
        link = make_element("line", **ends, class_="link")
    dots = [_draw_dot(axis, before, "before"), _draw_dot(axis, after, "after")]
    return _draw_strip(label, _draw_grid(axis), _draw_vertical_line(axis, limit, "limit"), link, *dots)


def draw_histogram_strip(axis: Axis, edges: Sequence[Any], shares: Sequence[float], top: float, level: int) -> str:
    """Draw the histogram of a level's propensities.

    `edges` has one number more than `shares`; `top` is the share that fills the height.
    """
    height = STRIP_HEIGHT + 8
    bars = []
    for left, right, share in zip(edges, edges[1:], shares, strict=False):
        if finite_or_none(left) is None or finite_or_none(right) is None or share <= 0:
            continue
        # the smallest bar stays visible, because a few rows of tiny propensity matter most
        tall = max(share / top * (height - 6), 1.5)
        tip = f"{write_percent(share)} of the rows have a propensity between {left:g} and {right:g}"
        box = {
            "x": _write_x_position(axis, left),
            "width": _write_x_width(axis, left, right),
            "y": height - tall,
            "height": tall,
        }
        bars.append(make_element("rect", make_tooltip(tip), **box, style=f"fill:var(--level-{level})"))
    label = f"Propensities in {len(shares)} bins"
    return _draw_strip(label, _draw_grid(axis, height), *bars, _draw_baseline(height - 0.5), height=height)


def draw_stacked_strip(
    shares: Sequence[Any], names: Sequence[str], label: str, counts: Sequence[Sequence[int]] = ()
) -> str:
    """Draw the shares of levels as segments of one bar.

    A bar that follows the budget slider needs `counts`: the customers at each level at every stop, for the script.
    """
    segments, left = [], 0.0
    for level, (share, name) in enumerate(zip(shares, names, strict=False)):
        width = min(max(finite_or_none(share) or 0.0, 0.0), 1.0 - left)
        if width > 0 or counts:
            segments.append(_draw_share_segment(level, left, width, name, moves=bool(counts)))
        left += width
    empty = make_element("rect", x="0%", width="100%", y=3, height=STRIP_HEIGHT - 6, class_="empty")
    return _draw_strip(label, empty, *segments, data_counts=";".join(",".join(map(str, row)) for row in counts))


def draw_share_strip(share: Any, label: str) -> str:
    """Draw a share of a whole as a bar."""
    width = min(max(finite_or_none(share) or 0.0, 0.0), 1.0)
    empty = make_element("rect", x="0%", width="100%", y=8, height=STRIP_HEIGHT - 16, class_="empty")
    bar = make_element("rect", x="0%", width=_write_css_percent(width), y=8, height=STRIP_HEIGHT - 16, class_="share")
    return _draw_strip(label, empty, bar)


def draw_tick_strip(axis: Axis, style: NumberStyle, signed: bool = False) -> str:
    """Draw the axis ticks below a column of strips.

    Ticks that would touch on a narrow strip appear only on wide pages.
    """
    words, places = [style.text(tick, signed) for tick in axis.ticks], [axis.place(tick) for tick in axis.ticks]
    widths = [estimate_text_width(word, TICK_FONT) for word in words]
    zero = axis.ticks.index(0) if 0 in axis.ticks else 0
    always = select_tick_labels([place * NARROW_STRIP for place in places], widths, keep=zero)
    pairs = pairwise(zip(places, widths, strict=True))
    needed = max((((a + b) / 2 + 6) / max(right - left, 1e-9) for (left, a), (right, b) in pairs), default=0.0)
    wide = next((size for size in STRIP_WIDTHS if size >= needed), 0)
    labels = []
    for i, (tick, word) in enumerate(zip(axis.ticks, words, strict=True)):
        kind = {} if i in always else {"class_": f"from-{wide}" if wide else "never"}
        labels.append(make_text_element(word, x=_write_x_position(axis, tick), y=14, text_anchor="middle", **kind))
    return make_element("svg", *labels, class_="strip ticks", width="100%", height=20, aria_hidden="true")


def draw_swatch(level: int) -> str:
    """Draw the colour square of a level for legends and tables."""
    square = make_element("rect", x=0.5, y=0.5, width=11, height=11, rx=2, style=f"fill:var(--level-{level})")
    return make_element("svg", square, class_="swatch", width=12, height=12, aria_hidden="true")


def _draw_share_segment(level: int, left: float, width: float, name: str, moves: bool) -> str:
    """Draw one segment of a stacked bar with its share as text.

    The script shows or hides the text of a segment that `moves`.
    """
    words, narrow = write_percent(width), width < MIN_LABELLED_SHARE
    box = {"x": _write_css_percent(left), "width": _write_css_percent(width), "y": 3, "height": STRIP_HEIGHT - 6}
    bar = make_element("rect", make_tooltip(f"{name}: {words}"), **box, style=f"fill:var(--level-{level})")
    if narrow and not moves:
        return bar
    ink = f"fill:var(--on-level-{level})" + (";visibility:hidden" if narrow else "")
    return bar + make_text_element(
        words, x=_write_css_percent(left + width / 2), y=MIDDLE + 4.5, text_anchor="middle", style=ink
    )


def _draw_strip(label: str, *marks: str, height: float = STRIP_HEIGHT, **more: Any) -> str:
    box = {"class_": "strip", "width": "100%", "height": height, "role": "img", "aria_label": label}
    return make_element(
        "svg", make_tooltip(label), *marks, **box, **{key: value for key, value in more.items() if value}
    )


def _draw_grid(axis: Axis, height: float = STRIP_HEIGHT) -> str:
    return "".join(_draw_vertical_line(axis, tick, "grid", height) for tick in axis.ticks)


def _draw_baseline(y: float = MIDDLE) -> str:
    return make_element("line", x1="0%", x2="100%", y1=y, y2=y, class_="base")


def _draw_vertical_line(axis: Axis, value: Any, kind: str, height: float = STRIP_HEIGHT) -> str:
    if finite_or_none(value) is None:
        return ""
    return make_element(
        "line", x1=_write_x_position(axis, value), x2=_write_x_position(axis, value), y1=0, y2=height, class_=kind
    )


def _draw_dot_with_interval(axis: Axis, estimate: Numbers, kind: str, y: float = MIDDLE) -> str:
    return _draw_interval_line(axis, estimate, kind, y) + _draw_dot(axis, estimate.get("estimate"), kind, y)


def _draw_interval_line(axis: Axis, estimate: Numbers, kind: str, y: float = MIDDLE) -> str:
    low, high = finite_or_none(estimate.get("low")), finite_or_none(estimate.get("high"))
    if low is None or high is None:
        return ""
    kind = f"whisker {kind}"
    line = make_element(
        "line", x1=_write_x_position(axis, low), x2=_write_x_position(axis, high), y1=y, y2=y, class_=kind
    )
    ends = [
        {"x1": _write_x_position(axis, end), "x2": _write_x_position(axis, end), "y1": y - 5, "y2": y + 5}
        for end in (low, high)
    ]
    return line + "".join(make_element("line", **end, class_=kind) for end in ends)


def _draw_dot(axis: Axis, value: Any, kind: str, y: float = MIDDLE) -> str:
    if finite_or_none(value) is None:
        return ""
    return make_element("circle", cx=_write_x_position(axis, value), cy=y, r=5.5, class_=f"dot {kind}")


def _draw_marker(axis: Axis, value: Any, path: str, kind: str, y: float) -> str:
    """Draw a small shape at a relative position of a strip."""
    if finite_or_none(value) is None:
        return ""
    shape = make_element("path", d=path, class_=f"marker {kind}")
    return make_element("svg", shape, x=_write_x_position(axis, value), y=y, overflow="visible")


def _write_x_position(axis: Axis, value: float) -> str:
    return f"{SIDE_MARGIN + axis.place(value) * (100 - 2 * SIDE_MARGIN):.3f}%"


def _write_x_width(axis: Axis, left: float, right: float) -> str:
    return f"{(axis.place(right) - axis.place(left)) * (100 - 2 * SIDE_MARGIN):.3f}%"


def _write_css_percent(share: float) -> str:
    return f"{share * 100:.3f}%"
