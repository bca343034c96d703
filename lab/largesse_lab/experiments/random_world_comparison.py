"""Comparison of response models on random simulated worlds: curve error, plan skill and time, by kind of world.

Every seed is a world of its own (`largesse.worlds.draw_world`) with a log of some rows and 20,000 fresh customers. A model
learns from the log alone, and plans for the fresh customers at two budgets. Skill is 0 for the best uniform mix of levels and
1 for the best plan made from the truth; in means, a skill counts as −1 at least, since one bad plan can lose many times what
the best one gains. Relative RMSE is the RMSE of the curves over the standard deviation of the truth across customers and
levels: a constant prediction has 1 at best. Effects are differences from the cheapest level; their RMSE is relative
to the root mean square of the true effects.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.errors import Problem, percent, refuse
from largesse.records import Array, Progress
from largesse.stats import limit_to_one_thread, t_estimate
from largesse.worlds import RandomLog, draw_world
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.figures import FigureText, draw_intervals, draw_lines
from largesse_lab.pages.markdown import NUMBER_DASH, Section, format_mean, format_number, format_table
from largesse_lab.pages.method_comparison import Summary, keep_latest_records, list_distinct_values
from largesse_lab.runner.competitor_models import ORACLE, PEERS, find_model_name_problems, make_competitor, match_models
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.record_cache import Key, RecordCache
from largesse_lab.runner.truth_measures import compute_root_mean_square

WORLD_KEY = ("world", "rows", "model")
SEEDS, LOG_ROWS, FRESH_ROWS, MIN_ROWS = (0, 199), 2000, 20_000, 100
WORLD_MODELS = ("auto", "logistic", "boosting", "per-level boosting", "DR-learner", "uniform", ORACLE)
MIN_SKILL = -1.0  # of a plan in a mean
BAD_SKILL = -0.1  # a lower mean skill of a world counts as harm
SKILL_GRID = np.round(np.arange(-1.0, 1.01, 0.1), 1)  # of the figure


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per number of rows, simulated world and model: curve errors, plan skill and seconds."""
    names = match_models(WORLD_MODELS if request.models is None else request.models)
    sizes = list(dict.fromkeys(request.sizes or [LOG_ROWS]))
    too_small = [Problem(f"logs of {size} rows", f"{MIN_ROWS} or more") for size in sizes if size < MIN_ROWS]
    refuse("experiment", find_model_name_problems(names) + too_small)
    first, last = SEEDS if request.seeds is None else request.seeds
    seeds = select_requested_seeds(request, first, last - first + 1)
    groups = [[(seed, size, name) for name in names] for size in sizes for seed in seeds]
    return RecordCache(request.out, WORLD_KEY).measure_groups(groups, _measure_world, progress)


def _measure_world(keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    """Yield one record per model on one random simulated world."""
    seed, size = keys[0][:2]
    world = draw_world(seed)
    log, fresh = world.draw_log(size), world.draw_fresh(FRESH_ROWS)
    for _, _, name in keys:
        record = {"world": seed, "rows": size, "model": name, "regimes": world.traits.regimes}
        yield record | measure_world_model(name, seed, log, fresh, world.budgets)


def measure_world_model(
    name: str, seed: int, log: RandomLog, fresh: RandomLog, budgets: Sequence[float]
) -> dict[str, Any]:
    """Return the errors, skill, spend and time of one model on the log of a world."""
    model = make_competitor(name, seed)
    try:
        with limit_to_one_thread():
            start = time.process_time()
            if model is not None:
                model.fit(log.log)
            seconds = time.process_time() - start
            curves = fresh.truth if model is None else model.predict(fresh.table)
        return measure_curves_and_skill(curves, fresh, budgets) | {"seconds": round(seconds, 4)}
    except Exception as error:
        error.add_note(f"This was {name} on world {seed}.")
        raise


def measure_curves_and_skill(curves: Array, fresh: RandomLog, budgets: Sequence[float]) -> dict[str, Any]:
    """Return the errors of curves (n, K) of new simulated customers, and the skill of plans at each budget."""
    truth = fresh.truth
    effects, predicted_effects = truth[:, 1:] - truth[:, :1], curves[:, 1:] - curves[:, :1]
    record: dict[str, Any] = {
        "error": compute_root_mean_square(curves - truth) / float(truth.std()),
        "effects": compute_root_mean_square(predicted_effects - effects) / compute_root_mean_square(effects),
        "skills": [],
        "spent": [],
    }
    for budget in budgets:
        plan = allocate(curves, fresh.costs, budget)
        spent = float(fresh.costs[plan.levels].mean())
        if spent > budget * (1 + 1e-9):
            raise RuntimeError(f"a plan spends {spent!r} of a budget of {budget!r}")
        record["skills"].append(fresh.skill(plan.levels, budget))
        record["spent"].append(spent / budget)
    return record


# -- the summary -------------------------------------------------------------------------------------------------------


def summarise(records: Records) -> dict[str, Any]:
    """Return one summary of all models per number of rows."""
    records = keep_latest_records(records, WORLD_KEY)
    sizes = sorted(list_distinct_values(records, "rows"))
    return {"sizes": [_summarise_size([record for record in records if record["rows"] == size]) for size in sizes]}


def _summarise_size(records: Records) -> dict[str, Any]:
    names = list_distinct_values(records, "model")
    by_model = {name: {r["world"]: r for r in records if r["model"] == name} for name in names}
    regimes = _list_worlds_by_regime(records)
    groups = [
        {"trait": trait, "group": group, "worlds": len(worlds)}
        | {
            "models": {
                name: _average_measures([rows[w] for w in sorted(worlds & rows.keys())])
                for name, rows in by_model.items()
            }
        }
        for (trait, group), worlds in regimes.items()
    ]
    overall = {
        name: _average_measures(list(rows.values())) | {"worst": _find_worst_regime(name, groups)}
        for name, rows in by_model.items()
    }
    first, peers = names[0], [name for name in names[1:] if name in PEERS]
    best = max(peers, key=lambda name: overall[name]["skill"]) if peers else None
    worlds = sorted(list_distinct_values(records, "world"))
    by_regime = [
        {"trait": trait, "group": group, **(_compare_skill(by_model[first], by_model[best], in_group) or {})}
        for (trait, group), in_group in regimes.items()
        if best is not None
    ]
    shares = {name: _tabulate_skill_distribution(list(rows.values())) for name, rows in by_model.items()}
    return {
        "rows": records[0]["rows"],
        "worlds": len(worlds),
        "seeds": [worlds[0], worlds[-1]],
        "models": overall,
        "regimes": groups,
        "first": first,
        "best peer": best,
        "against": {name: _compare_skill(by_model[first], by_model[name], set(worlds)) for name in names[1:]},
        "by regime": by_regime,
        "distribution": {"skill": SKILL_GRID.tolist(), "share": shares},
    }


def _list_worlds_by_regime(records: Records) -> dict[tuple[str, str], set[int]]:
    """Return the numbers of the random simulated worlds in each category of each property."""
    worlds: dict[tuple[str, str], set[int]] = {}
    for record in records:
        for trait, group in record["regimes"].items():
            worlds.setdefault((trait, group), set()).add(record["world"])
    traits = list(dict.fromkeys(trait for trait, _ in worlds))
    return {
        key: worlds[key]
        for key in sorted(worlds, key=lambda key: (traits.index(key[0]), *_make_group_sort_key(key[1])))
    }


def _make_group_sort_key(group: str) -> tuple[int, str]:
    """Return a group name's sort key: its first number, then the name.

    >>> sorted(["61–200", "up to 20", "21–60"], key=_make_group_sort_key)
    ['up to 20', '21–60', '61–200']
    """
    number = re.search(r"\d+", group)
    return int(number[0]) if number else 0, group


def compute_mean_skill(record: Mapping[str, Any], min_skill: float = MIN_SKILL) -> float:
    """Return the mean skill over the budgets of a world, with each skill clipped below at `min_skill`.

    >>> compute_mean_skill({"skills": [-9.0, 0.5]}), compute_mean_skill({"skills": [-9.0, 0.5]}, min_skill=-np.inf)
    (-0.25, -4.25)
    """
    return float(np.mean([max(skill, min_skill) for skill in record["skills"]]))


def _average_measures(records: Records) -> dict[str, Any]:
    """Return one model's mean measures over several worlds."""
    if not records:
        return {"worlds": 0}
    skill = np.array([compute_mean_skill(record) for record in records])
    mean = t_estimate(skill) if len(records) > 1 else None
    seconds = [record["seconds"] for record in records]
    return {
        "worlds": len(records),
        "skill": float(skill.mean()),
        "se": None if mean is None else float(skill.std(ddof=1) / np.sqrt(len(skill))),
        "low": None if mean is None else mean.low,
        "high": None if mean is None else mean.high,
        "error": float(np.mean([record["error"] for record in records])),
        "effects": float(np.mean([record["effects"] for record in records])),
        "bad": float(np.mean([compute_mean_skill(record, -np.inf) < BAD_SKILL for record in records])),
        "median seconds": float(np.median(seconds)),
        "mean seconds": float(np.mean(seconds)),
    }


def _find_worst_regime(name: str, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the category of random simulated worlds with the lowest mean skill of a model."""
    cells = [(group, group["models"][name]) for group in groups if group["models"][name]["worlds"]]
    if not cells:
        return None
    group, cell = min(cells, key=lambda pair: pair[1]["skill"])
    return {"trait": group["trait"], "group": group["group"], "worlds": cell["worlds"], "skill": cell["skill"]}


def _compare_skill(first: Mapping[int, Any], second: Mapping[int, Any], worlds: set[int]) -> dict[str, Any] | None:
    """Return the mean paired difference in skill of two models over shared worlds, with its 95 % interval."""
    shared = sorted(worlds & first.keys() & second.keys())
    if len(shared) < 2:
        return None
    differences = np.array([compute_mean_skill(first[world]) - compute_mean_skill(second[world]) for world in shared])
    mean = t_estimate(differences)
    return {
        "worlds": len(shared),
        "difference": mean.estimate,
        "se": float(differences.std(ddof=1) / np.sqrt(len(differences))),
        "low": mean.low,
        "high": mean.high,
        "ahead": float((differences > 0).mean()),
        "behind": float((differences < 0).mean()),
    }


def _tabulate_skill_distribution(records: Records) -> list[float]:
    """Return the cumulative distribution of mean skill over worlds on a grid."""
    skill = np.sort([compute_mean_skill(record) for record in records])
    return [round(float(np.searchsorted(skill, at + 1e-9, side="right") / len(skill)), 4) for at in SKILL_GRID]


# -- the page ----------------------------------------------------------------------------------------------------------


def fill(section: Section, summary: Summary) -> None:
    """Add the tables and figures of each number of rows to the result section."""
    for size in summary["sizes"]:
        first, last = size["seeds"]
        section.add(f"## {size['worlds']} worlds (seeds {first}–{last}), logs of {size['rows']:,} rows")
        section.add(tabulate_models(size), describe_lead(size))
        _draw_distribution(section, size)
        _draw_regimes(section, size)
        section.add("### Mean skill by regime", tabulate_skill_by_category(size))


def tabulate_models(size: Summary) -> str:
    """Return a Markdown table with one row per model: skill, errors, time, worst world category, skill difference."""
    body = []
    for name, cell in size["models"].items():
        worst, lead = cell["worst"], size["against"].get(name)
        group = "" if worst is None else f"({worst['trait']}: {worst['group']}, n = {worst['worlds']})"
        body.append(
            [
                name,
                format_mean(cell["skill"], cell["se"], 3),
                *(format_number(cell[key], 3) for key in ("error", "effects")),
                f"{cell['bad']:.1%}",
                *(f"{cell[key]:.2f}" for key in ("median seconds", "mean seconds")),
                NUMBER_DASH if worst is None else f"{format_number(worst['skill'], 2)} {group}",
                NUMBER_DASH if lead is None else _write_lead(lead),
            ]
        )
    head = ["model", "skill ± se", "relative RMSE", "effects", "below −0.1", "median s", "mean s", "worst regime"]
    return format_table([*head, f"{size['first']} minus it ± se"], body)


def _write_lead(lead: Mapping[str, Any]) -> str:
    return f"{lead['difference']:+.3f} ± {lead['se']:.3f}".replace("-", "−")


def describe_lead(size: Summary) -> str:
    """Describe the skill difference between the first model and the best other model; empty without another model."""
    first, best = size["first"], size["best peer"]
    lead = size["against"].get(best)
    if lead is None:
        return ""
    interval = f"{lead['low']:+.3f} to {lead['high']:+.3f}".replace("-", "−")
    return (
        f"{first} minus the best peer, {best}: mean skill {_write_lead(lead)} (95 % interval {interval}) over "
        f"{lead['worlds']} worlds of {size['rows']:,} rows; ahead in {percent(lead['ahead'])} of them, behind in "
        f"{percent(lead['behind'])}."
    )


def tabulate_skill_by_category(size: Summary) -> str:
    """Return a Markdown table of all models' mean skill by category of random simulated worlds."""
    names = [name for name in size["models"] if name != ORACLE]
    body = []
    for group in size["regimes"]:
        skills = [group["models"][name].get("skill") for name in names]
        cells = [NUMBER_DASH if skill is None else format_number(skill, 2) for skill in skills]
        body.append([f"{group['trait']}: {group['group']}", str(group["worlds"]), *cells])
    return format_table(["regime", "worlds", *names], body)


def _draw_distribution(section: Section, size: Summary) -> None:
    grid = size["distribution"]["skill"]
    series = [
        {"label": name, "x": grid, "mean": share}
        for name, share in size["distribution"]["share"].items()
        if name != ORACLE  # a step at 1
    ]
    title = f"Distribution of skill, logs of {size['rows']:,} rows"
    note = (
        f"Share of {size['worlds']} worlds with at most this skill, averaged over both budgets. Lower lines are better."
    )
    text = FigureText(title, "skill (−1 and less at the left end)", "share of worlds", note)
    section.add_figure(partial(draw_lines, series, text, references=["uniform"]), title, f"{size['rows']}-distribution")


def _draw_regimes(section: Section, size: Summary) -> None:
    """Draw the mean skill of the first model and of the best other model by category of random simulated worlds."""
    first, best = size["first"], size["best peer"]
    if best is None:
        return
    rows = []
    for group, lead in zip(size["regimes"], size["by regime"], strict=True):
        label = f"{group['trait']}: {group['group']} ({group['worlds']})"
        cells = {name: (group["models"][name], "skill") for name in (first, best)} | {
            "difference": (lead, "difference")
        }
        for panel, (cell, key) in cells.items():
            ends = {"low": cell.get("low"), "high": cell.get("high")}
            rows.append({"panel": panel, "label": label, "estimate": cell.get(key), **ends})
    title = f"Mean skill by regime, logs of {size['rows']:,} rows"
    note = f"{first}, the best peer ({best}), and {first} minus {best} on the same worlds, with 95 % intervals."
    section.add_figure(
        partial(draw_intervals, rows, FigureText(title, "mean skill", note=note)), title, f"{size['rows']}-regimes"
    )


WORLDS_EXPERIMENT = Experiment(
    "worlds",
    "Models on random worlds",
    measure,
    summarise,
    fill,
    setup="""\
A seed draws a whole world: the number of levels and their costs, how the response rises with the level, the differences between
customers, the number and kinds of features, how the log chose its levels, and the kind of response. Models
learn from a log of each world and plan for 20,000 other customers, at a quarter and at half of the dearest level's cost.

- **Skill** is 0 for the best uniform mix of levels and 1 for the best plan made from the truth, averaged over both budgets.
  In means, a skill counts as −1 at least.
- **Relative RMSE** is the RMSE of the curves over the standard deviation of the true responses across customers and levels.
- **Effects** is the RMSE of the differences from the cheapest level, over the root mean square of the true differences.
- **Below −0.1** is the share of worlds in which the plans lose more than a tenth of the best plans' gain.

Simple models for comparison are logistic regression on the features and the level's number (linear regression if
responses are amounts), monotone boosting, boosting for each level alone, a DR-learner (cross-fitted doubly robust scores,
regressed on the features), the best uniform mix by the log's level means, and the truth.""",
    random_worlds=True,
    one_thread=True,
)
