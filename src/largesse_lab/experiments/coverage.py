"""Do 95 % intervals hold the truth 95 % of the time? Simulated logs, judged as a user would, against the truth.

Twenty logs share a world. Judged are three policies: a fixed rule on two features ("fixed"), the highest level for
everybody ("highest"), and policies learnt on the same log for a budget, cross-fitted ("learnt"); each with the log's own
propensities ("given") and with estimated ones ("estimated"), with costs that are always paid ("always") and paid on
redemption ("redeemed"). The truth is that of fresh customers of the same world; of learnt policies, the mean over folds
of what each fold's model brings them at that fold's price. The band is that of the whole frontier of learnt policies.

With given propensities the estimates of fixed policies have no bias, so what is seen of one there is chance (a learnt plan of
whole customers spends a little less than its price would elsewhere); with estimated propensities the bias is measured
against the estimate with given ones on the same log, and the chance that both share drops out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from largesse.allocation import decide_at_price, expected_costs
from largesse.errors import Problem, nearest, refuse
from largesse.evaluation import crossfit, estimate_value, plan_budgets, plan_held_out, spread_budgets, trace_frontier
from largesse.evaluation import score_rows as scored
from largesse.levels import Levels
from largesse.propensity import estimate_propensities
from largesse.records import Array, Estimate, HeldOutPlan, Log, Propensities, Scores
from largesse.response import Linear, ResponseModel, call_together
from largesse.worlds import SIMULATIONS, Simulation, simulate
from largesse_lab.bench.kept import Kept
from largesse_lab.experiments.simulation import MODELS

ROWS = 2000
LOGS_PER_WORLD = 20
FRESH, FRESH_SEED = 200_000, 99  # customers on whom fixed policies are tried
LEARNT_FRESH, BAND_FRESH = 50_000, 10_000  # and learnt ones, whose every fold is tried, and at every budget
BAND_EVERY = 5  # the band is looked at in every fifth log: it takes as long as everything else
MIX = 0.2  # share of the log that drew lots: without it weights have no bound
BUDGETS = {"always": 1.5, "redeemed": 0.8}
FACE = (0.0, 1.0, 2.0, 3.0, 4.0)


def coverage(
    simulations: Sequence[str] = ("averaged", "unit", "confounded"),
    *,
    logs: int = 500,
    rows: int = ROWS,
    mix: float = MIX,
    model: Callable[[], ResponseModel] | Sequence[str] = Linear,
    part: tuple[int, int] = (0, 1),
    out: str | Path | None = None,
    tell: Callable[[str, float], None] = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per simulation and log: every case's error, standard error and hits, and the band's.

    `model` makes the response model, or is a name of one in `simulation`. `part` (i, n) takes every n-th world from the i-th
    on: n processes then share the work. Logs of a world are judged together, so that networks are trained as one.
    """
    problems = [(name, nearest(name, SIMULATIONS)) for name in simulations if name not in SIMULATIONS]
    refuse("experiment", [Problem(f"simulation {name!r} is not known", hint) for name, hint in problems])
    make = model if callable(model) else _named(model)
    kept = Kept(out, ("simulation", "log", "rows", "mix"))
    worlds = [range(first, min(first + LOGS_PER_WORLD, logs)) for first in range(0, logs, LOGS_PER_WORLD)]
    todo = [(name, world) for name in simulations for world in worlds[part[0] :: part[1]]]
    for done, (name, world) in enumerate(todo):
        tell(f"{name}, logs {world[0]} to {world[-1]}", done / len(todo))
        missing = [(name, log, rows, mix) for log in world if (name, log, rows, mix) not in kept.found]
        for record in call_together([partial(_measured, *key, make) for key in missing]):
            kept.add(record)
    return [kept.found[name, log, rows, mix] for name, world in todo for log in world]


def _named(names: Sequence[str]) -> Callable[[], ResponseModel]:
    """Return what makes the one response model that is named."""
    wrong = [
        Problem(f"model {name!r} is not known", nearest(name, list(MODELS))) for name in names if name not in MODELS
    ]
    if len(names) != 1:
        wrong.append(Problem(f"{len(names)} models", "give one: its curves are what all policies are judged with"))
    refuse("experiment", wrong)
    return MODELS[names[0]]


@lru_cache(maxsize=6)
def _world(name: str, seed: int, rows: int, mix: float) -> tuple[Simulation, Simulation]:
    """Return a world, and many fresh customers of it."""
    world = simulate(name, n=rows, seed=seed, mix=mix)
    return world, world.draw(FRESH, FRESH_SEED)


@lru_cache(maxsize=6)
def _tuned(model: Callable[[], ResponseModel], name: str, seed: int, rows: int, mix: float) -> ResponseModel:
    """Return the model; a penalty chosen on another log of the same world spares choosing it in every fold."""
    made = model()
    if isinstance(made, Linear) and made.penalty is None:
        return Linear(penalty=made.fit(_world(name, seed, rows, mix)[0].log).penalty_)
    return made


def _measured(name: str, log: int, rows: int, mix: float, model: Callable[[], ResponseModel]) -> dict[str, Any]:
    seed, place = divmod(log, LOGS_PER_WORLD)
    world, fresh = _world(name, seed, rows, mix)
    sim = world.draw(rows, place)
    watched = _Watched(model=_tuned(model, name, seed, rows, mix), fresh=fresh.features[:LEARNT_FRESH], seen=[])
    base = crossfit(sim.log, watched, seed=log)
    record: dict[str, Any] = {"simulation": name, "log": log, "rows": rows, "mix": mix}
    truths: dict[str, Any] = {}  # plans follow the curves: they are the same whatever the propensities
    for source in ("given", "estimated"):
        known = sim.log if source == "given" else replace(sim.log, propensity=None)
        chances = estimate_propensities(known, base.fold, log)
        for paid in BUDGETS:
            made = _scores(known, base, chances, paid)
            if paid not in truths:
                truths[paid] = _truths(made, fresh, watched.seen, paid)
            for policy, case in _judged(made, sim, truths[paid], paid):
                record[f"{policy} {source} {paid}"] = case
            if paid == "always" and log % BAND_EVERY == 0:
                if "band" not in truths:
                    truths["band"] = _frontier(made, fresh, watched.seen)
                record[f"band {source}"] = _band(made, *truths["band"])
    return record


def _scores(log: Log, base: Scores, chances: Propensities, paid: str) -> Scores:
    levels = Levels(costs=FACE, on_redemption=paid == "redeemed")
    return scored(replace(log, levels=levels), base.curves, base.fold, chances)


def _truths(made: Scores, fresh: Simulation, seen: list[Array], paid: str) -> dict[str, tuple[float, float]]:
    """Return true value and spend of every policy."""
    prices = plan_held_out(made, BUDGETS[paid]).prices
    return {
        **{name: _true(fresh, [rule(fresh.features)], paid) for name, rule in RULES.items()},
        "learnt": _true(fresh, _given(seen, prices, paid), paid),
    }


def _judged(
    made: Scores, sim: Simulation, truths: dict[str, tuple[float, float]], paid: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, rule in RULES.items():
        yield name, _case(estimate_value(made, rule(sim.features)), truths[name])
    levels = plan_held_out(made, BUDGETS[paid]).levels
    own = made.curves[np.arange(len(levels)), levels]
    case = _case(estimate_value(made, levels), truths["learnt"])
    yield "learnt", {**case, "promise": float(own.mean()) - truths["learnt"][0]}


def fixed_rule(features: Array) -> Array:
    """Return the levels (n,) of a rule that knows nothing: two features against their middles."""
    middle = round(float(features.max())) / 2  # of the cube the features fill
    return (features[:, 0] > middle).astype(np.int64) + 2 * (features[:, 7] > middle)


def highest_rule(features: Array) -> Array:
    """Return the highest level (n,) for everybody."""
    return np.full(len(features), len(FACE) - 1)


RULES = {"fixed": fixed_rule, "highest": highest_rule}


def _given(seen: list[Array], prices: Array, paid: str) -> list[Array]:
    """Return what each fold's model and price give the fresh customers."""
    levels = Levels(costs=FACE, on_redemption=paid == "redeemed")
    return [
        decide_at_price(curves, expected_costs(levels, curves), price)
        for curves, price in zip(seen, prices, strict=True)
    ]


def _true(fresh: Simulation, policies: list[Array], paid: str) -> tuple[float, float]:
    """Return true value and spend, the mean over the policies."""
    rows, costs = np.arange(len(policies[0])), np.asarray(FACE)
    brought = [fresh.truth[rows, levels] for levels in policies]
    spent = [
        costs[levels] * (own if paid == "redeemed" else 1.0) for levels, own in zip(policies, brought, strict=True)
    ]
    return float(np.mean(brought)), float(np.mean(spent))


def _case(found: tuple[Estimate, Estimate], truth: tuple[float, float]) -> dict[str, Any]:
    return {
        "error": [e.estimate - t for e, t in zip(found, truth, strict=True)],
        "se": [e.se for e in found],
        "reach": [(e.high - e.low) / 2 for e in found],
        "hit": [bool(e.low <= t <= e.high) for e, t in zip(found, truth, strict=True)],
        "truth": list(truth),
    }


def _frontier(made: Scores, fresh: Simulation, seen: list[Array]) -> tuple[tuple[HeldOutPlan, ...], Array]:
    """Return the plans at every budget, and what the policies learnt for each truly bring to fresh customers."""
    plans = plan_budgets(made, spread_budgets(made))
    seen = [curves[:BAND_FRESH] for curves in seen]
    return plans, np.array([_true(fresh, _given(seen, plan.prices, "always"), "always")[0] for plan in plans])


def _band(made: Scores, plans: Sequence[HeldOutPlan], truths: Array) -> dict[str, Any]:
    """Return whether the simultaneous band holds the whole true frontier, and the share of points pointwise ones hold."""
    points = trace_frontier(made, plans)
    inside = [p.band[0] <= true <= p.band[1] for p, true in zip(points, truths, strict=True)]
    pointwise = [p.value.low <= true <= p.value.high for p, true in zip(points, truths, strict=True)]
    return {"hit": bool(np.all(inside)), "pointwise": float(np.mean(pointwise))}


class _Watched:
    """A response model that, whenever it is asked about a fold, also says what it thinks of the fresh customers."""

    def __init__(self, *, model: ResponseModel, fresh: Array, seen: list[Array]) -> None:
        self.model, self.fresh, self.seen = model, fresh, seen

    def get_params(self, deep: bool = False) -> dict[str, Any]:  # noqa: ARG002 — the estimator contract
        return {"model": self.model, "fresh": self.fresh, "seen": self.seen}

    def fit(self, log: Log) -> _Watched:
        self.model = self.model.fit(log)
        return self

    def predict(self, features: Any) -> Array:
        self.seen.append(self.model.predict(self.fresh))
        return self.model.predict(features)


# -- the table --------------------------------------------------------------------------------------------------------


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return coverage and bias of every case as Markdown, one table per simulation and logger."""
    lines: list[str] = []
    for name, mix in dict.fromkeys((record["simulation"], record["mix"]) for record in records):
        mine = [record for record in records if (record["simulation"], record["mix"]) == (name, mix)]
        lines += [f"\n### {name}, {len(mine)} logs of {mine[0]['rows']:,} rows, {mix:.0%} lots\n"]
        lines += [
            "| policy | propensities | costs | value covered | bias/sd ± se | spend covered | bias/sd ± se | promise bias |"
        ]
        lines += ["|---|---|---|---:|---:|---:|---:|---:|"]
        for case in (key for key in mine[0] if isinstance(mine[0][key], dict) and "truth" in mine[0][key]):
            lines.append(_line(case, mine))
        for source in ("given", "estimated"):
            bands = [record[f"band {source}"] for record in mine if f"band {source}" in record]
            hit, points = np.mean([b["hit"] for b in bands]), np.mean([b["pointwise"] for b in bands])
            words = f"band {hit:.1%} of {len(bands)} logs | | points {points:.1%}"
            lines.append(f"| whole frontier | {source} | always | {words} | | |")
    return "\n".join(lines).strip() + "\n"


def _line(case: str, mine: list[dict[str, Any]]) -> str:
    found = [record[case] for record in mine]
    unbiased = case.replace(" estimated ", " given ")
    cells = []
    for j in range(2):
        cells += [f"{np.mean([one['hit'][j] for one in found]):.1%}"]
        errors = np.array([one["error"][j] for one in found])
        shared = np.array([record[unbiased]["error"][j] for record in mine]) if unbiased != case else 0.0
        cells += [_bias(errors, errors - shared)]
    promise = f"{np.mean([one['promise'] for one in found]):+.4f}" if "promise" in found[0] else ""
    return "| " + " | ".join([*case.split(), *cells, promise]) + " |"


def _bias(errors: Array, apart: Array) -> str:
    """Return the mean of what is apart (logs,) and its standard error, in standard deviations of the errors (logs,)."""
    spread = errors.std(ddof=1) if len(errors) > 1 else np.nan
    if not spread > 1e-9:
        return "exact" if len(errors) > 1 else "–"
    if not np.abs(apart).max() > 1e-9 * spread:
        return "as given"
    apart = apart / spread
    return f"{apart.mean():+.2f} ± {apart.std(ddof=1) / np.sqrt(len(apart)):.2f}"
