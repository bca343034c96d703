"""The loop's functions from Python with arguments of the wrong type, shape or size; what is accepted must make sense."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from api_calls import NUMBERS, TABLES, good_log, good_model, pick
from commands import own_folder
from harness import FINE, Outcome
from ledgers import START, Dearest, fixed_terms
from shops import shop_table

Rng = np.random.Generator
WORDS: tuple[Any, ...] = (
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
    import largesse as lg

    return lg.Policy(good_model(), good_log().levels).calibrate(good_log(), 2.5)


@cache
def good_card() -> Any:
    return good_policy().to_tree(good_log(), depth=1, folds=2)


def attack(seed: int) -> Outcome:
    """Call one function with odd arguments."""
    rng = np.random.default_rng([seed, 71])
    return CALLS[seed % len(CALLS)](rng) or FINE


def write_sql(rng: Rng) -> Outcome | None:
    source = good_policy() if rng.random() < 0.7 else good_card()
    text = source.to_sql(
        pick(rng, WORDS, "duckdb"), table=pick(rng, WORDS, "customers"), customer=pick(rng, WORDS, "id")
    )
    text.encode("utf-8")
    return None if text.lstrip().startswith(("WITH", "SELECT")) else Outcome("wrong", text[:100])


def write_onnx(rng: Rng) -> Outcome | None:
    with own_folder() as folder:
        (folder / "folder").mkdir()
        (folder / "file").write_text("mine")
        places: tuple[Any, ...] = (
            "new.onnx",
            "folder",
            "file/x",
            "",
            "a" * 300,
            "a\0b",
            5,
            [],
            b"x.onnx",
            True,
            "no/where.onnx",
            "\ud800",
        )
        place = pick(rng, places)
        try:
            raw = good_policy().to_onnx(place)
        finally:
            kept = (folder / "file").read_text() == "mine"
            left = {one.name for one in folder.iterdir()} - {"folder", "file"}
        if not kept or not isinstance(raw, bytes) or not left:
            return Outcome("half-written", f"{place!r}: {left}")
    return None


def make_card(rng: Rng) -> Outcome | None:
    depth, folds = pick(rng, NUMBERS, 1, 0.6), pick(rng, NUMBERS, 2, 0.8)
    budget = pick(rng, NUMBERS, NOT_GIVEN, 0.7)
    given = {} if budget is NOT_GIVEN else {"budget": budget}
    customers = pick(rng, CUSTOMERS, good_log() if rng.random() < 0.3 else ROWS, 0.7)
    card = good_policy().to_tree(customers, depth=depth, folds=folds, seed=pick(rng, NUMBERS, 0, 0.8), **given)
    levels = card.decide(ROWS)
    fine = ((levels >= 0) & (levels < 3)).all() and np.isfinite(card.expected.loss.estimate) and str(card).strip()
    return None if fine else Outcome("wrong", f"{card!r}"[:200])


def explore(rng: Rng) -> Outcome | None:
    """Whatever is explored is within the budget, with probabilities."""
    import largesse as lg

    odd_mixes: tuple[Any, ...] = (
        *NUMBERS,
        *TABLES,
        np.zeros(30, int),
        np.full(30, 9),
        np.full((30, 3), 1 / 3),
        "before",
    )
    options: dict[str, Any] = {
        "goal": pick(rng, WORDS, "evaluation" if rng.random() < 0.7 else "learning", 0.85),
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
    if not ((likely > 0) & (likely <= 1 + 1e-12)).all() or not np.isfinite(found.spend):
        return Outcome("wrong", f"propensities {likely[:5]}, spend {found.spend}")
    return None


def size_test(rng: Rng) -> Outcome | None:
    """Numbers of customers are above zero; a test of more power, of a smaller gain, takes no fewer."""
    import largesse as lg

    n = len(good_log())
    sound = (np.full(n, 2), np.full(n, 0))
    odd: tuple[Any, ...] = (
        *TABLES,
        *NUMBERS,
        "before",
        "uniform",
        "nobody",
        np.zeros(n),
        np.full(n, 9),
        np.full((n, 3), 1 / 3),
        good_model(),
    )
    names = ("budget", "gain", "power", "coverage", "per_day")
    usual = {"budget": 2.0, "gain": 0.1, "power": 0.9, "coverage": 0.9, "per_day": 10.0}
    options = {name: pick(rng, NUMBERS, usual[name]) for name in names if rng.random() < 0.3}
    found = lg.power(good_log(), pick(rng, odd, sound[0], 0.7), pick(rng, odd, sound[1], 0.6), **options)
    for case in found.cases:
        for size in (case.expected, case.least):
            if not (np.isnan(size.traffic) or size.traffic > 0):
                return Outcome("wrong", f"{case.name} takes {size}")
    if not 0 <= found.switchers <= 1 + 1e-12:
        return Outcome("wrong", f"switchers {found.switchers}")
    return None


def compare_tests(rng: Rng) -> Outcome | None:
    """More power, more coverage and a smaller gain never make a test smaller."""
    import largesse as lg

    n = len(good_log())
    one, other = rng.integers(0, 3, n), rng.integers(0, 3, n)
    gain, power, coverage = float(rng.uniform(0.01, 0.3)), float(rng.uniform(0.5, 0.95)), float(rng.uniform(0.5, 0.95))
    plain = lg.power(good_log(), one, other, gain=gain, power=power, coverage=coverage)
    for change in ({"gain": gain / 2}, {"power": power + 0.04}, {"coverage": coverage + 0.04}):
        more = lg.power(good_log(), one, other, **{"gain": gain, "power": power, "coverage": coverage, **change})
        if more.value.expected.traffic < plain.value.expected.traffic * (1 - 1e-9):
            return Outcome(
                "wrong", f"{change} needs {more.value.expected.traffic} instead of {plain.value.expected.traffic}"
            )
    per_day = lg.power(good_log(), one, other, gain=gain, power=power, coverage=coverage, per_day=100.0)
    days = per_day.value.expected.days
    if days is not None and np.isfinite(days) and not days * 100.0 >= plain.value.expected.traffic * (1 - 1e-9):
        return Outcome("wrong", f"{days} days of 100 for {plain.value.expected.traffic}")
    return None


def offer(rng: Rng) -> Outcome | None:
    """Offers of odd customers, ids and most: costs are whole and not negative."""
    from largesse.serve import make_offers

    ids: tuple[Any, ...] = (
        [f"c{i}" for i in range(30)],
        ["x"],
        [],
        "ab",
        5,
        None,
        [None] * 30,
        ["a"] * 30,
        range(30),
        [1.5] * 30,
        ["\ud800"] * 30,
    )
    most: tuple[Any, ...] = (
        None,
        [0, 5, 10],
        [0, 5],
        [0, -1, 5],
        ["0", "1", "2"],
        5,
        "0,5,10",
        [0, float("nan"), 1],
        [0, 1e13, 1],
        np.ones(3),
        {},
    )
    found = make_offers(
        pick(rng, NUMBERS, good_policy(), 0.9),
        pick(rng, CUSTOMERS, ROWS, 0.7),
        pick(rng, ids, ids[0], 0.6),
        most=pick(rng, most),
    )
    return None if (found.at_once >= 0).all() and (found.face >= 0).all() else Outcome("wrong", "negative costs")


def give(rng: Rng) -> Outcome | None:
    """Offers made by hand: arrays of odd shapes and types."""
    from largesse.serve import Offers, open_ledger

    whole = np.array([[0, 5, 10]], dtype=np.int64)
    odd: tuple[Any, ...] = (
        *TABLES, *NUMBERS, whole, -whole, whole.astype(float), np.array([[0, 2**62, 2**62]]), np.array([[0, 5]],
        dtype=np.int64), whole.astype(object),
    )  # fmt: skip
    parts = [pick(rng, odd, usual, 0.8) for usual in (np.array([[0.1, 0.2, 0.3]]), whole, whole, whole)]
    customers: tuple[Any, ...] = (("a",), ["a"], "a", 5, None, ("a", "b"), (5,), (), {"a": 1}, ("",))
    offers = Offers(pick(rng, customers, ("a",), 0.8), *parts)
    with own_folder() as folder, open_ledger(f"sqlite:///{folder}/l.db", fixed_terms(100)) as ledger:
        made = ledger.decide("r1", offers, Dearest(), now=START)
        standing = ledger.standing(now=START)
        if standing.room < 0 or not ledger.audit().fine or not np.isfinite(made.responses).all():
            return Outcome("over budget", str(standing)[:200])
    return None


def plan_price(rng: Rng) -> Outcome | None:
    """Plans of a price for odd numbers of customers, seasons and shares: finite, and a state to begin with."""
    from largesse.serve import make_population, plan_pace

    seasons: tuple[Any, ...] = (
        None,
        (1,) * 7,
        (0,) * 7,
        (1, 2),
        [1e308] * 7,
        "abcdefg",
        (float("nan"),) * 7,
        (-1,) * 7,
        5,
        (0, 0, 0, 0, 0, 0, 1),
    )
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
    return None if np.isfinite(plan.begin(terms)).all() and plan.is_sound else Outcome("wrong", str(plan)[:300])


def draw_offers(rng: Rng) -> Outcome | None:
    """A policy that explores at random draws levels that it may draw, with their probabilities."""
    import largesse as lg

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
    return None if fine else Outcome("wrong", f"explore={share!r}: {made.propensity[:5]}")


CALLS: tuple[Callable[[Rng], Outcome | None], ...] = (
    write_sql, write_onnx, make_card, explore, size_test, compare_tests, offer, give, plan_price, draw_offers,
)  # fmt: skip
