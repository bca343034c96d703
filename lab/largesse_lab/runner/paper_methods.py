"""Methods of the paper's tables, with our models and simple baselines for comparison.

Methods come in groups by the libraries they need: "networks" need JAX alone, "trees" scikit-learn and stochtree, and "simple"
methods neither a GPU nor much time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from largesse.records import Array, Log
from largesse.response import IRE, SIRE, Additive, Balance, Boosting, Linear, Stack, make_monotone
from largesse_lab.baselines import ALPHAS, BART, GANITE, STRENGTHS, BanditNet, CFRNet
from largesse_lab.runner.experiment_request import match_names
from largesse_lab.runner.method_measurement import Method, RepeatData, measure_repeat_curves
from largesse_lab.runner.truth_measures import (
    NARROW,
    PAPER,
    measure_best_level_mix,
    measure_effect_error,
    measure_level_means,
)

# On one log of each of four simulations, at κ = 0 and 30, held-out loss was least after six to ten passes: 100 are enough.
LITERAL: dict[str, Any] = {**PAPER, "training__epochs": 100, "training__patience": 30}
PAPER_BALANCE = Balance(normalise=False)  # the paper's penalty; that of our own networks is normalised
METHOD_GROUPS = ("networks", "trees", "simple")
METHOD_NOTES = (
    "CCPOvSIRE and CCPOvIRE follow the paper as far as it describes them. κ is chosen from 0, 1, 10, 100 and 1,000 by held-out "
    "loss in each repeat; training stops 30 passes after the least held-out loss, at the latest after 100 passes. "
    "† marks the same model without the HSIC penalty (κ = 0); “normalised” the same model with the penalty of our own networks: "
    "the representation is brought to unit mean square before HSIC is taken, and κ is chosen from 0, 3, 30 and 100.",
    "CFRNet trains one network for each pair of the lowest level and another; “CFRNet, shared” is one network with a head for "
    "each level. CFRNet and GANITE have their published settings. The paper's grids are searched on the first ten repeats, "
    "separately for each problem, and the values of least mean held-out loss are used in all repeats. Runs of fewer than ten "
    "repeats use the values of an earlier search, or the published ones.",
    "BanditNet is trained once for each λ, with the given propensities; its price η is found on its scores, and λ is chosen by "
    "SNIPS on held-out rows.",
    "Skill is 0 for the best uniform mix of levels and 1 for the best plan made from the truth. It is not shown where these two "
    "are less than 0.001 apart.",
    "The oracle row is a plan made from the truth that gives every customer one whole level; the plan of skill 1 may split one "
    "customer between two levels.",
    "The random row draws levels in the most even proportions that spend the budget; its numbers are expectations.",
)

# The paper's networks without a GPU; BART without a GPU in a run of few repeats
CPU_NETWORK: dict[str, Any] = {"training__epochs": 40, "training__patience": 10, "network__width": 256}
FEW_TREES: dict[str, Any] = {"trees": 50, "draws": 40, "warm": 0, "burn": 50}
CPU_NOTE = (
    "Rows that were made without a GPU have smaller networks: the paper's are 256 wide and stop after ten passes without gain, "
    "CFRNet is 64 wide, GANITE takes 2,000 steps, BanditNet tries four λ and, with fewer than ten repeats, BART has 50 trees."
)


def _pair_settings_by_problem(
    levels: Mapping[str, float], binary: Mapping[str, float]
) -> dict[str, Mapping[str, float]]:
    return {"levels": levels, "binary": binary}


# The best settings of the paper's grids on ten repeats of each simulation and data set, for runs of fewer repeats.
EARLIER_ALPHA: dict[str, Mapping[str, Mapping[str, float]]] = {
    "images": {"levels": {"alpha": 0.0001}},
    "text": {"levels": {"alpha": 0.01}},
    "literal": _pair_settings_by_problem({"alpha": 10.0}, {"alpha": 0.1}),
    "averaged": _pair_settings_by_problem({"alpha": 0.01}, {"alpha": 0.01}),
    "unit": _pair_settings_by_problem({"alpha": 1.0}, {"alpha": 1.0}),
    "instrument": _pair_settings_by_problem({"alpha": 0.001}, {"alpha": 0.01}),
    "confounded": _pair_settings_by_problem({"alpha": 0.1}, {"alpha": 0.001}),
}
EARLIER_STRENGTHS: dict[str, Mapping[str, Mapping[str, float]]] = {
    "images": {"levels": {"alpha": 0.0, "beta": 0.0}},
    "text": {"levels": {"alpha": 2.0, "beta": 2.0}},
    "literal": _pair_settings_by_problem({"alpha": 10.0, "beta": 0.0}, {"alpha": 5.0, "beta": 0.0}),
    "averaged": _pair_settings_by_problem({"alpha": 0.0, "beta": 0.0}, {"alpha": 0.0, "beta": 0.0}),
    "unit": _pair_settings_by_problem({"alpha": 10.0, "beta": 0.0}, {"alpha": 0.1, "beta": 10.0}),
    "instrument": _pair_settings_by_problem({"alpha": 5.0, "beta": 0.0}, {"alpha": 0.0, "beta": 0.0}),
    "confounded": _pair_settings_by_problem({"alpha": 2.0, "beta": 0.0}, {"alpha": 5.0, "beta": 0.0}),
}


def make_methods(literal: Mapping[str, Any]) -> dict[str, Method]:
    """Return all methods by name.

    `literal` holds the settings of the paper's networks on a GPU.
    """
    balance: dict[str, Any] = {"grid": (("alpha", ALPHAS),), "earlier": EARLIER_ALPHA, "small": NARROW}
    strengths = (("alpha", STRENGTHS), ("beta", STRENGTHS))
    four = {"translations": (0.0, 0.25, 0.5, 0.75)}
    return {
        "CCPOvSIRE": Method(
            lambda: SIRE(head="minmax", balance=PAPER_BALANCE).set_params(**literal), small=CPU_NETWORK
        ),
        "CCPOvSIRE†": Method(lambda: SIRE(head="minmax", kappa=0.0).set_params(**literal), small=CPU_NETWORK),
        "CCPOvIRE": Method(lambda: IRE(balance=PAPER_BALANCE).set_params(**literal), small=CPU_NETWORK),
        "CCPOvIRE†": Method(lambda: IRE(kappa=0.0).set_params(**literal), small=CPU_NETWORK),
        "GANITE": Method(GANITE, grid=strengths, earlier=EARLIER_STRENGTHS, small={"training__steps": 2000}),
        "BART": Method(BART, group="trees", few=FEW_TREES),
        "CFRNet": Method(CFRNet, **balance),
        "BanditNet": Method(lambda budget: BanditNet(budget=budget), policy=True, small=four),
        "CCPOvSIRE, normalised": Method(lambda: SIRE(head="minmax").set_params(**literal), small=CPU_NETWORK),
        "CCPOvIRE, normalised": Method(lambda: IRE().set_params(**literal), small=CPU_NETWORK),
        "CFRNet, shared": Method(lambda: CFRNet(way="shared"), **balance),
        "SIRE": Method(SIRE),
        "Stack": Method(Stack, group="trees"),
        "per-level mean": Method(simple=_measure_level_mean_curves, group="simple"),
        "per-level mean + PAVA": Method(simple=_measure_monotone_mean_curves, group="simple"),
        "logistic": Method(Linear, group="simple"),
        "boosting": Method(Boosting, group="trees"),
        "additive": Method(Additive, group="simple"),
        "uniform level": Method(simple=lambda data: measure_best_level_mix(data.fresh, data.budgets), group="simple"),
        "random": Method(simple=_measure_random_levels, group="simple"),
        "oracle": Method(simple=_measure_oracle, group="simple"),
    }


def match_methods(methods: Mapping[str, Method], names: Sequence[str]) -> list[str]:
    """Return methods in their known spelling; the name of a group selects all its methods.

    >>> match_methods({"a": Method(group="trees"), "b, too": Method(group="simple"), "c": Method(group="trees")}, ["B too", "trees"])
    ['b, too', 'a', 'c']
    """
    groups = {group: [name for name, method in methods.items() if method.group == group] for group in METHOD_GROUPS}
    return match_names([method for name in names for method in groups.get(name, [name])], methods)


# -- methods without a model --------------------------------------------------------------------------------------------


def _measure_constant_curves(data: RepeatData, means: Callable[[Log], Array]) -> dict[str, Any]:
    """Return the measures of curves that are the same for all customers."""

    def repeat_means(log: Log) -> Array:
        return np.tile(means(log), (len(data.fresh), 1))

    record = measure_repeat_curves(repeat_means(data.log), data)
    if data.binary is not None:
        record["√pehe"] = measure_effect_error(repeat_means(data.binary), data.fresh.truth)
    return record


def _measure_level_mean_curves(data: RepeatData) -> dict[str, Any]:
    return _measure_constant_curves(data, measure_level_means)


def _measure_monotone_mean_curves(data: RepeatData) -> dict[str, Any]:
    return _measure_constant_curves(data, lambda log: make_monotone(measure_level_means(log)[None])[0])


def _measure_oracle(data: RepeatData) -> dict[str, Any]:
    return measure_repeat_curves(data.fresh.truth, data) | ({} if data.binary is None else {"√pehe": 0.0})


def _measure_random_levels(data: RepeatData) -> dict[str, Any]:
    """Return the measures of random levels that spend the budget with maximal entropy."""
    fresh = data.fresh
    record: dict[str, Any] = {}
    for budget in data.budgets:
        value = float(find_max_entropy_proportions(fresh.costs, budget) @ fresh.truth.mean(axis=0))
        record |= {f"value {budget:g}": value, f"skill {budget:g}": fresh.skill_of(value, budget)}
    return record


def find_max_entropy_proportions(costs: Array, budget: float) -> Array:
    """Return the proportions (K,) of levels with maximal entropy whose mean cost is the budget.

    >>> find_max_entropy_proportions(np.array([0.0, 1.0, 2.0]), 1.0).round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    low, high = -50.0, 50.0
    for _ in range(100):
        tilt = (low + high) / 2
        odds = np.exp(tilt * costs - (tilt * costs).max())
        shares: Array = odds / odds.sum()
        low, high = (tilt, high) if shares @ costs < budget else (low, tilt)
    return shares
