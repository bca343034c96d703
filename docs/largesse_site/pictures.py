"""The figures of `docs/method.md`, drawn with the report's own charts; the same numbers give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import largesse as lg
from largesse.report import Caption, Look, draw_lines

FOLDER = Path(__file__).resolve().parents[1] / "pictures"
COSTS = [0.0, 5.0, 10.0, 20.0]
# Four customers: one who buys anyway, one who needs a nudge, one who needs a lot, one who rarely buys.
CURVES = np.array(
    [[0.72, 0.74, 0.75, 0.76], [0.20, 0.52, 0.58, 0.60], [0.10, 0.14, 0.22, 0.62], [0.03, 0.04, 0.06, 0.07]]
)
NAMES = ("Ann buys anyway", "Ben needs a nudge", "Cem needs a lot", "Dot rarely buys")


def draw_all() -> dict[str, str]:
    """Return every figure by its file name."""
    return {
        "curves.svg": draw_curves(),
        "hull.svg": draw_hull(),
        "frontier.svg": draw_best_values(),
        "promise.svg": draw_promise(),
    }


def draw_pictures(folder: Path = FOLDER) -> None:
    """Write every figure, if it has changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in draw_all().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != svg:
            path.write_text(svg, encoding="utf-8")


def _line(label: str, x: Any, mean: Any, sd: Any = None) -> dict[str, Any]:
    values = [float(value) for value in mean]
    return {
        "panel": "",
        "label": label,
        "x": [float(value) for value in x],
        "mean": values,
        "sd": sd or [None] * len(values),
    }


def draw_curves() -> str:
    """Return the response curves of four customers."""
    lines = [_line(name, COSTS, curve) for name, curve in zip(NAMES, CURVES, strict=True)]
    return draw_lines(lines, Caption("Four customers, four coupons", "coupon, €", "probability of buying"))


def draw_hull() -> str:
    """Return one customer's curve and its upper hull."""
    hull = lg.frontier(CURVES[2:3], COSTS)
    lines = [_line("Cem's response", COSTS, CURVES[2]), _line("upper hull", hull.spend, hull.value)]
    note = "5 € and 10 € lie below the line from 0 to 20 €: money spent on them is worth less."
    return draw_lines(lines, Caption("Which levels are worth buying", "cost, €", "probability of buying", note))


def draw_best_values() -> str:
    """Return the frontier of the four customers and of giving everyone the same mix."""
    best, same = lg.frontier(CURVES, COSTS), lg.frontier(CURVES.mean(axis=0, keepdims=True), COSTS)
    lines = [
        _line("the best plan", best.spend, best.value),
        _line("the same mix for everyone", same.spend, same.value),
    ]
    caption = Caption("What each budget can bring", "budget, € per customer", "mean probability of buying")
    return draw_lines(lines, caption, Look(references=("the same mix for everyone",)))


def draw_promise() -> str:
    """Return promise, honest value and truth of plans that a flexible model made of few rows."""
    world = lg.simulate("averaged", n=600, seed=4)
    budgets = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    promise, honest, error, truth = [], [], [], []
    model = lg.TLearner(model=lg.Linear())
    curves = model.fit(world.log).predict(world.log)
    for budget in budgets:
        plan = lg.allocate(curves, world.costs, budget)
        found = lg.evaluate(world.log, model, budget=budget)
        promise.append(plan.value)
        honest.append(found.value)
        error.append(found.value_se)
        truth.append(world.value(plan.levels))
    lines = [
        _line("promise", budgets, promise),
        _line("honest value ± standard error", budgets, honest, [float(one) for one in error]),
        _line("truth", budgets, truth),
    ]
    caption = Caption(
        "A plan's promise is not evidence", "budget", "mean response", "600 simulated rows, one model per level."
    )
    return draw_lines(lines, caption, Look(references=("truth",)))
