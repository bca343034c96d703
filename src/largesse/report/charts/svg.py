"""SVG elements as escaped strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

Place: TypeAlias = tuple[float, float]
NARROW_LETTERS, BROAD_LETTERS = frozenset(" .,:;'’|!()[]ijlftrI·-⁻⁰¹²³⁴⁵⁶⁷⁸⁹"), frozenset("mwMW%@—")


def make_element(name: str, *children: str, **attributes: object) -> str:
    """Return an SVG element as text with escaped attributes.

    Children are taken as they are.

    ``class_`` gives the class; underscores in names become hyphens. Numbers are written with two decimals.

    >>> make_element("rect", x=1.23456, class_="bar")
    '<rect x="1.23" class="bar"/>'
    """
    pairs = ((key.rstrip("_").replace("_", "-"), _write_attribute_value(value)) for key, value in attributes.items())
    tag = f"<{name}" + "".join(f' {key}="{value}"' for key, value in pairs)
    return f"{tag}>{''.join(children)}</{name}>" if children else f"{tag}/>"


def make_tooltip(words: str) -> str:
    """Return an SVG title element, the tooltip of its parent element."""
    return f"<title>{escape(words)}</title>"


def make_text_element(words: str, **attributes: object) -> str:
    """Return an SVG text element with escaped text."""
    return make_element("text", escape(words), **attributes)


def draw_path(places: Iterable[Place], **look: object) -> str:
    """Return an SVG path through points.

    >>> draw_path([(0, 1), (2, 3)], class_="curve")
    '<path d="M0.0,1.0 L2.0,3.0" class="curve"/>'
    """
    return make_element("path", d="M" + _write_path_points(places), **look)


def draw_band(upper: Sequence[Place], lower: Sequence[Place], **look: object) -> str:
    """Return an SVG area between an upper and a lower line."""
    return make_element("path", d=f"M{_write_path_points([*upper, *reversed(lower)])} Z", **look)


def estimate_text_width(words: str, font: float) -> float:
    """Estimate the width of a text in pixels, generously because fonts differ.

    >>> estimate_text_width("ill", 10) < estimate_text_width("one", 10) < estimate_text_width("WWW", 10)
    True
    """
    return font * sum(
        0.36 if c in NARROW_LETTERS else 0.98 if c in BROAD_LETTERS else 0.72 if c.isupper() else 0.62 for c in words
    )


def shorten_text(words: str, limit: int) -> str:
    """Shorten a text to at most `limit` characters, including the ellipsis at its end.

    >>> shorten_text("a very long name", 7)
    'a very…'
    """
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def _write_path_points(places: Iterable[Place]) -> str:
    return " L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _write_attribute_value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else escape(str(value))
