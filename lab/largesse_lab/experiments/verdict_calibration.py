"""Calibration of a verdict's stated probabilities, and skill of users who follow its recommendation.

Every seed is a world of its own (`largesse.worlds.draw_world`) with a log of some rows and fresh customers. The default model
learns from the log, and its plan is judged as by `evaluate`, without the checks of `doctor`, at two budgets. The true gain is that
of the plan for the fresh customers by the model of all rows, over the truly best uniform mix at the same spend. A user who follows
the verdict has the skill of the recommended option: 0 for the mix, and where the log cannot say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.evaluation import (
    bound_policy_gains,
    compute_scores,
    find_overlap_warnings,
    give_verdict,
    learn_one_column_rules,
    plan_each_fold,
)
from largesse.propensity import estimate_propensities
from largesse.records import Array, Estimate, HeldOutPredictions, Progress, Verdict
from largesse.response import make_model
from largesse.stats import assign_folds, limit_to_one_thread
from largesse.worlds import RandomLog, draw_world
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.experiments.gain_lower_bounds import assign_fresh_groups
from largesse_lab.experiments.random_world_comparison import MIN_SKILL
from largesse_lab.pages.figures import FigureText, draw_lines
from largesse_lab.pages.markdown import NUMBER_DASH, Section, format_number, format_table
from largesse_lab.pages.method_comparison import Summary, keep_latest_records, list_distinct_values
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.record_cache import Key, RecordCache

VERDICT_KEY = ("world", "rows", "model")
SEEDS, LOG_ROWS, FRESH_ROWS = (0, 199), 2000, 6000
PROBABILITY_EDGES = np.linspace(0.0, 1.0, 6)
RECOMMENDED = ("plan", "rule", "before")


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per number of rows, simulated world and model: the verdicts and the true gains."""
    first, last = SEEDS if request.seeds is None else request.seeds
    seeds = select_requested_seeds(request, first, last - first + 1)
    models = list(request.models or ["auto"])
    sizes = list(dict.fromkeys(request.sizes or [LOG_ROWS]))
    groups = [[(seed, size, model) for model in models] for size in sizes for seed in seeds]
    return RecordCache(request.out, VERDICT_KEY).measure_groups(groups, _measure_world, progress)


def _measure_world(keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    for seed, size, name in keys:
        world = draw_world(seed)
        log, fresh = world.draw_log(size), world.draw_fresh(FRESH_ROWS)
        with limit_to_one_thread():
            model = make_model(name, seed)
            held = model.fit_held_out(log.log, assign_folds(log.log, 5, seed))
            curves = model.predict(fresh.table)
        yield {"world": seed, "rows": size, "model": name, "regimes": world.traits.regimes} | {
            "budgets": record_verdicts_and_truth(log, held, FreshCustomerCurves(fresh, curves), world.budgets, seed)
        }


@dataclass(frozen=True, eq=False)
class FreshCustomerCurves:
    """New customers of a simulated world with known responses, and the model's curves (n, K) for these customers."""

    customers: RandomLog
    curves: Array

    def measure_true_gain(self, policy: Array, budget: float) -> dict[str, float]:
        """Return a policy's true gain over the best mix of levels for all customers, and its skill at a budget.

        The policy is levels (n,) or probabilities (n, K).
        """
        truth, costs = self.customers.truth, self.customers.costs
        shares = np.eye(len(costs))[policy] if policy.ndim == 1 else policy
        value, spend = float((shares * truth).sum(axis=1).mean()), float((shares @ costs).mean())
        gain = value - self.customers.uniform_value(spend)
        return {"gain": gain, "skill": self.customers.skill_of(value, budget), "spend": spend}


def record_verdicts_and_truth(
    log: RandomLog, held: HeldOutPredictions, fresh: FreshCustomerCurves, budgets: Sequence[float], seed: int
) -> list[dict[str, Any]]:
    """Return one record per budget: the verdict, and the true gains of the plan and its alternatives."""
    propensities = estimate_propensities(log.log, held.fold, seed)
    scores, warnings = compute_scores(log.log, held, propensities), find_overlap_warnings(log.log, propensities)
    records = []
    for budget in budgets:
        plan = plan_each_fold(scores, budget)
        rules = learn_one_column_rules(log.log, scores, plan.levels)
        safety = bound_policy_gains(log.log, scores, plan.levels, rules, learnt=True)
        verdict = give_verdict(log.log, scores, plan.levels, rules, safety, warnings, seed=seed)
        truth = {"plan": fresh.measure_true_gain(allocate(fresh.curves, log.costs, budget).levels, budget)}
        truth["before"] = fresh.measure_true_gain(fresh.customers.propensities, budget)
        if rules is not None:
            rule = rules.whole
            groups = assign_fresh_groups(log.table.column(rule.column), fresh.customers.table.column(rule.column))
            truth["rule"] = fresh.measure_true_gain(rule.shares[groups], budget)
        records.append(_record_verdict(verdict, safety.options[0].gain) | {"truth": truth})
    return records


def _record_verdict(verdict: Verdict, gain: Estimate) -> dict[str, Any]:
    options = {
        option.name: {"probability": option.probability, "gain": _list_interval(option.gain)}
        for option in verdict.options
    }
    return {
        "recommended": verdict.recommended,
        "grade": verdict.grade,
        "at_least": verdict.at_least,
        "contradiction": verdict.contradiction,
        "reason": verdict.reason,
        "options": options,
        "log": _list_interval(gain),
    }


def _list_interval(estimate: Estimate) -> list[float | None]:
    values = (estimate.estimate, estimate.se, *estimate.interval)
    return [float(value) if np.isfinite(value) else None for value in values]


# -- the summary -------------------------------------------------------------------------------------------------------


def summarise(records: Records) -> dict[str, Any]:
    """Return one summary of verdicts per number of rows."""
    records = keep_latest_records(records, VERDICT_KEY)
    sizes = sorted(list_distinct_values(records, "rows"))
    return {"sizes": [_summarise_size([record for record in records if record["rows"] == size]) for size in sizes]}


def _summarise_size(records: Records) -> dict[str, Any]:
    plans = [plan | {"regimes": record["regimes"]} for record in records for plan in record["budgets"]]
    worlds = sorted({record["world"] for record in records})
    regimes: dict[tuple[str, str], Records] = {}
    for plan in plans:
        for trait, group in plan["regimes"].items():
            regimes.setdefault((trait, group), []).append(plan)
    return {
        "rows": records[0]["rows"],
        "models": sorted({record["model"] for record in records}),
        "seeds": [worlds[0], worlds[-1]],
        "worlds": len(worlds),
        "all": summarise_verdicts(plans),
        "regimes": [
            {"trait": trait, "group": group} | summarise_verdicts(some)
            for (trait, group), some in sorted(regimes.items())
        ],
        "grades": _count_plans_by_grade(plans),
    }


def summarise_verdicts(plans: Records) -> dict[str, Any]:
    """Return the calibration, coverage and skill of several verdicts."""
    gains = np.array([plan["truth"]["plan"]["gain"] for plan in plans])
    always = np.array([max(plan["truth"]["plan"]["skill"], MIN_SKILL) for plan in plans])
    followed = np.array([_find_skill_of_recommendation(plan) for plan in plans])
    recommended = np.array([plan["recommended"] == "plan" for plan in plans])
    options = [_find_named_option(plan) for plan in plans]
    told = np.array([option is not None for option in options])
    probability = np.array([np.nan if option is None else option["probability"] for option in options])
    both = _measure_coverage([option["gain"] for option in options if option is not None], gains[told])
    known = np.array([plan["log"][1] is not None and plan["log"][1] > 0 for plan in plans])
    alone = _measure_coverage([plan["log"] for plan, ok in zip(plans, known, strict=True) if ok], gains[known])
    errors = np.array(
        [(plan["log"][0] - gain) / plan["log"][1] for plan, gain, ok in zip(plans, gains, known, strict=True) if ok]
    )
    bins = _bin_stated_probabilities(probability[told], gains[told] > 0)
    proved = np.array([plan["grade"] == "proved" and plan["recommended"] == "plan" for plan in plans])
    return {
        "plans": len(plans),
        "truly better": float((gains > 0).mean()),
        "always": float(always.mean()),
        "followed": float(followed.mean()),
        "recommended": float(recommended.mean()),
        "wrong": float((gains[recommended] < 0).mean()) if recommended.any() else None,
        "calibration": sum(b["share"] * abs(b["stated"] - b["true"]) for b in bins),
        "bins": bins,
        "cannot say": float(1 - told.mean()),
        "coverage": both,
        "log coverage": alone,
        "log bias": float(errors.mean()) if len(errors) else None,
        "log bias se": float(errors.std() / np.sqrt(len(errors))) if len(errors) else None,
        "proved": int(proved.sum()),
        "proved wrong": int((gains[proved] < 0).sum()),
    }


def _find_named_option(plan: dict[str, Any], name: str = "plan") -> dict[str, Any] | None:
    option: dict[str, Any] | None = plan["options"].get(name)
    return option


def _find_skill_of_recommendation(plan: dict[str, Any]) -> float:
    name = plan["recommended"]
    return max(plan["truth"][name]["skill"], MIN_SKILL) if name in RECOMMENDED else 0.0


def _measure_coverage(estimates: Sequence[Sequence[float | None]], truth: Array) -> float | None:
    """Return the share of intervals that contain the truth, without missing intervals."""
    inside = [
        low <= true <= high
        for (_, _, low, high), true in zip(estimates, truth, strict=True)
        if low is not None and high is not None
    ]
    return float(np.mean(inside)) if inside else None


def _bin_stated_probabilities(probability: Array, better: Array) -> list[dict[str, float]]:
    """Return mean stated probability and true frequency of better plans in five probability bins."""
    place = np.clip(np.searchsorted(PROBABILITY_EDGES, probability, side="right") - 1, 0, len(PROBABILITY_EDGES) - 2)
    return [
        {
            "stated": float(probability[place == b].mean()),
            "true": float(better[place == b].mean()),
            "share": float((place == b).mean()),
        }
        for b in np.unique(place)
    ]


def _count_plans_by_grade(plans: Records) -> list[dict[str, Any]]:
    """Count plans by grade of the verdict, with the share truly better than the best mix for all customers."""
    grades: dict[str, list[bool]] = {}
    for plan in plans:
        if plan["recommended"] != "rule":
            grades.setdefault(plan["grade"], []).append(plan["truth"]["plan"]["gain"] > 0)
    return [
        {"grade": grade, "plans": len(better), "better": float(np.mean(better))} for grade, better in grades.items()
    ]


# -- the page ----------------------------------------------------------------------------------------------------------


def fill(section: Section, summary: Summary) -> None:
    """Add the tables and the reliability diagram to the result section."""
    section.add("## All sizes", tabulate_verdicts_by_rows(summary))
    series = [
        {
            "label": f"{size['rows']:,} rows",
            "x": [cell["stated"] for cell in size["all"]["bins"]],
            "mean": [cell["true"] for cell in size["all"]["bins"]],
        }
        for size in summary["sizes"]
    ]
    series.append({"label": "perfect", "x": [0.0, 1.0], "mean": [0.0, 1.0]})
    title = "Stated probabilities and frequencies"
    text = FigureText(title, "stated probability that the plan is better", "share of plans that are better")
    section.add_figure(partial(draw_lines, series, text, references=["perfect"]), title, "reliability")
    for size in summary["sizes"]:
        section.add(f"## {size['worlds']} worlds, logs of {size['rows']:,} rows", _tabulate_grades(size))
        section.add(_tabulate_regimes(size))


def tabulate_verdicts_by_rows(summary: Summary) -> str:
    """Return a Markdown table of verdict measures, one row per number of log rows."""
    body = []
    for size in summary["sizes"]:
        first, last = size["seeds"]
        body.append(
            [f"{size['rows']:,}", f"{first}–{last}", str(size["worlds"]), *_write_verdict_measures(size["all"])]
        )
    return format_table(["rows", "seeds", "worlds", *VERDICT_COLUMNS], body)


VERDICT_COLUMNS = (
    "truly better", "always-plan skill", "followed skill", "recommended", "of these worse", "calibration error",
    "cannot say", "coverage, both", "coverage, log", "bias of the log ± se", "proved (worse)",
)  # fmt: skip


def _write_verdict_measures(cell: Summary) -> list[str]:
    bias = NUMBER_DASH
    if cell["log bias"] is not None:
        bias = f"{format_number(cell['log bias'], 2)} ± {format_number(cell['log bias se'], 2)}"
    return [
        f"{cell['truly better']:.0%}",
        *(format_number(cell[key], 3) for key in ("always", "followed")),
        f"{cell['recommended']:.0%}",
        NUMBER_DASH if cell["wrong"] is None else f"{cell['wrong']:.1%}",
        format_number(cell["calibration"], 3),
        f"{cell['cannot say']:.0%}",
        *(NUMBER_DASH if cell[key] is None else f"{cell[key]:.1%}" for key in ("coverage", "log coverage")),
        bias,
        f"{cell['proved']} ({cell['proved wrong']})",
    ]


def _tabulate_grades(size: Summary) -> str:
    body = [[row["grade"], str(row["plans"]), f"{row['better']:.0%}"] for row in size["grades"]]
    return format_table(["grade", "plans", "truly better"], body)


def _tabulate_regimes(size: Summary) -> str:
    body = [
        [f"{cell['trait']}: {cell['group']}", str(cell["plans"]), *_write_verdict_measures(cell)]
        for cell in size["regimes"]
    ]
    return format_table(["regime", "plans", *VERDICT_COLUMNS], body)


VERDICTS_EXPERIMENT = Experiment(
    "verdicts",
    "Verdicts on plans",
    measure,
    summarise,
    fill,
    setup="""\
A seed draws a whole world; the default model learns from a log of it, and its plan is judged at a quarter and at half of the dearest
level's cost. The verdict states the probability that the plan is better than the best uniform mix at the same spend, an expected gain
with a 95 % interval, and a recommendation. The truth is that of the model of all rows on 6,000 fresh customers.

- **Followed skill** is that of a user who takes the recommended option; the mix counts 0. **Always-plan skill** is that of the plan.
  A skill counts as −1 at least.
- **Calibration error** is the mean distance between stated probabilities and frequencies in five bins, weighted by plans.
- **Bias of the log** is the doubly robust gain less the true gain, in standard errors.""",
    random_worlds=True,
    one_thread=True,
)
