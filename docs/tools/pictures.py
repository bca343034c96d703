"""Draw the figures of `docs/method.md`: `python docs/tools/pictures.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import largesse as lg

FOLDER = Path(__file__).resolve().parents[1] / "pictures"
COSTS = [0.0, 5.0, 10.0, 20.0]
CURVES = np.array(
    [[0.72, 0.74, 0.75, 0.76], [0.20, 0.52, 0.58, 0.60], [0.10, 0.14, 0.22, 0.62], [0.03, 0.04, 0.06, 0.07]]
)
NAMES = ("Ann buys anyway", "Ben needs a nudge", "Cem needs a lot", "Dot rarely buys")


def draw_curves(axes: Any) -> None:
    """Draw the response curves of four customers."""
    for name, curve in zip(NAMES, CURVES, strict=True):
        axes.plot(COSTS, curve, marker="o", label=name)
    axes.set(title="Four customers, four coupons", xlabel="coupon, €", ylabel="probability of buying")


def draw_hull(axes: Any) -> None:
    """Draw one customer's curve and its upper hull."""
    hull = lg.frontier(CURVES[2:3], COSTS)
    axes.plot(COSTS, CURVES[2], marker="o", label="Cem's response")
    axes.plot(hull.spend, hull.value, linestyle="--", label="upper hull")
    axes.set(title="Which levels are worth buying", xlabel="cost, €", ylabel="probability of buying")


def draw_frontier(axes: Any) -> None:
    """Draw the frontier of the four customers and that of the same mix for everyone."""
    best, same = lg.frontier(CURVES, COSTS), lg.frontier(CURVES.mean(axis=0, keepdims=True), COSTS)
    axes.plot(best.spend, best.value, marker="o", label="the best plan")
    axes.plot(same.spend, same.value, linestyle="--", marker="o", label="the same mix for everyone")
    axes.set(title="The frontier", xlabel="budget, € per customer", ylabel="mean probability of buying")


def draw_prediction(axes: Any) -> None:
    """Draw predicted, estimated and true value of plans that a flexible model made from few rows."""
    world = lg.simulate("averaged", n=600, seed=4)
    budgets = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    model = lg.Boosting()
    curves = model.fit(world.log).predict(world.log)
    plans = [lg.allocate(curves, world.costs, budget) for budget in budgets]
    estimates = [lg.evaluate(world.log, model, budget=budget) for budget in budgets]
    axes.plot(budgets, [plan.value for plan in plans], marker="o", label="predicted by the model")
    value, error = [estimate.value for estimate in estimates], [estimate.value_se for estimate in estimates]
    axes.errorbar(budgets, value, yerr=error, marker="o", capsize=3, label="estimated from the log, ± standard error")
    axes.plot(budgets, [world.value(plan.levels) for plan in plans], linestyle="--", marker="o", label="truth")
    axes.set(title="A model's prediction is not evidence (600 simulated rows)", xlabel="budget", ylabel="mean response")


FIGURES = {
    "curves.svg": draw_curves,
    "hull.svg": draw_hull,
    "frontier.svg": draw_frontier,
    "promise.svg": draw_prediction,
}


def draw_pictures(folder: Path) -> None:
    """Write every figure; the same version of Matplotlib writes the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    style = {
        "svg.hashsalt": "largesse",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "axes.grid": True,
        "grid.alpha": 0.3,
    }
    with mpl.rc_context(style):
        for name, draw in FIGURES.items():
            figure = Figure(figsize=(8, 3.6), layout="constrained")
            axes = figure.subplots()
            draw(axes)
            figure.legend(loc="outside right center", frameon=False)
            figure.savefig(folder / name, metadata={"Date": None})


if __name__ == "__main__":
    draw_pictures(FOLDER)
