"""The commands `ledger` and `log`: what was decided, as a table and as the next log, from odd ledgers and odd tables.

What is written says what the ledger holds, row by row; a refused command changes nothing.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
from cli_calls import NUMBERS, odd_path
from commands import own_folder
from harness import FINE, Outcome
from ledger_files import COLUMNS, VALUES
from loop_commands import damage, odd_outs, pick, type_it
from loops import customers_of, ran
from services import connect
from shops import shop_table

Rng = np.random.Generator
BOOK = "sqlite:///l.db"


@cache
def booked(kind: str) -> Path:
    """Return a ledger in which a service booked decisions; some were redeemed."""
    from largesse.serve import LedgerSettings, Settings
    from largesse.serve.app import load_service

    home = Path(tempfile.mkdtemp(prefix="largesse-booked-"))
    book = LedgerSettings(f"sqlite:///{home}/l.db", "150", "2999-12-31", customers=100.0)
    with load_service(Settings(ran(kind), ledger=book)) as service:
        ask, rows = connect(service), customers_of(kind)
        for number in range(10):
            some = [dict(row) for row in rows[number * 5 : number * 5 + 5]]
            said = ask("/v1/decide", {"request_id": f"r{number}", "customers": some})
            for one in said.json()["decisions"][:2]:
                # Refused where nothing was promised.
                ask("/v1/redeem", {"request_id": f"r{number}", "customer": one["customer"]})
    return home / "l.db"


def attack(seed: int) -> Outcome:
    """Type one command."""
    rng = np.random.default_rng([seed, 81])
    kind = "plain" if seed < 10 or rng.random() < 0.5 else "coupons"
    with own_folder() as folder:
        shop = ran(kind)
        shutil.copytree(shop, folder / "run")
        for name in ("log.parquet", "customers.parquet"):
            shutil.copy(shop.parent / name, folder / name)
        shutil.copy(booked(kind), folder / "l.db")
        table = shop_table(60, seed=2).select(["id", "bought"])
        pq.write_table(table, folder / "answers.parquet")
        return CALLS[seed % len(CALLS)](folder, rng)


def log_words(rng: Rng, *, ledger: bool = True) -> list[Any]:
    joined = ["--join", "customers.parquet", "--join", "answers.parquet"]
    return [
        "log",
        "run",
        *joined,
        *(["--ledger", BOOK] if ledger else []),
        *(["--missing", "0"] if rng.random() < 0.5 else []),
    ]


def write_soundly(folder: Path, rng: Rng) -> Outcome:
    """A sound command writes what the ledger, or the plan, holds."""
    ledger, ending = bool(rng.random() < 0.7), pick(rng, ("parquet", "csv", "feather"))
    found = type_it(folder, *log_words(rng, ledger=ledger), "--out", f"next.{ending}", "--json", out=f"next.{ending}")
    if found.kind != "fine":
        return found if not found.good else Outcome("wrong", f"refused: {found.detail}")
    read = {"parquet": pq.read_table, "csv": csv.read_csv, "feather": feather.read_table}[ending]
    rows = {str(row["id"]): row for row in read(folder / f"next.{ending}").to_pylist()}
    answers = {row["id"]: row["bought"] for row in pq.read_table(folder / "answers.parquet").to_pylist()}
    for who, (level, likely) in read_decisions(folder, ledger=ledger).items():
        row = rows.get(who)
        if (
            row is None
            or float(row["coupon"]) != level
            or abs(row["propensity"] - likely) > 1e-9
            or row["bought"] != answers[who]
        ):
            return Outcome("wrong", f"{who} has {row} in the log, but got {level} with {likely}")
    return FINE


def read_decisions(folder: Path, *, ledger: bool) -> dict[str, tuple[float, float]]:
    """Return what each customer got, and how likely that was, by the ledger's tables or by the plan."""
    amounts = (0.0, 5.0, 10.0)
    if ledger:
        with sqlite3.connect(folder / "l.db") as database:
            rows = database.execute("SELECT customer, level, propensity FROM decision").fetchall()
        database.close()
        return {who: (amounts[level], likely) for who, level, likely in rows}
    plan = pq.read_table(folder / "run" / "plan.parquet").to_pylist()
    return {str(row["customer"]): (amounts[row["level_number"]], row.get("propensity", 1.0)) for row in plan}


def join_odd_tables(folder: Path, rng: Rng) -> Outcome:
    name = pick(rng, ("customers.parquet", "answers.parquet"))
    table = damage(pq.read_table(folder / name), rng)
    if rng.random() < 0.3:
        table = pa.concat_tables([table, table.slice(0, 3)])
    try:
        pq.write_table(table, folder / name)
    except Exception:  # a table that no file can hold
        return FINE
    return type_it(
        folder, *log_words(rng, ledger=bool(rng.random() < 0.5)), "--out", "next.parquet", "--json", out="next.parquet"
    )


def use_odd_paths(folder: Path, rng: Rng) -> Outcome:
    path = odd_path(folder, rng)
    commands: list[list[Any]] = [
        ["log", path, "--out", "q.csv"], ["log", "run", "--join", path, "--out", "q.csv"], ["ledger", path], ["ledger",
        f"sqlite:///{path}"],
        ["log", "run", "--ledger", f"sqlite:///{path}", "--out", "q.csv"], [*log_words(rng), "--out", "q.csv", "--campaign", "q.toml"],
        ["check", "run", "answers.parquet", "--ledger", f"sqlite:///{path}"], ["check", "run", path, "--ledger", BOOK],
    ]  # fmt: skip
    return type_it(folder, *commands[rng.integers(len(commands))], out="q")


def use_odd_outs(folder: Path, rng: Rng) -> Outcome:
    out = pick(rng, [*odd_outs(folder), "x.csv", "x.parquet", "x.feather", "l.db", "answers.parquet"])
    words = ["ledger", BOOK] if rng.random() < 0.5 else log_words(rng)
    more = (
        ["--campaign", pick(rng, ("c.toml", "file", "full", "log.parquet", "x.csv"))]
        if words[0] == "log" and rng.random() < 0.3
        else []
    )
    own = "nowhere-yet.sql" if "dangling" in out else str(Path(out))
    return type_it(folder, *words, "--out", out, *more, out=own)


def change_totals(folder: Path, rng: Rng) -> Outcome:
    """The budget becomes what is asked, or the ledger stays as it was."""
    number = pick(rng, (*NUMBERS, "150", "1000", "151.5", "1_000", "５", "0.0000001", "1e12", "1e13"))
    found = type_it(folder, "ledger", BOOK, "--total", number, *(["--json"] if rng.random() < 0.5 else []), out="l.db")
    with sqlite3.connect(folder / "l.db") as database:
        total, spent, promised = database.execute("SELECT total, spent, promised FROM ledger").fetchone()
    database.close()
    if total < spent + promised or (found.kind == "fine" and total != round(float(number) * 1e6 - 0.4999)):
        return Outcome("over budget", f"--total {number}: {total}, {spent}, {promised}")
    return found


def read_damaged(folder: Path, rng: Rng) -> Outcome:
    """A ledger in which somebody has written is told to be damaged, or written as it is."""
    with sqlite3.connect(folder / "l.db") as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        table = pick(rng, tuple(COLUMNS))
        with suppress(sqlite3.IntegrityError):
            database.execute(
                f"UPDATE {table} SET {pick(rng, COLUMNS[table])} = ?", (VALUES[rng.integers(len(VALUES))],)
            )
    database.close()
    words = (["ledger", BOOK, "--json"], ["ledger", BOOK, "--out", "q.csv"], [*log_words(rng), "--out", "q.csv"])[
        rng.integers(3)
    ]
    return type_it(folder, *words, out="q.csv")


CALLS = (write_soundly, join_odd_tables, use_odd_paths, use_odd_outs, change_totals, read_damaged)
