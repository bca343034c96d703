"""A ledger is opened by its address and keeps its terms; what is wrong with either is named, but never a password."""

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import InputError, LedgerError
from largesse.serve import LedgerTerms, make_terms, open_ledger
from largesse.serve.ledger.ledger import make_store
from support.ledgers import START, Dearest, fixed_terms, make_offers
from support.postgres import Server


def test_a_ledger_keeps_its_terms(address: str) -> None:
    with open_ledger(address, fixed_terms(), plan={"rate": 1.5}) as ledger:
        ledger.decide("1", make_offers(["a"]), Dearest(), now=START)
    with open_ledger(address) as ledger:
        standing = ledger.standing(now=START)
    assert (standing.terms, standing.plan, standing.decisions) == (fixed_terms(), {"rate": 1.5}, 1)
    for subject, terms in (("200.00", fixed_terms(200)), ("promises", fixed_terms(promises="while_it_lasts"))):
        with pytest.raises(LedgerError, match=subject):
            open_ledger(address, terms)


def test_a_missing_ledger_is_not_made_by_opening_it(address: str) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        open_ledger(address)
    assert not Path(address.removeprefix("sqlite:///")).exists()


def test_another_version_is_refused(address: str) -> None:
    with open_ledger(address, fixed_terms()) as ledger:
        ledger._transact(lambda session: session.run("UPDATE ledger SET format = 99"))
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


def test_other_files_are_left_as_they_are(tmp_path: Path) -> None:
    other, text, empty = (tmp_path / name for name in ("other.db", "text.db", "empty.db"))
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE mine (x)")
    text.write_text("hello" * 1000)
    empty.touch()
    before = [path.read_bytes() for path in (other, text, empty)]
    for subject, path in (
        ("no ledger", other),
        ("damaged or no database", text),
        ("folder", tmp_path / "nowhere" / "x.db"),
        ("no file", tmp_path),
    ):
        with pytest.raises(LedgerError, match=subject):
            open_ledger(f"sqlite:///{path}", fixed_terms())
    with pytest.raises(LedgerError, match="there is no ledger"):
        open_ledger(f"sqlite:///{empty}")
    assert [path.read_bytes() for path in (other, text, empty)] == before


def test_a_locked_file_is_waited_for_and_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.serve.ledger.sqlite.BUSY_SECONDS", 0.0)
    path = tmp_path / "ledger.db"
    ledger = open_ledger(f"sqlite:///{path}", fixed_terms(), timeout=0.1)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="is locked"):
            ledger.standing()
        other.execute("ROLLBACK")
    assert ledger.standing().decisions == 0


def test_another_thread_is_not_waited_for_longer_than_the_timeout(tmp_path: Path) -> None:
    held, go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        held.set()
        go.wait(10)

    with open_ledger(f"sqlite:///{tmp_path}/ledger.db", fixed_terms(), timeout=0.05) as ledger:
        thread = threading.Thread(target=ledger._transact, args=(hold,))
        thread.start()
        assert held.wait(10)
        with pytest.raises(LedgerError, match="is busy"):
            ledger.standing()
        go.set()
        thread.join()
        assert ledger.standing().decisions == 0


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ({"total": -1}, "the total is -1"),
        ({"total": "much"}, "the total is 'much'"),
        ({"total": 2e12}, "the total is"),
        ({"ends": "soon"}, "the end is 'soon'"),
        ({"ends": "2026-01-01", "starts": "2027-01-01"}, "begins at"),
        ({"valid_days": 0}, "0 days"),
        ({"late": "maybe"}, "'maybe'"),
        ({"promises": "perhaps"}, "'perhaps'"),
    ],
)
def test_wrong_terms_are_refused(change: dict[str, Any], subject: str) -> None:
    with pytest.raises(InputError, match=subject):
        make_terms(**{"total": 5, "ends": "2999-01-01", **change})


def test_a_budget_is_rounded_down() -> None:
    assert make_terms("0.0000019", "2999-01-01").total == 1
    assert isinstance(make_terms(0.1, "2999-01-01"), LedgerTerms)
    assert make_terms(0.1, "2999-01-01").total == 100_000


# -- PostgreSQL ----------------------------------------------------------------------------------------------------------


def test_an_unreachable_server_is_named_without_the_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError, match=r"me@127\.0\.0\.1:1/db") as caught:
        open_ledger("postgresql://me:secret@127.0.0.1:1/db?schema=x", fixed_terms(), timeout=0.05)
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="schema"):
        open_ledger("postgresql://host/db?schema=x;drop")
    store = make_store("postgresql://me:a@b@[::1]:5432,second:5433/db?schema=spring")
    assert store.shown == "postgresql://me@[::1]:5432,second:5433/db (schema spring)"


def test_a_transaction_that_was_stopped_for_too_long_is_repeated(server: Server) -> None:
    attempts = []

    def work(session: Any) -> int:
        attempts.append(session.now())
        if len(attempts) == 1:
            session.run("SET LOCAL idle_in_transaction_session_timeout = 50")
            time.sleep(0.5)
        return int(session.fetch("SELECT total FROM ledger")[0][0])

    with open_ledger(server.address("stopped"), fixed_terms()) as ledger:
        assert ledger._transact(work) == 100_000_000
    assert len(attempts) == 2
