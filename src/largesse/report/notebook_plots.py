"""Matplotlib plots of logs, plans and evaluations in notebooks (`.plot()`)."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.errors import import_optional_package
from largesse.io import atomic_file
from largesse.records import DisplayMixin, Estimate, Evaluation, Explanation, Frontier, Log, Plan, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_PLOTTED_FEATURES = 15
MAX_PLOTTED_CUSTOMERS = 6
BLUE, ORANGE, GREY = "#1d5c9e", "#b94a00", "#5f6b76"
PLOT_SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "largesse",  # the same record gives the same bytes
    "text.parse_math": False,  # a dollar is a dollar
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True)
class Drawing:
    """Plot as SVG that notebooks display and `save` writes to a file."""

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the plot to a file, atomically."""
        with atomic_file(path) as unfinished:
            unfinished.write_text(self.svg, encoding="utf-8")


def _register_drawer(kind: type) -> Callable[[Callable[[Axes, Any], None]], Callable[[Axes, Any], None]]:
    """Register a function that draws objects of one class into Matplotlib axes."""

    def register(draw: Callable[[Axes, Any], None]) -> Callable[[Axes, Any], None]:
        DisplayMixin.drawers[kind] = lambda record: _draw_record(draw, record)
        return draw

    return register


def _draw_record(draw: Callable[[Axes, Any], None], record: Any) -> Drawing:
    import_optional_package("matplotlib", "plots", "plot")
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(PLOT_SETTINGS):
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        draw(figure.add_subplot(), record)
        svg = io.StringIO()
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    return Drawing(svg.getvalue()[svg.getvalue().index("<svg") :])


def _label_axes(axes: Axes, title: str, across: str, up: str = "") -> None:
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(across)
    axes.set_ylabel(up)


def _draw_intervals(axes: Axes, names: Sequence[str], middle: Any, low: Any, high: Any) -> None:
    """Draw estimates with intervals, one row per estimate, the first on top."""
    middle, low, high = (np.array(numbers, dtype=float) for numbers in (middle, low, high))
    reach = np.nan_to_num(np.array([middle - low, high - middle]).clip(min=0.0))
    axes.errorbar(middle, range(len(names)), xerr=reach, fmt="o", color=BLUE, capsize=4)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)


def _draw_differences(axes: Axes, names: Sequence[str], differences: Sequence[Estimate]) -> None:
    """Draw differences with intervals, one row per difference, around a line at zero."""
    axes.axvline(0.0, color=GREY, linewidth=1)
    ends = ([getattr(difference, end) for difference in differences] for end in ("estimate", "low", "high"))
    _draw_intervals(axes, names, *ends)


@_register_drawer(Frontier)
def _draw_frontier(axes: Axes, front: Frontier) -> None:
    axes.plot(front.spend, front.value, color=BLUE)
    axes.grid(alpha=0.3)
    _label_axes(axes, "Promise of the model at every budget", "budget per customer", "expected value per customer")


@_register_drawer(Study)
def _draw_study(axes: Axes, study: Study) -> None:
    budgets = [point.budget for point in study.frontier]
    low, high = ([getattr(point.value, end) for point in study.frontier] for end in ("low", "high"))
    axes.fill_between(budgets, low, high, color=BLUE, alpha=0.2, linewidth=0, label="95 % interval")
    axes.plot(budgets, [point.value.estimate for point in study.frontier], color=BLUE, label="honest value")
    axes.plot(budgets, [point.promise for point in study.frontier], "--", color=ORANGE, label="promise of the model")
    mixes = study.cost_curve.mixes
    axes.plot([mix.spend for mix in mixes], [mix.value for mix in mixes], ":", color=GREY, label="best uniform mix")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    _label_axes(axes, "Value of policies at every budget", "budget per customer", "value per customer")


@_register_drawer(Evaluation)
def _draw_evaluation(axes: Axes, result: Evaluation) -> None:
    others = (*result.references, *result.uniform)
    if not others:
        low, high = result.value_interval
        _draw_intervals(axes, ["value"], [result.value], [low], [high])
        _label_axes(axes, "Value of the policy", "value per customer, 95 % interval")
        return
    _draw_differences(axes, [other.name for other in others], [other.difference for other in others])
    _label_axes(axes, "Gain of the policy over …", "value per customer, 95 % interval")


@_register_drawer(Plan)
def _draw_plan(axes: Axes, plan: Plan) -> None:
    numbers, counts = np.unique(plan.levels, return_counts=True)
    names = [f"level {k}" if plan.labels is None else plan.labels[k] for k in numbers]
    axes.barh(names, 100 * counts / len(plan), color=BLUE)
    axes.invert_yaxis()
    _label_axes(axes, f"Who gets what, {len(plan):,} customers", "per cent of customers")


@_register_drawer(Log)
def _draw_log(axes: Axes, log: Log) -> None:
    groups = [log.response[log.level == k] for k in range(len(log.levels))]
    means = np.array([group.mean() if len(group) else np.nan for group in groups])
    reach = np.array([1.96 * group.std(ddof=1) / len(group) ** 0.5 if len(group) > 1 else np.nan for group in groups])
    _draw_intervals(axes, log.levels.titles, means, means - reach, means + reach)
    _label_axes(
        axes, "Mean response by level, as logged", f"mean {log.response_name}, 95 % interval of independent rows"
    )


@_register_drawer(Explanation)
def _draw_explanation(axes: Axes, why: Explanation) -> None:
    if why.movers:
        movers = why.movers[:MAX_PLOTTED_FEATURES]
        _draw_differences(axes, [mover.feature for mover in movers], [mover.loss for mover in movers])
        _label_axes(axes, "Loss without each feature", "value − price × spend per customer, 95 % interval")
        return
    names = (
        np.arange(len(why)).tolist()
        if why.customer is None
        else why.customer.slice(0, MAX_PLOTTED_CUSTOMERS).to_pylist()
    )
    for row, name in enumerate(names[:MAX_PLOTTED_CUSTOMERS]):
        label = f"customer {name}: {why.labels[why.levels[row]]}"
        axes.plot(range(len(why.labels)), why.worth[row], marker="o", label=label)
    axes.set_xticks(range(len(why.labels)), list(why.labels))
    axes.legend(frameon=False)
    _label_axes(axes, "Worth of each level", "level", f"response − {why.price:.3g} × cost")
