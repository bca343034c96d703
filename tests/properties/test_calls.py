"""Calls from Python with arguments of the wrong type, shape or size: refused, or the answer makes sense."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import largesse as lg
from largesse.serve import Offers, make_offers, make_population, open_ledger, plan_pace
from support.answers import refusals
from support.commands import working_folder
from support.examples import RNGS, examples
from support.ledgers import START, Dearest, fixed_terms
from support.odd_values import COSTS, NUMBERS, TABLES
from support.shops import shop_table

Rng = np.random.Generator
TEXTS: tuple[Any, ...] = (
    "duckdb", "spark", "", " ", "x", "é", "a\0b", "\ud800", "'", "customers", "a.b", None, 5, [], ["a", "b"], {}, b"x", True,
    "x" * 5000, ("a", 3),
)  # fmt: skip
ROWS = shop_table(30, 3, log=False)
CUSTOMERS: tuple[Any, ...] = (
    *TABLES, *NUMBERS, {"age": [1.0], "city": ["x"]}, {"age": [10**400], "city": ["x"]}, {"age": [], "city": []}, {"city": ["x"]},
    {"age": [float("nan")], "city": [None]}, {"age": ["x"], "city": [1]}, ROWS.slice(0, 0), ROWS.drop_columns(["age"]),
)  # fmt: skip
NOT_GIVEN = object()


@cache
def good_policy() -> Any:
    return lg.Policy(good_model(), good_log().levels).calibrate(good_log(), 2.5)


@cache
def good_card() -> Any:
    return good_policy().to_tree(good_log(), depth=1, folds=2)


def pick(rng: Rng, choices: tuple[Any, ...], usual: Any = None, often: float = 0.5) -> Any:
    """Return the usual value often, if there is one, or any of the choices."""
    return usual if usual is not None and rng.random() < often else choices[rng.integers(len(choices))]


@cache
def good_log() -> Any:
    columns = {"level": "coupon", "response": "bought", "features": ["age", "city"]}
    return lg.read_log(shop_table(90, 1), levels=lg.Levels(costs=[0, 5, 10]), **columns)


@cache
def good_model() -> Any:
    return lg.Linear().fit(good_log())


def plan(rng: Rng) -> None:
    """Allocate: whatever is accepted is a plan within its budget."""
    options: dict[str, Any] = {str(rng.choice(["budget", "total"])): pick(rng, NUMBERS, 1.0)}
    for name in ("exact", "constraints", "budget", "total"):
        if rng.random() < 0.15:
            options[name] = pick(rng, NUMBERS)
    curves, costs = pick(rng, TABLES, TABLES[0]), pick(rng, COSTS, COSTS[0])
    found = lg.allocate(curves, costs, **options)
    assert np.isfinite([found.value, found.spend, found.bound]).all(), f"{found!r} of {curves!r}, {costs!r}, {options}"[
        :300
    ]
    assert not (found.spend > found.budget), f"{found!r} of {curves!r}, {costs!r}, {options}"[:300]


def plan_under_constraints(rng: Rng) -> None:
    odd: tuple[Any, ...] = (
        {1: 1}, {1: "x"}, {"1": 2}, {9: 1}, {-1: 0}, {1: None}, {1: 10**320}, {1: float("nan")}, [1], "x", 3,
        [None, "a"],
    )  # fmt: skip
    odd = (
        *odd, ["a", "b"], {"a": 1.0}, {"a": -1}, {None: 1}, [[True, False, True]], np.ones((2, 3), bool),
        np.zeros((2, 3), bool), 0.5,
    )  # fmt: skip
    names = list(lg.Constraints.__dataclass_fields__)
    chosen = {str(rng.choice(names)): pick(rng, odd) for _ in range(int(rng.integers(1, 4)))}
    lg.allocate(TABLES[0], COSTS[0], 1.0, constraints=lg.Constraints(**chosen), exact=bool(rng.random() < 0.3))


def trace(rng: Rng) -> None:
    lg.frontier(pick(rng, TABLES, TABLES[0]), pick(rng, COSTS, COSTS[0]))


def name_levels(rng: Rng) -> None:
    odd: tuple[Any, ...] = (*COSTS, *NUMBERS, ["a", "a", "b"], ["", "x", "y"], [0, 5, 5], [1, 2, float("inf")])
    names = ("names", "doses", "on_redemption", "contact_cost")
    lg.Levels(pick(rng, odd, [0, 5, 10]), **{name: pick(rng, odd) for name in names if rng.random() < 0.4})


def read(rng: Rng) -> None:
    sources: tuple[Any, ...] = (
        *TABLES, *NUMBERS, "nowhere.csv", "a\0b.csv", b"log.csv", [{"a": 1}], {"age": [10**30] * 3}, iter([1]),
    )  # fmt: skip
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
    n = 30
    odd: tuple[Any, ...] = (
        *TABLES, *NUMBERS, ["a"] * n, [None] * n, np.zeros(n), np.ones(n) * 1e300, -np.ones(n), np.arange(n),
        [10**30] * n,
    )  # fmt: skip
    sound = {"features": np.eye(n), "level": np.arange(n) % 2, "response": np.arange(n) % 3 == 0}
    given = {name: pick(rng, odd, usual, 0.7) for name, usual in sound.items()}
    more = {name: pick(rng, odd) for name in ("propensity", "weight", "cluster", "levels") if rng.random() < 0.2}
    lg.log_from_arrays(**given, **more)


def judge_policy(rng: Rng) -> None:
    n = len(good_log())
    odd: tuple[Any, ...] = (
        *TABLES, *NUMBERS, {"a": 1}, np.zeros(n), np.full(n, 9), -np.ones(n, int), np.full((n, 3), 0.5),
        np.ones(3) / 3,
    )  # fmt: skip
    options = {
        name: pick(rng, (*NUMBERS, "dr", "ips", "bootstrap"))
        for name in ("estimator", "interval", "folds", "seed")
        if rng.random() < 0.2
    }
    if rng.random() < 0.7:
        options["budget"] = pick(rng, NUMBERS, 2.5)
    lg.evaluate(good_log(), pick(rng, odd, pick(rng, (good_model(), np.zeros(n, int)))), **options)


def make_policy(rng: Rng) -> None:
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


def predict(rng: Rng) -> None:
    odd = (
        *TABLES, *NUMBERS, {"age": [1]}, {"age": ["x"], "city": [1]}, {"age": [float("inf")], "city": [None]},
        shop_table(0, 1),
    )  # fmt: skip
    curves = good_model().predict(pick(rng, odd))
    assert np.isfinite(curves).all(), "curves that are not finite"


def write_sql(rng: Rng) -> None:
    source = good_policy() if rng.random() < 0.7 else good_card()
    text = source.to_sql(
        pick(rng, TEXTS, "duckdb"), table=pick(rng, TEXTS, "customers"), customer=pick(rng, TEXTS, "id")
    )
    text.encode("utf-8")
    assert text.lstrip().startswith(("WITH", "SELECT")), text[:100]


def write_onnx(rng: Rng) -> None:
    with working_folder() as folder:
        (folder / "folder").mkdir()
        (folder / "file").write_text("mine")
        places: tuple[Any, ...] = (
            "new.onnx", "folder", "file/x", "", "a" * 300, "a\0b", 5, [], b"x.onnx", True, "no/where.onnx", "\ud800",
        )  # fmt: skip
        place = pick(rng, places)
        try:
            raw = good_policy().to_onnx(place)
        finally:
            kept = (folder / "file").read_text() == "mine"
            left = {one.name for one in folder.iterdir()} - {"folder", "file"}
        assert kept, f"{place!r}: {left}"
        assert isinstance(raw, bytes), f"{place!r}: {left}"
        assert left, f"{place!r}: {left}"


def make_card(rng: Rng) -> None:
    depth, folds = pick(rng, NUMBERS, 1, 0.6), pick(rng, NUMBERS, 2, 0.8)
    budget = pick(rng, NUMBERS, NOT_GIVEN, 0.7)
    given = {} if budget is NOT_GIVEN else {"budget": budget}
    customers = pick(rng, CUSTOMERS, good_log() if rng.random() < 0.3 else ROWS, 0.7)
    card = good_policy().to_tree(customers, depth=depth, folds=folds, seed=pick(rng, NUMBERS, 0, 0.8), **given)
    levels = card.decide(ROWS)
    fine = ((levels >= 0) & (levels < 3)).all() and np.isfinite(card.expected.loss.estimate) and str(card).strip()
    assert fine, f"{card!r}"[:200]


def explore(rng: Rng) -> None:
    """Whatever is explored is within the budget, with probabilities."""
    odd_mixes: tuple[Any, ...] = (
        *NUMBERS, *TABLES, np.zeros(30, int), np.full(30, 9), np.full((30, 3), 1 / 3), "before",
    )  # fmt: skip
    options: dict[str, Any] = {
        "goal": pick(rng, TEXTS, "evaluation" if rng.random() < 0.7 else "learning", 0.85),
        "rate": pick(rng, NUMBERS, 0.05, 0.8),
        "seed": pick(rng, NUMBERS, 1, 0.85),
    }
    if rng.random() < 0.2:
        options["incumbent"] = pick(rng, odd_mixes)
    if rng.random() < 0.2:
        options["log"] = pick(rng, (*NUMBERS, ROWS), good_log(), 0.5)
    if rng.random() < 0.2:
        options["constraints"] = pick(rng, NUMBERS, lg.Constraints(eligible=np.ones((30, 3), bool)), 0.5)
    found = good_policy().explore(pick(rng, CUSTOMERS, ROWS, 0.8), pick(rng, NUMBERS, 2.0, 0.6), **options)
    likely = found.decisions.propensity
    assert ((likely > 0) & (likely <= 1 + 1e-12)).all()
    assert np.isfinite(found.spend)


def size_test(rng: Rng) -> None:
    """Numbers of customers are above zero; a test of more power, of a smaller gain, takes no fewer."""
    n = len(good_log())
    sound = (np.full(n, 2), np.full(n, 0))
    odd: tuple[Any, ...] = (
        *TABLES, *NUMBERS, "before", "uniform", "nobody", np.zeros(n), np.full(n, 9), np.full((n, 3), 1 / 3),
        good_model(),
    )  # fmt: skip
    names = ("budget", "gain", "power", "coverage", "per_day")
    usual = {"budget": 2.0, "gain": 0.1, "power": 0.9, "coverage": 0.9, "per_day": 10.0}
    options = {name: pick(rng, NUMBERS, usual[name]) for name in names if rng.random() < 0.3}
    found = lg.power(good_log(), pick(rng, odd, sound[0], 0.7), pick(rng, odd, sound[1], 0.6), **options)
    for case in found.cases:
        for size in (case.expected, case.least):
            assert np.isnan(size.traffic) or size.traffic > 0, f"{case.name} takes {size}"
    assert 0 <= found.switchers <= 1 + 1e-12, f"switchers {found.switchers}"


def compare_tests(rng: Rng) -> None:
    """More power, more coverage and a smaller gain never make a test smaller."""
    n = len(good_log())
    one, other = rng.integers(0, 3, n), rng.integers(0, 3, n)
    gain, power, coverage = float(rng.uniform(0.01, 0.3)), float(rng.uniform(0.5, 0.95)), float(rng.uniform(0.5, 0.95))
    plain = lg.power(good_log(), one, other, gain=gain, power=power, coverage=coverage)
    for change in ({"gain": gain / 2}, {"power": power + 0.04}, {"coverage": coverage + 0.04}):
        more = lg.power(good_log(), one, other, **{"gain": gain, "power": power, "coverage": coverage, **change})
        assert more.value.expected.traffic >= plain.value.expected.traffic * (1 - 1e-9), change
    per_day = lg.power(good_log(), one, other, gain=gain, power=power, coverage=coverage, per_day=100.0)
    days = per_day.value.expected.days
    if days is not None and np.isfinite(days):
        assert days * 100.0 >= plain.value.expected.traffic * (1 - 1e-9)


def offer(rng: Rng) -> None:
    """Offers of odd customers, ids and most: costs are whole and not negative."""
    ids: tuple[Any, ...] = (
        [f"c{i}" for i in range(30)], ["x"], [], "ab", 5, None, [None] * 30, ["a"] * 30, range(30), [1.5] * 30,
        ["\ud800"] * 30,
    )  # fmt: skip
    most: tuple[Any, ...] = (
        None, [0, 5, 10], [0, 5], [0, -1, 5], ["0", "1", "2"], 5, "0,5,10", [0, float("nan"), 1], [0, 1e13, 1],
        np.ones(3), {},
    )  # fmt: skip
    found = make_offers(
        pick(rng, NUMBERS, good_policy(), 0.9),
        pick(rng, CUSTOMERS, ROWS, 0.7),
        pick(rng, ids, ids[0], 0.6),
        max_costs=pick(rng, most),
    )
    assert (found.at_once >= 0).all()
    assert (found.face >= 0).all()


def give(rng: Rng) -> None:
    """Offers made by hand: arrays of odd shapes and types."""
    whole = np.array([[0, 5, 10]], dtype=np.int64)
    odd: tuple[Any, ...] = (
        *TABLES, *NUMBERS, whole, -whole, whole.astype(float), np.array([[0, 2**62, 2**62]]), np.array([[0, 5]],
        dtype=np.int64), whole.astype(object),
    )  # fmt: skip
    parts = [pick(rng, odd, usual, 0.8) for usual in (np.array([[0.1, 0.2, 0.3]]), whole, whole, whole)]
    customers: tuple[Any, ...] = (("a",), ["a"], "a", 5, None, ("a", "b"), (5,), (), {"a": 1}, ("",))
    list_changes = Offers(pick(rng, customers, ("a",), 0.8), *parts)
    with working_folder() as folder, open_ledger(f"sqlite:///{folder}/l.db", fixed_terms(100)) as ledger:
        made = ledger.decide("r1", list_changes, Dearest(), now=START)
        standing = ledger.standing(now=START)
        assert standing.room >= 0
        assert ledger.audit().matches
        assert np.isfinite(made.responses).all()


def plan_price(rng: Rng) -> None:
    """Plans of a price for odd numbers of customers, seasons and shares: finite, and a state to begin with."""
    seasons: tuple[Any, ...] = (
        None, (1,) * 7, (0,) * 7, (1, 2), [1e308] * 7, "abcdefg", (float("nan"),) * 7, (-1,) * 7, 5,
        (0, 0, 0, 0, 0, 0, 1),
    )  # fmt: skip
    terms = pick(
        rng, NUMBERS, fixed_terms(float(rng.choice([0, 1, 100, 1e12])), days=float(rng.choice([0.001, 1, 400]))), 0.9
    )
    people = pick(rng, NUMBERS, make_population(good_policy(), ROWS), 0.9)
    plan = plan_pace(
        people,
        terms,
        pick(rng, NUMBERS, 100.0),
        season=pick(rng, seasons, (1,) * 7, 0.4),
        exploration_rate=pick(rng, NUMBERS, 0.1),
    )
    assert np.isfinite(plan.make_first_state(terms)).all()
    assert plan.is_valid_plan


def draw_offers(rng: Rng) -> None:
    """A policy that explores at random draws levels that it may draw, with their probabilities."""
    share = pick(rng, NUMBERS, 0.2)
    policy = lg.Policy(good_model(), good_log().levels).calibrate(
        good_log(), pick(rng, NUMBERS, 2.0, 0.8), explore=share
    )
    made = policy.offer(ROWS, seed=int(rng.integers(1000)))
    likely = policy.probabilities(ROWS)
    rows = np.arange(len(made.levels))
    fine = (
        np.allclose(likely.sum(axis=1), 1)
        and np.allclose(likely[rows, made.levels], made.propensity)
        and (made.propensity > 0).all()
    )
    assert fine, f"explore={share!r}: {made.propensity[:5]}"


CALLS: tuple[Callable[[Rng], None], ...] = (
    plan, plan_under_constraints, trace, name_levels, read, read_arrays, judge_policy, make_policy, predict, write_sql, write_onnx,
    make_card, explore, size_test, compare_tests, offer, give, plan_price, draw_offers,
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@examples(3)
@given(rng=RNGS)
def test_odd_arguments_are_refused_or_make_sense(call: Callable[[Rng], None], rng: Rng) -> None:
    with refusals():
        call(rng)
