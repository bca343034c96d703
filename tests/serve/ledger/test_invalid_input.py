"""Invalid arguments and damaged content: a ledger names what is wrong, and begins and changes nothing."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import largesse as lg
from largesse.errors import InputError, LargesseError, LedgerError
from largesse.policy import Policy
from largesse.serve import (
    ChosenLevels,
    Ledger,
    LedgerStanding,
    Offers,
    Pacer,
    PacingPlan,
    make_population,
    open_ledger,
    plan_pace,
)
from largesse.serve import make_offers as make_policy_offers
from largesse.serve.ledger.amounts_and_times import MAX_MICROS, read_money
from support.ledgers import Dearest, fixed_terms, make_offers

Call = Callable[[Ledger, Any], object]
IDS = ["", "a\0b", "\ud800", "x" * 201, 5, None, b"x", [], {}, 10**5000]
MOMENTS = [-1, 1.5, "x", True, 2**63, []]
AMOUNTS = ["1_0", "４", "", True, 10**5000, float("nan"), 1j, [], "1e400"]
NEGATIVE = [-1e-300, -0.01]
ONE = np.zeros((1, 2), np.int64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with one decision."""
    file = tmp_path / "spring.db"
    with open_ledger(f"sqlite:///{file}", fixed_terms()) as ledger:
        ledger.decide("r1", make_offers(["c1"]), Dearest())
    return file


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return open_ledger(f"sqlite:///{path}")


@pytest.mark.parametrize(
    ("subject", "call", "values"),
    [
        ("request's id is", lambda ledger, odd: ledger.decide(odd, make_offers(["c1"]), Dearest()), IDS),
        ("a customer is", lambda ledger, odd: ledger.decide("r2", make_offers([odd, odd]), Dearest()), IDS),
        ("comes twice: c1", lambda ledger, odd: ledger.decide("r2", make_offers(odd), Dearest()), [["c1"] * 10_000]),
        ("the customer is", lambda ledger, odd: ledger.redeem("r1", odd), IDS),
        ("now", lambda ledger, odd: ledger.decide("r2", make_offers(["c1"]), Dearest(), now=odd), MOMENTS),
        ("now", lambda ledger, odd: ledger.redeem("r1", "c1", now=odd), MOMENTS),
        ("now", lambda ledger, odd: ledger.standing(now=odd), MOMENTS),
        ("2 things", lambda ledger, odd: ledger.decide("r2", make_offers(["c"]), Dearest(), policy=odd, content=odd), [5]),
        ("the total is", lambda _, odd: read_money(odd, "the total", up=False), AMOUNTS),
        ("the amount is", lambda _, odd: read_money(odd, "the amount", up=True), NEGATIVE),
        *(
            ("arrays of numbers", lambda _, odd, at=at: Offers(("a",), *[odd if k == at else ONE for k in range(4)]), [
                "x", None, [[1, 2]], np.array([["a", "b"]]), np.array([[None, 1]]), np.zeros((1, 2), bool)
            ])
            for at in range(4)
        ),
        *(
            (".", call, [5, None, "ab", [object()], {}])
            for call in (
                lambda _, odd: Offers(odd, *[ONE] * 4),
                lambda _, odd: make_population(odd, {}),
                lambda _, odd: make_policy_offers(odd, {}, ["a"]),
                lambda _, odd: plan_pace(odd, odd, 10),
            )
        ),
    ],
)  # fmt: skip
def test_invalid_arguments_are_named(ledger: Ledger, subject: str, call: Call, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InputError, match=subject):
            call(ledger, value)
    assert ledger.standing().requests == 1


def test_ids_costs_and_seasons_that_are_no_lists_are_named() -> None:
    log = lg.simulate("averaged", n=60, seed=2).log
    later = lg.Levels(costs=[0, 1, 2, 3, 4], on_redemption=True)
    policy = Policy(lg.Linear(penalty=1.0).fit(log), later, price=0.1)
    population = make_population(policy, log)
    for odd in (5, "ab", {"a"}, b"ab", None):
        with pytest.raises(InputError, match="the ids are"):
            make_policy_offers(policy, log, odd)
        if odd is None:  # the default of the others
            continue
        with pytest.raises(InputError, match="the season is"):
            plan_pace(population, fixed_terms(), 10, season=odd)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="maximum costs of the levels are"):
            make_population(policy, log, max_costs=odd)  # type: ignore[arg-type]


# -- damaged content -----------------------------------------------------------------------------------------------------


def decide_again(ledger: Ledger) -> None:
    ledger.standing()
    ledger.decide("r1", make_offers(["c1"]), Dearest())


def redeem(ledger: Ledger) -> None:
    ledger.redeem("r1", "c1")


def audit(ledger: Ledger) -> None:
    assert not ledger.audit().matches
    list(ledger.decisions())


@pytest.mark.parametrize(
    ("change", "use"),
    [
        *(
            (f"UPDATE ledger SET {change}", decide_again)
            for change in ("total = 'x'", "ends = 0", "spent = total + 1", "late = 'perhaps'", "spent = 'x'")
        ),
        *(
            (f"UPDATE ledger SET {change}", decide_again)
            for change in ("state = '[NaN]'", "state = '5'", "plan = '[['")
        ),
        ("UPDATE request SET decided_at = 'x'", decide_again),
        ("UPDATE decision SET level = 'x'", decide_again),
        ("DELETE FROM decision", decide_again),
        ("UPDATE decision SET paid = 1", redeem),  # but nothing says when
        ("UPDATE ledger SET requests = 1000000000000", audit),
        ("UPDATE decision SET at_once = 9e999", audit),
    ],
)
def test_damaged_content_is_named(path: Path, change: str, use: Callable[[Ledger], None]) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(change)
    database.close()
    with pytest.raises(LedgerError, match="damaged"), open_ledger(f"sqlite:///{path}") as ledger:
        use(ledger)


# -- the plan of the price -----------------------------------------------------------------------------------------------

PLAN: dict[str, Any] = PacingPlan(1.0, (0.1, 0.0), (1.0,), (1.0,), (0.1,), 100.0, 1.0).as_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"factor": float("nan")},
        {"factor": -1},
        {"customers": 0},
        {"customers": 10**400},
        {"exploration_rate": 1.5},
        {"season": (0.0,) * 7},
        {"ahead": (float("inf"), 0.0)},
        {"ahead": (0.0,), "promised": (), "paid": (), "priced": ()},
        {"gains": {**PLAN["gains"], "window": -1}},
    ],
)
def test_an_absurd_plan_decides_nothing(change: dict[str, Any]) -> None:
    assert PacingPlan.from_dict(PLAN).customers == 100
    with pytest.raises(InputError, match="no plan for its price"):
        PacingPlan.from_dict({**PLAN, **change})


@pytest.mark.parametrize(("place", "value"), [(3, 1e300), (8, 1e300), (0, -1.0), (10, 0.0)])
def test_an_impossible_state_begins_again(tmp_path: Path, place: int, value: float) -> None:
    state = PacingPlan.from_dict(PLAN).make_first_state(fixed_terms()).tolist()
    state[place] = value
    with open_ledger(f"sqlite:///{tmp_path}/x.db", fixed_terms(), plan=PLAN) as ledger:
        ledger._run_transaction(lambda session: session.run("UPDATE ledger SET state = ?", (json.dumps(state),)))
        made = ledger.decide("r1", make_offers(["c1"]), Pacer(seed=0), now=fixed_terms().starts + 1)
        assert np.isfinite(made.price).all()
        assert ledger.standing().state[3] < 30  # days since the start: of the new state


@pytest.mark.parametrize(
    "arguments",
    [{"plan": {"a": float("nan")}}, {"plan": {"a": object()}}, {"plan": []}, {"timeout": "x"}, {"terms": 5}],
)
def test_a_ledger_that_cannot_begin_leaves_no_file(tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(LargesseError):
        open_ledger(f"sqlite:///{tmp_path}/x.db", **{"terms": fixed_terms(), **arguments})
    assert list(tmp_path.iterdir()) == []


def test_amounts_beyond_what_a_ledger_counts_are_refused(path: Path) -> None:
    class Dear:
        def choose(self, _: LedgerStanding, offers: Offers) -> ChosenLevels:
            n = len(offers)
            return ChosenLevels(
                np.ones(n, dtype=np.int64), np.ones(n), np.zeros(n), np.zeros(n, dtype=np.int64), (1.0,)
            )

    face = np.tile(np.array([0, MAX_MICROS]), (20, 1))
    none = np.zeros_like(face)
    names = tuple(f"c{k}" for k in range(20))
    with open_ledger(f"sqlite:///{path}.new", fixed_terms(promises="while_it_lasts")) as ledger:
        with pytest.raises(LedgerError, match=r"20,000,000,000,000.00"):
            ledger.decide("1", Offers(names, none * 1.0, none, face, none), Dear())
        assert ledger.standing().requests == 0
    with pytest.raises(InputError, match="millionths"):
        Offers(names, none * 1.0, none, face + 1, none)


def test_a_moment_that_numpy_holds_releases_nothing_early(ledger: Ledger) -> None:
    start: Any = np.int64(fixed_terms().starts)  # SQLite would compare it as bytes, which are above all numbers
    ledger.decide("r2", make_offers(["c1"]), Dearest(), now=int(start))
    ledger.decide("r3", make_offers(["c1"]), Dearest(), now=start)
    assert ledger.standing(now=start).promised == 20_000_000
    assert ledger.redeem("r2", "c1", now=start + 1).late is False
