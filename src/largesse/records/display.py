"""Display of records in notebooks: tables, dataframes and charts.

A record gives its `Card` and its Arrow table; the rest follows here. The later package `report` registers a drawing
function for each kind of record (`DisplayMixin.drawers`), so that records do not depend on charts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from largesse.errors import Problem, fail, import_optional_package

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CARD_ROWS = 12  # rows or names that a card shows
CELL_STYLE = "padding:2px 10px;text-align:"


@dataclass(frozen=True)
class Card:
    """Small notebook table with a title, notes and a nested table."""

    title: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    lines: Sequence[str] = ()
    below: Card | None = field(default=None, repr=False)

    @property
    def html(self) -> str:
        """The table as HTML; cell text is escaped."""
        parts = [f"<strong>{escape(self.title)}</strong>"]
        if self.rows:
            head = "".join(_write_cell("th", word, place) for place, word in enumerate(self.head))
            body = "".join(
                "<tr>" + "".join(_write_cell("td", cell, place) for place, cell in enumerate(row)) + "</tr>"
                for row in self.rows[:MAX_CARD_ROWS]
            )
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        if len(self.rows) > MAX_CARD_ROWS:
            parts.append(f"<div>… and {len(self.rows) - MAX_CARD_ROWS:,} more</div>")
        parts += [f"<div>{escape(line)}</div>" for line in self.lines]
        return f'<div class="largesse-card">{"".join(parts)}{"" if self.below is None else self.below.html}</div>'


def _write_cell(tag: str, cell: Any, place: int) -> str:
    """Write one table cell as HTML, with the first column aligned to the left and the others to the right."""
    return f'<{tag} style="{CELL_STYLE}{"right" if place else "left"}">{escape(write_cell(cell))}</{tag}>'


def write_cell(cell: Any) -> str:
    """Format the value of a table cell as text.

    Integers get separators, floats four digits, missing values a dash.

    >>> write_cell(12345), write_cell(0.123456), write_cell(float("nan")), write_cell("a")
    ('12,345', '0.1235', '–', 'a')
    """
    if cell is None or (isinstance(cell, float) and cell != cell):
        return "–"
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{float(cell):.4g}"


def join_first_names(names: Iterable[str]) -> str:
    """Join the first few names of a list to one line of text."""
    known = list(names)
    more = f" … and {len(known) - MAX_CARD_ROWS:,} more" if len(known) > MAX_CARD_ROWS else ""
    return ", ".join(known[:MAX_CARD_ROWS]) + more


class SvgChart(Protocol):
    """SVG chart that notebooks display and that `save` writes to a file."""

    @property
    def svg(self) -> str:
        """The chart as SVG text."""

    def save(self, path: str | Path) -> None:
        """Write the chart to a file atomically."""


class DisplayMixin:
    """Base class of records that have a notebook table, a dataframe and a chart."""

    drawers: ClassVar[dict[type, Callable[[Any], SvgChart]]] = {}  # drawing function of each kind; filled by `report`

    def card(self) -> Card:
        """Return the table that a notebook displays."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Return the record as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the record as a pandas dataframe; its columns are those of `to_arrow`."""
        _import_dataframe_package("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the record as a polars dataframe; its columns are those of `to_arrow`."""
        return _import_dataframe_package("polars").from_arrow(self.to_arrow())

    def plot(self) -> SvgChart:
        """Return the record as a chart in the style of the report."""
        importlib.import_module("largesse.report")  # adds the drawers
        draw = self.drawers.get(type(self))
        if draw is None:
            known = ", ".join(sorted(kind.__name__ for kind in self.drawers))
            fail("plot", Problem(f"a {type(self).__name__} has no drawing", f"these have one: {known}"))
        return draw(self)

    def _repr_html_(self) -> str:
        return self.card().html


def _import_dataframe_package(package: str) -> Any:
    """Import pandas or polars, or raise an error that tells how to install it."""
    return import_optional_package(package, "", "table", hint=f"pip install {package}, or take to_arrow()")
