"""The next log holds every decision with its features, its propensity and its response."""

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
from largesse.pipeline.commands import LOCAL_ENGINE
from largesse.serve import open_ledger, read_decisions
from support.ledgers import respond
from support.shops import CAMPAIGN, shop_table

Serve = Callable[[list[str]], str]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., list[str]]:
    """Write tables to files; return their names."""

    def write_tables(*tables: pa.Table) -> list[str]:
        names = [str(tmp_path / f"table{k}.parquet") for k in range(len(tables))]
        for name, table in zip(names, tables, strict=True):
            pq.write_table(table, name)
        return names

    return write_tables


def test_decisions_of_a_ledger_become_a_log_that_check_and_run_take(
    book_decisions: Serve, run_copy: Path, shop: Path, tmp_path: Path
) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = book_decisions(people["id"].to_pylist())
    csv.write_csv(respond(address).drop_columns(["request"]), tmp_path / "orders.csv")
    tables = (str(shop / "customers.parquet"), str(tmp_path / "orders.csv"))
    decisions, out = read_decisions(address), tmp_path / "next.parquet"
    shown = write_next_log(run_copy, out, decisions=decisions, tables=tables, campaign_file=tmp_path / "next.toml")
    table = pq.read_table(out)
    assert shown["rows"] == shown["customers"] == len(table) == len(people)
    with open_ledger(address) as ledger:
        booked = {row[1]: row for row in ledger.decisions()}
    for row in table.to_pylist():
        assert row["coupon"] == (0, 5, 10)[booked[row["id"]][2]]
        assert row["propensity"] == booked[row["id"]][3]
    assert (np.asarray(table["propensity"]) < 1).any()
    result, _ = check(run_copy, table, decisions=decisions)
    assert (result.joined, result.followed, result.answer) == (len(people), 1, "fine")
    campaign = read_campaign(tmp_path / "next.toml")
    assert campaign.roles["propensity"] == "propensity"
    assert Path(campaign.log) == out


def test_customers_who_come_again_are_distinguished_by_their_requests(
    book_decisions: Serve, run_copy: Path, shop: Path, tmp_path: Path, write: Callable[..., list[str]]
) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = book_decisions(people["id"].to_pylist()[:30] * 2)
    came, decisions, out = respond(address), read_decisions(address), tmp_path / "next.parquet"
    write_next_log(run_copy, out, decisions=decisions, tables=write(people, came))
    table = pq.read_table(out)
    assert table["request"].to_pylist() == came["request"].to_pylist()
    assert table["bought"].to_pylist() == came["bought"].to_pylist()
    assert check(run_copy, table, decisions=decisions)[0].joined == 60
    with pytest.raises(InputError, match="with which request"):
        check(run_copy, table.drop_columns(["request"]), decisions=decisions)
    tables = write(people, came.drop_columns(["request"]).slice(0, 30))
    with pytest.raises(InputError, match=r"response .*request"):
        write_next_log(run_copy, tmp_path / "other.parquet", decisions=decisions, tables=tables)
    assert not (tmp_path / "other.parquet").exists()


def test_a_plan_becomes_a_log_with_its_customers(
    run_copy: Path, tmp_path: Path, write: Callable[..., list[str]]
) -> None:
    ids = pq.read_table(run_copy / "plan.parquet")["customer"]
    tables = write(pa.table({"id": ids, "bought": np.arange(200) % 2}).slice(0, 150))
    with pytest.raises(InputError, match="50 of 200 decisions have no 'bought'"):
        write_next_log(run_copy, tmp_path / "next.csv", tables=tables)
    write_next_log(run_copy, tmp_path / "next.csv", tables=tables, missing=0)
    table = csv.read_csv(tmp_path / "next.csv")
    assert set(table["propensity"].to_pylist()) == {1}
    assert table["bought"].to_pylist()[150:] == [0] * 50
    assert check(run_copy, table)[0].followed == 1


def test_customers_with_several_rows_get_the_features_of_their_last(
    tmp_path: Path, write: Callable[..., list[str]]
) -> None:
    log = shop_table(300, seed=1).set_column(0, "id", pa.array([f"c{k % 200}" for k in range(300)]))
    pq.write_table(log, tmp_path / "log.parquet")
    text = CAMPAIGN.replace('customers = "customers.parquet"\n', "")
    (tmp_path / "campaign.toml").write_text(text, encoding="utf-8")
    run(read_campaign(tmp_path), tmp_path / "run")
    came = write(pa.table({"id": log["id"].slice(100), "bought": np.arange(200) % 2}))
    write_next_log(tmp_path / "run", tmp_path / "next.parquet", tables=came)
    assert pq.read_table(tmp_path / "next.parquet", columns=["id", "age"]).equals(log.slice(100).select(["id", "age"]))


def test_missing_and_repeated_rows_and_columns_are_named(
    book_decisions: Serve, run_copy: Path, shop: Path, tmp_path: Path, write: Callable[..., list[str]]
) -> None:
    people = pq.read_table(shop / "customers.parquet")
    address = book_decisions(people["id"].to_pylist()[:20])
    decisions, came = read_decisions(address), respond(address).drop_columns(["request"])
    out = tmp_path / "next.parquet"
    for message, tables in {
        "no table has 'age'": [],
        "no table has 'bought'": [people],
        "did you mean 'idd'": [people, came.rename_columns(["idd", "bought"])],
        "more than one row for 1 customer": [people, pa.concat_tables([came, came.slice(0, 1)])],
        "the customers of 15 of 20 decisions are not in": [people.slice(0, 5), came],
    }.items():
        with pytest.raises(InputError, match=message):
            write_next_log(run_copy, out, decisions=decisions, tables=write(*tables))
    with pytest.raises(InputError, match="run folder"):
        write_next_log(run_copy, run_copy / "plan.parquet", decisions=decisions)
    assert not out.exists()
    # Neither are a log of other customers than the ledger's, and one without their ids.
    log = people.append_column("coupon", pa.array([0] * 200)).append_column("bought", pa.array([0, 1] * 100))
    with pytest.raises(InputError, match=r"no customer .*ledger"):
        check(run_copy, log.slice(20), decisions=decisions)
    with pytest.raises(InputError, match="has no column 'id'"):
        check(run_copy, log.drop_columns(["id"]), decisions=decisions)


def test_odd_tables_are_named_and_existing_files_stay(
    run_copy: Path, shop: Path, tmp_path: Path, write: Callable[..., list[str]]
) -> None:
    out, mine, customers = tmp_path / "next.csv", tmp_path / "mine.toml", tmp_path / "people.parquet"
    shutil.copy(shop / "customers.parquet", customers)
    file = run_copy / "campaign.toml"
    file.write_text(file.read_text().replace(str(read_campaign(run_copy).customers), str(customers)))
    mine.write_text("mine")
    before, ids = customers.read_bytes(), pq.read_table(customers)["id"]
    came = pa.table({"id": ids, "bought": pa.array([1] * len(ids))})

    def join(table: pa.Table, target: Path = out, **more: Any) -> None:
        write_next_log(run_copy, target, tables=write(table), missing=0.0, **more)

    doubled = pa.table([came["id"], came["bought"], came["bought"], came["bought"]], ["id", "bought", "age", "age"])
    for message, table, more in (
        ("has two columns 'age'", doubled, {}),
        ("holds no ids", came.set_column(0, "id", pa.array([b"\xff"] * len(came))), {}),
        ("already exists", came, {"campaign_file": mine}),
        ("both the log and its campaign file", came, {"campaign_file": out}),
        ("is what is read", came, {"target": customers}),
    ):
        with pytest.raises(InputError, match=message):
            join(table, **more)
    assert (mine.read_text(), customers.read_bytes(), out.exists()) == ("mine", before, False)
    join(pa.concat_tables([came, pa.table({"id": [None, None], "bought": [1, 1]}, schema=came.schema)]))
    assert len(csv.read_csv(out)) == len(ids)


def test_numeric_ids_are_named(run_copy: Path, tmp_path: Path, write: Callable[..., list[str]]) -> None:
    planned, people = pq.read_table(run_copy / "plan.parquet"), pq.read_table(str(read_campaign(run_copy).customers))
    numbers = pa.array(range(len(planned)))
    pq.write_table(planned.set_column(0, "customer", numbers), run_copy / "plan.parquet")
    tables = write(people.set_column(0, "id", numbers), pa.table({"id": [0, 1], "bought": [1, 0]}))
    with pytest.raises(InputError, match=r"have no 'bought' in .*parquet \(2, 3, 4, …\)"):
        write_next_log(run_copy, tmp_path / "next.parquet", tables=tables)


def test_responses_of_other_customers_do_not_count_as_missing(
    run_copy: Path, tmp_path: Path, write: Callable[..., list[str]]
) -> None:
    """A spreadsheet takes the zeros off ids: without this, every response would be 0."""
    ids = pq.read_table(run_copy / "plan.parquet")["customer"].to_pylist()

    def join(names: list[str]) -> dict[str, Any]:
        table = pa.table({"id": pa.array(names, pa.string()), "bought": pa.array([1] * len(names), pa.int64())})
        return write_next_log(run_copy, tmp_path / "next.csv", tables=write(table), missing=0)

    with pytest.raises(InputError, match=rf"customer who was decided for: it has x{ids[0]}, .*the plan {ids[0]}"):
        join([f"x{name}" for name in ids])
    assert not (tmp_path / "next.csv").exists()
    assert join([*ids[:50], "x1", "x2"])["others"] == 2
    assert join([])["rows"] == len(ids)  # nobody bought


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
def test_the_next_log_is_read_like_the_first_in_any_notation(tmp_path: Path, ending: str) -> None:
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
    out, tables = tmp_path / f"next.{ending}", [str(tmp_path / "orders.csv")]
    write_next_log(tmp_path / "spring", out, tables=tables, missing=0, campaign_file=tmp_path / "next.toml")
    old, new = (LOCAL_ENGINE.read_log(read_campaign(tmp_path / name)) for name in ("campaign.toml", "next.toml"))
    for name in old.features.column_names:
        assert new.features[name].to_pylist() == old.features[name].to_pylist()
    assert new.response.tolist() == [1.0, 0.0] * (n // 2)
    result, _ = check(tmp_path / "spring", str(out))
    assert {finding.topic: finding.answer for finding in result.findings}["features"] == "fine"
