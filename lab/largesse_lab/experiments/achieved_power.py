"""Achieved power of tests with the sample size of `compute_test_sizes`, on random simulated worlds.

A model learns from a log of a drawn world. `compute_test_sizes` returns the number of switchers that a test needs to show the plan's
true gain with a power of 80 %: the gain is given, the standard deviations come from the log. Then many tests of this size are
simulated among fresh customers of the same world: switchers are drawn, half of them get the plan's level, and both arms are compared.
Tests draw from the responses of one large sample.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from largesse.allocation import mix_two_levels
from largesse.errors import percent
from largesse.evaluation import crossfit_scores, plan_each_fold
from largesse.monitoring import PowerSettings, broadcast_probabilities, compute_test_sizes, make_test_arms
from largesse.policy import Policy
from largesse.records import Array, Progress
from largesse.response import make_model
from largesse.stats import draw_levels
from largesse.worlds import RandomWorld, draw_world
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.figures import FigureText, draw_lines
from largesse_lab.pages.markdown import Section, format_table
from largesse_lab.pages.method_comparison import Summary
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.record_cache import RecordCache

LOG_ROWS, FRESH_ROWS, N_TESTS = 3000, 40_000, 1000
FIRST_SEED, N_WORLDS = 5000, 100
BUDGET_SHARE, POWER, MODEL = 0.25, 0.8, "linear"
MAX_ARM = 200_000  # customers; larger tests are not simulated
POWER_TITLE = "Power of tests of the stated size"


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per simulated world: the planned sample size of a test, and its simulated power."""
    keys = [(seed,) for seed in select_requested_seeds(request, FIRST_SEED, N_WORLDS)]
    return RecordCache(request.out, ("seed",)).measure_each(keys, _measure_world, progress)


def _measure_world(seed: int) -> dict[str, Any]:
    world = draw_world(seed)
    log = world.draw_log(LOG_ROWS).log
    budget, rng = BUDGET_SHARE * float(world.doses[-1]), np.random.default_rng(seed)
    scores = crossfit_scores(log, make_model(MODEL, seed), seed=seed)
    policy = Policy(make_model(MODEL, seed).fit(log), log.levels).calibrate(log, budget)
    treated, control, share = _draw_test_arms(world, policy, rng)
    gain = share * float(treated.mean() - control.mean()) if share else 0.0
    record: dict[str, Any] = {"seed": seed, "response": world.traits.response, "gain": gain, "switchers": share}
    if gain <= 0:
        return record | {"shown": None, "why": "the plan gains nothing"}
    plan = broadcast_probabilities(plan_each_fold(scores, budget).levels.astype(np.int64), scores)
    sized = compute_test_sizes(
        scores, make_test_arms(scores, plan, "uniform", log.levels), PowerSettings(POWER, gain=gain), log
    )
    if not sized.cases:
        return record | {"shown": None, "why": "the plan of held-out rows changes nothing"}
    # The plan of held-out rows has a share of switchers of its own; the test is about switchers alone.
    arm = int(sized.value.expected.switchers * (share / max(sized.switchers, 1e-9)) ** 2 / 2)
    if not 2 <= arm <= MAX_ARM:
        why = "the test is too large" if arm > MAX_ARM else "the test is too small"
        return record | {"shown": None, "why": why, "arm": arm}
    return record | {"arm": arm, "shown": _simulate_power(treated, control, arm, rng)}


def _draw_test_arms(world: RandomWorld, policy: Policy, rng: np.random.Generator) -> tuple[Array, Array, float]:
    """Return responses in both arms of customers whose level the test changes, and their share of all customers.

    One arm gets the plan, the other the best mix of levels for all customers.
    """
    table = world.draw_fresh(FRESH_ROWS).table
    plan, curves = policy.decide(table), policy.model.predict(table)
    mix = mix_two_levels(curves.mean(axis=0), world.doses, float(world.doses[plan].mean()))
    mixed = draw_levels(np.tile(mix, (FRESH_ROWS, 1)), rng)
    one_hot, switches = np.eye(len(world.doses)), plan != mixed
    treated, control = (
        world.draw_next(FRESH_ROWS, lambda _table, levels=levels: one_hot[levels]).response  # type: ignore[misc]
        for levels in (plan, mixed)
    )
    return treated[switches], rng.permutation(control[switches]), float(switches.mean())


def _simulate_power(treated: Array, control: Array, arm: int, rng: np.random.Generator) -> float:
    """Simulate tests with `arm` customers per arm, and return the share with a significant gain."""
    n_significant = 0
    for _ in range(N_TESTS):
        a, b = treated[rng.integers(0, len(treated), arm)], control[rng.integers(0, len(control), arm)]
        n_significant += bool(a.mean() - b.mean() > 1.96 * np.sqrt((a.var() + b.var()) / arm))
    return n_significant / N_TESTS


def summarise(records: Records) -> dict[str, Any]:
    """Return the mean power of the tests by kind of response, and over all worlds."""
    tested = [record for record in records if record["shown"] is not None]
    kinds = [*dict.fromkeys(record["response"] for record in tested)]
    rows = [
        _summarise_powers(kind, [record["shown"] for record in tested if record["response"] == kind]) for kind in kinds
    ]
    powers = sorted(record["shown"] for record in tested)
    excluded = Counter(str(record["why"]) for record in records if record["shown"] is None)
    kinds_and_all = rows + ([_summarise_powers("all", powers)] if powers else [])
    return {"power": POWER, "kinds": kinds_and_all, "left": dict(excluded), "shown": powers}


def _summarise_powers(responses: str, powers: list[float]) -> dict[str, Any]:
    low, median, high = np.quantile(powers, [0.1, 0.5, 0.9]).tolist()
    se = float(np.std(powers, ddof=1) / np.sqrt(len(powers))) if len(powers) > 1 else None
    mean = {"responses": responses, "worlds": len(powers), "mean": float(np.mean(powers)), "se": se}
    return mean | {"low": low, "median": median, "high": high}


def fill(section: Section, summary: Summary) -> None:
    """Add the table and the figure of achieved power to the result section."""
    body = []
    for kind in summary["kinds"]:
        mean = f"{100 * kind['mean']:.1f} %" + ("" if kind["se"] is None else f" ± {100 * kind['se']:.1f}")
        quantiles = [percent(kind[quantile], 1) for quantile in ("low", "median", "high")]
        body.append([kind["responses"], str(kind["worlds"]), mean, *quantiles])
    head = ["responses", "worlds", "tests that show the gain ± se", "10 %", "median", "90 %"]
    excluded = ", ".join(f"{why} ({count})" for why, count in summary["left"].items()) or "none"
    section.add(
        f"Stated power: {percent(summary['power'])}.", format_table(head, body), f"Excluded worlds: {excluded}."
    )
    powers = summary["shown"]
    if not powers:
        return
    grid = [round(0.02 * place, 2) for place in range(int(min(powers) / 0.02), 51)]
    shares = [sum(power <= at + 1e-9 for power in powers) / len(powers) for at in grid]
    series = [
        {"label": "simulated", "x": grid, "mean": shares},
        {"label": "stated", "x": [summary["power"]] * 2, "mean": [0.0, 1.0]},
    ]
    note = "Share of worlds in which at most this share of tests shows the gain."
    text = FigureText(POWER_TITLE, "share of tests that show the gain", "share of worlds", note)
    section.add_figure(partial(draw_lines, series, text, references=["stated"]), POWER_TITLE)


POWER_SETUP = (
    f"In each of many random worlds, a {MODEL} model learns from {LOG_ROWS:,} rows. The test is against the best uniform mix at the "
    f"same spend, among switchers, and its size is meant to show the plan's true gain with a power of {percent(POWER)}; standard "
    f"deviations come from the log. Then {N_TESTS:,} tests of this size are simulated among fresh customers; tests of more than "
    f"{MAX_ARM:,} in an arm are not simulated."
)
SAMPLE_SIZES_EXPERIMENT = Experiment(
    "power", POWER_TITLE, measure, summarise, fill, setup=POWER_SETUP, random_worlds=True, one_thread=True
)
