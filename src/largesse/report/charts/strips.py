"""Figures that stand in rows: one flat SVG per row, its name and numbers beside it as ordinary text.

Horizontal places are percentages and everything else is pixels, so a strip fills whatever width it is given while its
text and strokes keep their size: the same strip is right on a phone, on a desk and on paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.marks import element, text, title
from largesse.report.charts.scales import Axis
from largesse.report.formats import Style, finite, percent

HEIGHT = 30
MARGIN = 2.0  # per cent left free at both ends, so that nothing at the ends is cut


def gain_strip(axis: Axis, difference: Mapping[str, Any], label: str) -> str:
    """Draw a difference as a dot with its interval, around a line at zero."""
    return _strip(label, _grid(axis), _line(axis, 0.0, "zero"), _whisker(axis, difference, "estimate", "gain"))


def spend_strip(axis: Axis, spend: Mapping[str, Any], budget: Any, label: str) -> str:
    """Draw a spend as a dot with its interval, and the budget as a line."""
    return _strip(label, _base(), _line(axis, budget, "limit"), _whisker(axis, spend, "estimate", "spend"))


def curve_strip(axis: Axis, row: Mapping[str, Any], label: str) -> str:
    """Draw one level's mean response: honest dot with interval, the model's mean (diamond), the raw mean (cross)."""
    return _strip(
        label,
        _grid(axis),
        _reach(axis, row.get("model_low"), row.get("model_high")),
        _marker(axis, row.get("raw"), "M-4,-4 L4,4 M-4,4 L4,-4", "raw"),
        _marker(axis, row.get("model"), "M0,-6 L6,0 L0,6 L-6,0 Z", "model"),
        _whisker(axis, row, "value", "honest"),
    )


def balance_strip(axis: Axis, before: Any, after: Any, limit: float, label: str) -> str:
    """Draw a feature's imbalance before weighting (hollow) and after (filled), and the line it should stay below."""
    ends = [finite(before), finite(after)]
    link = ""
    if ends[0] is not None and ends[1] is not None:
        link = element(
            "line", x1=_at(axis, ends[0]), x2=_at(axis, ends[1]), y1=HEIGHT / 2, y2=HEIGHT / 2, class_="link"
        )
    return _strip(
        label, _grid(axis), _line(axis, limit, "limit"), link, _dot(axis, before, "before"), _dot(axis, after, "after")
    )


def histogram_strip(axis: Axis, edges: Sequence[Any], shares: Sequence[float], top: float, level: int) -> str:
    """Draw one level's propensities: bars over the bins, as high as their share of the level's rows.

    `edges` has one number more than `shares`; `top` is the share that fills the height.
    """
    height = HEIGHT + 8
    bars = []
    for left, right, share in zip(edges, edges[1:], shares, strict=False):
        if finite(left) is None or finite(right) is None or share <= 0:
            continue
        # the smallest bar stays visible: a few rows of tiny propensity are the very thing to see
        tall = max(share / top * (height - 6), 1.5)
        tip = f"{percent(share)} of the rows have a propensity between {left:g} and {right:g}"
        wide = _percent(axis.place(right) - axis.place(left), offset=False)
        fill = f"fill:var(--level-{level})"
        bars.append(
            element("rect", title(tip), x=_at(axis, left), width=wide, y=height - tall, height=tall, style=fill)
        )
    label = f"Propensities in {len(shares)} bins"
    return _strip(label, _grid(axis, height), *bars, _base(height - 0.5), height=height)


def stacked_strip(shares: Sequence[Any], names: Sequence[str], label: str) -> str:
    """Draw shares that sum to one as segments of a bar, in the colours of the levels."""
    segments, left = [], 0.0
    for level, (share, name) in enumerate(zip(shares, names, strict=False)):
        width = min(max(finite(share) or 0.0, 0.0), 1.0 - left)
        if width > 0:
            segments.append(_segment(level, left, width, f"{name}: {percent(share)}", percent(share)))
        left += width
    empty = element("rect", x="0%", width="100%", y=3, height=HEIGHT - 6, class_="empty")
    return _strip(label, empty, *segments)


def tick_strip(axis: Axis, style: Style, signed: bool = False) -> str:
    """Draw the ticks' numbers below a column of strips."""
    words = [text(style.text(tick, signed), x=_at(axis, tick), y=14, text_anchor="middle") for tick in axis.ticks]
    return element("svg", *words, class_="strip ticks", width="100%", height=20, aria_hidden="true")


def swatch(level: int) -> str:
    """Draw the small square that stands for a level in legends and tables."""
    square = element("rect", x=0.5, y=0.5, width=11, height=11, rx=2, style=f"fill:var(--level-{level})")
    return element("svg", square, class_="swatch", width=12, height=12, aria_hidden="true")


def _segment(level: int, left: float, width: float, tip: str, words: str) -> str:
    bar = element(
        "rect", title(tip), x=_raw(left), width=_raw(width), y=3, height=HEIGHT - 6, style=f"fill:var(--level-{level})"
    )
    if width < 0.13:  # narrower than its own writing on a phone
        return bar
    ink = f"fill:var(--on-level-{level})"
    return bar + text(words, x=_raw(left + width / 2), y=HEIGHT / 2 + 4.5, text_anchor="middle", style=ink)


def _strip(label: str, *marks: str, height: float = HEIGHT) -> str:
    return element(
        "svg", title(label), *marks, class_="strip", width="100%", height=height, role="img", aria_label=label
    )


def _grid(axis: Axis, height: float = HEIGHT) -> str:
    return "".join(_line(axis, tick, "grid", height) for tick in axis.ticks)


def _base(y: float = HEIGHT / 2) -> str:
    return element("line", x1="0%", x2="100%", y1=y, y2=y, class_="base")


def _line(axis: Axis, value: Any, kind: str, height: float = HEIGHT) -> str:
    if finite(value) is None:
        return ""
    return element("line", x1=_at(axis, value), x2=_at(axis, value), y1=0, y2=height, class_=kind)


def _reach(axis: Axis, low: Any, high: Any) -> str:
    """Draw how far the model's own mean may be off, as a pale bar."""
    if finite(low) is None or finite(high) is None:
        return ""
    wide = _percent(axis.place(high) - axis.place(low), offset=False)
    return element("rect", x=_at(axis, low), width=wide, y=HEIGHT / 2 - 7, height=14, rx=3, class_="reach")


def _whisker(axis: Axis, row: Mapping[str, Any], middle: str, kind: str) -> str:
    low, high = finite(row.get("low")), finite(row.get("high"))
    y = HEIGHT / 2
    dot = _dot(axis, row.get(middle), kind)
    if low is None or high is None:
        return dot
    line = element("line", x1=_at(axis, low), x2=_at(axis, high), y1=y, y2=y, class_=f"whisker {kind}")
    caps = "".join(
        element("line", x1=_at(axis, end), x2=_at(axis, end), y1=y - 5, y2=y + 5, class_=f"whisker {kind}")
        for end in (low, high)
    )
    return line + caps + dot


def _dot(axis: Axis, value: Any, kind: str) -> str:
    if finite(value) is None:
        return ""
    return element("circle", cx=_at(axis, value), cy=HEIGHT / 2, r=5.5, class_=f"dot {kind}")


def _marker(axis: Axis, value: Any, path: str, kind: str) -> str:
    """Draw a small shape; the nested svg lets a path in pixels stand at a percentage."""
    if finite(value) is None:
        return ""
    shape = element("path", d=path, class_=f"marker {kind}")
    return element("svg", shape, x=_at(axis, value), y=HEIGHT / 2, overflow="visible")


def _at(axis: Axis, value: float) -> str:
    return _percent(axis.place(value))


def _percent(place: float, offset: bool = True) -> str:
    return f"{(MARGIN if offset else 0.0) + place * (100 - 2 * MARGIN):.3f}%"


def _raw(share: float) -> str:
    return f"{share * 100:.3f}%"
