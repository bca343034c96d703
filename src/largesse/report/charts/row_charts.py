"""Figures arranged in rows: one flat SVG per row; name and numbers next to it are ordinary text.

Horizontal places are percentages and everything else is pixels, so a strip fills any width while its text and strokes keep
their size: the same strip fits a phone, a desk and paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from largesse.report.charts.axes import Axis, thin_ticks
from largesse.report.charts.svg import element, measure, text, title
from largesse.report.number_format import Numbers, NumberStyle, finite, write_percent

STRIP_HEIGHT = 30
MIDDLE = STRIP_HEIGHT / 2
SIDE_MARGIN = 2.0  # per cent left free at both ends, so that nothing at the ends is cut
MARKER_DISTANCE = 12.5  # pixels from a dot to the marks above and below it
TICK_FONT = 12.5
NARROW_STRIP = 150  # pixels; a strip in print and on a small screen is no narrower
STRIP_WIDTHS = (200, 250, 300, 350, 400, 500, 600)  # from which the style sheet shows more ticks
MIN_LABELLED_SHARE = 0.13  # a smaller segment is narrower than its own text on a phone


def draw_gain_strip(axis: Axis, difference: Numbers, label: str, *, hollow: bool = False) -> str:
    """Draw a difference as a dot, filled or hollow, with its interval, around a line at zero."""
    whisker = _draw_whisker(axis, difference, "before" if hollow else "gain")
    return _draw_strip(label, _draw_grid(axis), _draw_limit(axis, 0.0, "zero"), whisker)


def draw_spend_strip(axis: Axis, spend: Numbers, budget: Any, label: str) -> str:
    """Draw a spend as a dot with its interval, and the budget as a line."""
    return _draw_strip(label, _draw_base(), _draw_limit(axis, budget, "limit"), _draw_whisker(axis, spend, "spend"))


def draw_value_strip(axis: Axis, value: Numbers, label: str) -> str:
    """Draw a value as a dot with its interval."""
    return _draw_strip(label, _draw_grid(axis), _draw_whisker(axis, value, "honest"))


def draw_fall_strip(axis: Axis, start: float, end: Numbers, level: int, label: str) -> str:
    """Draw a step of a waterfall: a bar in the colour of a level, and the interval of its end."""
    stop = finite(end.get("estimate"))
    if stop is None:
        return _draw_strip(label, _draw_grid(axis))
    left, right = sorted((start, stop))
    box = {"x": _at(axis, left), "width": _width(axis, left, right), "y": 5, "height": STRIP_HEIGHT - 10}
    bar = element("rect", **box, class_="step", style=f"fill:var(--level-{level})")
    whiskers = [_draw_ends(axis, end, kind) for kind in ("halo", "step")]
    return _draw_strip(label, _draw_grid(axis), bar, _draw_limit(axis, start, "begin"), *whiskers)


def draw_level_mean_strip(
    axis: Axis, value: Numbers, raw: Numbers, model: float | None, label: str, *, few: bool = False
) -> str:
    """Draw one level's mean response: estimate with interval, above it the model's mean (diamond), below it the raw mean (cross).

    The three stand at different heights, so none hides another. The interval is dashed if `few` rows had the level.
    """
    middle = MARKER_DISTANCE + 6.5
    return _draw_strip(
        label,
        _draw_grid(axis, 2 * middle),
        _draw_marker(axis, raw.get("estimate"), "M-4,-4 L4,4 M-4,4 L4,-4", "raw", middle + MARKER_DISTANCE),
        _draw_marker(axis, model, "M0,-5 L5,0 L0,5 L-5,0 Z", "model", middle - MARKER_DISTANCE),
        _draw_whisker(axis, value, "honest few" if few else "honest", middle),
        height=2 * middle,
    )


def draw_balance_strip(axis: Axis, before: Any, after: Any, limit: float, label: str) -> str:
    """Draw a feature's imbalance before weighting (hollow) and after (filled), and its limit."""
    link = ""
    if finite(before) is not None and finite(after) is not None:
        ends = {"x1": _at(axis, before), "x2": _at(axis, after), "y1": MIDDLE, "y2": MIDDLE}
        link = element("line", **ends, class_="link")
    dots = [_draw_dot(axis, before, "before"), _draw_dot(axis, after, "after")]
    return _draw_strip(label, _draw_grid(axis), _draw_limit(axis, limit, "limit"), link, *dots)


def draw_histogram_strip(axis: Axis, edges: Sequence[Any], shares: Sequence[float], top: float, level: int) -> str:
    """Draw one level's propensities: bars over the bins, as high as their share of the level's rows.

    `edges` has one number more than `shares`; `top` is the share that fills the height.
    """
    height = STRIP_HEIGHT + 8
    bars = []
    for left, right, share in zip(edges, edges[1:], shares, strict=False):
        if finite(left) is None or finite(right) is None or share <= 0:
            continue
        # the smallest bar stays visible, because a few rows of tiny propensity matter most
        tall = max(share / top * (height - 6), 1.5)
        tip = f"{write_percent(share)} of the rows have a propensity between {left:g} and {right:g}"
        box = {"x": _at(axis, left), "width": _width(axis, left, right), "y": height - tall, "height": tall}
        bars.append(element("rect", title(tip), **box, style=f"fill:var(--level-{level})"))
    label = f"Propensities in {len(shares)} bins"
    return _draw_strip(label, _draw_grid(axis, height), *bars, _draw_base(height - 0.5), height=height)


def draw_stacked_strip(
    shares: Sequence[Any], names: Sequence[str], label: str, counts: Sequence[Sequence[int]] = ()
) -> str:
    """Draw shares that sum to one as segments of a bar, in the colours of the levels.

    A bar that follows the budget slider needs `counts`: the customers at each level at every stop, for the script.
    """
    segments, left = [], 0.0
    for level, (share, name) in enumerate(zip(shares, names, strict=False)):
        width = min(max(finite(share) or 0.0, 0.0), 1.0 - left)
        if width > 0 or counts:
            segments.append(_draw_segment(level, left, width, name, moves=bool(counts)))
        left += width
    empty = element("rect", x="0%", width="100%", y=3, height=STRIP_HEIGHT - 6, class_="empty")
    return _draw_strip(label, empty, *segments, data_counts=";".join(",".join(map(str, row)) for row in counts))


def draw_share_strip(share: Any, label: str) -> str:
    """Draw one share of a whole as a bar."""
    width = min(max(finite(share) or 0.0, 0.0), 1.0)
    empty = element("rect", x="0%", width="100%", y=8, height=STRIP_HEIGHT - 16, class_="empty")
    bar = element("rect", x="0%", width=_raw(width), y=8, height=STRIP_HEIGHT - 16, class_="share")
    return _draw_strip(label, empty, bar)


def draw_tick_strip(axis: Axis, style: NumberStyle, signed: bool = False) -> str:
    """Draw the axis ticks below a column of strips; ticks that would touch on a narrow strip appear only on wide pages."""
    words, places = [style.text(tick, signed) for tick in axis.ticks], [axis.place(tick) for tick in axis.ticks]
    widths = [measure(word, TICK_FONT) for word in words]
    zero = axis.ticks.index(0) if 0 in axis.ticks else 0
    always = thin_ticks([place * NARROW_STRIP for place in places], widths, keep=zero)
    pairs = pairwise(zip(places, widths, strict=True))
    needed = max((((a + b) / 2 + 6) / max(right - left, 1e-9) for (left, a), (right, b) in pairs), default=0.0)
    wide = next((size for size in STRIP_WIDTHS if size >= needed), 0)
    labels = []
    for i, (tick, word) in enumerate(zip(axis.ticks, words, strict=True)):
        kind = {} if i in always else {"class_": f"from-{wide}" if wide else "never"}
        labels.append(text(word, x=_at(axis, tick), y=14, text_anchor="middle", **kind))
    return element("svg", *labels, class_="strip ticks", width="100%", height=20, aria_hidden="true")


def draw_swatch(level: int) -> str:
    """Draw the small square of a level, for legends and tables."""
    square = element("rect", x=0.5, y=0.5, width=11, height=11, rx=2, style=f"fill:var(--level-{level})")
    return element("svg", square, class_="swatch", width=12, height=12, aria_hidden="true")


def _draw_segment(level: int, left: float, width: float, name: str, moves: bool) -> str:
    """Draw a segment with its share as text; the script shows or hides the text of a segment that `moves`."""
    words, narrow = write_percent(width), width < MIN_LABELLED_SHARE
    box = {"x": _raw(left), "width": _raw(width), "y": 3, "height": STRIP_HEIGHT - 6}
    bar = element("rect", title(f"{name}: {words}"), **box, style=f"fill:var(--level-{level})")
    if narrow and not moves:
        return bar
    ink = f"fill:var(--on-level-{level})" + (";visibility:hidden" if narrow else "")
    return bar + text(words, x=_raw(left + width / 2), y=MIDDLE + 4.5, text_anchor="middle", style=ink)


def _draw_strip(label: str, *marks: str, height: float = STRIP_HEIGHT, **more: Any) -> str:
    box = {"class_": "strip", "width": "100%", "height": height, "role": "img", "aria_label": label}
    return element("svg", title(label), *marks, **box, **{key: value for key, value in more.items() if value})


def _draw_grid(axis: Axis, height: float = STRIP_HEIGHT) -> str:
    return "".join(_draw_limit(axis, tick, "grid", height) for tick in axis.ticks)


def _draw_base(y: float = MIDDLE) -> str:
    return element("line", x1="0%", x2="100%", y1=y, y2=y, class_="base")


def _draw_limit(axis: Axis, value: Any, kind: str, height: float = STRIP_HEIGHT) -> str:
    if finite(value) is None:
        return ""
    return element("line", x1=_at(axis, value), x2=_at(axis, value), y1=0, y2=height, class_=kind)


def _draw_whisker(axis: Axis, estimate: Numbers, kind: str, y: float = MIDDLE) -> str:
    return _draw_ends(axis, estimate, kind, y) + _draw_dot(axis, estimate.get("estimate"), kind, y)


def _draw_ends(axis: Axis, estimate: Numbers, kind: str, y: float = MIDDLE) -> str:
    low, high = finite(estimate.get("low")), finite(estimate.get("high"))
    if low is None or high is None:
        return ""
    kind = f"whisker {kind}"
    line = element("line", x1=_at(axis, low), x2=_at(axis, high), y1=y, y2=y, class_=kind)
    ends = [{"x1": _at(axis, end), "x2": _at(axis, end), "y1": y - 5, "y2": y + 5} for end in (low, high)]
    return line + "".join(element("line", **end, class_=kind) for end in ends)


def _draw_dot(axis: Axis, value: Any, kind: str, y: float = MIDDLE) -> str:
    if finite(value) is None:
        return ""
    return element("circle", cx=_at(axis, value), cy=y, r=5.5, class_=f"dot {kind}")


def _draw_marker(axis: Axis, value: Any, path: str, kind: str, y: float) -> str:
    """Draw a small shape; a nested svg element places its path, in pixels, at a percentage."""
    if finite(value) is None:
        return ""
    shape = element("path", d=path, class_=f"marker {kind}")
    return element("svg", shape, x=_at(axis, value), y=y, overflow="visible")


def _at(axis: Axis, value: float) -> str:
    return f"{SIDE_MARGIN + axis.place(value) * (100 - 2 * SIDE_MARGIN):.3f}%"


def _width(axis: Axis, left: float, right: float) -> str:
    return f"{(axis.place(right) - axis.place(left)) * (100 - 2 * SIDE_MARGIN):.3f}%"


def _raw(share: float) -> str:
    return f"{share * 100:.3f}%"
