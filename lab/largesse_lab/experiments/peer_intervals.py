"""Coverage of 95 % intervals of a policy's value by largesse, obp and skdr-eval, on random simulated worlds.

Every log has 1,000 rows with known propensities, and a policy that was learnt on another log of its world. All packages get the
same out-of-fold predictions of a linear model. obp and skdr-eval compute their intervals themselves; a missing package has
no column.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from largesse.allocation import allocate, decide_at_price
from largesse.errors import MissingPackageError, import_optional_package
from largesse.evaluation import crossfit_scores, estimate_policy_value_and_spend
from largesse.records import Array, Progress, Scores
from largesse.response import Linear
from largesse.stats import limit_to_one_thread
from largesse.worlds import RandomLog, draw_world
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.pages.markdown import NUMBER_DASH, format_number, format_share, format_table
from largesse_lab.pages.method_comparison import list_distinct_values
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.record_cache import RecordCache

INTERVAL_ROWS, INTERVAL_FRESH_ROWS, FIRST_SEED, N_WORLDS = 1000, 50_000, 1000, 60
OBP_HINT = "pip install --no-deps --ignore-requires-python obp==0.5.7, with PyTorch"
OBP_KINDS = {
    "ips": "InverseProbabilityWeighting",
    "snips": "SelfNormalizedInverseProbabilityWeighting",
    "dr": "DoublyRobust",
    "sndr": "SelfNormalizedDoublyRobust",
}
Interval = tuple[float, float]


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per simulated world, package and estimator: the true value and the interval's ends."""
    keys = [(seed,) for seed in select_requested_seeds(request, FIRST_SEED, N_WORLDS)]
    return RecordCache(request.out, ("world",)).measure_each(keys, _measure_world, progress)


def _measure_world(seed: int) -> dict[str, Any]:
    world = draw_world(seed)
    drawn, other = world.draw_log(INTERVAL_ROWS), world.draw_fresh(INTERVAL_ROWS, 2)
    fresh = world.draw_fresh(INTERVAL_FRESH_ROWS)
    with limit_to_one_thread():
        model = Linear(seed=seed).fit(other.log)
        curves = model.predict(fresh.table)
        price = allocate(curves, fresh.costs, world.budgets[0]).price
        truth = float(fresh.truth[np.arange(len(curves)), decide_at_price(curves, fresh.costs, price)].mean())
        policy = decide_at_price(model.predict(drawn.table), drawn.costs, price)
        scores = crossfit_scores(replace(drawn, known=True).log, Linear(seed=seed), seed=seed)
    record: dict[str, Any] = {"world": seed, "truth": truth, "spread": float(drawn.response.std()), "failed": {}}
    for package, find in INTERVAL_PACKAGES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                record[package] = find(scores, drawn, policy, seed)
        except MissingPackageError as error:
            record["failed"][package] = str(error)
    return record


def _find_own(scores: Scores, _drawn: RandomLog, policy: Array, _seed: int) -> dict[str, Interval]:
    estimates = {name: estimate_policy_value_and_spend(scores, policy, name)[0] for name in OBP_KINDS}
    return {name: (estimate.low, estimate.high) for name, estimate in estimates.items()}


def _compute_obp_intervals(scores: Scores, _drawn: RandomLog, policy: Array, seed: int) -> dict[str, Interval]:
    """Return obp's bootstrap interval of a policy's value for each estimator, from 1,000 resamples.

    obp's own default is 10,000 resamples.
    """
    package = import_optional_package("obp.ope.estimators", "", "obp", hint=OBP_HINT)
    inputs = {
        "reward": scores.response,
        "action": scores.level,
        "pscore": scores.propensity,
        "action_dist": np.eye(scores.curves.shape[1])[policy][:, :, None],
        "position": np.zeros(len(policy), dtype=int),
    }
    intervals = {}
    for name, kind in OBP_KINDS.items():
        curves = {"estimated_rewards_by_reg_model": scores.curves[:, :, None]} if "dr" in name else {}
        found = getattr(package, kind)().estimate_interval(
            **inputs, **curves, alpha=0.05, n_bootstrap_samples=1000, random_state=seed
        )
        ends = sorted((key, value) for key, value in found.items() if "lower" in key or "upper" in key)
        intervals[name] = (float(ends[0][1]), float(ends[1][1]))
    return intervals


def _compute_skdr_intervals(scores: Scores, drawn: RandomLog, policy: Array, seed: int) -> dict[str, Interval]:
    """Return skdr-eval's intervals of a policy's value: block bootstrap, and normal with clipped weights.

    As in its pipeline, one prediction per row serves all actions: the mean under the logging policy.
    """
    package = import_optional_package("skdr_eval", "", "skdr-eval", hint="pip install skdr-eval==0.12.0")
    mean = (drawn.propensities * scores.curves).sum(axis=1)
    actions = np.eye(scores.curves.shape[1])[policy]
    everywhere = np.ones_like(actions)
    results = package.dr_value_with_clip(drawn.propensities, actions, scores.response, mean, scores.level, everywhere)
    chosen = results["DR"]
    rows = np.arange(len(policy))
    ratio = (policy == scores.level) / scores.propensity
    terms = scores.curves[rows, policy] + ratio * (scores.response - scores.curves[rows, scores.level])
    low, high = package.block_bootstrap_ci(terms, None, np.array([terms.mean()]), random_state=seed)
    width = 1.96 * chosen.SE_if
    return {"dr": (float(low), float(high)), "dr, clipped": (float(chosen.V_hat - width), float(chosen.V_hat + width))}


INTERVAL_PACKAGES: dict[str, Callable[[Scores, RandomLog, Array, int], dict[str, Interval]]] = {
    "largesse": _find_own,
    "obp": _compute_obp_intervals,
    "skdr-eval": _compute_skdr_intervals,
}


def tabulate(records: Records) -> str:
    """Return coverage and width of the intervals of each package and estimator."""
    body = []
    for name in [*OBP_KINDS, "dr, clipped"]:
        for package in INTERVAL_PACKAGES:
            cells = [(record, record[package][name]) for record in records if name in record.get(package, {})]
            if not cells:
                continue
            covered = [low <= record["truth"] <= high for record, (low, high) in cells]
            above = [record["truth"] > high for record, (_, high) in cells]
            width = np.median([(high - low) / record["spread"] for record, (low, high) in cells])
            share = format_share(float(np.mean(covered)), len(cells))
            body.append(
                [name, package, share, f"{np.mean(above):.0%}", format_number(float(width), 3), str(len(cells))]
            )
    missing = list_distinct_values(
        [{"package": package} for record in records for package in record["failed"]], "package"
    )
    parts = [
        format_table(["estimator", "package", "covered", "truth above", "median width", "worlds"], body, text_columns=2)
    ]
    if missing:
        parts.append(f"Not installed: {', '.join(missing)}.")
    return "\n\n".join(parts) if records else NUMBER_DASH


INTERVAL_PEERS_SETUP = (
    "95 % intervals of a policy's value on logs of 1,000 rows of random worlds with known propensities, from the same out-of-fold "
    "predictions. obp and skdr-eval compute theirs themselves. Widths are shares of the standard deviation of responses."
)
INTERVAL_PEERS_EXPERIMENT = table_experiment(
    "peer_intervals",
    "Intervals next to obp and skdr-eval",
    measure,
    tabulate,
    setup=INTERVAL_PEERS_SETUP,
    random_worlds=True,
)
