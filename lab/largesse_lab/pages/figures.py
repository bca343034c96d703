"""SVG figures of result pages: lines with bands, and points with intervals."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 9.0  # inches
MAX_PANELS_PER_ROW = 3
GREY = "0.55"


@dataclass(frozen=True)
class FigureText:
    """Texts of a figure: title, axis labels and note."""

    title: str
    x_label: str
    y_label: str = ""
    note: str = ""


def draw_lines(
    series: Sequence[Mapping[str, Any]],
    text: FigureText,
    *,
    log_x: bool = False,
    log_y: bool = False,
    share_y: bool = False,
    references: Sequence[str] = (),
) -> str:
    """Return an SVG line chart with bands of ± one standard deviation, one panel per problem.

    A line is a mapping with ``panel``, ``label``, ``x``, ``mean`` and ``sd``.

    A missing mean leaves a gap; a series without ``sd`` has no band, one without ``panel`` stands in the only panel. Labels
    in `references` are drawn as dashed grey lines.
    """
    figure, axes = _make_figure_panels(series, text, row_height=2.8, share_y=share_y)
    labels = list(dict.fromkeys(row["label"] for row in series))
    colours = {label: f"C{i % 10}" for i, label in enumerate(label for label in labels if label not in references)}
    for row in series:
        ax, coloured = axes[row.get("panel", "")], row["label"] in colours
        mean = [math.nan if value is None else value for value in row["mean"]]
        style = {"color": colours[row["label"]], "marker": "."} if coloured else {"color": GREY, "linestyle": "--"}
        ax.plot(row["x"], mean, label=row["label"], linewidth=1.3, **style)
        spread = [math.nan if value is None else value for value in row.get("sd", ())]
        if coloured and not all(map(math.isnan, spread)):
            low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
            ax.fill_between(row["x"], low, high, color=style["color"], alpha=0.15, linewidth=0)
    for ax in axes.values():
        positive = [x for row in series for x in row["x"] if x is not None and x > 0]
        if log_x and positive:  # a zero is drawn left of the smallest positive value
            ax.set_xscale("symlog", linthresh=min(positive))
        if log_y:
            ax.set_yscale("log")
        ax.set_ylabel(text.y_label)
    handles = {handle.get_label(): handle for ax in axes.values() for handle in ax.lines}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return _write_svg(figure)


def draw_intervals(rows: Sequence[Mapping[str, Any]], text: FigureText) -> str:
    """Return an SVG chart of estimates with intervals, one row per label.

    A row is a mapping with ``panel``, ``label``, ``estimate``, ``low`` and ``high``.

    A full dot has an interval without zero, a hollow one an interval that contains it.
    """
    labels = list(dict.fromkeys(row["label"] for row in rows))
    figure, axes = _make_figure_panels(rows, text, row_height=0.24 * len(labels) + 0.8, share_y=True)
    for row in rows:
        if row["estimate"] is None:
            continue
        low, high = (row["estimate"] if end is None else end for end in (row["low"], row["high"]))
        ax, y = axes[row.get("panel", "")], labels.index(row["label"])
        ax.plot([low, high], [y, y], color="C0", linewidth=1.3)
        fill = "white" if low <= 0 <= high else "C0"
        ax.plot(row["estimate"], y, "o", color="C0", markersize=4, markerfacecolor=fill)
    for ax in axes.values():
        ax.axvline(0, color=GREY, linestyle="--", linewidth=1)
        ax.set_yticks(range(len(labels)), labels, fontsize=8)
        ax.set_ylim(len(labels) - 0.5, -0.5)
    return _write_svg(figure)


def _make_figure_panels(
    rows: Sequence[Mapping[str, Any]], text: FigureText, row_height: float, share_y: bool
) -> tuple[Any, dict[str, Any]]:
    """Return a titled Matplotlib figure and its axes by panel name."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row.get("panel", "") for row in rows))
    n_rows = -(-len(names) // MAX_PANELS_PER_ROW)
    figure = Figure(figsize=(WIDTH, row_height * n_rows + 1.2), layout="constrained")
    figure.suptitle("\n".join(filter(None, [text.title, text.note])), fontsize=9)
    grid = figure.subplots(n_rows, min(len(names), MAX_PANELS_PER_ROW), squeeze=False, sharey=share_y).ravel()
    for ax in grid[len(names) :]:
        ax.set_axis_off()
    axes = dict(zip(names, grid, strict=False))
    for name, ax in axes.items():
        ax.set_title(name, fontsize=9)
        ax.set_xlabel(text.x_label, fontsize=8)
        ax.grid(alpha=0.25)
    return figure, axes


def _write_svg(figure: Any) -> str:
    """Return a Matplotlib figure as reproducible SVG text."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "largesse", "svg.fonttype": "none"}):
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue().strip()
