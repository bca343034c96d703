"""Do tests of the stated size have the stated power? Random worlds, whose truth is known.

A model learns from a log of a drawn world. `size_test` says how many switchers a test of its plan needs to show the plan's true gain with a
power of 80 %: the gain is given, the standard deviations come from the log. Then tests of this size are carried out among fresh
customers of the same world, over and over: switchers are drawn, half of them get the plan's level, and both arms are compared.
Responses of one large draw stand for the population that tests draw from.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from largesse.allocation import mix_two_levels
from largesse.errors import percent
from largesse.evaluation import crossfit, plan_held_out
from largesse.monitoring import PowerSpec, as_probabilities, find_arms, size_test
from largesse.policy import Policy
from largesse.records import Array, Progress
from largesse.response import make_model
from largesse.stats import draw_levels
from largesse.worlds import RandomWorld, draw_world
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.campaign_loop import fill_power, tabulate_power
from largesse_lab.page.sections import Chapter
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, ignore_progress, take_seeds

ROWS, FRESH, TESTS = 3000, 40_000, 1000
FIRST, WORLDS = 5000, 100
SHARE, POWER, MODEL = 0.25, 0.8, "linear"
MOST = 200_000  # customers in an arm: larger tests are left out


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per world: how many switchers a test needs, and how often tests of that size show the gain."""
    seeds = take_seeds(request, FIRST, WORLDS)
    kept = Kept(request.out, ("seed",))
    kept.complete([[(seed,)] for seed in seeds], lambda keys: [_measure_world(keys[0][0])], progress)
    return kept.take((seed,) for seed in seeds)


def _measure_world(seed: int) -> dict[str, Any]:
    world = draw_world(seed)
    log = world.draw_log(ROWS).log
    budget, rng = SHARE * float(world.doses[-1]), np.random.default_rng(seed)
    scores = crossfit(log, make_model(MODEL, seed), seed=seed)
    policy = Policy(make_model(MODEL, seed).fit(log), log.levels).calibrate(log, budget)
    one, two, share = _draw_arms(world, policy, rng)
    gain = share * float(one.mean() - two.mean()) if share else 0.0
    record: dict[str, Any] = {"seed": seed, "response": world.traits.response, "gain": gain, "switchers": share}
    if gain <= 0:
        return record | {"shown": None, "why": "the plan gains nothing"}
    plan = as_probabilities(plan_held_out(scores, budget).levels.astype(np.int64), scores)
    sized = size_test(scores, find_arms(scores, plan, "uniform", log.levels), PowerSpec(POWER, gain=gain), log)
    if not sized.cases:
        return record | {"shown": None, "why": "the plan of held-out rows changes nothing"}
    # The plan of held-out rows has a share of switchers of its own; the test is about switchers alone.
    many = int(sized.value.expected.switchers * (share / max(sized.switchers, 1e-9)) ** 2 / 2)
    if not 2 <= many <= MOST:
        return record | {
            "shown": None,
            "why": "the test is too large" if many > MOST else "the test is too small",
            "arm": many,
        }
    return record | {"arm": many, "shown": _test(one, two, many, rng)}


def _draw_arms(world: RandomWorld, policy: Policy, rng: np.random.Generator) -> tuple[Array, Array, float]:
    """Return what switchers respond under the plan and under the best uniform mix, and how many customers switch."""
    table = world.draw_fresh(FRESH).table
    plan, curves = policy.decide(table), policy.model.predict(table)
    mix = mix_two_levels(curves.mean(axis=0), world.doses, float(world.doses[plan].mean()))
    other = draw_levels(np.tile(mix, (FRESH, 1)), rng)
    eye, switch = np.eye(len(world.doses)), plan != other
    one, two = (world.draw_next(FRESH, lambda _table, own=own: eye[own]).response for own in (plan, other))  # type: ignore[misc]
    share = float(switch.mean())
    return one[switch], rng.permutation(two[switch]), share


def _test(one: Array, two: Array, many: int, rng: np.random.Generator) -> float:
    """Return the share of tests, with so many customers in each arm, that show a gain."""
    shown = 0
    for _ in range(TESTS):
        a, b = one[rng.integers(0, len(one), many)], two[rng.integers(0, len(two), many)]
        shown += bool(a.mean() - b.mean() > 1.96 * np.sqrt((a.var() + b.var()) / many))
    return shown / TESTS


def summarise(records: Records) -> dict[str, Any]:
    """Return how often tests of the stated size show the gain, by kind of response and over all worlds."""
    done = [record for record in records if record["shown"] is not None]
    kinds = [*dict.fromkeys(record["response"] for record in done)]
    rows = [_describe(kind, [record["shown"] for record in done if record["response"] == kind]) for kind in kinds]
    every = sorted(record["shown"] for record in done)
    left = Counter(str(record["why"]) for record in records if record["shown"] is None)
    return {
        "power": POWER,
        "kinds": rows + ([_describe("all", every)] if every else []),
        "left": dict(left),
        "shown": every,
    }


def _describe(responses: str, shown: list[float]) -> dict[str, Any]:
    low, median, high = np.quantile(shown, [0.1, 0.5, 0.9]).tolist()
    se = float(np.std(shown, ddof=1) / np.sqrt(len(shown))) if len(shown) > 1 else None
    mean = float(np.mean(shown))
    return {
        "responses": responses,
        "worlds": len(shown),
        "mean": mean,
        "se": se,
        "low": low,
        "median": median,
        "high": high,
    }


def tabulate(records: Records) -> str:
    """Return how often tests of the stated size show the gain, as Markdown."""
    return tabulate_power(summarise(records))


SETUP = (
    f"In each of many random worlds, a {MODEL} model learns from {ROWS:,} rows. The test is against the best uniform mix at the same "
    f"spend, among switchers, and its size is meant to show the plan's true gain with a power of {percent(POWER)}; standard deviations "
    f"come from the log. Then {TESTS:,} tests of this size are simulated among fresh customers; tests of more than {MOST:,} in an "
    "arm are left out."
)
EXPERIMENT = Experiment(
    "power",
    measure,
    tabulate,
    Chapter("Tests of the stated size", SETUP, fill=fill_power),
    summarise,
    drawn=True,
    one_thread=True,
)
