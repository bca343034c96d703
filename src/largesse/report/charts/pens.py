"""Pens tell series apart by colour, dash and mark, so that nothing rests on colour alone.

A sheet brings its own paper and style: shown as a picture in a page of the other colour scheme, it stays readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from largesse.report.charts.marks import Place, draw_path, element
from largesse.report.charts.palette import DARK_PENS, DARK_SHEET, LIGHT_PENS, LIGHT_SHEET, sheet_variables

DASHES = ("", "7 4", "2 3", "9 3 2 3")
SHAPES = (
    "M-4,0 A4,4 0 1 1 4,0 A4,4 0 1 1 -4,0 Z",  # circle
    "M-3.6,-3.6 H3.6 V3.6 H-3.6 Z",  # square
    "M0,-4.8 L4.4,3.2 H-4.4 Z",  # triangle
    "M0,-5 L5,0 L0,5 L-5,0 Z",  # diamond
    "M0,4.8 L4.4,-3.2 H-4.4 Z",  # triangle on its head
    "M-4,-1.4 H-1.4 V-4 H1.4 V-1.4 H4 V1.4 H1.4 V4 H-1.4 V1.4 H-4 Z",  # plus
    "M0,-5 L4.8,-1.5 L3,4.2 H-3 L-4.8,-1.5 Z",  # pentagon
    "M-4.6,0 L0,-2.6 L4.6,0 L0,2.6 Z",  # flat diamond
)
FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
RULES = """
text { font-family: %s; fill: var(--ink); }
.paper { fill: var(--paper); } .soft { fill: var(--soft); } .bold { font-weight: 600; }
.grid { stroke: var(--grid); stroke-width: 1; } .rule { stroke: var(--soft); stroke-width: 1; fill: none; }
.zero { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 4 3; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .whisker { stroke-width: 1.6; fill: none; }
.band { stroke: none; fill-opacity: 0.16; } .hollow { fill: var(--paper); stroke-width: 1.8; }
.halo { stroke: var(--paper); stroke-width: 4; paint-order: stroke; }
.reference { fill: none; stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 3 3; }
"""


@dataclass(frozen=True)
class Pen:
    """How one series is drawn; a reference is a grey line without marks."""

    place: int
    reference: bool = False

    @property
    def colour(self) -> str:
        """The CSS colour."""
        return "var(--soft)" if self.reference else f"var(--pen-{self.place % len(LIGHT_PENS)})"

    @property
    def dash(self) -> str:
        """The dash pattern; empty for a solid line."""
        # one step further in every round of the colours: the ninth line shares its colour with the first, not its dash
        return DASHES[(self.place + self.place // len(LIGHT_PENS)) % len(DASHES)]

    def draw_mark(self, x: float, y: float, *, hollow: bool = False) -> str:
        """Return the series' mark at a place; nothing for a reference."""
        if self.reference:
            return ""
        shape = SHAPES[self.place % len(SHAPES)]
        look = {"class_": "hollow", "stroke": self.colour} if hollow else {"fill": self.colour}
        return element("path", d=shape, transform=f"translate({x:.1f},{y:.1f})", **look)

    def draw_line(self, places: Iterable[Place]) -> str:
        """Return a line through the places."""
        if self.reference:
            return draw_path(places, class_="reference")
        dash = {"stroke_dasharray": self.dash} if self.dash else {}
        return draw_path(places, class_="line", stroke=self.colour, **dash)

    def draw_whisker(self, start: Place, end: Place) -> str:
        """Return the line of an interval."""
        ends = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
        return element("line", **ends, class_="whisker", stroke=self.colour)


def style_sheet() -> str:
    """Return a sheet's own style: both colour schemes, chosen by the reader's."""
    light, dark = sheet_variables(LIGHT_PENS, LIGHT_SHEET), sheet_variables(DARK_PENS, DARK_SHEET)
    # the variables are bound to this drawing's class, should it stand in a page among others
    return element(
        "style",
        f".largesse {{ {light} }}\n@media (prefers-color-scheme: dark) {{ .largesse {{ {dark} }} }}\n{(RULES % FAMILY).strip()}",
    )
