"""Tables of odd types, names and values, all the way from `read_log` to `evaluate`."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from harness import FINE, Outcome
from odd_values import draw_name, draw_values, write_as

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Draw:
    """A table in some form, which column plays which role, and the levels."""

    source: Any
    roles: dict[str, Any]
    levels: Any


def attack(seed: int) -> Outcome:
    """Walk one odd table through the product."""
    rng = np.random.default_rng(seed)
    return walk(draw_log(rng), rng)


def draw_log(rng: Rng) -> Draw:
    """Draw a table: a sound log with some columns of odd values under odd names, some of them with a role."""
    from largesse.levels import Levels

    rows, K = (
        int(rng.choice([0, 1, 7, 30, 60, 90, 120], p=[0.02, 0.02, 0.06, 0.2, 0.3, 0.2, 0.2])),
        int(rng.integers(2, 5)),
    )
    columns: dict[str, Any] = {}
    for _ in range(draw_width(rng)):
        columns[draw_name(rng)] = draw_values(rng, rows) if rng.random() < 0.4 else rng.normal(size=rows)
    level, response = draw_name(rng), draw_name(rng)
    codes = np.arange(rows) % K
    columns[level] = codes if rng.random() < 0.9 else draw_values(rng, rows)
    plain = rng.integers(0, 2, rows) if rng.random() < 0.6 else np.round(rng.lognormal(0, 1, rows), 3)
    columns[response] = plain if rng.random() < 0.9 else draw_values(rng, rows)
    roles: dict[str, Any] = {"level": level, "response": response}
    for role in ("propensity", "logger", "cluster", "weight", "customer"):
        if rng.random() < 0.15:
            roles[role] = draw_name(rng)
            columns[roles[role]] = draw_role(rng, role, rows, K)
    if rng.random() < 0.1:
        roles["features"] = [str(rng.choice(np.array(list(columns), dtype=object)))]
    if rng.random() < 0.9:
        columns["plain"] = rng.normal(size=rows)
    costs = np.sort(rng.integers(0, 20, K)).astype(float) * (np.arange(K) > 0)
    levels = Levels(costs=costs, on_redemption=bool(rng.random() < 0.3), contact_cost=float(rng.choice([0, 0.5])))
    return Draw(write_as(rng, columns), roles, levels)


def draw_width(rng: Rng) -> int:
    """Most tables are narrow; a few have thousands of columns."""
    return int(rng.integers(500, 10_000)) if rng.random() < 0.01 else int(rng.integers(0, 7))


def draw_role(rng: Rng, role: str, rows: int, K: int) -> Any:
    """Draw a column for a role: usually one that makes sense."""
    if rng.random() < 0.5:
        return draw_values(rng, rows)
    sensible = {
        "propensity": np.full(rows, 1 / K),
        "weight": rng.choice([0.0, 1.0, 2.0, 1e300, 1e-300], rows, p=[0.1, 0.5, 0.3, 0.05, 0.05]),
        "customer": [f"c{i}" for i in range(rows)],
    }
    return sensible.get(role, rng.integers(0, 9, rows))


def walk(draw: Draw, rng: Rng) -> Outcome:
    """Read, fit, predict, allocate, save, load, decide, evaluate; whatever is not refused must be sound."""
    import largesse as lg
    from largesse.allocation import expected_costs

    log = lg.read_log(draw.source, levels=draw.levels, **draw.roles)
    model = lg.Linear().fit(log)
    curves = model.predict(log)
    if curves.shape != (len(log), len(log.levels)) or not np.isfinite(curves).all():
        return Outcome("wrong", f"curves of shape {curves.shape}, finite: {np.isfinite(curves).all()}")
    costs = expected_costs(log.levels, curves, log.costs)
    budget = float(rng.uniform(0, 25))
    plan = lg.allocate(curves, costs, budget)
    face = np.broadcast_to(costs, curves.shape)[np.arange(len(log)), plan.levels]
    spent = sum((Fraction(float(cost)) for cost in face), Fraction(0))
    if spent > Fraction(budget) * len(log) * (1 + Fraction(1, 10**14)):
        return Outcome("over budget", f"{float(spent)!r} of {budget * len(log)!r}")
    return check_policy(model, log, plan.price) or check_evaluation(log, model, budget) or FINE


def check_policy(model: Any, log: Any, price: float) -> Outcome | None:
    """A policy that was saved and loaded decides as before."""
    import largesse as lg

    policy = lg.Policy(model, log.levels, price)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.largesse"
        policy.save(path)
        if not np.array_equal(lg.Policy.load(path).decide(log), policy.decide(log)):
            return Outcome("wrong", "a loaded policy decides otherwise")
    return None


def check_evaluation(log: Any, model: Any, budget: float) -> Outcome | None:
    """An evaluation has finite numbers in order."""
    import largesse as lg

    found = lg.evaluate(log, model, budget=budget)
    for name in ("value", "spend"):
        estimate, (low, high) = getattr(found, name), getattr(found, f"{name}_interval")
        if not np.isfinite(estimate):
            return Outcome("wrong", f"the {name} is {estimate}")
        if np.isfinite(low) and not low <= estimate <= high:
            return Outcome("wrong", f"the {name} of {estimate} lies outside its interval from {low} to {high}")
    return None
