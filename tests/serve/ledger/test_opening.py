"""A ledger is opened by its address, with the terms that it has; what is wrong with either is said."""

import sqlite3
import threading
from pathlib import Path

import pytest
from ledgers import START, Dearest, fixed_terms, make_offers

from largesse.errors import InputError, LedgerError
from largesse.serve import Ledger, Terms, make_terms, open_ledger


def decide(ledger: Ledger, request: str, customers: str) -> list[int]:
    return ledger.decide(request, make_offers(list(customers)), Dearest(), now=START).levels.tolist()


def test_a_ledger_is_found_again_with_its_terms(address: str) -> None:
    with open_ledger(address, fixed_terms(), plan={"rate": 1.5}) as ledger:
        decide(ledger, "1", "a")
    with open_ledger(address) as ledger:
        standing = ledger.standing(now=START)
    assert (standing.terms, standing.plan, standing.decisions) == (fixed_terms(), {"rate": 1.5}, 1)
    with pytest.raises(LedgerError, match=r"the total is 200.00, but the ledger has 100.00"):
        open_ledger(address, fixed_terms(200))
    with pytest.raises(LedgerError, match="other terms of promises than those of"):
        open_ledger(address, fixed_terms(promises="while_it_lasts"))


def test_a_ledger_that_is_not_there_is_not_made_by_looking(address: str) -> None:
    with pytest.raises(LedgerError, match="there is no ledger at"):
        open_ledger(address)
    assert not Path(address.removeprefix("sqlite:///")).exists()


def test_another_version_is_refused(address: str) -> None:
    with open_ledger(address, fixed_terms()) as ledger:
        ledger._work(lambda session: session.run("UPDATE ledger SET format = 99"))
    with pytest.raises(LedgerError, match="another version of largesse"):
        open_ledger(address)


@pytest.mark.parametrize("wrong", ["spring.db", "sqlite://spring.db", "mysql://host/db", "", 3, "postgresql://"])
def test_an_address_of_no_known_kind_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="sqlite:///spring"):
        open_ledger(wrong)  # type: ignore[arg-type]


def test_a_password_is_not_shown_where_the_kind_is_misspelt() -> None:
    with pytest.raises(InputError, match="postgressql://…@host/db") as caught:
        open_ledger("postgressql://me:zx@cy@host/db")
    assert "zx" not in str(caught.value)


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    other, text = tmp_path / "other.db", tmp_path / "text.db"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE mine (x)")
    text.write_text("hello" * 1000)
    before = other.read_bytes()
    with pytest.raises(LedgerError, match="a database, but no ledger"):
        open_ledger(f"sqlite:///{other}", fixed_terms())
    with pytest.raises(LedgerError, match="damaged or no database"):
        open_ledger(f"sqlite:///{text}", fixed_terms())
    with pytest.raises(LedgerError, match=r"the folder .* is not there"):
        open_ledger(f"sqlite:///{tmp_path}/nowhere/x.db", fixed_terms())
    with pytest.raises(LedgerError, match="is no file"):
        open_ledger(f"sqlite:///{tmp_path}", fixed_terms())
    assert other.read_bytes() == before


def test_a_locked_file_is_waited_for_and_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.serve.ledger.sqlite.WAIT", 0.0)
    path = tmp_path / "ledger.db"
    ledger = open_ledger(f"sqlite:///{path}", fixed_terms(), timeout=0.1)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="is locked"):
            ledger.standing()
        other.execute("ROLLBACK")
    assert ledger.standing().decisions == 0


def test_nobody_waits_for_another_thread_longer_than_patience(tmp_path: Path) -> None:
    held, go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        held.set()
        go.wait(10)

    with open_ledger(f"sqlite:///{tmp_path}/ledger.db", fixed_terms(), timeout=0.05) as ledger:
        thread = threading.Thread(target=ledger._work, args=(hold,))
        thread.start()
        assert held.wait(10)
        with pytest.raises(LedgerError, match="is busy: other requests still wait for it"):
            ledger.standing()
        go.set()
        thread.join()
        assert ledger.standing().decisions == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"total": -1}, "the total is -1"),
        ({"total": "much"}, "the total is 'much'"),
        ({"total": 2e12}, "the total is"),
        ({"ends": "soon"}, "the end is 'soon'"),
        ({"ends": "2026-01-01", "starts": "2027-01-01"}, "but begins at"),
        ({"valid_days": 0}, "stands for 0 days"),
        ({"late": "maybe"}, "late redemptions: 'maybe'"),
        ({"promises": "perhaps"}, "promises: 'perhaps'"),
    ],
)
def test_wrong_terms_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_terms(**{"total": 5, "ends": "2999-01-01", **given})  # type: ignore[arg-type]


def test_a_budget_is_rounded_down_and_a_cost_up() -> None:
    assert make_terms("0.0000019", "2999-01-01").total == 1
    assert isinstance(make_terms(0.1, "2999-01-01"), Terms)
    assert make_terms(0.1, "2999-01-01").total == 100_000
