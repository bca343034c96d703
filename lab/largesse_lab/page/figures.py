"""Figures of the results: lines with their spread, and differences with their intervals, as SVG by matplotlib."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 9.0  # inches
COLUMNS = 3  # panels next to each other, at most
GREY = "0.55"


@dataclass(frozen=True)
class Caption:
    """Title, axis labels with units, and a note under the title."""

    title: str
    across: str
    up: str = ""
    note: str = ""


@dataclass(frozen=True)
class Look:
    """Logarithmic axes, one vertical scale for all panels, and the labels that are drawn as grey lines."""

    log_across: bool = False
    log_up: bool = False
    shared: bool = False
    references: tuple[str, ...] = ()


def draw_lines(series: Sequence[Mapping[str, Any]], caption: Caption, look: Look = Look()) -> str:  # noqa: B008 — frozen
    """Draw a panel for each ``panel`` and a line for each ``label`` through ``x`` and ``mean``, with a band of ± ``sd``.

    A missing mean leaves a gap; without sd there is no band.
    """
    figure, axes = _make_panels(series, caption, row_height=2.8, share_y=look.shared)
    labels = list(dict.fromkeys(row["label"] for row in series))
    colours = {label: f"C{i % 10}" for i, label in enumerate(one for one in labels if one not in look.references)}
    for row in series:
        ax, known = axes[row["panel"]], row["label"] in colours
        mean = [math.nan if value is None else value for value in row["mean"]]
        style = {"color": colours[row["label"]], "marker": "."} if known else {"color": GREY, "linestyle": "--"}
        ax.plot(row["x"], mean, label=row["label"], linewidth=1.3, **style)
        if known and any(value is not None for value in row["sd"]):
            spread = [math.nan if value is None else value for value in row["sd"]]
            low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
            ax.fill_between(row["x"], low, high, color=style["color"], alpha=0.15, linewidth=0)
    for ax in axes.values():
        if look.log_across:  # a zero stands left of the least other value
            positive = [x for row in series for x in row["x"] if x is not None and x > 0]
            ax.set_xscale("symlog", linthresh=min(positive)) if positive else None
        if look.log_up:
            ax.set_yscale("log")
        ax.set_ylabel(caption.up)
    handles = {handle.get_label(): handle for ax in axes.values() for handle in ax.lines}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return _write_svg(figure)


def draw_dots(rows: Sequence[Mapping[str, Any]], caption: Caption) -> str:
    """Draw a row for each ``label`` and a panel for each ``panel``: ``estimate`` between ``low`` and ``high``.

    A full dot has an interval without zero, a hollow one an interval that contains it.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    figure, axes = _make_panels(rows, caption, row_height=0.24 * len(labels) + 0.8, share_y=True)
    for row in rows:
        if row["estimate"] is None:
            continue
        low, high = (row["estimate"] if end is None else end for end in (row["low"], row["high"]))
        ax, y = axes[row["panel"]], labels.index(row["label"])
        ax.plot([low, high], [y, y], color="C0", linewidth=1.3)
        ax.plot(
            row["estimate"], y, "o", color="C0", markersize=4, markerfacecolor="white" if low <= 0 <= high else "C0"
        )
    for ax in axes.values():
        ax.axvline(0, color=GREY, linestyle="--", linewidth=1)
        ax.set_yticks(range(len(labels)), labels, fontsize=8)
        ax.set_ylim(len(labels) - 0.5, -0.5)
    return _write_svg(figure)


def _make_panels(
    rows: Sequence[Mapping[str, Any]], caption: Caption, row_height: float, share_y: bool
) -> tuple[Any, dict[str, Any]]:
    """Return a figure with title and note, and its axes by the name of the panel."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["panel"] for row in rows))
    down = -(-len(names) // COLUMNS)
    figure = Figure(figsize=(WIDTH, row_height * down + 1.2), layout="constrained")
    figure.suptitle("\n".join(filter(None, [caption.title, caption.note])), fontsize=9)
    grid = figure.subplots(down, min(len(names), COLUMNS), squeeze=False, sharey=share_y).ravel()
    for ax in grid[len(names) :]:
        ax.set_axis_off()
    axes = dict(zip(names, grid, strict=False))
    for name, ax in axes.items():
        ax.set_title(name, fontsize=9)
        ax.set_xlabel(caption.across, fontsize=8)
        ax.grid(alpha=0.25)
    return figure, axes


def _write_svg(figure: Any) -> str:
    """Return the figure as SVG, the same bytes for the same numbers."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "largesse", "svg.fonttype": "none"}):
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue().strip()
