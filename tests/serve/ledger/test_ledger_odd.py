"""Odd arguments, odd places and damaged content: a ledger says what is wrong, and begins and changes nothing."""

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledgers import Dearest, fixed_terms, make_offers

import largesse as lg
from largesse.errors import InputError, LargesseError, LedgerError
from largesse.policy import Policy
from largesse.serve import (
    Choice,
    Ledger,
    Offers,
    PacePlan,
    Pacer,
    Standing,
    make_population,
    open_ledger,
    plan_pace,
    read_money,
)
from largesse.serve import make_offers as make_policy_offers
from largesse.serve.ledger.money import MOST_MICROS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with one decision."""
    found = tmp_path / "spring.db"
    with open_ledger(f"sqlite:///{found}", fixed_terms()) as ledger:
        ledger.decide("r1", make_offers(["c1"]), Dearest())
    return found


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return open_ledger(f"sqlite:///{path}")


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 201, 5, None, b"x", [], {}, 10**5000], ids=range(10))
def test_odd_ids_are_named(ledger: Ledger, name: Any) -> None:
    with pytest.raises(InputError, match="request's id is"):
        ledger.decide(name, make_offers(["c1"]), Dearest())
    with pytest.raises(InputError, match="a customer is"):
        ledger.decide("r2", make_offers([name, name]), Dearest())
    with pytest.raises(InputError, match="the customer is"):
        ledger.redeem("r1", name)


@pytest.mark.parametrize("now", [-1, 1.5, "x", True, 2**63, []])
def test_odd_moments_are_named(ledger: Ledger, now: Any) -> None:
    for work in (
        lambda: ledger.decide("r2", make_offers(["c1"]), Dearest(), now=now),
        lambda: ledger.redeem("r1", "c1", now=now),
        lambda: ledger.standing(now=now),
    ):
        with pytest.raises(InputError, match="now, in microseconds"):
            work()


def test_odd_versions_and_contents_are_named(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="2 things are wrong"):
        ledger.decide("r2", make_offers(["c1"]), Dearest(), policy=5, content=[])  # type: ignore[arg-type]


@pytest.mark.parametrize("amount", ["1_0", "４", "", True, 10**5000, float("nan"), 1j, [], "1e400"], ids=range(9))
def test_odd_amounts_are_refused(amount: Any) -> None:
    with pytest.raises(InputError, match="the total is"):
        read_money(amount, "the total", up=False)


def test_many_customers_of_one_name_are_told_quickly() -> None:
    with pytest.raises(InputError, match="comes twice: c1"):
        make_offers(["c1"] * 10_000)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ledger SET total = 'x'",
        "UPDATE ledger SET ends = 0",
        "UPDATE ledger SET spent = total + 1",
        "UPDATE ledger SET late = 'perhaps'",
        "UPDATE ledger SET spent = 'x'",
        "UPDATE ledger SET state = '[NaN]'",
        "UPDATE ledger SET state = '5'",
        "UPDATE ledger SET plan = '[['",
        "UPDATE request SET decided_at = 'x'",
        "UPDATE decision SET level = 'x'",
        "DELETE FROM decision",
    ],
)
def test_damaged_content_is_told(path: Path, change: str) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(change)
    database.close()

    def use() -> None:
        with open_ledger(f"sqlite:///{path}") as ledger:
            ledger.standing()
            ledger.decide("r1", make_offers(["c1"]), Dearest())

    with pytest.raises(LedgerError, match="the ledger is damaged"):
        use()


@pytest.mark.parametrize(
    "change", ["UPDATE ledger SET requests = 1000000000000", "UPDATE decision SET at_once = 9e999"]
)
def test_damaged_sums_are_told(path: Path, change: str) -> None:
    with sqlite3.connect(path) as database:
        database.execute(change)
    database.close()

    def use() -> None:
        with open_ledger(f"sqlite:///{path}") as ledger:
            assert not ledger.audit().fine
            list(ledger.decisions())

    with pytest.raises(LedgerError, match="the ledger is damaged"):
        use()


def test_an_empty_file_is_no_ledger_and_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(LedgerError, match="there is no ledger"):
        open_ledger(f"sqlite:///{tmp_path}/empty.db")
    assert (tmp_path / "empty.db").read_bytes() == b""


def test_damaged_promises_are_told(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE decision SET paid = 1")  # but nothing says when
    database.close()
    with pytest.raises(LedgerError, match="the ledger is damaged"), open_ledger(f"sqlite:///{path}") as ledger:
        ledger.redeem("r1", "c1")


PLAN: dict[str, Any] = {
    **PacePlan(1.0, (0.1, 0.0), (1.0,), (1.0,), (0.1,), 100.0, 1.0).as_dict(),
}


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
    assert PacePlan.from_dict(PLAN).customers == 100
    with pytest.raises(InputError, match="no plan for its price"):
        PacePlan.from_dict({**PLAN, **change})


@pytest.mark.parametrize(("place", "value"), [(3, 1e300), (8, 1e300), (0, -1.0), (10, 0.0)])
def test_a_state_that_no_price_has_begins_anew(tmp_path: Path, place: int, value: float) -> None:
    state = PacePlan.from_dict(PLAN).begin(fixed_terms()).tolist()
    state[place] = value
    with open_ledger(f"sqlite:///{tmp_path}/x.db", fixed_terms(), plan=PLAN) as ledger:
        ledger._work(lambda session: session.run("UPDATE ledger SET state = ?", (json.dumps(state),)))
        made = ledger.decide("r1", make_offers(["c1"]), Pacer(seed=0), now=fixed_terms().starts + 1)
        assert np.isfinite(made.price).all()
        assert ledger.standing().state[3] < 30  # days since the start: of the new state


@pytest.mark.parametrize(
    "given",
    [
        {"plan": {"a": float("nan")}},
        {"plan": {"a": object()}},
        {"plan": []},
        {"timeout": "x"},
        {"terms": 5},
    ],
)
def test_a_ledger_that_cannot_begin_leaves_no_file(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(LargesseError):
        open_ledger(f"sqlite:///{tmp_path}/x.db", **{"terms": fixed_terms(), **given})
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_no_ledger_and_a_name_is_only_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LedgerError, match="is no file"):
        open_ledger(f"sqlite:///{tmp_path}/pipe", fixed_terms())
    monkeypatch.chdir(tmp_path)
    open_ledger("sqlite:///:memory:", fixed_terms()).close()
    assert (tmp_path / ":memory:").is_file()


@pytest.mark.parametrize("odd", [5, None, "ab", [object()], {}])
def test_offers_and_plans_of_nothing_are_refused(odd: Any) -> None:
    for work in (
        lambda: Offers(odd, *[np.zeros((1, 2), np.int64)] * 4),
        lambda: make_population(odd, {}),
        lambda: make_policy_offers(odd, {}, ["a"]),
        lambda: plan_pace(odd, odd, 10),
    ):
        with pytest.raises(InputError):
            work()


def test_amounts_beyond_what_a_ledger_counts_are_refused(path: Path) -> None:
    class Dear:
        def choose(self, _: Standing, offers: Offers) -> Choice:
            n = len(offers)
            return Choice(np.ones(n, dtype=np.int64), np.ones(n), np.zeros(n), np.zeros(n, dtype=np.int64), (1.0,))

    face = np.tile(np.array([0, MOST_MICROS]), (20, 1))
    none = np.zeros_like(face)
    names = tuple(f"c{k}" for k in range(20))
    with open_ledger(f"sqlite:///{path}.new", fixed_terms(promises="while_it_lasts")) as ledger:
        with pytest.raises(LedgerError, match=r"20,000,000,000,000.00: more than a ledger can count"):
            ledger.decide("1", Offers(names, none * 1.0, none, face, none), Dear())
        assert ledger.standing().requests == 0
    with pytest.raises(InputError, match="costs are whole millionths"):
        Offers(names, none * 1.0, none, face + 1, none)


def test_a_moment_that_numpy_holds_releases_nothing_early(ledger: Ledger) -> None:
    start: Any = np.int64(fixed_terms().starts)  # SQLite would compare it as bytes, which are above all numbers
    ledger.decide("r2", make_offers(["c1"]), Dearest(), now=int(start))
    ledger.decide("r3", make_offers(["c1"]), Dearest(), now=start)
    assert ledger.standing(now=start).promised == 20_000_000
    assert ledger.redeem("r2", "c1", now=start + 1).late is False


@pytest.mark.parametrize(
    "part", ["x", None, [[1, 2]], np.array([["a", "b"]]), np.array([[None, 1]]), np.zeros((1, 2), bool)]
)
def test_offers_of_no_numbers_are_refused(part: Any) -> None:
    whole = np.zeros((1, 2), np.int64)
    for place in range(4):
        parts = [part if at == place else whole for at in range(4)]
        with pytest.raises(InputError, match="no arrays of numbers"):
            Offers(("a",), *parts)


@pytest.mark.parametrize("odd", [5, None, "ab", {"a"}, b"ab"])
def test_ids_costs_and_seasons_that_are_no_lists_are_named(odd: Any) -> None:
    log = lg.simulate("averaged", n=60, seed=2).log
    later = lg.Levels(costs=[0, 1, 2, 3, 4], on_redemption=True)
    policy = Policy(lg.Linear(penalty=1.0).fit(log), later, price=0.1)
    with pytest.raises(InputError, match="the ids are"):
        make_policy_offers(policy, log, odd)
    if odd is None:  # stands for an even week, and for the costs of the levels
        return
    with pytest.raises(InputError, match="the season is"):
        plan_pace(make_population(policy, log), fixed_terms(), 10, season=odd)
    with pytest.raises(InputError, match="the most that levels may cost is"):
        make_population(policy, log, most=odd)
