"""Calls from Python with arguments of the wrong type, shape or size."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from harness import FINE, Outcome
from shops import shop_table

Rng = np.random.Generator
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 1.7, "1", "x", "", None, True, float("nan"), float("inf"), -0.0, 1e308, 5e-324, 10**320, [1], {}, (), 1j, b"1",
    np.float32(1), np.int64(2), np.array(3), np.array([1.0]), object(), 2.5, -1.5, 10**30, 2**63,
)  # fmt: skip
TABLES: tuple[Any, ...] = (
    [[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], [[0.1], [0.2, 0.3]], [], [[]], 3, None, "text", {"a": [1]}, np.zeros((0, 3)), np.zeros((3, 0)),
    np.full((2, 3), np.nan), np.full((2, 3), np.inf), np.full((2, 3), 1e308), np.full((2, 3), "a"), np.zeros((2, 3), dtype=object),
    np.zeros((2, 3), dtype=complex), np.zeros((2, 2, 2)), np.array(["1", "2"]), np.zeros(3, dtype="M8[D]"), np.ones((2, 3), bool),
    np.arange(6.0).reshape(2, 3).astype("f2"), [["0.1", "0.2", "0.3"]], [[None, 1, 2]], [[10**400, 1, 2]], np.zeros((2, 3))[:, ::-1],
)  # fmt: skip
COSTS: tuple[Any, ...] = (
    [0, 1, 2], [0, 1e308, 1.5e308], [0, -1, 2], [2, 1, 0], [0, 1], ["0", "1", "2"], ["a", "b", "c"], [0, None, 2], [0, float("nan"), 1],
    np.array(3), 5, None, "0,1,2", {}, [[0, 1, 2], [0, 2, 4]], [0, 10**320, 10**321], np.zeros((2, 3), bool), [True, False], [], [[]],
)  # fmt: skip


def attack(seed: int) -> Outcome:
    """Call one function with odd arguments."""
    rng = np.random.default_rng(seed)
    return CALLS[seed % len(CALLS)](rng) or FINE


def pick(rng: Rng, choices: tuple[Any, ...], usual: Any = None, often: float = 0.5) -> Any:
    """Return the usual value often, if there is one, or any of the choices."""
    return usual if usual is not None and rng.random() < often else choices[rng.integers(len(choices))]


@cache
def good_log() -> Any:
    import largesse as lg

    columns = {"level": "coupon", "response": "bought", "features": ["age", "city"]}
    return lg.read_log(shop_table(90, 1), levels=lg.Levels(costs=[0, 5, 10]), **columns)


@cache
def good_model() -> Any:
    import largesse as lg

    return lg.Linear().fit(good_log())


def plan(rng: Rng) -> Outcome | None:
    """Allocate: whatever is accepted is a plan within its budget."""
    import largesse as lg

    options: dict[str, Any] = {str(rng.choice(["budget", "total"])): pick(rng, NUMBERS, 1.0)}
    for name in ("exact", "constraints", "budget", "total"):
        if rng.random() < 0.15:
            options[name] = pick(rng, NUMBERS)
    curves, costs = pick(rng, TABLES, TABLES[0]), pick(rng, COSTS, COSTS[0])
    found = lg.allocate(curves, costs, **options)
    if not np.isfinite([found.value, found.spend, found.bound]).all() or found.spend > found.budget:
        return Outcome("wrong", f"{found!r} of {curves!r}, {costs!r}, {options}"[:300])
    return None


def plan_under_rules(rng: Rng) -> None:
    import largesse as lg

    odd: tuple[Any, ...] = (
        {1: 1},
        {1: "x"},
        {"1": 2},
        {9: 1},
        {-1: 0},
        {1: None},
        {1: 10**320},
        {1: float("nan")},
        [1],
        "x",
        3,
        [None, "a"],
    )
    odd = (
        *odd,
        ["a", "b"],
        {"a": 1.0},
        {"a": -1},
        {None: 1},
        [[True, False, True]],
        np.ones((2, 3), bool),
        np.zeros((2, 3), bool),
        0.5,
    )
    names = list(lg.Constraints.__dataclass_fields__)
    chosen = {str(rng.choice(names)): pick(rng, odd) for _ in range(int(rng.integers(1, 4)))}
    lg.allocate(TABLES[0], COSTS[0], 1.0, constraints=lg.Constraints(**chosen), exact=bool(rng.random() < 0.3))


def trace(rng: Rng) -> None:
    import largesse as lg

    lg.frontier(pick(rng, TABLES, TABLES[0]), pick(rng, COSTS, COSTS[0]))


def name_levels(rng: Rng) -> None:
    import largesse as lg

    odd: tuple[Any, ...] = (*COSTS, *NUMBERS, ["a", "a", "b"], ["", "x", "y"], [0, 5, 5], [1, 2, float("inf")])
    names = ("names", "doses", "on_redemption", "contact_cost")
    lg.Levels(pick(rng, odd, [0, 5, 10]), **{name: pick(rng, odd) for name in names if rng.random() < 0.4})


def read(rng: Rng) -> None:
    import largesse as lg

    sources: tuple[Any, ...] = (
        *TABLES,
        *NUMBERS,
        "nowhere.csv",
        "a\0b.csv",
        b"log.csv",
        [{"a": 1}],
        {"age": [10**30] * 3},
        iter([1]),
    )
    roles = {
        role: pick(rng, (*NUMBERS, "age", "city"), usual)
        for role, usual in (("level", "coupon"), ("response", "bought"))
    }
    for role in ("propensity", "cluster", "weight", "customer", "features", "logger"):
        if rng.random() < 0.2:
            roles[role] = pick(rng, (*NUMBERS, "age", "id", ["age", 3], [None], "nowhere"))
    levels = pick(rng, (*NUMBERS, *COSTS), lg.Levels(costs=[0, 5, 10]), 0.8)
    lg.read_log(pick(rng, sources, shop_table(90, 1), 0.7), levels=levels, **roles)


def read_arrays(rng: Rng) -> None:
    import largesse as lg

    n = 30
    odd: tuple[Any, ...] = (
        *TABLES,
        *NUMBERS,
        ["a"] * n,
        [None] * n,
        np.zeros(n),
        np.ones(n) * 1e300,
        -np.ones(n),
        np.arange(n),
        [10**30] * n,
    )
    sound = {"features": np.eye(n), "level": np.arange(n) % 2, "response": np.arange(n) % 3 == 0}
    given = {name: pick(rng, odd, usual, 0.7) for name, usual in sound.items()}
    more = {name: pick(rng, odd) for name in ("propensity", "weight", "cluster", "levels") if rng.random() < 0.2}
    lg.log_from_arrays(**given, **more)


def judge_policy(rng: Rng) -> None:
    import largesse as lg

    n = len(good_log())
    odd: tuple[Any, ...] = (
        *TABLES,
        *NUMBERS,
        {"a": 1},
        np.zeros(n),
        np.full(n, 9),
        -np.ones(n, int),
        np.full((n, 3), 0.5),
        np.ones(3) / 3,
    )
    options = {
        name: pick(rng, (*NUMBERS, "dr", "ips", "bootstrap"))
        for name in ("estimator", "interval", "folds", "seed")
        if rng.random() < 0.2
    }
    if rng.random() < 0.7:
        options["budget"] = pick(rng, NUMBERS, 2.5)
    lg.evaluate(good_log(), pick(rng, odd, pick(rng, (good_model(), np.zeros(n, int)))), **options)


def make_policy(rng: Rng) -> None:
    import largesse as lg

    policy = lg.Policy(
        pick(rng, NUMBERS, good_model(), 0.9),
        good_log().levels,
        pick(rng, NUMBERS, 0.05),
        exploration_rate=pick(rng, NUMBERS, 0.1),
    )
    customers = pick(rng, (*TABLES, *NUMBERS, {"age": [10**400], "city": ["x"]}), shop_table(20, 3, log=False))
    if rng.random() < 0.5:
        policy = policy.calibrate(customers, pick(rng, NUMBERS, 2.0))
    policy.decide(customers)
    policy.offer(customers, seed=pick(rng, NUMBERS, 0))


def predict(rng: Rng) -> Outcome | None:
    odd = (
        *TABLES,
        *NUMBERS,
        {"age": [1]},
        {"age": ["x"], "city": [1]},
        {"age": [float("inf")], "city": [None]},
        shop_table(0, 1),
    )
    curves = good_model().predict(pick(rng, odd))
    return None if np.isfinite(curves).all() else Outcome("wrong", "curves that are not finite")


CALLS: tuple[Callable[[Rng], Outcome | None], ...] = (
    plan, plan_under_rules, trace, name_levels, read, read_arrays, judge_policy, make_policy, predict,
)  # fmt: skip
