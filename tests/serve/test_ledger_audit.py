"""Decisions of a ledger as a table, and the standing of its budget."""

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.errors import InputError, LedgerError, OutputError
from largesse.monitoring import make_text_ids
from largesse.serve import audit_ledger, describe_standing, open_ledger
from support.commands import Call
from support.ledgers import START, Dearest, fixed_terms, make_offers, respond

Book = Callable[[list[str]], str]


def test_the_command_shows_the_standing_of_a_budget_and_changes_it(
    book_decisions: Book, run_copy: Path, shop: Path, call: Call
) -> None:
    address = book_decisions(pq.read_table(shop / "customers.parquet")["id"].to_pylist()[:20])
    code, out, _ = call("ledger", address, "--out", str(shop / "decisions.csv"))
    assert (code, "1,000.00 €" in out, "20 decisions in 20 requests" in out) == (0, True, True)
    table = csv.read_csv(shop / "decisions.csv")
    assert table.column_names[:4] == ["request", "customer", "level", "level_number"]
    assert len(table) == 20
    assert json.loads(call("ledger", address, "--total", "1200", "--json").out)["total"] == 1200
    code, _, err = call("ledger", address, "--total", "0")
    assert (code, "give at least that much" in err) == (2, True)
    pq.write_table(respond(address), shop / "orders.parquet")
    joins = ("--join", str(shop / "customers.parquet"), "--join", str(shop / "orders.parquet"))
    code, out, _ = call("log", str(run_copy), "--ledger", address, *joins, "--out", str(shop / "next.parquet"))
    assert (code, "20 decisions for 20 customers" in out) == (0, True)
    assert call("check", str(run_copy), str(shop / "next.parquet"), "--ledger", address, "-q").code in (0, 10)


def test_a_ledger_whose_promises_hold_while_it_lasts_shows_its_reservation(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'lasts.db'}"
    with open_ledger(address, fixed_terms(valid_days=None, promises="while_it_lasts")) as ledger:
        ledger.decide("1", make_offers(list("abcdefghijkl")), Dearest(), now=START)
    shown = describe_standing(audit_ledger(address))
    pattern = r"promised while it lasts +120\.00\n +of that will probably be redeemed +60\.00\n +left +40\.00"
    assert re.search(pattern, shown)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE ledger SET spent = spent + 1", "something else changed the ledger"),
        ("UPDATE ledger SET decisions = 7", "decisions is 7 in the ledger"),
        ("UPDATE decision SET propensity = 'x'", "the ledger is damaged"),
        ("UPDATE decision SET level = 'x'", "the ledger is damaged"),
        ("UPDATE request SET decided_at = 'x'", "the ledger is damaged"),
    ],
)
def test_a_changed_ledger_is_neither_changed_again_nor_written(tmp_path: Path, change: str, words: str) -> None:
    address = f"sqlite:///{tmp_path}/spring.db"
    with open_ledger(address, fixed_terms()) as ledger:
        ledger.decide("r0", make_offers(["a"]), Dearest(), now=START)
    with sqlite3.connect(tmp_path / "spring.db") as database:
        database.execute(change)
    database.close()
    total = None if "damaged" in words else 999
    with pytest.raises(LedgerError, match=words):
        audit_ledger(address, total, tmp_path / "all.csv")
    assert not (tmp_path / "all.csv").exists()
    with open_ledger(address) as ledger:
        assert ledger.standing(now=START).terms.total == 100_000_000


def test_a_ledger_is_not_overwritten_by_its_own_decisions(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/spring.csv"
    with open_ledger(address, fixed_terms()) as ledger:
        ledger.decide("r0", make_offers(["a"]), Dearest(), now=START)
    with pytest.raises(OutputError, match="perhaps a ledger"):
        audit_ledger(address, None, tmp_path / "spring.csv")
    with open_ledger(address) as ledger:
        assert ledger.standing(now=START).decisions == 1


def test_the_command_log_does_not_print_a_password(run_copy: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    made = {"rows": 1, "customers": 1, "drawn": 0, "others": 0}
    monkeypatch.setattr("largesse.pipeline.write_next_log", lambda *_, **__: made)
    monkeypatch.setattr("largesse.serve.read_decisions", lambda _: None)
    out = call("log", str(run_copy), "--ledger", "postgresql://me:zx@host/db", "--out", "next.csv").out
    assert "largesse check" in out
    assert "zx" not in out


def test_two_columns_of_ids_are_named() -> None:
    table = pa.table([["a"], ["b"], ["c"], ["d"]], ["id", "id", "request", "request"])
    for key, requests, words in (("id", False, "two columns 'id'"), ("x", True, "two columns 'request'")):
        with pytest.raises(InputError, match=words):
            make_text_ids(table.append_column("x", pa.array(["e"])), key, requests=requests)
