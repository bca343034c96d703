"""Measures of response curves, plans and policies against a known truth.

RMSE is taken over fresh customers and all levels, against the true mean response. Skill at a budget is
(V − V_uniform) / (V_oracle − V_uniform): 0 for the best uniform mix of levels, 1 for a plan made from the truth. √PEHE
belongs to the binary problem, a separate log with the first two levels alone: it is the root mean squared error of the effect
of level 1 over level 0. A policy network predicts no curves; one is trained for each budget, and its spend is recorded with
its skill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.data import log_from_arrays
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.worlds import Simulation
from largesse_lab.nested_label_logs import NestedLog

LOG_ROWS, FRESH_ROWS, FRESH_SEED = 2000, 10_000, 99
BINARY_ROWS = 1000
BINARY_STREAM = (7,)  # a random stream of the world that nothing else uses
PAPER_BUDGETS = (1.5, 3.0)
# CFRNet at a third of its published size, for a few CPU cores
NARROW: dict[str, Any] = {"network__width": 64, "network__head_width": 32}
PAPER: dict[str, Any] = {  # as far as the paper describes it: 3 × 512, plain gradient descent, one hold-out
    "network__width": 512,
    "network__activation": "elu",
    "training__batch": 32,
    "network__skip": False,
    "training__optimiser": "sgd",
    "training__rate": 0.01,
    "training__schedule": "constant",
    "training__decay": 0.0,
    "training__epochs": 400,
    "training__patience": 60,
    "folds": 1,
    "members": 1,
    "training__start": "zero",
}
CHOSEN_SETTINGS = ("kappa", "penalty", "alpha", "beta")
Fresh = Simulation | NestedLog  # fresh customers whose truth is known


def compute_root_mean_square(error: Array) -> float:
    """Return the root mean square of errors."""
    return float(np.sqrt(np.mean(error**2)))


def select_two_level_log(log: Simulation) -> Log:
    """Return a log of the simulated customers, with levels 0 and 1 drawn in the ratio of their propensities."""
    rng = log.world.rng(*BINARY_STREAM)
    n = min(BINARY_ROWS, len(log))
    odds = log.propensities[:n, :2] / log.propensities[:n, :2].sum(axis=1, keepdims=True)
    level = (rng.random(n) < odds[:, 1]).astype(np.int64)
    rows = np.arange(n)
    response = (rng.random(n) < log.truth[rows, level]).astype(np.float64)
    levels = Levels(costs=log.costs[:2])
    return log_from_arrays(log.features[:n], level, response, levels=levels, propensity=odds[rows, level])


def measure_level_means(log: Log) -> Array:
    """Return the mean logged response (K,) at each level."""
    K = len(log.levels)
    return np.bincount(log.level, log.response, K) / np.maximum(np.bincount(log.level, minlength=K), 1)


def judge_curves(curves: Array, fresh: Fresh, budgets: Sequence[float] = PAPER_BUDGETS) -> dict[str, Any]:
    """Return the errors of curves (n, K) for new simulated customers, and the value and skill of their plans."""
    record: dict[str, Any] = {
        "rmse": compute_root_mean_square(curves - fresh.truth),
        "increments": compute_root_mean_square(np.diff(curves, axis=1) - np.diff(fresh.truth, axis=1)),
    }
    for budget in budgets:
        levels = allocate(curves, fresh.costs, budget).levels
        record |= {f"value {budget:g}": fresh.value(levels), f"skill {budget:g}": fresh.skill(levels, budget)}
    return record


def measure_effect_error(curves: Array, truth: Array) -> float:
    """Return √PEHE of curves: the root mean squared error of the effect of level 1 over level 0."""
    return compute_root_mean_square((curves[:, 1] - curves[:, 0]) - (truth[:, 1] - truth[:, 0]))


def judge_policies(policies: Mapping[float, Any], fresh: Fresh) -> dict[str, Any]:
    """Return the value, skill and spend of policies for new simulated customers, one policy per budget."""
    record: dict[str, Any] = {}
    for budget, policy in policies.items():
        levels, probabilities = policy.decide(fresh.features), policy.probabilities(fresh.features)
        record[f"value {budget:g}"] = fresh.value(levels)
        record[f"skill {budget:g}"] = fresh.skill(levels, budget)
        record[f"spend {budget:g}"] = float(fresh.costs[levels].mean())
        record[f"expected spend {budget:g}"] = float((probabilities @ fresh.costs).mean())
        record[f"expected value {budget:g}"] = float((probabilities * fresh.truth).sum(axis=1).mean())
    return record


def measure_best_level_mix(fresh: Fresh, budgets: Sequence[float] = PAPER_BUDGETS) -> dict[str, Any]:
    """Return value and skill of the best mix of levels for all customers, on new simulated customers."""
    values = {f"value {budget:g}": fresh.uniform_value(budget) for budget in budgets}
    return values | {f"skill {budget:g}": 0.0 for budget in budgets}


def read_chosen_settings(model: Any) -> dict[str, str]:
    """Return the settings that a fitted model chose by itself."""
    return {name: str(getattr(model, f"{name}_")) for name in CHOSEN_SETTINGS if hasattr(model, f"{name}_")}
