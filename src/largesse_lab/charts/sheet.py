"""A drawing's frame: paper, title, legend, and panels side by side, each with its own axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from largesse.report import element, text, title
from largesse_lab.charts.axes import Scale, roomy
from largesse_lab.charts.ink import Pen, style_sheet

WIDTH, PAD = 760.0, 16.0
FONT, LARGE = 12.5, 16.0
NARROW, BROAD = frozenset(" .,:;'’|!()[]ijlftrI·-⁻⁰¹²³⁴⁵⁶⁷⁸⁹"), frozenset("mwMW%@—")
SAMPLE = 34.0  # how long a legend's line is


@dataclass(frozen=True)
class Words:
    """What a drawing says: its title, what runs across and up (with units), and a note under the title."""

    title: str
    across: str
    up: str = ""
    note: str = ""


@dataclass(frozen=True)
class Panel:
    """A box in the drawing and the scales along its sides."""

    name: str
    left: float
    top: float
    right: float
    bottom: float
    across: Scale
    up: Scale | None = None

    def x(self, value: float) -> float:
        """Return the horizontal place of a number."""
        return self.left + self.across.place(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the vertical place of a number; without a scale the number is the place."""
        return value if self.up is None else self.bottom - self.up.place(value) * (self.bottom - self.top)


def wide(words: str, font: float = FONT) -> float:
    """Return about how wide some words are; generous, since fonts differ.

    >>> wide("ill") < wide("one") < wide("WWW")
    True
    """
    return font * sum(0.36 if c in NARROW else 0.98 if c in BROAD else 0.72 if c.isupper() else 0.62 for c in words)


def columns(panels: int) -> int:
    """Return how many panels stand side by side."""
    return 2 if panels in (2, 4) else min(panels, 3)


def sheet(words: Words, height: float, *parts: str) -> str:
    """Return the whole drawing as one SVG."""
    label = title(f"{words.title}. {words.note}".strip())
    paper = element("rect", width=WIDTH, height=height, rx=6, class_="paper")
    size = {"viewBox": f"0 0 {WIDTH:g} {height:g}", "width": f"{WIDTH:g}", "height": f"{height:g}"}
    return element(
        "svg", label, style_sheet(), paper, *parts, xmlns="http://www.w3.org/2000/svg", class_="largesse", **size,
        font_size=FONT, role="img",
    )  # fmt: skip


def heading(words: Words, pens: Mapping[str, Pen], *, lines: bool = True) -> tuple[str, float]:
    """Return title, note and legend, and how far down they reach."""
    parts, y = [], PAD
    for line in _wrapped(words.title, LARGE):
        y += LARGE * 1.1
        parts.append(text(line, x=PAD, y=y, font_size=LARGE, class_="bold"))
    for line in _wrapped(words.note, FONT):
        y += FONT * 1.5
        parts.append(text(line, x=PAD, y=y, class_="soft"))
    drawn, y = _legend(pens, y + 4, lines)
    return "".join(parts) + drawn, y + 6


def _wrapped(words: str, font: float) -> list[str]:
    lines: list[str] = []
    for word in words.split():
        if lines and wide(f"{lines[-1]} {word}", font) <= WIDTH - 2 * PAD:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _legend(pens: Mapping[str, Pen], top: float, lines: bool) -> tuple[str, float]:
    """Return the samples and names of all series, in as many rows as they need."""
    parts, x, y = [], PAD, top + FONT
    for name, pen in pens.items():
        sample = SAMPLE if lines or pen.reference else 8.0
        needed = sample + 7 + wide(name)
        if x > PAD and x + needed > WIDTH - PAD:
            x, y = PAD, y + FONT * 1.6
        parts += [pen.stroke([(x, y), (x + sample, y)]) if sample == SAMPLE else "", pen.mark(x + sample / 2, y)]
        parts.append(text(name, x=x + sample + 7, y=y + FONT * 0.35))
        x += needed + 18
    return "".join(parts), y + FONT * 0.6 if pens else top


# -- axes --------------------------------------------------------------------------------------------------------------


def across_axis(panel: Panel) -> str:
    """Return the lower side with its ticks, and a break where zero stands apart."""
    y = panel.bottom
    ticks = panel.across.ticks
    places = [panel.x(tick) for tick, _ in ticks]
    zero = next((i for i, (tick, _) in enumerate(ticks) if tick == 0), 0)
    kept = roomy(places, [wide(name) for _, name in ticks], first=panel.across.zero is not None, wish=zero)
    parts = [element("line", x1=x, x2=x, y1=y, y2=y + 5, class_="rule") for x in places]
    parts += [text(ticks[i][1], x=places[i], y=y + FONT * 1.55, text_anchor="middle") for i in kept]
    return "".join([*parts, *_base(panel)])


def _base(panel: Panel) -> Iterable[str]:
    y, gap = panel.bottom, panel.across.gap
    if gap is None:
        return [element("line", x1=panel.left, x2=panel.right, y1=y, y2=y, class_="rule")]
    x = panel.left + gap * (panel.right - panel.left)
    ends = [(panel.left, x - 3), (x + 3, panel.right)]
    lines = [element("line", x1=a, x2=b, y1=y, y2=y, class_="rule") for a, b in ends]
    return lines + [element("path", d=f"M{x + s - 2:.1f},{y + 5:.1f} l4,-10", class_="rule") for s in (-3, 3)]


def up_axis(panel: Panel) -> str:
    """Return the grid with its numbers."""
    assert panel.up is not None
    parts = []
    for tick, name in panel.up.ticks:
        y = panel.y(tick)
        parts.append(element("line", x1=panel.left, x2=panel.right, y1=y, y2=y, class_="grid"))
        parts.append(text(name, x=panel.left - 6, y=y + FONT * 0.35, text_anchor="end"))
    return "".join(parts)


def axis_titles(panels: Sequence[Panel], words: Words) -> str:
    """Return what runs across, below all panels, and what runs up, left of them."""
    bottom = max(panel.bottom for panel in panels)
    middle = (min(panel.left for panel in panels) + max(panel.right for panel in panels)) / 2
    across = text(words.across, x=middle, y=bottom + FONT * 3.1, text_anchor="middle", class_="soft")
    x, y = PAD + FONT * 0.8, (min(panel.top for panel in panels) + bottom) / 2
    turned = {"transform": f"translate({x:.1f},{y:.1f}) rotate(-90)", "text_anchor": "middle", "class_": "soft"}
    return across + (text(words.up, **turned) if words.up else "")


def panel_name(panel: Panel) -> str:
    """Return the panel's name, above it."""
    return text(panel.name, x=panel.left, y=panel.top - 9, class_="bold") if panel.name else ""


def up_room(scale: Scale) -> float:
    """Return how much room the numbers of a vertical axis need."""
    return max((wide(name) for _, name in scale.ticks), default=0.0) + 10


def grid_tops(count: int, top: float, tall: float) -> list[float]:
    """Return where each panel's box begins, row by row, when boxes are `tall` high."""
    per_row = columns(count)
    return [top + FONT * 2.2 + (i // per_row) * (tall + FONT * 4.4) for i in range(count)]


def foot(panels: Sequence[Panel]) -> float:
    """Return the height of a drawing with these panels."""
    return max(panel.bottom for panel in panels) + FONT * 3.1 + PAD
