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
    """Return a difference; what is rounded to nothing has no minus.

    >>> signed(-0.25), signed(-1e-9)
    ('−0.2500', '+0.0000')
    """
    return f"{round(number, 4) + 0.0:+.4f}".replace("-", "−")
