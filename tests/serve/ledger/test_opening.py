"""A ledger is opened by its address and keeps its terms; errors name what is invalid, but never a password."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError, LedgerError
from largesse.serve import make_terms, open_ledger
from largesse.serve.ledger.amounts_and_times import read_money
from largesse.serve.ledger.ledger import make_store
from support.ledgers import START, Dearest, fixed_terms, make_offers
from support.postgres import Server


def test_a_ledger_keeps_its_terms(address: str) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        open_ledger(address)
    assert not Path(address.removeprefix("sqlite:///")).exists()
    with open_ledger(address, fixed_terms(), plan={"rate": 1.5}) as ledger:
        ledger.decide("1", make_offers(["a"]), Dearest(), now=START)
    with open_ledger(address) as ledger:
        standing = ledger.standing(now=START)
        assert (standing.terms, standing.plan, standing.decisions) == (fixed_terms(), {"rate": 1.5}, 1)
        for subject, terms in (("200.00", fixed_terms(200)), ("promises", fixed_terms(promises="while_it_lasts"))):
            with pytest.raises(LedgerError, match=subject):
                open_ledger(address, terms)
        ledger._run_transaction(lambda session: session.run("UPDATE ledger SET format = 99"))
    with pytest.raises(LedgerError, match="another version"):
        open_ledger(address)


@pytest.mark.parametrize("address", ["spring.db", "sqlite://spring.db", "mysql://host/db", "", 3, "postgresql://"])
def test_an_address_of_no_known_kind_is_refused(address: Any) -> None:
    with pytest.raises(InputError, match="sqlite:///spring"):
        open_ledger(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgressql://me:zx@cy@host/db",
        *(f"postgresql://me:{secret}@host:5432/db" for secret in ("zx/cy", "zx?cy", "zx#cy", "[zx", "98/34")),
    ],
)
def test_a_password_is_not_shown_in_an_invalid_address(address: str) -> None:
    with pytest.raises(InputError, match="postgres") as caught:
        open_ledger(address, fixed_terms())
    assert "zx" not in str(caught.value)
    assert "98" not in str(caught.value)


def test_an_unreachable_server_is_named_without_the_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError, match=r"me@127\.0\.0\.1:1/db") as caught:
        open_ledger("postgresql://me:secret@127.0.0.1:1/db?schema=x", fixed_terms(), timeout=0.05)
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="schema"):
        open_ledger("postgresql://host/db?schema=x;drop")
    store = make_store("postgresql://me:a@b@[::1]:5432,second:5433/db?schema=spring")
    assert store.display_address == "postgresql://me@[::1]:5432,second:5433/db (schema spring)"


def test_a_transaction_that_was_stopped_for_too_long_is_repeated(server: Server) -> None:
    attempts = []

    def work(session: Any) -> int:
        attempts.append(session.now())
        if len(attempts) == 1:
            session.fetch("SET LOCAL idle_in_transaction_session_timeout = 50")  # at once
            time.sleep(0.5)
        return int(session.fetch("SELECT total FROM ledger")[0][0])

    with open_ledger(server.address("stopped"), fixed_terms()) as ledger:
        assert ledger._run_transaction(work) == 100_000_000
    assert len(attempts) == 2


def test_a_pooler_that_drops_settings_keeps_two_ledgers_apart(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    connect = psycopg.connect

    def pooled(address: str, **more: Any) -> Any:
        return connect(address, **{name: value for name, value in more.items() if name != "options"})

    monkeypatch.setattr(psycopg, "connect", pooled)
    addresses = [server.address(f"pooled_{name}") for name in ("spring", "summer")]
    for address in addresses:
        open_ledger(address, fixed_terms()).close()
    with open_ledger(addresses[0]) as ledger:
        for k in range(12):
            ledger.decide(f"more {k}", make_offers(["a"]), Dearest(), now=START)
        store: Any = ledger._store  # a pooler may give each transaction another connection: nothing is prepared on one
        assert store._connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
    with open_ledger(addresses[1]) as ledger:
        assert ledger.standing(now=START).requests == 0


def test_a_decision_is_on_the_disk_whatever_the_database_does_by_default(server: Server) -> None:
    psycopg = pytest.importorskip("psycopg")

    def settings(session: Any) -> list[str]:
        return [session.fetch(f"SHOW {name}")[0][0] for name in ("synchronous_commit", "search_path")]

    with psycopg.connect(server.address("x").partition("&")[0], autocommit=True) as admin:
        for default, used in (("off", "on"), ("local", "local"), ("on", "on"), ("remote_apply", "remote_apply")):
            admin.execute(f"ALTER ROLE largesse SET synchronous_commit = {default}")
            with open_ledger(server.address("safe"), fixed_terms()) as ledger:
                assert ledger._run_transaction(settings) == [used, "safe"]
        admin.execute("ALTER ROLE largesse RESET synchronous_commit")


def test_decisions_are_read_back_exactly_whatever_a_database_does_by_default(server: Server) -> None:
    psycopg = pytest.importorskip("psycopg")
    names = ["it's", 'a "quoted" one', "back\\slash\\", "100%s", "?", "Ω漢😀", "{1,2}", "$1"]
    with psycopg.connect(server.address("x").partition("&")[0], autocommit=True) as admin:
        admin.execute("ALTER ROLE largesse SET extra_float_digits = 0")
        admin.execute("ALTER ROLE largesse SET standard_conforming_strings = off")
        with open_ledger(server.address("exact"), fixed_terms()) as ledger:
            offers = replace(make_offers(names), responses=np.full((len(names), 3), 1 / 3))
            first = ledger.decide("it's \\ 100%", offers, Dearest(), now=START)
            again = ledger.decide("it's \\ 100%", offers, Dearest(), now=START)
            assert again.repeated
            assert (again.customers, again.responses.tolist()) == (first.customers, first.responses.tolist())
            assert [row[1] for row in ledger.decisions()] == names
        admin.execute("ALTER ROLE largesse RESET ALL")


# -- terms ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ({"total": -1}, "the total is -1"),
        ({"total": "much"}, "the total is 'much'"),
        ({"total": 2e12}, "the total is"),
        *(({"ends": end}, "the end is") for end in ("soon", "2027-W05", "2027-W05-1", "2027-0131", "202701-31", "nat")),
        ({"ends": "２０２７-01-31"}, "the end is"),
        ({"ends": np.datetime64("NaT")}, "the end is"),
        ({"ends": "2026-01-01", "starts": "2027-01-01"}, "begins at"),
        ({"valid_days": 0}, "0 days"),
        ({"late": "maybe"}, "'maybe'"),
        ({"promises": "perhaps"}, "'perhaps'"),
    ],
)
def test_invalid_terms_are_refused(change: dict[str, Any], subject: str) -> None:
    with pytest.raises(InputError, match=subject):
        make_terms(**{"total": 5, "ends": "2999-01-01", **change})


def test_a_missing_time_of_a_table_is_no_end() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(InputError, match="the end is NaT"):
        make_terms(5, pandas.NaT, starts="2026-01-01")


def test_a_budget_is_rounded_down_and_a_sum_of_floats_is_the_amount_that_was_meant() -> None:
    assert make_terms("0.0000019", "2999-01-01").total == 1
    for amount in (0.1, 0.1 + 0.2, 1.1 * 3, 0.29 * 100, np.float64(0.1) * 3):
        meant = round(round(float(amount), 2) * 1e6)
        assert read_money(amount, "the amount", up=True) == read_money(amount, "the total", up=False) == meant


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ("2027-01-31", "2027-02-01 00:00:00Z"),
        ("20270131", "2027-02-01 00:00:00Z"),  # the last day is part of the period, however it is written
        ("2027-01-31T18:00", "2027-01-31 18:00:00Z"),
        ("2027-03-28T02:30:00+01:00", "2027-03-28 01:30:00Z"),  # an hour that daylight saving leaves out
        ("2027-10-31T02:30:00+02:00", "2027-10-31 00:30:00Z"),  # and one that comes twice
        ("2027-10-31T02:30:00+01:00", "2027-10-31 01:30:00Z"),
    ],
)
def test_a_period_ends_when_it_says(ends: str, shown: str) -> None:
    assert f"until {shown};" in make_terms(5, ends, starts="2026-01-01").describe()
