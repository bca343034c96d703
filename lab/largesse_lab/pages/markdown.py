"""Markdown of result pages: sections, tables and formatted numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

NUMBER_DASH = "–"  # a missing number


@dataclass
class Section:
    """Results of one experiment: Markdown paragraphs, and functions that draw its figures."""

    name: str  # of the experiment; file names of figures begin with it
    paragraphs: list[str] = field(default_factory=list)
    figures: dict[str, Callable[[], str]] = field(default_factory=dict)

    def add(self, *paragraphs: str) -> None:
        """Append paragraphs, without empty ones."""
        self.paragraphs += [paragraph.strip() for paragraph in paragraphs if paragraph.strip()]

    def add_figure(self, draw: Callable[[], str], title: str, name: str = "") -> None:
        """Append a figure as a function that draws it when the page is written.

        `name` distinguishes several figures of one experiment.
        """
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        file = f"{self.name}-{slug}.svg" if slug else f"{self.name}.svg"
        self.figures[file] = draw
        self.add(f"![{title}]({file})")

    def join_paragraphs(self) -> str:
        """Return all paragraphs as one Markdown text, without the figures."""
        return "\n\n".join(paragraph for paragraph in self.paragraphs if not paragraph.startswith("![")) + "\n"


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    r"""Return a Markdown table; the first `text_columns` columns are left-aligned text.

    >>> print(format_table(["a", "b"], [["x|y", "1"]]))
    | a | b |
    |---|---:|
    | x\|y | 1 |
    """
    rule = "|" + "---|" * text_columns + "---:|" * (len(head) - text_columns)
    head_line, *lines = (
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in (head, *rows)
    )
    return "\n".join([head_line, rule, *lines])


def format_number(number: float, digits: int = 4) -> str:
    """Format a number with the given digits and a typographic minus sign.

    >>> format_number(-0.25, 2)
    '−0.25'
    """
    return f"{number:.{digits}f}".replace("-", "−")


def format_mean(mean: float | None, spread: float | None = None, digits: int = 4) -> str:
    """Format a mean ± its standard deviation or error; a dash for a missing mean.

    >>> format_mean(0.097, 0.0038), format_mean(-0.5), format_mean(None)
    ('0.0970 ± 0.0038', '−0.5000', '–')
    """
    if mean is None:
        return NUMBER_DASH
    return format_number(mean, digits) + ("" if spread is None else f" ± {format_number(spread, digits)}")


def compute_wilson_interval(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a share, from a count and a sample size n.

    >>> tuple(round(end, 3) for end in compute_wilson_interval(0.0, 100))
    (0.0, 0.037)
    """
    z = 1.96
    denominator = 1 + z**2 / n
    middle = (share + z**2 / (2 * n)) / denominator
    half_width = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / denominator
    return max(middle - half_width, 0.0), min(middle + half_width, 1.0)


def format_share(share: float | None, n: int) -> str:
    """Format a share as a percentage with its 95 % interval; a dash for a missing share.

    >>> format_share(0.9, 100), format_share(1.0, 28), format_share(None, 0)
    ('90.0 % (82.6 to 94.5)', '100.0 % (87.9 to 100.0)', '–')
    """
    if share is None:
        return NUMBER_DASH
    low, high = compute_wilson_interval(share, n)
    return f"{100 * share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
