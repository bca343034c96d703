"""SVG elements as escaped strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

Place: TypeAlias = tuple[float, float]
NARROW_LETTERS, BROAD_LETTERS = frozenset(" .,:;'’|!()[]ijlftrI·-⁻⁰¹²³⁴⁵⁶⁷⁸⁹"), frozenset("mwMW%@—")


def element(name: str, *children: str, **attributes: object) -> str:
    """Return one SVG element; attributes are escaped, children are taken as they are.

    ``class_`` gives the class; underscores in names become hyphens. Numbers are written with two decimals.

    >>> element("rect", x=1.23456, class_="bar")
    '<rect x="1.23" class="bar"/>'
    """
    pairs = ((key.rstrip("_").replace("_", "-"), _write_value(value)) for key, value in attributes.items())
    tag = f"<{name}" + "".join(f' {key}="{value}"' for key, value in pairs)
    return f"{tag}>{''.join(children)}</{name}>" if children else f"{tag}/>"


def title(words: str) -> str:
    """Return the tooltip of the enclosing element."""
    return f"<title>{escape(words)}</title>"


def text(words: str, **attributes: object) -> str:
    """Return escaped text."""
    return element("text", escape(words), **attributes)


def draw_path(places: Iterable[Place], **look: object) -> str:
    """Return a line through the places.

    >>> draw_path([(0, 1), (2, 3)], class_="curve")
    '<path d="M0.0,1.0 L2.0,3.0" class="curve"/>'
    """
    return element("path", d="M" + _join_places(places), **look)


def draw_band(upper: Sequence[Place], lower: Sequence[Place], **look: object) -> str:
    """Return the area between two lines, both given from left to right."""
    return element("path", d=f"M{_join_places([*upper, *reversed(lower)])} Z", **look)


def measure(words: str, font: float) -> float:
    """Estimate the width of a text; the estimate is generous, because fonts differ.

    >>> measure("ill", 10) < measure("one", 10) < measure("WWW", 10)
    True
    """
    return font * sum(
        0.36 if c in NARROW_LETTERS else 0.98 if c in BROAD_LETTERS else 0.72 if c.isupper() else 0.62 for c in words
    )


def shorten(words: str, limit: int) -> str:
    """Cut a name to `limit` characters, the last one an ellipsis.

    >>> shorten("a very long name", 7)
    'a very…'
    """
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def _join_places(places: Iterable[Place]) -> str:
    return " L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _write_value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else escape(str(value))
