"""Slides of the report's summary and main figures as PNG pictures, drawn with Matplotlib."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from largesse.errors import import_optional_package
from largesse.report.charts.palette import LIGHT_LEVELS, choose_text_colour, spread_colours
from largesse.report.comparison_rows import view_value_and_spend
from largesse.report.notebook_plots import BLUE, GREY, ORANGE, PLOT_SETTINGS
from largesse.report.number_format import Numbers, Units, finite_or_none, write_percent
from largesse.report.page_rendering import clean_page_value
from largesse.report.sections.summary import view_summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SLIDE_SIZE, SLIDE_DPI = (13.333, 7.5), 120  # inches; 1,600 × 900 pixels
LEFT, RIGHT = 0.06, 0.94
TITLE_WIDTH, TEXT_WIDTH, CARD_WIDTH = 62, 108, 30  # characters in a line
SLIDE_SETTINGS = PLOT_SETTINGS | {"font.size": 15}
MIN_BAR_TEXT_SHARE = 0.06
INK, SOFT = "#14202b", "#4d5b68"
Draw = Callable[["Figure", Numbers, Units], None]


def draw_slides(numbers: Numbers) -> dict[str, bytes]:
    """Return the report's slides as PNG bytes by file name.

    A slide without anything to show is left out.
    """
    import_optional_package("matplotlib", "slides", "plot")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    numbers, slides = clean_page_value(numbers), {}
    units = Units.from_numbers(numbers)
    slots: tuple[tuple[str, bool, Draw], ...] = (
        ("1-answer.png", True, _draw_verdict_slide),
        ("2-before-and-after.png", True, _draw_before_and_after_slide),
        ("3-budgets.png", len(numbers["frontier"]["points"]) > 1, _draw_frontier_slide),
        ("4-levels.png", bool(numbers["uniform"]), _draw_level_means_slide),
    )
    with matplotlib.rc_context(SLIDE_SETTINGS):
        for name, is_there, draw in slots:
            if not is_there:
                continue
            figure, picture = Figure(figsize=SLIDE_SIZE, dpi=SLIDE_DPI, facecolor="white"), io.BytesIO()
            draw(figure, numbers, units)
            made = f" · {numbers['made']}" if numbers["made"] else ""
            figure.text(LEFT, 0.035, f"{numbers['title']}{made}", color=SOFT, fontsize=11)
            FigureCanvasAgg(figure)
            figure.savefig(picture, format="png", metadata={"Software": None})
            slides[name] = picture.getvalue()
    return slides


def _write_slide_title(figure: Figure, title: str, below: str = "") -> None:
    figure.text(LEFT, 0.93, _wrap_text(title, TITLE_WIDTH), fontsize=25, fontweight="bold", va="top", color=INK)
    lines = title.count("\n") + len(textwrap.wrap(title, TITLE_WIDTH))
    if below:
        figure.text(LEFT, 0.93 - 0.062 * lines, _wrap_text(below, TEXT_WIDTH), fontsize=14, va="top", color=SOFT)


def _wrap_text(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width))


def _draw_verdict_slide(figure: Figure, numbers: Numbers, units: Units) -> None:
    """Draw the slide with the verdict, the summary's numbers and the customer groups."""
    view, answer = view_summary(numbers, units), numbers["answer"]
    _write_slide_title(figure, answer["headline"], answer["verdict"])
    cards = view["cards"]
    width = (RIGHT - LEFT) / max(len(cards), 1)
    for k, card in enumerate(cards):
        x, letters = LEFT + k * width, round(CARD_WIDTH * 3 / max(len(cards), 3))
        figure.text(x, 0.60, _wrap_text(card.title, letters), fontsize=13, va="bottom", color=SOFT, fontweight="bold")
        figure.text(x, 0.585, card.number, fontsize=27, va="top", color=INK, fontweight="bold")
        below = "\n".join([_wrap_text(card.interval, letters), _wrap_text(card.sentence, letters)])
        figure.text(x, 0.50, below, fontsize=12.5, va="top", color=INK, linespacing=1.4)
    if view["groups"]:
        figure.text(LEFT, 0.27, "Who gets what", fontsize=15, fontweight="bold", color=INK)
        groups = "\n".join(f"•  {group}" for group in view["groups"])
        figure.text(LEFT, 0.25, groups, fontsize=14, va="top", color=INK, linespacing=1.5)


def _draw_before_and_after_slide(figure: Figure, numbers: Numbers, units: Units) -> None:
    """Draw the slide of customer shares by level, under the logged policy and under the plan."""
    view, levels = view_summary(numbers, units), numbers["money"]["levels"]
    _write_slide_title(figure, "Before and after", view["compared"])
    counts = [finite_or_none(row["rows"]) or 0.0 for row in numbers["support"]["overlap"]]
    bars: list[tuple[str, list[float]]] = [("This plan", [finite_or_none(row["share"]) or 0.0 for row in levels])]
    total = sum(counts)
    if len(counts) == len(levels) and total > 0:
        bars.append(("Before", [count / total for count in counts]))
    axes, colours = figure.add_axes((0.14, 0.47, 0.8, 0.27)), spread_colours(LIGHT_LEVELS, len(levels))
    for k, (level, colour) in enumerate(zip(levels, colours, strict=True)):
        for row, (_, shares) in enumerate(bars):
            axes.barh(row, shares[k], left=sum(shares[:k]), color=colour, label=level["name"] if row == 0 else None)
            if shares[k] >= MIN_BAR_TEXT_SHARE:
                middle, ink = sum(shares[:k]) + shares[k] / 2, choose_text_colour(colour)
                axes.text(middle, row, write_percent(shares[k]), ha="center", va="center", color=ink, fontsize=14)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars])
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.02), ncol=min(len(levels), 6), frameon=False, fontsize=12)
    lines = [f"{row['name']}:  {row['before']}  →  {row['after']}     {row['change']}" for row in view["before"]]
    figure.text(LEFT, 0.25, "\n".join(lines), fontsize=17, va="top", color=INK, linespacing=1.7)


def _draw_frontier_slide(figure: Figure, numbers: Numbers, units: Units) -> None:
    """Draw the slide of estimated value by budget, with its interval and the plan."""
    _write_slide_title(figure, "What another budget would bring")
    points = [
        point
        for point in numbers["frontier"]["points"]
        if all(finite_or_none(point["value"][end]) is not None for end in ("low", "estimate", "high"))
    ]
    axes = _add_axes(figure)
    budgets, scale = [point["budget"] for point in points], _choose_axis_factor(units)
    ends = [
        [scale * _clip_to_bounds(units, point["value"][end]) for point in points] for end in ("low", "high", "estimate")
    ]
    axes.fill_between(budgets, ends[0], ends[1], color=BLUE, alpha=0.18, linewidth=0, label="95 % interval")
    axes.plot(budgets, ends[2], color=BLUE, linewidth=2.5, label="honest value")
    budget, value = finite_or_none(numbers["budget"]["average"]), finite_or_none(numbers["value"]["estimate"])
    if budget is not None and value is not None:
        axes.plot([budget], [scale * value], "o", color=ORANGE, markersize=13, label="this plan")
    axes.legend(frameon=False, loc="lower right")
    axes.set_xlabel(units.title_axis("budget per customer"))
    axes.set_ylabel(_name_response_axis(units))


def _draw_level_means_slide(figure: Figure, numbers: Numbers, units: Units) -> None:
    """Draw the slide of mean response by level for everyone, and of the plan."""
    _write_slide_title(figure, "What each level would bring, if everyone got it")
    rows = [*numbers["uniform"], {**numbers, "name": "this plan"}]
    axes, scale = _add_axes(figure), _choose_axis_factor(units)
    for k, row in enumerate(rows):
        low, middle, high = (finite_or_none(row["value"].get(end)) for end in ("low", "estimate", "high"))
        colour = ORANGE if row is rows[-1] else BLUE
        if low is not None and high is not None:
            axes.plot(
                [scale * _clip_to_bounds(units, low), scale * _clip_to_bounds(units, high)],
                [k, k],
                color=colour,
                linewidth=3,
            )
        if middle is not None:
            axes.plot([scale * _clip_to_bounds(units, middle)], [k], "o", color=colour, markersize=11)
            axes.text(
                scale * _clip_to_bounds(units, middle),
                k - 0.22,
                view_value_and_spend(row, units)["value"],
                ha="center",
                fontsize=13,
            )
    axes.set_yticks(range(len(rows)), [textwrap.shorten(row["name"], 34, placeholder=" …") for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(f"{_name_response_axis(units)}, 95 % interval")


def _add_axes(figure: Figure) -> Axes:
    axes = figure.add_axes((0.2, 0.17, 0.74, 0.65))
    axes.tick_params(colors=GREY, labelcolor=INK)
    axes.grid(axis="y", alpha=0.3)
    return axes


def _choose_axis_factor(units: Units) -> float:
    return 100.0 if units.has_binary_response else 1.0


def _clip_to_bounds(units: Units, value: Any) -> float:
    """Return a number clipped to the possible range of responses."""
    low, high = units.response_bounds or (-float("inf"), float("inf"))
    return min(max(float(value), low), high)


def _name_response_axis(units: Units) -> str:
    if units.has_binary_response:
        return "customers who respond (%)"
    return f"mean response ({units.response_unit})" if units.response_unit else "mean response"
