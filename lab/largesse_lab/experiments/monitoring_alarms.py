"""Detection and false-alarm rates of `largesse check` on campaigns of random simulated worlds.

In each world a model learns from a log, a table of other customers is planned, and the plan is carried out: responses follow from the
truth. `largesse check` then reads the run folder and the new log, as a scheduler would run it. Most campaigns have a planted
problem: a column whose values have shifted, a column that was recorded after the response, or levels that were not given as
planned. Problems come in several sizes, to find the smallest that is detected.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse import pipeline
from largesse.campaign import parse_campaign
from largesse.errors import percent, refuse
from largesse.records import Array, Progress
from largesse.stats import draw_levels
from largesse.worlds import RandomLog, RandomWorld, draw_world
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.figures import FigureText, draw_intervals
from largesse_lab.pages.markdown import NUMBER_DASH, Section, compute_wilson_interval, format_table
from largesse_lab.pages.method_comparison import Summary
from largesse_lab.runner.experiment_request import (
    Records,
    Request,
    find_unknown_name_problems,
    ignore_progress,
    select_requested_seeds,
)
from largesse_lab.runner.record_cache import RecordCache

if TYPE_CHECKING:
    import pyarrow as pa

LOG_ROWS, NEXT_ROWS = 3000, 3000
FIRST_SEED, N_WORLDS = 4000, 100  # worlds that were not used to choose settings
CHECK_BUDGET_SHARE = 0.25  # of the dearest level's cost
CHECK_MODEL = "linear"
MISTAKES = 0.005  # share of customers who by mistake get another level in every campaign
CHECK_CASES: dict[str, tuple[str, float]] = {
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
    """Return one record per simulated world and case: the verdict of `largesse check`, and checks with alarms."""
    seeds = select_requested_seeds(request, FIRST_SEED, N_WORLDS)
    cases = list(CHECK_CASES) if request.problems is None else list(request.problems)
    refuse("experiment", find_unknown_name_problems("case", cases, list(CHECK_CASES)))
    groups = [[(seed, case) for case in cases] for seed in seeds]
    cache = RecordCache(request.out, ("seed", "case"))
    return cache.measure_groups(groups, lambda keys: _measure_world(keys[0][0], [case for _, case in keys]), progress)


def _measure_world(seed: int, cases: list[str]) -> Records:
    """Run one campaign in a temporary folder, and check a log with each planted problem."""
    with tempfile.TemporaryDirectory(prefix="largesse-check-") as name:
        folder, world = Path(name), draw_world(seed)
        run, fresh = _run_campaign(folder, world)
        records = []
        for case in cases:
            # The same draws for any selection of cases
            rng = np.random.default_rng((seed, list(CHECK_CASES).index(case)))
            kind, size = CHECK_CASES[case]
            check, _ = pipeline.check(run, _make_campaign_log(folder, world, fresh, kind, size, rng))
            answers = {f.topic: f.answer for f in reversed(check.findings) if f.answer in ("careful", "no")}
            record = {"seed": seed, "case": case, "answer": check.answer, "loud": answers}
            record |= {"found": any(topic in answers for topic in TOPICS[kind])}
            records.append(record | {"value": check.value.p, "followed": check.followed})
    return records


def _run_campaign(folder: Path, world: RandomWorld) -> tuple[Path, RandomLog]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    drawn, fresh = world.draw_log(LOG_ROWS), world.draw_fresh(NEXT_ROWS)
    table = drawn.table.append_column("given", pa.array(drawn.level)).append_column("came", pa.array(drawn.response))
    roles = {"level": "given", "response": "came", "customer": "id"}
    if drawn.known:
        propensity = drawn.propensities[np.arange(len(drawn)), drawn.level]
        table, roles = table.append_column("chance", pa.array(propensity)), roles | {"propensity": "chance"}
    pq.write_table(_append_ids(table, "old"), folder / "log.parquet")
    pq.write_table(_append_ids(fresh.table, "new"), folder / "customers.parquet")
    campaign = parse_campaign(
        {
            "log": str(folder / "log.parquet"),
            "customers": str(folder / "customers.parquet"),
            "columns": roles,
            "levels": {"costs": world.doses.tolist(), "names": [str(k) for k in range(len(world.doses))]},
            "plan": {"budget": CHECK_BUDGET_SHARE * float(world.doses[-1])},
            "model": {"name": CHECK_MODEL, "seed": world.seed},
        }
    )
    pipeline.run(campaign, folder / "run")
    return folder / "run", fresh


def _append_ids(table: pa.Table, prefix: str) -> pa.Table:
    import pyarrow as pa

    return table.append_column("id", pa.array([f"{prefix}{i:06d}" for i in range(len(table))]))


def _make_campaign_log(
    folder: Path, world: RandomWorld, fresh: RandomLog, kind: str, size: float, rng: np.random.Generator
) -> pa.Table:
    """Return the log of an executed campaign with a planted problem."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    planned = pq.read_table(folder / "run" / "plan.parquet")["level_number"].to_numpy().astype(np.int64)
    missed = rng.random(len(planned)) < MISTAKES + (size if kind == "plan" else 0.0)
    level = np.where(missed, _draw_other_levels(planned, len(world.doses), rng), planned)
    certain = np.eye(len(world.doses))[level]
    response = world.draw_next(len(level), lambda _table: certain).response
    if kind == "value":  # fewer customers respond, or all of them less
        binary = world.traits.response == "yes/no"
        response = response * (rng.random(len(response)) >= size) if binary else response * (1 - size)
    table = _append_ids(fresh.table, "new")
    if kind in ("drift", "leak"):
        table = _plant_problem(table, response, kind, size, rng)
    return table.append_column("given", pa.array(level)).append_column("came", pa.array(response))


def _draw_other_levels(planned: Array, levels: int, rng: np.random.Generator) -> Array:
    """Draw a random level (n,) for each customer that differs from the planned level."""
    if levels == 1:
        return planned
    shift = draw_levels(np.full((len(planned), levels - 1), 1 / (levels - 1)), rng)
    return (planned + 1 + shift) % levels


def _plant_problem(table: pa.Table, response: Array, kind: str, size: float, rng: np.random.Generator) -> pa.Table:
    """Shift a numeric column of a log, or correlate a column with the response."""
    import pyarrow as pa

    names = [name for name in table.column_names if name.startswith(("normal", "skewed"))]
    name = str(rng.choice(names)) if names else ""
    values = np.asarray(table[name].to_numpy(), dtype=np.float64) if name else rng.standard_normal(len(table))
    if kind == "drift":
        if not name:  # no column of continuous numbers
            discrete = [column for column in table.column_names if column.startswith(("counts", "binary"))]
            name = str(rng.choice(discrete or [""]))
            values = np.asarray(table[name].to_numpy(), dtype=np.float64)
        step = size * float(np.nanstd(values))
        return _replace_column(table, name, values * np.exp(size) if name.startswith("skewed") else values + step)
    standardised = (response - response.mean()) / (response.std() or 1.0)
    new = rng.random() < 0.5 or not name
    noise = rng.standard_normal(len(table)) if new else (values - np.nanmean(values)) / np.nanstd(values)
    leak = size * standardised + np.sqrt(1 - size**2) * noise
    if new:
        return table.append_column("visits afterwards", pa.array(leak))
    return _replace_column(table, name, np.nanmean(values) + np.nanstd(values) * leak)


def _replace_column(table: pa.Table, name: str, values: Array) -> pa.Table:
    import pyarrow as pa

    return table.set_column(table.column_names.index(name), name, pa.array(values, from_pandas=True))


def summarise(records: Records) -> dict[str, Any]:
    """Return the rate of alarms and the rate of detections in each case."""
    cases = []
    for case, (kind, _) in CHECK_CASES.items():
        campaigns = [record for record in records if record["case"] == case]
        if not campaigns:
            continue
        topics = Counter(topic for record in campaigns for topic in sorted(record["loud"]))
        cases.append(
            {
                "case": case,
                "kind": kind,
                "campaigns": len(campaigns),
                "alarms": float(np.mean([record["answer"] != "fine" for record in campaigns])),
                "found": float(np.mean([record["found"] for record in campaigns])) if kind else None,
                "checks": dict(sorted(topics.items(), key=lambda pair: (-pair[1], pair[0]))),
            }
        )
    return {"cases": cases}


def fill(section: Section, summary: Summary) -> None:
    """Add the table and the figure of detection rates to the result section."""
    body, rows = [], []
    for case in summary["cases"]:
        checks = ", ".join(f"{topic} {count}" for topic, count in case["checks"].items())
        detected = NUMBER_DASH if case["found"] is None else percent(case["found"])
        body.append([case["case"], checks, str(case["campaigns"]), percent(case["alarms"]), detected])
        share, label = case["found"], case["case"].replace("a column knows the response", "a leak")
        if share is None:
            share, label = case["alarms"], "nothing wrong: false alarms"
        low, high = compute_wilson_interval(share, case["campaigns"])
        rows.append({"label": label, "estimate": share, "low": low, "high": high})
    head = ["planted", "checks that were not fine", "campaigns", "not fine", "detected by its check"]
    section.add(format_table(head, body, text_columns=2))
    note = "By the check of the planted problem, with 95 % intervals (Wilson)."
    text = FigureText("Share of campaigns in which the planted problem is detected", "share of campaigns", note=note)
    section.add_figure(partial(draw_intervals, rows, text), text.title)


CHECK_SETUP = (
    f"In each of many random worlds, a {CHECK_MODEL} model learns from {LOG_ROWS:,} rows, {NEXT_ROWS:,} other customers are planned at a "
    f"budget of {percent(CHECK_BUDGET_SHARE)} of the dearest level's cost, and the plan is carried out; "
    f"{percent(MISTAKES, 1)} of the levels "
    "always differ from the plan. Then a problem is planted, and `largesse check` compares the new log with the run."
)
CHECK_CAMPAIGNS_EXPERIMENT = Experiment(
    "check_campaigns",
    "Detections of a campaign check",
    measure,
    summarise,
    fill,
    setup=CHECK_SETUP,
    random_worlds=True,
    one_thread=True,
)
