"""A sheet: paper with a title, a note, a legend, and frames side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from largesse.errors import Problem
from largesse.report.charts.frame import FONT, Frame
from largesse.report.charts.marks import element, measure, text, title
from largesse.report.charts.pens import Pen, style_sheet

WIDTH, PAD, LARGE = 760.0, 16.0, 16.0
SAMPLE = 34.0  # length of a line in the legend


@dataclass(frozen=True)
class Caption:
    """What a sheet says: its title, what runs across and up (with units), and a note under the title."""

    title: str
    across: str
    up: str = ""
    note: str = ""


@dataclass(frozen=True)
class Heading:
    """Title, note and legend as SVG, and how far down they reach."""

    svg: str
    bottom: float


def find_gaps(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], hint: str) -> list[Problem]:
    """Return what keeps rows from being drawn: there are none (`hint` says what to give), or some lack keys."""
    problems = [] if rows else [Problem("there is nothing to draw", hint)]
    for i, row in enumerate(rows):
        missing = [key for key in keys if key not in row]
        if missing:
            problems.append(Problem(f"row {i} has no {' and no '.join(missing)}", f"every row needs {', '.join(keys)}"))
    return problems


def draw_sheet(caption: Caption, frames: Sequence[Frame], *parts: str) -> str:
    """Return the whole drawing as one SVG."""
    height = max(frame.bottom for frame in frames) + FONT * 3.1 + PAD
    label = title(f"{caption.title}. {caption.note}".strip())
    paper = element("rect", width=WIDTH, height=height, rx=6, class_="paper")
    size = {"viewBox": f"0 0 {WIDTH:g} {height:g}", "width": f"{WIDTH:g}", "height": f"{height:g}"}
    return element(
        "svg", label, style_sheet(), paper, *parts, xmlns="http://www.w3.org/2000/svg", class_="largesse", **size,
        font_size=FONT, role="img",
    )  # fmt: skip


def draw_heading(caption: Caption, pens: Mapping[str, Pen], *, lines: bool = True) -> Heading:
    """Return title, note and legend; with `lines` the legend shows a piece of each line."""
    parts, y = [], PAD
    for line in _wrap(caption.title, LARGE):
        y += LARGE * 1.1
        parts.append(text(line, x=PAD, y=y, font_size=LARGE, class_="bold"))
    for line in _wrap(caption.note, FONT):
        y += FONT * 1.5
        parts.append(text(line, x=PAD, y=y, class_="soft"))
    legend = _draw_legend(pens, y + 4, lines)
    return Heading("".join(parts) + legend.svg, legend.bottom + 6)


def draw_axis_titles(frames: Sequence[Frame], caption: Caption) -> str:
    """Return what runs across, below all frames, and what runs up, left of them."""
    bottom = max(frame.bottom for frame in frames)
    middle = (min(frame.left for frame in frames) + max(frame.right for frame in frames)) / 2
    across = text(caption.across, x=middle, y=bottom + FONT * 3.1, text_anchor="middle", class_="soft")
    x, y = PAD + FONT * 0.8, (min(frame.top for frame in frames) + bottom) / 2
    turned = {"transform": f"translate({x:.1f},{y:.1f}) rotate(-90)", "text_anchor": "middle", "class_": "soft"}
    return across + (text(caption.up, **turned) if caption.up else "")


def draw_name(frame: Frame) -> str:
    """Return the frame's name, above it."""
    return text(frame.name, x=frame.left, y=frame.top - 9, class_="bold") if frame.name else ""


def count_columns(frames: int) -> int:
    """Return how many frames stand side by side."""
    return 2 if frames in (2, 4) else min(frames, 3)


def place_rows(count: int, top: float, height: float) -> list[float]:
    """Return the top of each frame, row by row, when frames are `height` high."""
    per_row = count_columns(count)
    return [top + FONT * 2.2 + (i // per_row) * (height + FONT * 4.4) for i in range(count)]


def _wrap(words: str, font: float) -> list[str]:
    lines: list[str] = []
    for word in words.split():
        if lines and measure(f"{lines[-1]} {word}", font) <= WIDTH - 2 * PAD:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _draw_legend(pens: Mapping[str, Pen], top: float, lines: bool) -> Heading:
    """Return the samples and names of all series, in as many rows as they need."""
    parts, x, y = [], PAD, top + FONT
    for name, pen in pens.items():
        sample = SAMPLE if lines or pen.reference else 8.0
        needed = sample + 7 + measure(name, FONT)
        if x > PAD and x + needed > WIDTH - PAD:
            x, y = PAD, y + FONT * 1.6
        parts += [pen.draw_line([(x, y), (x + sample, y)]) if sample == SAMPLE else ""]
        parts += [pen.draw_mark(x + sample / 2, y), text(name, x=x + sample + 7, y=y + FONT * 0.35)]
        x += needed + 18
    return Heading("".join(parts), y + FONT * 0.6 if pens else top)
