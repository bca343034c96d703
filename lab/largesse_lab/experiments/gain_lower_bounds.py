"""Coverage of lower bounds of the gain, after a choice between the plan and a simple rule.

Each log is drawn from a world of its own (`worlds.draw_world`) and judged as a user would, with a linear model: the plan at a
budget, a simple rule for the same money, and the lower bound of either's gain over the best uniform mix (`make_study(…).safety`).
The truth is that of fresh customers of the same world: their mean true response to each fold's model, price or rule, averaged over
folds. A bound is right if the true gain of the recommended option lies above it; "named" compares with the mix that the evaluation
names, "best" with the truly best mix at the true spend. Propensities are the log's own or estimated; "as drawn" uses those of the
world's log. `guaranteed` is the share of guaranteed values below the true ones, `levels` the share of intervals of a level's mean
response that contain the true one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import convert_to_floats, find_feature_kind, group_column_values
from largesse.errors import Problem, fail
from largesse.evaluation import (
    RULE_GROUPS,
    OneColumnRule,
    bound_policy_gains,
    compute_scores,
    crossfit_scores,
    estimate_each_level,
    find_best_mixes,
    learn_one_column_rules,
    plan_each_fold,
)
from largesse.exploration import fit_rule_at_price
from largesse.propensity import estimate_propensities
from largesse.records import Array, HeldOutPlan, HeldOutPredictions, Log, PolicyOption, Progress, Propensities, Scores
from largesse.response import Linear
from largesse.worlds import RandomLog, draw_world
from largesse_lab.experiments.experiment_definition import table_experiment
from largesse_lab.experiments.interval_coverage import FreshCurveRecorder
from largesse_lab.pages.markdown import format_table
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_repeats_of_part
from largesse_lab.runner.record_cache import RecordCache

if TYPE_CHECKING:
    import pyarrow as pa

LOG_ROWS, FRESH_ROWS = 2000, 20_000
GAIN_ROUNDING = 1e-9  # a plan that gives everyone the same has no gain
BOUND_LOGS = 500
SOURCES = ("given", "estimated")


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log: lower bounds and true gains of the plan and of the simple rule."""
    if request.problems is not None or request.models is not None:
        what = "bound draws its own worlds and has one model"
        fail("experiment", Problem(what, "leave out --simulations and --models"))
    logs = select_repeats_of_part(BOUND_LOGS if request.repeats is None else request.repeats, request.part)
    return RecordCache(request.out, ("log",)).measure_each([(log,) for log in logs], _measure_log, progress)


def _measure_log(seed: int) -> dict[str, Any]:
    world = draw_world(seed)
    drawn, fresh = world.draw_log(LOG_ROWS), world.draw_fresh(FRESH_ROWS)
    budget = world.budgets[seed % len(world.budgets)]
    propensity = drawn.propensities[np.arange(len(drawn)), drawn.level]
    # The penalty is chosen once, on another log of the same world, instead of in every fold.
    penalty = Linear(seed=seed).fit(world.draw_fresh(LOG_ROWS, 2).log).penalty_
    recorder = FreshCurveRecorder(model=Linear(penalty=penalty, seed=seed), fresh=fresh.table, fresh_curves=[])
    base = crossfit_scores(drawn.log, recorder, seed=seed, propensities=Propensities(propensity, "given"))
    plan = plan_each_fold(base, budget)
    traits = world.traits
    record: dict[str, Any] = {"log": seed, "rows": LOG_ROWS, "response": traits.response, "way": traits.log}
    record |= {"known": traits.known, "levels": traits.levels}
    for source in SOURCES:
        log = replace(drawn.log, propensity=propensity if source == "given" else None)
        known = Propensities(propensity, "given") if source == "given" else estimate_propensities(log, base.fold, seed)
        scores = compute_scores(log, HeldOutPredictions(base.curves, base.fold), known)
        record[source] = _record_bounds_and_truth(
            log, scores, plan, _FreshCustomers(fresh, recorder.fresh_curves, drawn.table)
        )
    return record


@dataclass(frozen=True, eq=False)
class _FreshCustomers:
    """Simulated customers outside the log with known responses, and their predicted curves by fold."""

    customers: RandomLog
    curves: Sequence[Array]  # (folds) of (n, K)
    table: pa.Table

    def measure_true_means(self, policies: Sequence[Array]) -> tuple[float, float]:
        """Return the true mean value and spend of policies (n, K) for the new simulated customers."""
        truth, costs = self.customers.truth, self.customers.costs
        value = np.mean([(probabilities * truth).sum(axis=1).mean() for probabilities in policies])
        return float(value), float(np.mean([(probabilities @ costs).mean() for probabilities in policies]))


def _record_bounds_and_truth(log: Log, scores: Scores, plan: HeldOutPlan, fresh: _FreshCustomers) -> dict[str, Any]:
    """Return the lower bounds and the true gains of the plan and of the simple rule."""
    rules = learn_one_column_rules(log, scores, plan.levels)
    safety = bound_policy_gains(log, scores, plan.levels, rules, learnt=True)
    policies = {"this plan": _apply_plan_to_fresh_customers(scores, plan, fresh)}
    if rules is not None:
        policies["a simple rule"] = [_apply_rule_to_fresh_customers(rule, fresh) for rule in rules.folds]
    options = [_record_option(option, scores, fresh, policies[option.name]) for option in safety.options]
    true = fresh.customers.truth.mean(axis=0)
    means = [mean for mean, _ in estimate_each_level(scores)]
    inside = [None if np.isnan(m.low) else bool(m.low <= t <= m.high) for m, t in zip(means, true, strict=True)]
    return {
        "options": options,
        "chosen": _choose_recommended_option(safety.options),
        "reach": safety.reach,
        "inside": inside,
    }


def _choose_recommended_option(options: Sequence[PolicyOption]) -> int:
    """Return the index of the option with the largest positive lower bound, or 0 for the plan.

    Of equal bounds the simpler option wins.
    """
    bounds = [option.at_least or 0.0 for option in options]
    best = max(reversed(range(len(bounds))), key=lambda place: bounds[place])
    return best if bounds[best] > 0 else 0


def _apply_plan_to_fresh_customers(scores: Scores, plan: HeldOutPlan, fresh: _FreshCustomers) -> list[Array]:
    """Return a plan's level probabilities (n, K) for customers outside the log, one array per fold's model."""
    costs, policies = fresh.customers.costs, []
    for f, curves, price in zip(np.unique(scores.fold), fresh.curves, plan.prices, strict=True):
        mixture = fit_rule_at_price(scores.curves[scores.fold == f], costs, float(price), plan.budget)
        policies.append(mixture.probabilities(curves, costs))
    return policies


def _apply_rule_to_fresh_customers(rule: OneColumnRule, fresh: _FreshCustomers) -> Array:
    """Return the level probabilities (n, K) of new simulated customers under a simple rule."""
    return rule.shares[assign_fresh_groups(fresh.table.column(rule.column), fresh.customers.table.column(rule.column))]


def assign_fresh_groups(known: pa.ChunkedArray, fresh: pa.ChunkedArray) -> Array:
    """Return group numbers (n,) for a column's values of customers outside the log, by the groups of the log."""
    groups = group_column_values(known, RULE_GROUPS)
    largest = int(np.bincount(groups.code).argmax())  # the group of values that the log does not hold
    other, missing = (groups.labels.index(name) if name in groups.labels else largest for name in ("other", "missing"))
    if find_feature_kind(known.type) == "text":
        codes: dict[Any, int] = {None: missing, **dict(zip(known.to_pylist(), groups.code.tolist(), strict=True))}
        return np.array([codes.get(value, other) for value in fresh.to_pylist()])
    known_values, fresh_values = convert_to_floats(known), convert_to_floats(fresh)
    finite = np.isfinite(known_values)
    tops = [known_values[finite & (groups.code == g)].max() for g in np.unique(groups.code[finite])]
    return np.where(np.isfinite(fresh_values), np.searchsorted(tops[:-1], fresh_values, side="left"), missing)


def _record_option(
    option: PolicyOption, scores: Scores, fresh: _FreshCustomers, policies: Sequence[Array]
) -> dict[str, Any]:
    value, spend = fresh.measure_true_means(policies)
    mix = find_best_mixes(scores, option.spend.estimate).mean
    return {
        "gain": option.gain.estimate,
        "se": option.gain.se,
        "at_least": option.at_least,
        "guaranteed": option.guaranteed,
        "value": value,
        "named": value - float(mix @ fresh.customers.truth.mean(axis=0)) + GAIN_ROUNDING,
        "best": value - fresh.customers.uniform_value(spend) + GAIN_ROUNDING,
    }


# -- the table ---------------------------------------------------------------------------------------------------------


def tabulate(records: Records) -> str:
    """Return a Markdown table of the coverage of lower bounds, over all logs and by kind of log."""
    body = [_write_coverage_row("as drawn", [_select_propensity_source(record) for record in records])]
    body += [
        _write_coverage_row(f"propensities {source}", [record[source] for record in records]) for source in SOURCES
    ]
    for field, prefix in (("response", ""), ("way", "log: ")):
        for kind in sorted({record[field] for record in records}):
            of_kind = [_select_propensity_source(record) for record in records if record[field] == kind]
            body.append(_write_coverage_row(f"{prefix}{kind}", of_kind))
    rows = records[0]["rows"] if records else LOG_ROWS
    head = f"{len(records)} logs of {rows:,} rows, each from a random world of its own.\n\n"
    names = ["logs", "n", "named", "best", "plan", "rule", "q·se alone", "above 0", "of these right", "rule chosen"]
    return head + format_table([*names, "guaranteed", "levels"], body)


def _select_propensity_source(record: dict[str, Any]) -> dict[str, Any]:
    results: dict[str, Any] = record["given" if record["known"] else "estimated"]
    return results


def _write_coverage_row(name: str, logs: Sequence[dict[str, Any]]) -> list[str]:
    chosen = [(log, log["options"][log["chosen"]]) for log in logs]
    bounded = [(log, option) for log, option in chosen if option["at_least"] is not None]
    positive = [option for _, option in bounded if option["at_least"] > 0]
    by_option = [[log["options"][j] for log in logs if len(log["options"]) > j] for j in range(2)]
    return [
        name,
        str(len(logs)),
        *(
            _write_hit_share([option["at_least"] <= option[truth] for _, option in bounded])
            for truth in ("named", "best")
        ),
        *(
            _write_hit_share([o["at_least"] <= o["best"] for o in some if o["at_least"] is not None])
            for some in by_option
        ),
        _write_hit_share([option["gain"] - log["reach"] * option["se"] <= option["best"] for log, option in bounded]),
        _write_hit_share([option["at_least"] > 0 for _, option in bounded]),
        _write_hit_share([option["best"] >= 0 for option in positive]),
        _write_hit_share([log["chosen"] == 1 for log in logs]),
        _write_hit_share(
            [o["guaranteed"] <= o["value"] for some in by_option for o in some if o["guaranteed"] is not None]
        ),
        _write_hit_share([inside for log in logs for inside in log["inside"] if inside is not None]),
    ]


def _write_hit_share(hits: Sequence[bool]) -> str:
    return f"{np.mean(hits):.1%}" if hits else "–"


BOUND_EXPERIMENT = table_experiment("bound", "Lower bounds of gains", measure, tabulate)
