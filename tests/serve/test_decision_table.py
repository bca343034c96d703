"""What a ledger decided, as a table, and where its budget stands."""

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse import cli
from largesse.errors import InputError, LedgerError, OutputError
from largesse.monitoring import join_ids
from largesse.serve import audit_ledger, describe_standing, open_ledger
from support.ledgers import START, Dearest, fixed_terms, respond
from support.ledgers import make_offers as ledger_offers

Serve = Callable[[list[str]], str]


def test_the_command_says_where_a_budget_stands_and_changes_it(
    book_decisions: Serve,
    run_copy: Path,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address = book_decisions(pq.read_table(shop / "customers.parquet")["id"].to_pylist()[:20])

    def call(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["largesse", *words])
        try:
            cli.main()
        except SystemExit as stopped:
            return int(stopped.code or 0)
        return 0

    assert call("ledger", address, "--out", str(shop / "decisions.csv")) == 0
    shown = capsys.readouterr().out
    assert "1,000.00 €" in shown
    assert "20 decisions in 20 requests" in shown
    table = csv.read_csv(shop / "decisions.csv")
    assert table.column_names[:4] == ["request", "customer", "level", "level_number"]
    assert len(table) == 20
    assert call("ledger", address, "--total", "1200", "--json") == 0
    assert json.loads(capsys.readouterr().out)["total"] == 1200
    assert call("ledger", address, "--total", "0") == 2
    assert "give at least that much" in capsys.readouterr().err
    orders = shop / "orders.parquet"
    pq.write_table(respond(address), orders)
    words = [
        "log",
        str(run_copy),
        "--ledger",
        address,
        "--join",
        str(shop / "customers.parquet"),
        "--join",
        str(orders),
    ]
    assert call(*words, "--out", str(shop / "next.parquet")) == 0
    assert "20 decisions for 20 customers" in capsys.readouterr().out
    assert call("check", str(run_copy), str(shop / "next.parquet"), "--ledger", address, "-q") in (0, 10)


def test_a_ledger_that_something_else_changed_is_named(book_decisions: Serve, shop: Path, tmp_path: Path) -> None:
    address = book_decisions(pq.read_table(shop / "customers.parquet")["id"].to_pylist()[:5])
    with sqlite3.connect(tmp_path / "spring.db") as database:
        database.execute("UPDATE ledger SET spent = spent + 1")
    database.close()
    with pytest.raises(LedgerError, match="something else changed the ledger"):
        audit_ledger(address)


def test_a_ledger_whose_promises_hold_while_it_lasts_says_what_it_keeps_back(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'lasts.db'}"
    with open_ledger(address, fixed_terms(valid_days=None, promises="while_it_lasts")) as ledger:
        ledger.decide("1", ledger_offers(list("abcdefghijkl")), Dearest(), now=START)
    shown = describe_standing(audit_ledger(address))
    assert re.search(
        r"promised while it lasts +120\.00\n +of that will probably be redeemed +60\.00\n +left +40\.00", shown
    )


def test_a_ledger_whose_sums_are_wrong_is_neither_changed_nor_written(book_decisions: Serve, tmp_path: Path) -> None:
    address = book_decisions(["c00000"])
    with sqlite3.connect(address.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE ledger SET decisions = 7")
    database.close()
    with pytest.raises(LedgerError, match="decisions is 7 in the ledger"):
        audit_ledger(address, 999, tmp_path / "all.csv")
    assert not (tmp_path / "all.csv").exists()
    with open_ledger(address) as ledger:
        assert ledger.standing().terms.total != 999_000_000


@pytest.mark.parametrize("change", ["propensity = 'x'", "level = 'x'", "decided_at = 'x'"])
def test_a_ledger_whose_decisions_are_damaged_is_not_written(
    book_decisions: Serve, tmp_path: Path, change: str
) -> None:
    address = book_decisions(["c00000"])
    table = "request" if "decided_at" in change else "decision"
    with sqlite3.connect(address.removeprefix("sqlite:///")) as database:
        database.execute(f"UPDATE {table} SET {change}")
    database.close()
    with pytest.raises(LedgerError, match="the ledger is damaged"):
        audit_ledger(address, None, tmp_path / "all.csv")
    assert not (tmp_path / "all.csv").exists()


def test_a_ledger_is_not_written_over_by_its_own_decisions(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/spring.csv"
    with open_ledger(address, fixed_terms()) as ledger:
        ledger.decide("r0", ledger_offers(["a"]), Dearest(), now=START)
    with pytest.raises(OutputError, match="perhaps a ledger"):
        audit_ledger(address, None, tmp_path / "spring.csv")
    with open_ledger(address) as ledger:
        assert ledger.standing(now=START).decisions == 1


def test_the_command_log_does_not_print_a_password(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"rows": 1, "customers": 1, "drawn": 0, "others": 0}
    monkeypatch.setattr("largesse.pipeline.write_next_log", lambda *_, **__: made)
    monkeypatch.setattr("largesse.serve.read_decisions", lambda _: None)
    words = ["log", str(run_copy), "--ledger", "postgresql://me:zx@host/db", "--out", "next.csv"]
    monkeypatch.setattr("sys.argv", ["largesse", *words])
    with pytest.raises(SystemExit):
        cli.main()
    shown = capsys.readouterr().out
    assert "largesse check" in shown
    assert "zx" not in shown


def test_two_columns_of_ids_are_named() -> None:
    table = pa.table([["a"], ["b"], ["c"], ["d"]], ["id", "id", "request", "request"])
    for key, requests, words in (("id", False, "two columns 'id'"), ("x", True, "two columns 'request'")):
        with pytest.raises(InputError, match=words):
            join_ids(table.append_column("x", pa.array(["e"])), key, requests=requests)
