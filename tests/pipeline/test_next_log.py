"""The next log holds every decision with its features, its propensity and what came of it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.campaign import read_campaign
from largesse.errors import InputError
from largesse.pipeline import check, plan, run, write_next_log
from largesse.pipeline.commands import LOCAL
from largesse.serve import open_ledger, read_decisions
from support.ledgers import respond

Serve = Callable[[list[str]], str]


def test_decisions_of_a_ledger_become_a_log_that_check_and_run_take(
    book_decisions: Serve, run_copy: Path, shop: Path, tmp_path: Path
) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = book_decisions(people["id"].to_pylist())
    csv.write_csv(respond(address).drop_columns(["request"]), tmp_path / "orders.csv")
    tables = (str(shop / "customers.parquet"), str(tmp_path / "orders.csv"))
    shown = write_next_log(
        run_copy,
        tmp_path / "next.parquet",
        decisions=read_decisions(address),
        tables=tables,
        campaign_file=tmp_path / "next.toml",
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
    found, _ = check(run_copy, table, decisions=read_decisions(address))
    assert found.joined == len(people)
    assert found.followed == 1
    assert found.answer == "fine"
    campaign = read_campaign(tmp_path / "next.toml")
    assert campaign.roles["propensity"] == "propensity"
    assert Path(campaign.log) == tmp_path / "next.parquet"


def test_customers_who_come_again_are_told_apart_by_their_requests(
    book_decisions: Serve, run_copy: Path, shop: Path, tmp_path: Path
) -> None:
    ids = pq.read_table(shop / "customers.parquet")["id"].to_pylist()[:30]
    address = book_decisions(ids * 2)
    came = respond(address)
    pq.write_table(came, tmp_path / "orders.parquet")
    tables = [str(shop / "customers.parquet"), str(tmp_path / "orders.parquet")]
    write_next_log(run_copy, tmp_path / "next.parquet", decisions=read_decisions(address), tables=tables)
    table = pq.read_table(tmp_path / "next.parquet")
    assert table["request"].to_pylist() == came["request"].to_pylist()
    assert table["bought"].to_pylist() == came["bought"].to_pylist()
    found, _ = check(run_copy, table, decisions=read_decisions(address))
    assert found.joined == 60
    with pytest.raises(InputError, match="with which request"):
        check(run_copy, table.drop_columns(["request"]), decisions=read_decisions(address))
    pq.write_table(came.drop_columns(["request"]).slice(0, 30), tmp_path / "orders.parquet")
    with pytest.raises(InputError, match="which response belongs to which request"):
        write_next_log(run_copy, tmp_path / "other.parquet", decisions=read_decisions(address), tables=tables)
    assert not (tmp_path / "other.parquet").exists()


def test_a_plan_becomes_a_log_with_the_customers_it_was_made_for(run_copy: Path, shop: Path, tmp_path: Path) -> None:
    planned = pq.read_table(run_copy / "plan.parquet")
    bought = pa.table({"id": planned["customer"], "bought": np.arange(len(planned)) % 2})
    pq.write_table(bought.slice(0, 150), tmp_path / "orders.parquet")
    tables = [str(tmp_path / "orders.parquet")]
    with pytest.raises(InputError, match="50 of 200 decisions have no 'bought'"):
        write_next_log(run_copy, tmp_path / "next.csv", tables=tables)
    write_next_log(run_copy, tmp_path / "next.csv", tables=tables, missing=0)
    table = csv.read_csv(tmp_path / "next.csv")
    assert set(table["propensity"].to_pylist()) == {1}
    assert table["bought"].to_pylist()[150:] == [0] * 50
    found, _ = check(run_copy, table)
    assert found.followed == 1


def test_what_is_missing_or_twice_is_named(book_decisions: Serve, run_copy: Path, shop: Path, tmp_path: Path) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = book_decisions(people["id"].to_pylist()[:20])
    out = tmp_path / "next.parquet"

    def refused(*tables: Any) -> str:
        names = []
        for at, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"t{at}.parquet")
            names.append(str(tmp_path / f"t{at}.parquet"))
        with pytest.raises(InputError) as error:
            write_next_log(run_copy, out, decisions=read_decisions(address), tables=names)
        return str(error.value)

    came = respond(address).drop_columns(["request"])
    assert "no table has 'age'" in refused()
    assert "no table has 'bought'" in refused(people)
    assert "did you mean 'idd'" in refused(people, came.rename_columns(["idd", "bought"]))
    assert "more than one row for 1 customer" in refused(people, pa.concat_tables([came, came.slice(0, 1)]))
    assert "the customers of 15 of 20 decisions are not in" in refused(people.slice(0, 5), came)
    with pytest.raises(InputError, match="part of a run folder"):
        write_next_log(run_copy, run_copy / "plan.parquet", decisions=read_decisions(address), tables=())
    assert not out.exists()


def test_a_new_log_of_others_than_the_ledgers_is_refused(book_decisions: Serve, run_copy: Path, shop: Path) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = book_decisions(people["id"].to_pylist()[:5])
    log = people.append_column("coupon", pa.array([0] * 200)).append_column("bought", pa.array([0, 1] * 100))
    with pytest.raises(InputError, match="no customer of the new log is in the ledger"):
        check(run_copy, log.slice(5), decisions=read_decisions(address))
    with pytest.raises(InputError, match="has no column 'id'"):
        check(run_copy, log.drop_columns(["id"]), decisions=read_decisions(address))


def test_odd_tables_to_join_are_named_and_other_campaign_files_stay(run_copy: Path, shop: Path, tmp_path: Path) -> None:
    answers, mine = tmp_path / "answers.parquet", tmp_path / "mine.toml"
    mine.write_text("mine")
    people = pq.read_table(shop / "customers.parquet")
    came = pa.table({"id": people["id"], "bought": pa.array([1] * len(people))})

    def write(table: pa.Table, **more: Any) -> None:
        pq.write_table(table, answers)
        write_next_log(run_copy, tmp_path / "next.csv", tables=[str(answers)], missing=0.0, **more)

    with pytest.raises(InputError, match="has two columns 'age'"):
        write(pa.table([came["id"], came["bought"], came["bought"], came["bought"]], ["id", "bought", "age", "age"]))
    with pytest.raises(InputError, match="holds no ids"):
        write(came.set_column(0, "id", pa.array([b"\xff"] * len(came))))
    with pytest.raises(InputError, match="already exists"):
        write(came, campaign_file=mine)
    assert (mine.read_text(), (tmp_path / "next.csv").exists()) == ("mine", False)
    write(pa.concat_tables([came, pa.table({"id": [None, None], "bought": [1, 1]}, schema=came.schema)]))
    assert len(csv.read_csv(tmp_path / "next.csv")) == len(people)


def test_what_the_run_reads_is_not_written_over(run_copy: Path, shop: Path, tmp_path: Path) -> None:
    customers = shutil.copy(shop / "customers.parquet", tmp_path / "people.parquet")
    file = run_copy / "campaign.toml"
    file.write_text(file.read_text().replace(str(read_campaign(run_copy).customers), str(customers)))
    ids = pq.read_table(customers)["id"]
    pq.write_table(pa.table({"id": ids, "bought": [0] * len(ids)}), tmp_path / "orders.parquet")
    wanted = {"tables": [str(tmp_path / "orders.parquet")]}
    before = customers.read_bytes()
    with pytest.raises(InputError, match="is what is read"):
        write_next_log(run_copy, customers, **wanted)
    with pytest.raises(InputError, match="both the log and its campaign file"):
        write_next_log(run_copy, tmp_path / "next.csv", campaign_file=tmp_path / "next.csv", **wanted)
    assert customers.read_bytes() == before
    assert not (tmp_path / "next.csv").exists()


def test_customers_whose_ids_are_numbers_are_named(run_copy: Path, tmp_path: Path) -> None:
    planned = pq.read_table(run_copy / "plan.parquet")
    numbers = pa.array(range(len(planned)))
    pq.write_table(planned.set_column(0, "customer", numbers), run_copy / "plan.parquet")
    pq.write_table(pa.table({"id": [0, 1], "bought": [1, 0]}), tmp_path / "orders.parquet")
    people = pq.read_table(str(read_campaign(run_copy).customers))
    pq.write_table(people.set_column(people.column_names.index("id"), "id", numbers), tmp_path / "people.parquet")
    tables = (str(tmp_path / "people.parquet"), str(tmp_path / "orders.parquet"))
    with pytest.raises(InputError, match=r"have no 'bought' in .*orders.parquet \(2, 3, 4, …\)"):
        write_next_log(run_copy, tmp_path / "next.parquet", tables=tables)


NOTATION = """
title = "german"
log = "log.csv"
[columns]
level = "coupon"
response = "bought"
customer = "id"
features = ["since", "rate", "member", "day"]
parse = {since = "day first", rate = "percent", member = {ja = 1, nein = 0}, day = "excel date", bought = {ja = 1, nein = 0}}
[levels]
doses = [0, 5]
costs = [0, 5]
[plan]
budget = 2
[model]
name = "linear"
"""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_next_log_is_read_as_the_first_was_however_that_is_written(tmp_path: Path, ending: str) -> None:
    """Dates, percentages, words for numbers and Excel's days are parsed once, not twice."""
    rng, n = np.random.default_rng(3), 300
    lines = [
        f"{k:04d};{1 + k % 28:02d}.{1 + k % 12:02d}.2025;{k % 40};{'ja' if k % 3 else 'nein'};{45000 + k};"
        f"{5 * (k % 2)};{'ja' if rng.random() < 0.3 + 0.3 * (k % 2) else 'nein'}"
        for k in range(n)
    ]
    (tmp_path / "log.csv").write_text("\n".join(["id;since;rate;member;day;coupon;bought", *lines]))
    (tmp_path / "orders.csv").write_text("\n".join(["id;bought", *(f"{k:04d};ja" for k in range(0, n, 2))]))
    (tmp_path / "campaign.toml").write_text(NOTATION)
    run(read_campaign(tmp_path / "campaign.toml"), tmp_path / "spring")
    plan(tmp_path / "spring", explore=0.3)
    out = tmp_path / f"next.{ending}"
    tables = [str(tmp_path / "orders.csv")]
    write_next_log(tmp_path / "spring", out, tables=tables, missing=0, campaign_file=tmp_path / "next.toml")
    old, new = (LOCAL.read_log(read_campaign(tmp_path / name)) for name in ("campaign.toml", "next.toml"))
    for name in old.features.column_names:
        assert new.features[name].to_pylist() == old.features[name].to_pylist()
    assert new.response.tolist() == [1.0, 0.0] * (n // 2)
    found, _ = check(tmp_path / "spring", str(out))
    assert {one.topic: one.answer for one in found.findings}["features"] == "fine"


def test_responses_of_nobody_who_was_decided_for_do_not_all_count_as_missing(run_copy: Path, tmp_path: Path) -> None:
    """A spreadsheet takes the zeros off ids: without this, every response would be 0."""
    ids = pq.read_table(run_copy / "plan.parquet")["customer"].to_pylist()
    orders = tmp_path / "orders.parquet"
    wanted: Any = {"tables": [str(orders)], "missing": 0}
    pq.write_table(pa.table({"id": [f"x{name}" for name in ids], "bought": [1] * len(ids)}), orders)
    with pytest.raises(InputError, match=rf"customer who was decided for: it has x{ids[0]}, .*the plan {ids[0]}"):
        write_next_log(run_copy, tmp_path / "next.csv", **wanted)
    assert not (tmp_path / "next.csv").exists()
    pq.write_table(pa.table({"id": [*ids[:50], "x1", "x2"], "bought": [1] * 52}), orders)
    assert write_next_log(run_copy, tmp_path / "next.csv", **wanted)["others"] == 2
    pq.write_table(pa.table({"id": pa.array([], pa.string()), "bought": pa.array([], pa.int64())}), orders)
    assert write_next_log(run_copy, tmp_path / "none.csv", **wanted)["rows"] == len(ids)  # nobody bought
