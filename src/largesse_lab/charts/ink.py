"""How the experiments' drawings look: colours, dashes and marks told apart by any eye, on light paper and on dark.

Colours are Okabe and Ito's, made darker on light paper and lighter on dark until each stands out 3 to 1. Every line has its
own mark, and neighbours different dashes, so nothing rests on colour alone. A drawing brings its own paper: shown as a picture in a page
of the other kind, it stays readable.
"""

from __future__ import annotations

from dataclasses import dataclass

from largesse.report import element

LIGHT = ("#0072b2", "#d55e00", "#00805d", "#b4588a", "#b07500", "#2b8cc4", "#7a5c00", "#4d4d4d")
DARK = ("#4aa8e0", "#ff8a3d", "#2cc795", "#e39ac2", "#f0b52e", "#8fd0f5", "#d9cc4a", "#c9c9c9")
PAPER, NIGHT = "#ffffff", "#14171c"
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
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
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
        return "var(--soft)" if self.reference else f"var(--pen-{self.place % len(LIGHT)})"

    @property
    def dash(self) -> str:
        """The dash pattern; nothing for a full line."""
        # one step further in every round of the colours: the ninth line shares its colour with the first, not its dash
        return DASHES[(self.place + self.place // len(LIGHT)) % len(DASHES)]

    def mark(self, x: float, y: float, *, hollow: bool = False) -> str:
        """Return the series' mark at a place; nothing for a reference."""
        if self.reference:
            return ""
        shape = SHAPES[self.place % len(SHAPES)]
        look = {"class_": "hollow", "stroke": self.colour} if hollow else {"fill": self.colour}
        return element("path", d=shape, transform=f"translate({x:.1f},{y:.1f})", **look)

    def stroke(self, points: list[tuple[float, float]]) -> str:
        """Return a line through the points."""
        path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        if self.reference:
            return element("path", d=path, class_="reference")
        dash = {"stroke_dasharray": self.dash} if self.dash else {}
        return element("path", d=path, class_="line", stroke=self.colour, **dash)

    def whisker(self, x1: float, y1: float, x2: float, y2: float) -> str:
        """Return the line of an interval."""
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        return element("line", **ends, class_="whisker", stroke=self.colour)


def style_sheet() -> str:
    """Return the drawing's own style sheet: both colour schemes, chosen by the reader's."""
    light = _variables(LIGHT, ink="#1b1f24", soft="#5d6670", grid="#e3e6ea", paper=PAPER)
    dark = _variables(DARK, ink="#e6e9ed", soft="#9aa4af", grid="#2c323a", paper=NIGHT)
    # of this drawing alone, should it stand in a page among others
    return element(
        "style",
        f".largesse {{ {light} }}\n@media (prefers-color-scheme: dark) {{ .largesse {{ {dark} }} }}\n{(RULES % FONT).strip()}",
    )


def _variables(pens: tuple[str, ...], **others: str) -> str:
    named = {**{f"pen-{k}": colour for k, colour in enumerate(pens)}, **others}
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())
