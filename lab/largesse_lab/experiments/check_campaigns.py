"""Does `largesse check` find what is wrong with a campaign, and is it silent where nothing is? Campaigns of random worlds.

In each world a log is learnt from, a table of other customers is planned, and the plan is carried out: responses follow from the
truth. `largesse check` then reads the run folder and the new log, as a scheduler would run it. In most campaigns something is
planted: a column whose values have shifted, a column that was recorded after the response, or levels that were not given as
planned. Effects are named with their size, so that it can be seen from where on they are found.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse import pipeline
from largesse.campaign import campaign_from
from largesse.errors import percent
from largesse.records import Array, CampaignCheck, Progress
from largesse.stats import draw_levels
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.campaign_loop import fill_checks, tabulate_checks
from largesse_lab.page.sections import Chapter
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, ignore_progress, take_seeds

if TYPE_CHECKING:
    import pyarrow as pa

ROWS, NEXT = 3000, 3000
FIRST = 4000  # the first seed: worlds nobody looked at while choosing
WORLDS = 100
SHARE = 0.25  # the budget, as a share of the dearest level's cost
MODEL = "linear"
SLIP = 0.005  # share of customers who by mistake get another level, even where nothing is wrong
CASES: dict[str, tuple[str, float]] = {
    "nothing wrong": ("", 0.0),
    "a column shifts by 0.1 sd": ("drift", 0.1),
    "a column shifts by 0.2 sd": ("drift", 0.2),
    "a column shifts by 0.3 sd": ("drift", 0.3),
    "a column shifts by 0.5 sd": ("drift", 0.5),
    "a column knows the response, correlation 0.4": ("leak", 0.4),
    "a column knows the response, correlation 0.6": ("leak", 0.6),
    "a column knows the response, correlation 0.8": ("leak", 0.8),
    "2 % of levels not as planned": ("plan", 0.02),
    "5 % of levels not as planned": ("plan", 0.05),
    "10 % of levels not as planned": ("plan", 0.1),
    "responses 10 % below": ("value", 0.1),
    "responses 30 % below": ("value", 0.3),
}
TOPICS = {"drift": ("features",), "leak": ("leaks",), "plan": ("plan",), "value": ("value",), "": ()}


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per world and case: the answer, and which checks were not fine."""
    seeds = take_seeds(request, FIRST, WORLDS)
    cases = list(CASES) if request.problems is None else list(request.problems)
    todo = [[(seed, case) for case in cases] for seed in seeds]
    kept = Kept(request.out, ("seed", "case"))
    kept.complete(todo, lambda keys: _measure_world(keys[0][0], [case for _, case in keys]), progress)
    return kept.take(key for group in todo for key in group)


def _measure_world(seed: int, cases: list[str]) -> Records:
    """Run one campaign and check what follows in every case; the run folder is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="largesse-check-") as name:
        home, world = Path(name), draw_world(seed)
        run, fresh = _run_campaign(home, world)
        found = []
        for case in cases:
            rng = np.random.default_rng(
                (seed, list(CASES).index(case))
            )  # the same, whichever cases are measured with it
            table = _carry_out(home, world, fresh, CASES[case], rng)
            record, _ = pipeline.check(run, table)
            found.append({"seed": seed, "case": case, **_read_answers(record, CASES[case][0])})
    return found


def _run_campaign(home: Path, world: RandomWorld) -> tuple[Path, RandomLog]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    drawn, fresh = world.draw_log(ROWS), world.draw_fresh(NEXT)
    table = drawn.table.append_column("given", pa.array(drawn.level)).append_column("came", pa.array(drawn.response))
    roles = {"level": "given", "response": "came", "customer": "id"}
    if drawn.known:
        own = drawn.propensities[np.arange(len(drawn)), drawn.level]
        table, roles = table.append_column("chance", pa.array(own)), roles | {"propensity": "chance"}
    pq.write_table(_number(table, "old"), home / "log.parquet")
    pq.write_table(_number(fresh.table, "new"), home / "customers.parquet")
    campaign = campaign_from(
        {
            "log": str(home / "log.parquet"),
            "customers": str(home / "customers.parquet"),
            "columns": roles,
            "levels": {"costs": world.doses.tolist(), "names": [str(k) for k in range(len(world.doses))]},
            "plan": {"budget": SHARE * float(world.doses[-1])},
            "model": {"name": MODEL, "seed": world.seed},
        }
    )
    pipeline.run(campaign, home / "run")
    return home / "run", fresh


def _number(table: pa.Table, word: str) -> pa.Table:
    import pyarrow as pa

    return table.append_column("id", pa.array([f"{word}{i:06d}" for i in range(len(table))]))


def _carry_out(
    home: Path, world: RandomWorld, fresh: RandomLog, planted: tuple[str, float], rng: np.random.Generator
) -> pa.Table:
    """Return the log of the campaign, with what is planted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind, size = planted
    planned = pq.read_table(home / "run" / "plan.parquet")["level_number"].to_numpy().astype(np.int64)
    missed = rng.random(len(planned)) < SLIP + (size if kind == "plan" else 0.0)
    level = np.where(missed, _others(planned, len(world.doses), rng), planned)
    certain = np.eye(len(world.doses))[level]
    came = world.draw_next(len(level), lambda _table: certain).response
    if kind == "value":  # fewer respond, or everybody less
        binary = world.traits.response == "yes/no"
        came = came * (rng.random(len(came)) >= size) if binary else came * (1 - size)
    table = _number(fresh.table, "new")
    if kind in ("drift", "leak"):
        table = _plant(table, came, kind, size, rng)
    return table.append_column("given", pa.array(level)).append_column("came", pa.array(came))


def _others(planned: Array, levels: int, rng: np.random.Generator) -> Array:
    """Return another level (n,) than the planned one."""
    if levels == 1:
        return planned
    shift = draw_levels(np.full((len(planned), levels - 1), 1 / (levels - 1)), rng)
    return (planned + 1 + shift) % levels


def _plant(table: pa.Table, came: Array, kind: str, size: float, rng: np.random.Generator) -> pa.Table:
    """Shift a column of numbers, or let a column, an old or a new one, know the response."""
    import pyarrow as pa

    names = [name for name in table.column_names if name.startswith(("normal", "skewed"))]
    name = str(rng.choice(names)) if names else ""
    values = np.asarray(table[name].to_numpy(), dtype=np.float64) if name else rng.standard_normal(len(table))
    if kind == "drift":
        if not name:  # no numbers of any size: a column is added to the old log instead of nothing
            name = str(
                rng.choice([other for other in table.column_names if other.startswith(("counts", "binary"))] or [""])
            )
            values = np.asarray(table[name].to_numpy(), dtype=np.float64)
        step = size * float(np.nanstd(values))
        moved = values + step if not name.startswith("skewed") else values * np.exp(size)
        return _set(table, name, moved)
    known = (came - came.mean()) / (came.std() or 1.0)
    new = rng.random() < 0.5 or not name
    base = rng.standard_normal(len(table)) if new else (values - np.nanmean(values)) / np.nanstd(values)
    told = size * known + np.sqrt(1 - size**2) * base
    if new:
        return table.append_column("visits afterwards", pa.array(told))
    return _set(table, name, np.nanmean(values) + np.nanstd(values) * told)


def _set(table: pa.Table, name: str, values: Array) -> pa.Table:
    import pyarrow as pa

    return table.set_column(table.column_names.index(name), name, pa.array(values, from_pandas=True))


def _read_answers(found: CampaignCheck, kind: str) -> dict[str, Any]:
    loud = {
        finding.topic: finding.answer for finding in reversed(found.findings) if finding.answer in ("careful", "no")
    }
    return {
        "answer": found.answer,
        "loud": loud,
        "found": any(topic in loud for topic in TOPICS[kind]),
        "value": found.value.p,
        "followed": found.followed,
    }


def summarise(records: Records) -> dict[str, Any]:
    """Return for each case how often an alarm was raised, and how often by the check that is meant to find it."""
    cases = []
    for case, (kind, _) in CASES.items():
        mine = [record for record in records if record["case"] == case]
        if not mine:
            continue
        topics = Counter(topic for record in mine for topic in sorted(record["loud"]))
        cases.append(
            {
                "case": case,
                "kind": kind,
                "campaigns": len(mine),
                "alarms": float(np.mean([record["answer"] != "fine" for record in mine])),
                "found": float(np.mean([record["found"] for record in mine])) if kind else None,
                "checks": dict(sorted(topics.items(), key=lambda pair: (-pair[1], pair[0]))),
            }
        )
    return {"cases": cases}


def tabulate(records: Records) -> str:
    """Return for each case how often an alarm was raised, and how often by the check that is meant to find it, as Markdown."""
    return tabulate_checks(summarise(records))


SETUP = (
    f"In each of many random worlds, a {MODEL} model learns from {ROWS:,} rows, {NEXT:,} other customers are planned at a budget of "
    f"{percent(SHARE)} of the dearest level, and the plan is carried out; {percent(SLIP, 1)} of the levels are never as planned. "
    "Then something is planted, and `largesse check` compares the new log with the run."
)
EXPERIMENT = Experiment(
    "check_campaigns",
    measure,
    tabulate,
    Chapter("What a check of a campaign finds", SETUP, fill=fill_checks),
    summarise,
    drawn=True,
    one_thread=True,
)
