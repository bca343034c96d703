"""How models do on worlds drawn at random: error of the curves, skill of the plans, time; in all and by regime.

Every seed is a world of its own (`largesse.worlds.draw_world`) with a log of some rows and 20,000 fresh customers. A model
learns from the log alone, and plans for the fresh customers at two budgets. Skill is 0 for the best uniform mix of levels and
1 for the best plan made from the truth; in means, a skill counts as −1 at least, since one bad plan can lose many times what
the best one gains. Relative RMSE is the RMSE of the curves over the standard deviation of the truth across customers and
levels: a single number for everything has 1 at best. Effects are what levels add to the cheapest one; their RMSE is relative
to the root mean square of the true effects.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from largesse.allocation import allocate
from largesse.errors import Problem, refuse
from largesse.records import Array, Progress
from largesse.stats import mean_estimate, one_thread
from largesse.worlds import RandomLog, draw_world
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.random_worlds import fill_worlds, tabulate_worlds
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import keep_latest, list_values
from largesse_lab.runner.cache import Kept, Key
from largesse_lab.runner.measures import root_mean_square
from largesse_lab.runner.request import Records, Request, check_part, ignore_progress, take_seeds
from largesse_lab.runner.simple_models import ORACLE, PEERS, find_unmade, make_row, match_models

KEY = ("world", "rows", "model")
SEEDS, ROWS, FRESH = (0, 199), 2000, 20_000
MODELS = ("auto", "logistic", "boosting", "per-level boosting", "DR-learner", "uniform", ORACLE)
FLOOR = -1.0  # the least that a skill counts in a mean
BAD = -0.1  # a world whose mean skill is below this is one where the model did harm
GRID = np.round(np.arange(-1.0, 1.01, 0.1), 1)  # where the distribution of skill is drawn


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per number of rows, world and model."""
    names = match_models(MODELS if request.rows is None else request.rows)
    sizes = list(dict.fromkeys(request.sizes or [ROWS]))
    first, last = SEEDS if request.seeds is None else request.seeds
    refuse("experiment", find_unmade(names) + check_part(request.part) + _check_numbers(first, last, sizes))
    seeds = take_seeds(request, first, last - first + 1)
    groups = [[(seed, size, name) for name in names] for size in sizes for seed in seeds]
    kept = Kept(request.out, KEY)
    kept.complete(groups, _measure_world, progress)
    return kept.take(key for group in groups for key in group)


def _check_numbers(first: int, last: int, sizes: Sequence[int]) -> list[Problem]:
    wrong = (
        []
        if 0 <= first <= last
        else [Problem(f"seeds from {first} to {last}", "name the first and the last, as 0-199")]
    )
    return wrong + [Problem(f"logs of {size} rows", "100 or more") for size in sizes if size < 100]


def _measure_world(keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    """Yield one record for each model, so that a stopped run keeps those of a world that it had not finished."""
    seed, size = keys[0][:2]
    world = draw_world(seed)
    log, fresh = world.draw_log(size), world.draw_fresh(FRESH)
    for _, _, name in keys:
        about = {"world": seed, "rows": size, "model": name, "regimes": world.traits.regimes}
        yield about | _measure_model(name, seed, log, fresh, world.budgets)


def _measure_model(name: str, seed: int, log: RandomLog, fresh: RandomLog, budgets: Sequence[float]) -> dict[str, Any]:
    row = make_row(name, seed)
    try:
        with one_thread():
            start = time.perf_counter()
            if row is not None:
                row.fit(log.log)
            seconds = time.perf_counter() - start
            curves = fresh.truth if row is None else row.predict(fresh.table)
        return judge_curves(curves, fresh, budgets) | {"seconds": round(seconds, 4)}
    except Exception as error:
        error.add_note(f"This was {name} on world {seed}.")
        raise


def judge_curves(curves: Array, fresh: RandomLog, budgets: Sequence[float]) -> dict[str, Any]:
    """Return errors of curves (n, K) of fresh customers, and skill and share of the budget spent at each budget."""
    truth = fresh.truth
    effects, guessed = truth[:, 1:] - truth[:, :1], curves[:, 1:] - curves[:, :1]
    record: dict[str, Any] = {
        "error": root_mean_square(curves - truth) / float(truth.std()),
        "effects": root_mean_square(guessed - effects) / root_mean_square(effects),
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
    """Return one summary for each number of rows."""
    records = keep_latest(records, KEY)
    sizes = sorted(list_values(records, "rows"))
    return {"sizes": [_summarise_size([record for record in records if record["rows"] == size]) for size in sizes]}


def _summarise_size(records: Records) -> dict[str, Any]:
    names = list_values(records, "model")
    by_model = {name: {r["world"]: r for r in records if r["model"] == name} for name in names}
    regimes = _list_regimes(records)
    groups = [
        {"trait": trait, "group": group, "worlds": len(worlds)}
        | {"models": {name: _average([own[w] for w in sorted(worlds & own.keys())]) for name, own in by_model.items()}}
        for (trait, group), worlds in regimes.items()
    ]
    whole = {
        name: _average(list(own.values())) | {"worst": _find_worst(name, groups)} for name, own in by_model.items()
    }
    first, peers = names[0], [name for name in names[1:] if name in PEERS]
    best = max(peers, key=lambda name: whole[name]["skill"]) if peers else None
    worlds = sorted(list_values(records, "world"))
    return {
        "rows": records[0]["rows"],
        "worlds": len(worlds),
        "seeds": [worlds[0], worlds[-1]],
        "models": whole,
        "regimes": groups,
        "first": first,
        "best peer": best,
        "against": {name: _subtract(by_model[first], by_model[name], set(worlds)) for name in names[1:]},
        "by regime": []
        if best is None
        else [
            {"trait": trait, "group": group, **(_subtract(by_model[first], by_model[best], mine) or {})}
            for (trait, group), mine in regimes.items()
        ],
        "distribution": {
            "skill": GRID.tolist(),
            "share": {name: _distribute(list(own.values())) for name, own in by_model.items()},
        },
    }  # fmt: skip


def _list_regimes(records: Records) -> dict[tuple[str, str], set[int]]:
    """Return the worlds of each group of each trait."""
    found: dict[tuple[str, str], set[int]] = {}
    for record in records:
        for trait, group in record["regimes"].items():
            found.setdefault((trait, group), set()).add(record["world"])
    traits = list(dict.fromkeys(trait for trait, _ in found))
    return {key: found[key] for key in sorted(found, key=lambda key: (traits.index(key[0]), *_place_group(key[1])))}


def _place_group(group: str) -> tuple[int, str]:
    """Return what groups are sorted by: the first number in their name, then the name.

    >>> sorted(["61–200", "up to 20", "21–60"], key=_place_group)
    ['up to 20', '21–60', '61–200']
    """
    number = re.search(r"\d+", group)
    return int(number[0]) if number else 0, group


def find_skill(record: Mapping[str, Any], floor: float = FLOOR) -> float:
    """Return the mean skill over the budgets of a world, each at least `floor`.

    >>> find_skill({"skills": [-9.0, 0.5]}), find_skill({"skills": [-9.0, 0.5]}, floor=-np.inf)
    (-0.25, -4.25)
    """
    return float(np.mean([max(skill, floor) for skill in record["skills"]]))


def _average(records: Records) -> dict[str, Any]:
    """Return the measures of one model over some worlds."""
    if not records:
        return {"worlds": 0}
    skill = np.array([find_skill(record) for record in records])
    several = len(records) > 1
    low, high = (lambda found: (found.low, found.high))(mean_estimate(skill)) if several else (None, None)
    seconds = [record["seconds"] for record in records]
    return {
        "worlds": len(records),
        "skill": float(skill.mean()),
        "se": float(skill.std(ddof=1) / np.sqrt(len(skill))) if several else None,
        "low": low,
        "high": high,
        "error": float(np.mean([record["error"] for record in records])),
        "effects": float(np.mean([record["effects"] for record in records])),
        "bad": float(np.mean([find_skill(record, -np.inf) < BAD for record in records])),
        "median seconds": float(np.median(seconds)),
        "mean seconds": float(np.mean(seconds)),
    }


def _find_worst(name: str, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the group of worlds in which a model's mean skill is least."""
    known = [group for group in groups if group["models"][name]["worlds"]]
    if not known:
        return None
    worst = min(known, key=lambda group: group["models"][name]["skill"])
    mine = worst["models"][name]
    return {"trait": worst["trait"], "group": worst["group"], "worlds": mine["worlds"], "skill": mine["skill"]}


def _subtract(mine: Mapping[int, Any], theirs: Mapping[int, Any], worlds: set[int]) -> dict[str, Any] | None:
    """Return the mean difference in skill on the worlds that both have, its standard error and its 95 % interval."""
    both = sorted(worlds & mine.keys() & theirs.keys())
    if len(both) < 2:
        return None
    each = np.array([find_skill(mine[world]) - find_skill(theirs[world]) for world in both])
    found = mean_estimate(each)
    error = float(each.std(ddof=1) / np.sqrt(len(each)))
    shares = {"ahead": float((each > 0).mean()), "behind": float((each < 0).mean())}
    return {
        "worlds": len(both),
        "difference": found.estimate,
        "se": error,
        "low": found.low,
        "high": found.high,
    } | shares


def _distribute(records: Records) -> list[float]:
    """Return the share of worlds whose mean skill is at most each value of the grid."""
    skill = np.sort([find_skill(record) for record in records])
    return [round(float(np.searchsorted(skill, at + 1e-9, side="right") / len(skill)), 4) for at in GRID]


def tabulate(records: Records) -> str:
    """Return tables in all and by regime, as Markdown, for each number of rows."""
    return tabulate_worlds(summarise(records))


CHAPTER = Chapter(
    "Worlds drawn at random",
    setup="""\
A seed draws a whole world: how many levels there are and what they cost, how the response rises with the level, what makes
customers differ, how many features of which kinds there are, how the log chose its levels, and what a response is. Models
learn from a log of each world and plan for 20,000 other customers, at a quarter and at half of the dearest level's cost.

- **Skill** is 0 for the best uniform mix of levels and 1 for the best plan made from the truth, averaged over both budgets.
  In means, a skill counts as −1 at least.
- **Relative RMSE** is the RMSE of the curves over the standard deviation of the true responses across customers and levels.
- **Effects** is the RMSE of what levels add to the cheapest one, over the root mean square of what they truly add.
- **Below −0.1** is the share of worlds in which the plans lose more than a tenth of what the best plans gain.

Simple rows stand beside the models: logistic regression on the features and the level's number (linear regression where
responses are amounts), monotone boosting, boosting for each level alone, a DR-learner (cross-fitted doubly robust scores,
regressed on the features), the best uniform mix by the log's level means, and the truth.""",
    fill=fill_worlds,
)
EXPERIMENT = Experiment("worlds", measure, tabulate, CHAPTER, summarise, drawn=True, one_thread=True)
