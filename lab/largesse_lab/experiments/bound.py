"""Does what a plan gains *at least* hold, after choosing between the plan and a simple rule? Logs of random worlds say so.

Each log is drawn from a world of its own (`worlds.draw_world`) and judged as a user would, with a linear model: the plan at a
budget, a simple rule for the same money, and the bound on what either gains over the best uniform mix (`make_study(…).safety`). The
truth is that of fresh customers of the same world: the mean over folds of what each fold's model, price or rule brings them. A
bound is right if the true gain of the recommended option lies above it; "named" compares with the mix that the evaluation names,
"best" with the truly best mix at what the option truly costs. Propensities are the log's own or estimated, "as drawn" is what the
world's log holds. `guaranteed` is the share of guaranteed values below the true ones, `levels` the share of honest intervals of a
level's mean response that contain the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import as_floats, group_column, kind_of
from largesse.errors import Problem, refuse
from largesse.evaluation import (
    RULE_GROUPS,
    SimpleRule,
    crossfit,
    estimate_uniform,
    find_best_mix,
    learn_rules,
    plan_held_out,
    score_rows,
    weigh_options,
)
from largesse.exploration import find_mixture
from largesse.propensity import estimate_propensities
from largesse.records import Array, HeldOut, HeldOutPlan, Log, Option, Progress, Propensities, Scores
from largesse.response import Linear
from largesse.worlds import RandomLog, draw_world
from largesse_lab.experiments.base import Experiment
from largesse_lab.experiments.coverage import Recorder
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import write_table
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, check_part, ignore_progress

if TYPE_CHECKING:
    import pyarrow as pa

ROWS, FRESH = 2000, 20_000
ROUNDING = 1e-9  # a plan that gives everyone the same has no gain
LOGS = 500
SOURCES = ("given", "estimated")


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per log: the bounds of both options and their true gains, with given and estimated propensities."""
    wrong = check_part(request.part)
    if request.problems is not None or request.rows is not None:
        wrong.append(Problem("bound draws its own worlds and has one model", "leave out --simulations and --models"))
    refuse("experiment", wrong)
    logs = range(LOGS if request.repeats is None else request.repeats)[request.part[0] :: request.part[1]]
    kept = Kept(request.out, ("log",))
    kept.complete([[(log,)] for log in logs], lambda keys: [_measure_log(*keys[0])], progress)
    return kept.take((log,) for log in logs)


def _measure_log(seed: int) -> dict[str, Any]:
    world = draw_world(seed)
    drawn, fresh = world.draw_log(ROWS), world.draw_fresh(FRESH)
    budget = world.budgets[seed % len(world.budgets)]
    own = drawn.propensities[np.arange(len(drawn)), drawn.level]
    # The penalty is chosen on another log of the same world, instead of one in every fold.
    penalty = Linear(seed=seed).fit(world.draw_fresh(ROWS, 2).log).penalty_
    watched = Recorder(model=Linear(penalty=penalty, seed=seed), fresh=fresh.table, seen=[])
    base = crossfit(drawn.log, watched, seed=seed, propensities=Propensities(own, "given"))
    plan = plan_held_out(base, budget)
    traits = world.traits
    record: dict[str, Any] = {"log": seed, "rows": ROWS, "response": traits.response, "way": traits.log}
    record |= {"known": traits.known, "levels": traits.levels}
    for source in SOURCES:
        log = replace(drawn.log, propensity=own if source == "given" else None)
        known = Propensities(own, "given") if source == "given" else estimate_propensities(log, base.fold, seed)
        scores = score_rows(log, HeldOut(base.curves, base.fold), known)
        record[source] = _judge(log, scores, plan, _Fresh(fresh, watched.seen, drawn.table))
    return record


@dataclass(frozen=True, eq=False)
class _Fresh:
    """Customers who are not in the log, what each fold's model expects of them, and the log's own features."""

    customers: RandomLog
    curves: Sequence[Array]  # (folds) of (n, K)
    table: pa.Table

    def judge(self, policies: Sequence[Array]) -> tuple[float, float]:
        """Return the true value and spend of policies (n, K), averaged over them."""
        truth, costs = self.customers.truth, self.customers.costs
        value = np.mean([(given * truth).sum(axis=1).mean() for given in policies])
        return float(value), float(np.mean([(given @ costs).mean() for given in policies]))


def _judge(log: Log, scores: Scores, plan: HeldOutPlan, fresh: _Fresh) -> dict[str, Any]:
    """Return the bounds of both options and the truth about them."""
    found = weigh_options(log, scores, plan.levels, learnt=True)
    policies = {"this plan": _follow_plan(scores, plan, fresh)}
    rules = learn_rules(log, scores, plan.levels)
    if rules is not None:
        policies["a simple rule"] = [_follow_rule(rule, fresh) for rule in rules.folds]
    options = [_record_option(option, scores, fresh, policies[option.name]) for option in found.options]
    true = fresh.customers.truth.mean(axis=0)
    means = [mean for mean, _ in estimate_uniform(scores)]
    inside = [None if np.isnan(m.low) else bool(m.low <= t <= m.high) for m, t in zip(means, true, strict=True)]
    return {
        "options": options,
        "chosen": 0 if found.chosen is None else found.options.index(found.chosen),
        "reach": found.reach,
        "inside": inside,
    }


def _follow_plan(scores: Scores, plan: HeldOutPlan, fresh: _Fresh) -> list[Array]:
    """Return the probabilities (n, K) that each fold's model and price give fresh customers; ties meet the budget."""
    costs, found = fresh.customers.costs, []
    for f, curves, price in zip(np.unique(scores.fold), fresh.curves, plan.prices, strict=True):
        rule = find_mixture(scores.curves[scores.fold == f], costs, float(price), plan.budget)
        found.append(rule.probabilities(curves, costs))
    return found


def _follow_rule(rule: SimpleRule, fresh: _Fresh) -> Array:
    """Return the probabilities (n, K) that a rule gives fresh customers."""
    return rule.shares[assign_groups(fresh.table.column(rule.column), fresh.customers.table.column(rule.column))]


def assign_groups(known: pa.ChunkedArray, fresh: pa.ChunkedArray) -> Array:
    """Return the group (n,) of fresh values, by the groups of the known values of a column."""
    groups = group_column(known, RULE_GROUPS)
    usual = int(np.bincount(groups.code).argmax())  # for what the log has never seen
    other, missing = (groups.labels.index(word) if word in groups.labels else usual for word in ("other", "missing"))
    if kind_of(known.type) == "text":
        codes: dict[Any, int] = {None: missing, **dict(zip(known.to_pylist(), groups.code.tolist(), strict=True))}
        return np.array([codes.get(word, other) for word in fresh.to_pylist()])
    values, wanted = as_floats(known), as_floats(fresh)
    seen = np.isfinite(values)
    tops = [values[seen & (groups.code == g)].max() for g in np.unique(groups.code[seen])]
    return np.where(np.isfinite(wanted), np.searchsorted(tops[:-1], wanted, side="left"), missing)


def _record_option(option: Option, scores: Scores, fresh: _Fresh, policies: Sequence[Array]) -> dict[str, Any]:
    value, spend = fresh.judge(policies)
    mix = find_best_mix(scores, option.spend.estimate)
    return {
        "gain": option.gain.estimate,
        "se": option.gain.se,
        "at_least": option.at_least,
        "guaranteed": option.guaranteed,
        "value": value,
        "named": value - float(mix @ fresh.customers.truth.mean(axis=0)) + ROUNDING,
        "best": value - fresh.customers.uniform_value(spend) + ROUNDING,
    }


# -- the table ---------------------------------------------------------------------------------------------------------

Cell = Callable[[Records], str]


def tabulate(records: Records) -> str:
    """Return as Markdown how often the bound holds, over all logs and by kinds of logs."""
    body = [_write_row("as drawn", records, [_take(record, None) for record in records])]
    body += [_write_row(f"propensities {source}", records, [_take(r, source) for r in records]) for source in SOURCES]
    for word, title in (("response", ""), ("way", "log: ")):
        for kind in sorted({record[word] for record in records}):
            mine = [record for record in records if record[word] == kind]
            body.append(_write_row(f"{title}{kind}", mine, [_take(record, None) for record in mine]))
    head = f"{len(records)} logs of {records[0]['rows'] if records else ROWS:,} rows, each from a random world of its own.\n\n"
    names = ["logs", "n", "named", "best", "plan", "rule", "q·se alone", "above 0", "of these right", "rule chosen"]
    return head + write_table([*names, "guaranteed", "levels"], body) + "\n"


def _take(record: dict[str, Any], source: str | None) -> dict[str, Any]:
    found: dict[str, Any] = record[source or ("given" if record["known"] else "estimated")]
    return found


def _write_row(name: str, records: Records, found: Sequence[dict[str, Any]]) -> list[str]:
    chosen = [(one, one["options"][one["chosen"]]) for one in found]
    bound = [(one, option) for one, option in chosen if option["at_least"] is not None]
    sure = [option for _, option in bound if option["at_least"] > 0]
    every = [option for one in found for option in one["options"]]
    return [
        name,
        str(len(records)),
        *(_share([option["at_least"] <= option[truth] for _, option in bound]) for truth in ("named", "best")),
        *(_share([o["at_least"] <= o["best"] for o in _nth(found, j) if o["at_least"] is not None]) for j in range(2)),
        _share([option["gain"] - one["reach"] * option["se"] <= option["best"] for one, option in bound]),
        _share([option["at_least"] > 0 for _, option in bound]),
        _share([option["best"] >= 0 for option in sure]),
        _share([one["chosen"] == 1 for one in found]),
        _share([option["guaranteed"] <= option["value"] for option in every if option["guaranteed"] is not None]),
        _share([hit for one in found for hit in one["inside"] if hit is not None]),
    ]


def _nth(found: Sequence[dict[str, Any]], place: int) -> list[dict[str, Any]]:
    return [one["options"][place] for one in found if len(one["options"]) > place]


def _share(hits: Sequence[bool]) -> str:
    return f"{np.mean(hits):.1%}" if hits else "–"


EXPERIMENT = Experiment("bound", measure, tabulate, Chapter("What a plan gains at least"))
