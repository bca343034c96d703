"""The next log holds every decision with its features, its propensity and what came of it."""

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from ledgers import START, Dearest, make_terms
from ledgers import make_offers as ledger_offers

from largesse import cli
from largesse.errors import InputError, LedgerError
from largesse.pacing import Pacer, agree, make_offers, make_population, open_ledger, plan_pace
from largesse.policy import Policy
from largesse.runs import Wanted, check, describe_standing, plan, read_campaign, read_standing, write_log

Serve = Callable[[list[str]], str]


@pytest.fixture
def serve(run_copy: Path, shop: Path, tmp_path: Path) -> Serve:
    """Books decisions for customers of the shop who come one after the other; returns the ledger's address."""

    def work(ids: list[str]) -> str:
        plan(run_copy, explore=0.3)
        policy, people = Policy.load(run_copy / "policy.largesse"), pq.read_table(shop / "customers.parquet")
        terms = agree(1000, "2999-12-31", starts="2026-01-01")
        paced = plan_pace(make_population(policy, people), terms, len(ids), at_random=policy.at_random)
        address = f"sqlite:///{tmp_path / 'spring.db'}"
        named = {**paced.as_dict(), "levels": list(policy.levels.labels), "unit": "€"}
        place = {name: at for at, name in enumerate(people["id"].to_pylist())}
        with open_ledger(address, terms, plan=named, state=paced.start()) as ledger:
            for at, name in enumerate(ids):
                offers = make_offers(policy, people.take([place[name]]), (name,))
                ledger.decide(f"r{at}", offers, Pacer(seed=at), policy="p1")
        return address

    return work


def _respond(address: str, seed: int = 0) -> pa.Table:
    """Return responses drawn as the model expects them."""
    with open_ledger(address) as ledger:
        rows = list(ledger.decisions())
    came = np.random.default_rng(seed).random(len(rows)) < [row[4] for row in rows]
    return pa.table({"request": [row[0] for row in rows], "id": [row[1] for row in rows], "bought": came.astype(int)})


def test_decisions_of_a_ledger_become_a_log_that_check_and_run_take(
    serve: Serve, run_copy: Path, shop: Path, tmp_path: Path
) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = serve(people["id"].to_pylist())
    csv.write_csv(_respond(address).drop_columns(["request"]), tmp_path / "orders.csv")
    tables = (str(shop / "customers.parquet"), str(tmp_path / "orders.csv"))
    shown = write_log(
        run_copy, Wanted(address, tables), tmp_path / "next.parquet", campaign_file=tmp_path / "next.toml"
    )
    table = pq.read_table(tmp_path / "next.parquet")
    assert shown["rows"] == shown["customers"] == len(table) == len(people)
    with open_ledger(address) as ledger:
        booked = {row[1]: row for row in ledger.decisions()}
    amounts = (0, 5, 10)
    for row in table.to_pylist():
        assert row["coupon"] == amounts[booked[row["id"]][2]]
        assert row["propensity"] == booked[row["id"]][3]
    assert (np.asarray(table["propensity"]) < 1).any()
    found, _ = check(run_copy, table, ledger=address)
    assert found.joined == len(people)
    assert found.followed == 1
    assert found.answer == "fine"
    campaign = read_campaign(tmp_path / "next.toml")
    assert campaign.roles["propensity"] == "propensity"
    assert Path(campaign.log) == tmp_path / "next.parquet"


def test_customers_who_come_again_are_told_apart_by_their_requests(
    serve: Serve, run_copy: Path, shop: Path, tmp_path: Path
) -> None:
    ids = pq.read_table(shop / "customers.parquet")["id"].to_pylist()[:30]
    address = serve(ids * 2)
    came = _respond(address)
    pq.write_table(came, tmp_path / "orders.parquet")
    tables = [str(shop / "customers.parquet"), str(tmp_path / "orders.parquet")]
    write_log(run_copy, Wanted(address, tables), tmp_path / "next.parquet")
    table = pq.read_table(tmp_path / "next.parquet")
    assert table["request"].to_pylist() == came["request"].to_pylist()
    assert table["bought"].to_pylist() == came["bought"].to_pylist()
    found, _ = check(run_copy, table, ledger=address)
    assert found.joined == 60
    with pytest.raises(InputError, match="with which request"):
        check(run_copy, table.drop_columns(["request"]), ledger=address)
    pq.write_table(came.drop_columns(["request"]).slice(0, 30), tmp_path / "orders.parquet")
    with pytest.raises(InputError, match="which response belongs to which request"):
        write_log(run_copy, Wanted(address, tables), tmp_path / "other.parquet")
    assert not (tmp_path / "other.parquet").exists()


def test_a_plan_becomes_a_log_with_the_customers_it_was_made_for(run_copy: Path, shop: Path, tmp_path: Path) -> None:
    planned = pq.read_table(run_copy / "plan.parquet")
    bought = pa.table({"id": planned["customer"], "bought": np.arange(len(planned)) % 2})
    pq.write_table(bought.slice(0, 150), tmp_path / "orders.parquet")
    wanted = Wanted(None, (str(tmp_path / "orders.parquet"),))
    with pytest.raises(InputError, match="50 of 200 decisions have no 'bought'"):
        write_log(run_copy, wanted, tmp_path / "next.csv")
    write_log(run_copy, Wanted(None, wanted.tables, missing=0), tmp_path / "next.csv")
    table = csv.read_csv(tmp_path / "next.csv")
    assert set(table["propensity"].to_pylist()) == {1}
    assert table["bought"].to_pylist()[150:] == [0] * 50
    found, _ = check(run_copy, table)
    assert found.followed == 1


def test_what_is_missing_or_twice_is_named(serve: Serve, run_copy: Path, shop: Path, tmp_path: Path) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = serve(people["id"].to_pylist()[:20])
    out = tmp_path / "next.parquet"

    def refused(*tables: Any) -> str:
        names = []
        for at, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"t{at}.parquet")
            names.append(str(tmp_path / f"t{at}.parquet"))
        with pytest.raises(InputError) as error:
            write_log(run_copy, Wanted(address, names), out)
        return str(error.value)

    came = _respond(address).drop_columns(["request"])
    assert "no table has 'age'" in refused()
    assert "no table has 'bought'" in refused(people)
    assert "did you mean 'idd'" in refused(people, came.rename_columns(["idd", "bought"]))
    assert "more than one row for 1 customer" in refused(people, pa.concat_tables([came, came.slice(0, 1)]))
    assert "the customers of 15 of 20 decisions are not in" in refused(people.slice(0, 5), came)
    with pytest.raises(InputError, match="part of a run folder"):
        write_log(run_copy, Wanted(address, ()), run_copy / "plan.parquet")
    assert not out.exists()


def test_a_new_log_of_others_than_the_ledgers_is_refused(serve: Serve, run_copy: Path, shop: Path) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = serve(people["id"].to_pylist()[:5])
    log = people.append_column("coupon", pa.array([0] * 200)).append_column("bought", pa.array([0, 1] * 100))
    with pytest.raises(InputError, match="no customer of the new log is in the ledger"):
        check(run_copy, log.slice(5), ledger=address)
    with pytest.raises(InputError, match="has no column 'id'"):
        check(run_copy, log.drop_columns(["id"]), ledger=address)


def test_the_command_says_where_a_budget_stands_and_changes_it(
    serve: Serve, run_copy: Path, shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = serve(pq.read_table(shop / "customers.parquet")["id"].to_pylist()[:20])

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
    pq.write_table(_respond(address), orders)
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


def test_a_ledger_that_something_else_changed_is_named(serve: Serve, shop: Path, tmp_path: Path) -> None:
    import sqlite3

    address = serve(pq.read_table(shop / "customers.parquet")["id"].to_pylist()[:5])
    with sqlite3.connect(tmp_path / "spring.db") as database:
        database.execute("UPDATE ledger SET spent = spent + 1")
    database.close()
    with pytest.raises(LedgerError, match="something else changed the ledger"):
        read_standing(address)


def test_a_ledger_whose_promises_hold_while_it_lasts_says_what_it_keeps_back(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'lasts.db'}"
    with open_ledger(address, make_terms(valid_days=None, promises="while_it_lasts")) as ledger:
        ledger.decide("1", ledger_offers(list("abcdefghijkl")), Dearest(), now=START)
    shown = describe_standing(read_standing(address))
    assert re.search(
        r"promised while it lasts +120\.00\n +of that will probably be redeemed +60\.00\n +left +40\.00", shown
    )


def test_odd_tables_to_join_are_named_and_other_campaign_files_stay(run_copy: Path, shop: Path, tmp_path: Path) -> None:
    answers, mine = tmp_path / "answers.parquet", tmp_path / "mine.toml"
    mine.write_text("mine")
    people = pq.read_table(shop / "customers.parquet")
    came = pa.table({"id": people["id"], "bought": pa.array([1] * len(people))})

    def write(table: pa.Table, **more: Any) -> None:
        pq.write_table(table, answers)
        write_log(run_copy, Wanted(None, (str(answers),), 0.0), tmp_path / "next.csv", **more)

    with pytest.raises(InputError, match="has two columns 'age'"):
        write(pa.table([came["id"], came["bought"], came["bought"], came["bought"]], ["id", "bought", "age", "age"]))
    with pytest.raises(InputError, match="holds no ids"):
        write(came.set_column(0, "id", pa.array([b"\xff"] * len(came))))
    with pytest.raises(InputError, match="already exists"):
        write(came, campaign_file=mine)
    assert (mine.read_text(), (tmp_path / "next.csv").exists()) == ("mine", False)
    write(pa.concat_tables([came, pa.table({"id": [None, None], "bought": [1, 1]}, schema=came.schema)]))
    assert len(csv.read_csv(tmp_path / "next.csv")) == len(people)


def test_a_ledger_whose_sums_are_wrong_is_neither_changed_nor_written(serve: Serve, tmp_path: Path) -> None:
    address = serve(["c00000"])
    with sqlite3.connect(address.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE ledger SET decisions = 7")
    database.close()
    with pytest.raises(LedgerError, match="decisions is 7 in the ledger"):
        read_standing(address, 999, tmp_path / "all.csv")
    assert not (tmp_path / "all.csv").exists()
    with open_ledger(address) as ledger:
        assert ledger.standing().terms.total != 999_000_000
