"""Parts of Markdown that several sections of the page share."""

from __future__ import annotations

from collections.abc import Sequence


def row_of(cells: Sequence[str]) -> str:
    r"""Return a row of a Markdown table; a bar within a cell does not end it.

    >>> row_of(["a", "b|c"])
    '| a | b\\|c |'
    """
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def signed(number: float) -> str:
    """Return a difference.

    >>> signed(-0.25)
    '−0.2500'
    """
    return f"{number:+.4f}".replace("-", "−")
