"""Commands that a tired person, or one who means harm, may type.

A refused command leaves everything as it was; what is written is whole and says what the plan or the ledger holds; JSON is
JSON; and the exit code says what happened.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.serve import LedgerSettings, ServiceSettings, server_process
from largesse.serve.endpoints import load_service
from support.commands import check_answer, list_files, run_command, try_command, working_folder
from support.examples import RNGS, examples
from support.odd_values import LEDGER_COLUMNS, LEDGER_VALUES, draw_values
from support.services import connect
from support.shops import copy_run, customers_of, run_folder, shop_table

Rng = np.random.Generator
NUMBERS = (
    "0", "-1", "nan", "inf", "-inf", "1e308", "1e400", "-0.0", "1e-320", "", "abc", "1,5", "０", "1_0", "0x10", "9" * 400, "2.5",
)  # fmt: skip
COSTS = (
    "0,5,10", "", ",", "0", "0,0", "5,0", "0,nan", "0,inf", "0,1e308", "a,b,c", "0,5,10,20", "age", "0;5;10", "0,5,", "-1,0,1",
)  # fmt: skip
COLUMN_NAMES = (
    "coupon", "bought", "id", "age", "city", "since", "nowhere", "", " ", "COUPON", "\x1b[2J", "a" * 300, "é", "--", "'", "0",
)  # fmt: skip
WORDS = (
    "", " ", "x", "duckdb", "DuckDB", "sql", "onnx", "é", "\x1b[2J", "a" * 300, "--", "'; DROP TABLE x; --", "0",
    "nan", "uniform", "before", "5",
)  # fmt: skip
TOKENS = (
    "0123456789abcdef", "short", "", "with a space in between", "\x00" * 20, "é" * 20, "0123456789abcdef\n",
    "a\nb" * 10,
)  # fmt: skip
HOSTS = ("127.0.0.1", "localhost", "0.0.0.0", "::1", "evil.example.invalid", "a" * 300, "", "256.1.1.1", "é")
VERBS = (
    "init", "run", "fit", "plan", "evaluate", "report", "doctor", "export", "pace", "check", "power", "serve", "nosuch", "",
    "--version", "experiment",
)  # fmt: skip
OPTIONS = (
    "--help", "--json", "--jso", "--no-such", "-x", "-q", "--", "--budget", "--out", "--force", "--seed", "--model", "--estimator",
    "--to", "--dialect", "--total", "--ledger", "--token-file", "--workers", "--stream", "--most", "--share", "--depth", "--late",
    "--without-rules", "0,5,10", "accept", "sql", "x.sql", "log.parquet", "new.parquet", "run", "campaign.toml", "1",
)  # fmt: skip

# -- commands with places for odd words ---------------------------------------------------------------------------------

BOOK = "sqlite:///l.db"
QUICK = "--streams 1 --customers 40 --days 7"
FIT = "--level coupon --response bought --costs 0,5,10 --model linear"
JOIN = "--join customers.parquet --join answers.parquet"
NEW_BOOK = "--ledger sqlite:///q.db --total 5 --until 2999-01-01"
WITH_PATHS = (
    "init {odd} --out new.toml", "run {odd} --out q", f"fit {{odd}} {FIT} --out q", "doctor {odd}",
    "doctor {odd} --level coupon --response bought", "plan {odd}", "plan run {odd}", "evaluate {odd}", "evaluate run {odd}",
    "report {odd}", "export {odd} --to sql --out q.sql", "export {odd} --to card --out q.txt", f"pace {{odd}} {QUICK}",
    f"pace run --stream {{odd}} {QUICK}", "check {odd} new.parquet", "check run {odd}", "check run {odd} --out q.html",
    "power {odd}", "serve {odd} --port 0", "serve run --port 0 --token-file {odd}", f"serve {{odd}} --port 0 {NEW_BOOK}",
    "log {odd} --out q.csv", "log run --join {odd} --out q.csv", "ledger {odd}", "ledger sqlite:///{odd}",
    "log run --ledger sqlite:///{odd} --out q.csv", "check run answers.parquet --ledger sqlite:///{odd}",
    f"check run {{odd}} --ledger {BOOK}",
)  # fmt: skip
WITH_OUTS = (
    "init log.parquet --out {odd}", "init log.parquet --force --out {odd}", "run campaign.toml --out {odd}",
    f"fit log.parquet {FIT} --out {{odd}}", "plan run --budget 1 --out {odd}", "report run --out {odd}",
    "doctor log.parquet --out {odd}", "export run --to sql --out {odd}", "export run --to onnx --out {odd}",
    "export run --to card --depth 1 --out {odd}", "check run new.parquet --out {odd}", f"pace run {QUICK} --out {{odd}}",
    f"pace run --stream new.parquet {QUICK} --out {{odd}}", f"ledger {BOOK} --out {{odd}}", f"log run {JOIN} --out {{odd}}",
    f"log run {JOIN} --ledger {BOOK} --missing 0 --out {{odd}} --campaign {{other}}",
)  # fmt: skip
WITH_NUMBERS = (
    *(f"run campaign.toml --{name} {{odd}} --out q" for name in ("budget", "total")),
    *(f"plan run --{name} {{odd}}{out}" for name in ("budget", "total") for out in ("", " --out x.csv")),
    "evaluate run --budget {odd}", f"fit log.parquet {FIT} --seed {{odd}} --out q", "export run --to card --out q.txt --depth {odd}",
    *(f"pace run {QUICK} --{name} {{odd}}" for name in ("total", "budget", "customers", "days", "valid-days", "streams", "seed", "most")),
    *(f"power run --{name} {{odd}}" for name in ("gain", "power", "coverage", "per-day", "share", "gain {other} --share")),
    *(f"serve run --port 0 {NEW_BOOK} --{name} {{odd}}"
      for name in ("total", "customers", "valid-days", "most", "workers", "until", "since", "late")),
)  # fmt: skip
WITH_WORDS = (
    "export run --to {odd} --out q.sql", "export run --to sql --dialect {odd} --out q.sql", "export run --to sql --table {odd} --out q.sql",
    "export run --to sql --customer {odd} --out q.sql", "export run --to card --dialect {odd} --out q.sql",
    "power run --incumbent {odd}", "power run --incumbent {odd} --json", f"pace run --stream new.parquet --time {{odd}} {QUICK}",
    f"pace run --stream new.parquet --time {{column}} {QUICK} --json", "serve run --port 0 --host {odd}", "serve run --port {odd}",
    "serve run --port 0 --ledger {odd}", "serve run --port 0 --ledger sqlite:///{odd} --total 5 --until 2999-01-01",
)  # fmt: skip


def pick(rng: Rng, choices: Sequence[str]) -> str:
    return str(choices[rng.integers(len(choices))])


def fill(rng: Rng, commands: Sequence[str], **odd: str) -> list[str]:
    """Pick a command and put odd words in its places."""
    return [word.format(**odd) for word in pick(rng, commands).split()]


@contextmanager
def no_server() -> Iterator[None]:
    """Let a service start, and stop at once."""
    kept = server_process.run_server, server_process.run_workers
    server_process.run_server = server_process.run_workers = lambda *_, **__: None  # type: ignore[assignment]
    try:
        yield
    finally:
        server_process.run_server, server_process.run_workers = kept  # type: ignore[assignment]


def prepare(folder: Path, kind: str, rng: Rng) -> None:
    """Fill a folder: tables, a campaign and its run, what came of the plan, mostly followed, and a ledger with responses."""
    copy_run(folder, kind)
    for name in ("log.parquet", "customers.parquet", "campaign.toml"):
        shutil.copy(run_folder(kind).parent / name, folder / name)
    shutil.copy(booked(kind), folder / "l.db")
    table = shop_table(60, seed=2)
    pq.write_table(table.select(["id", "bought"]), folder / "answers.parquet")
    level = pq.read_table(folder / "run" / "plan.parquet")["level_number"].to_numpy().copy()
    other = rng.random(len(level)) < rng.choice([0.0, 0.3])
    level[other] = rng.integers(0, 3, int(other.sum()))
    given = pa.array(np.array([0, 5, 10])[level])
    pq.write_table(table.set_column(table.column_names.index("coupon"), "coupon", given), folder / "new.parquet")


@cache
def booked(kind: str) -> Path:
    """Return a ledger in which a service booked decisions; some were redeemed."""
    home = Path(tempfile.mkdtemp(prefix="largesse-booked-"))
    book = LedgerSettings(f"sqlite:///{home}/l.db", "150", "2999-12-31", customers=100.0)
    with load_service(ServiceSettings(run_folder(kind), ledger=book)) as service:
        ask, rows = connect(service), customers_of(kind)
        for number in range(10):
            some = [dict(row) for row in rows[number * 5 : number * 5 + 5]]
            said = ask("/v1/decide", {"request_id": f"r{number}", "customers": some})
            for one in said.json()["decisions"][:2]:
                # Refused where nothing was promised.
                ask("/v1/redeem", {"request_id": f"r{number}", "customer": one["customer"]})
    return home / "l.db"


# -- odd words ----------------------------------------------------------------------------------------------------------


def odd_path(folder: Path, rng: Rng) -> str:
    """Return a path that is not what a command hopes for."""
    (folder / "empty.csv").touch()
    (folder / "empty.toml").touch()
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "dangling.csv").symlink_to("nowhere.csv")
    (folder / "link.parquet").symlink_to("log.parquet")
    (folder / "text.parquet").write_text("not a table", encoding="utf-8")
    (folder / os.fsdecode(b"caf\xe9.csv")).write_text("coupon,bought\n0,1\n5,0\n", encoding="utf-8")
    (folder / "one-row.csv").write_text("coupon,bought,age\n0,1,3\n", encoding="utf-8")
    paths = [path.name for path in folder.iterdir() if path.name != "l.db"]
    paths += [
        "", ".", "..", "/", "/dev/null", "nowhere", "nowhere/log.csv", "a" * 300, "a/" * 2500, "~", "~nobody/x", "*",
        "[", "**", "log.parquet/x", "run/plan.parquet", "run/policy.largesse", "run/fit.json", "-", "file:log.csv", "\x1b[2J.csv",
    ]  # fmt: skip
    os.mkfifo(folder / "fifo.csv")
    return pick(rng, paths)


def odd_outs(folder: Path) -> list[str]:
    """Make places where nothing should be written, or nothing can, and return them with some that are free."""
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    (folder / "file").write_text("mine")
    (folder / "file.sql").write_text("old")
    (folder / "dangling.sql").symlink_to("nowhere-yet.sql")
    (folder / "loop.sql").symlink_to("loop.sql")
    for name in ("pipe", "pipe.sql"):
        os.mkfifo(folder / name)
    found = [
        "new", "new.sql", "new.html", "new.TXT", "new.parquet", "new.xyz", "x.csv", "x.feather", "full", "full/new.txt", "file",
        "file.sql", "file/x.sql", "dangling.sql", "loop.sql", "pipe", "pipe.sql", "a/b/c", "a/b/c.sql", ".", "..", "", "-",
        "log.parquet", "customers.parquet", "answers.parquet", "campaign.toml", "l.db", "run", "run/x.sql", "run/policy.largesse",
        "run/plan.parquet", "é.html", "a" * 300, os.fsdecode(b"caf\xe9.sql"), "\x1b[2J.sql", "\x1b[2J",
    ]  # fmt: skip
    for name, minor in (("null.sql", 3), ("disk.sql", 7)):  # /dev/null and /dev/full under names of our own
        with suppress(OSError):
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            found += [name] * 2
    return found


def with_odd_path(folder: Path, rng: Rng) -> bool:
    return try_command(folder, *fill(rng, WITH_PATHS, odd=odd_path(folder, rng)), out=("q", "run"))


def with_odd_out(folder: Path, rng: Rng) -> bool:
    """Whatever the output is called, files of other people stay, and devices and pipes stay what they are."""
    out = pick(rng, odd_outs(folder))
    words = fill(rng, WITH_OUTS, odd=out, other=pick(rng, ("c.toml", "file", "full", "log.parquet", "x.csv")))
    done = try_command(folder, *words, out=(str(Path(out)), "run"))
    assert (folder / "full" / "mine.txt").read_text() == "mine", words
    assert (folder / "log.parquet").exists(), words
    assert all((folder / name).is_fifo() for name in ("pipe", "pipe.sql")), words
    return done


def with_odd_number(folder: Path, rng: Rng) -> bool:
    words = fill(rng, WITH_NUMBERS, odd=pick(rng, NUMBERS), other=pick(rng, NUMBERS))
    if words[0] in ("pace", "power") and rng.random() < 0.4:
        words.append("--json")
    return try_command(folder, *words, out=("q", "run"))


def with_odd_word(folder: Path, rng: Rng) -> bool:
    words = fill(rng, WITH_WORDS, odd=pick(rng, WORDS), column=pick(rng, COLUMN_NAMES))
    return try_command(folder, *words, out=("q.sql",))


def with_odd_columns(folder: Path, rng: Rng) -> bool:
    names = [pick(rng, COLUMN_NAMES) for _ in range(3)]
    roles = ["--level", names[0], "--response", names[1]]
    if rng.random() < 0.5:
        roles += [f"--{pick(rng, ('propensity', 'cluster', 'weight', 'customer', 'logger', 'features'))}", names[2]]
    costs = ["--costs", pick(rng, COSTS)]
    if rng.random() < 0.5:
        return try_command(folder, "doctor", "log.parquet", *roles, *costs)
    if rng.random() < 0.3:
        costs += [f"--{pick(rng, ('names', 'doses'))}", pick(rng, COSTS)]
    return try_command(folder, "fit", "log.parquet", *roles, *costs, "--model", "linear", "--out", "q")


def with_odd_options(folder: Path, rng: Rng) -> bool:
    words = [pick(rng, VERBS), *(pick(rng, OPTIONS) for _ in range(rng.integers(0, 6)))]
    words += {"serve": ["--port", "0"], "pace": QUICK.split()}.get(words[0], [])
    out = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--out"]
    return try_command(folder, *words, out=("run", "x.sql", "campaign.toml", *out))


def with_odd_token(folder: Path, rng: Rng) -> bool:
    """A token that could be guessed, or cannot be read, is refused; so is another host without one."""
    (folder / "token").write_text(pick(rng, TOKENS), encoding="utf-8")
    if rng.random() < 0.2:
        (folder / "token").write_bytes(b"\xff\xfe" * 20)
    host = pick(rng, HOSTS)
    words = ["serve", "run", "--port", pick(rng, ("0", "0", "-1", "65536", "x", "1e3", "")), "--host", host]
    if rng.random() < 0.7:
        return try_command(folder, *words, "--token-file", "token")
    done = try_command(folder, *words)
    assert not done or host in ("127.0.0.1", "localhost"), f"{words} serves without a token"
    return done


def in_a_read_only_folder(folder: Path, rng: Rng) -> bool:
    """What cannot be written leaves nothing behind; root may write anywhere, so root becomes nobody for a while."""
    commands = ("plan run --budget 1", "plan run --budget 1 --out run/x.csv", "report run", "evaluate run")
    words = pick(rng, commands).split()
    run_command("evaluate", "run")  # everything that is needed is loaded
    before, user = list_files(folder), os.geteuid()
    folder.chmod(0o755)
    (folder / "run").chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    try:
        done = check_answer(run_command(*words), *words)
    finally:
        os.seteuid(user)
        (folder / "run").chmod(0o755)
    assert not (left := list_files(folder) - before), f"{words}: {left}"
    assert not done, f"{words} said that it wrote where it could not"
    return done


# -- odd tables and ledgers ----------------------------------------------------------------------------------------------


def with_odd_log(folder: Path, rng: Rng) -> bool:
    """A new log with columns gone, renamed, doubled or filled with odd values; or of other people."""
    table = pq.read_table(folder / "new.parquet")
    for _ in range(1 + int(rng.integers(2))):
        table = damage(table, rng)
    commands = (
        *("check run odd.parquet", "check run odd.parquet --json", "check run odd.parquet --out q.html"),
        *(f"pace run --stream odd.parquet {QUICK}", f"pace run --stream odd.parquet {QUICK} --time since"),
    )
    return write_if_possible(table, folder / "odd.parquet") and try_command(folder, *fill(rng, commands))


def write_if_possible(table: pa.Table, path: Path) -> bool:
    try:
        pq.write_table(table, path)
    except Exception:  # a table that no file can hold
        return False
    return True


def damage(table: pa.Table, rng: Rng) -> pa.Table:
    """Change a table in one way."""
    at = int(rng.integers(table.num_columns))
    name, how = table.column_names[at], rng.integers(8)
    if how == 0:
        return table.remove_column(at)
    if how == 1:
        return table.rename_columns(
            [pick(rng, COLUMN_NAMES) if i == at else one for i, one in enumerate(table.column_names)]
        )
    if how == 2:
        return table.slice(0, int(rng.choice([0, 1, 2, 5])))
    if how == 3:
        return pa.concat_tables([table] * int(rng.integers(2, 4)))
    if how == 4:
        return table.append_column(
            "propensity", pa.array(rng.choice([0.0, 1.0, 1.5, -1, np.nan, np.inf, 1e-300, 0.5], len(table)))
        )
    if how == 5:
        return table.take(pa.array(rng.permutation(len(table)))) if len(table) else table
    if how == 6:
        return (
            table.set_column(at, name, table.column(at).take(pa.array(rng.integers(0, max(len(table), 1), len(table)))))
            if len(table)
            else table
        )
    try:
        values = draw_values(rng, len(table))
        return table.set_column(at, name, values if isinstance(values, pa.Array) else pa.array(values))
    except Exception:  # values that Arrow does not hold
        return table


def log_words(rng: Rng, *, ledger: bool = True) -> list[str]:
    words = f"log run {JOIN}".split()
    return words + (["--ledger", BOOK] if ledger else []) + (["--missing", "0"] if rng.random() < 0.5 else [])


def write_soundly(folder: Path, rng: Rng) -> None:
    """A sound command writes what the ledger, or the plan, holds."""
    ledger, ending = bool(rng.random() < 0.7), pick(rng, ("parquet", "csv", "feather"))
    assert try_command(folder, *log_words(rng, ledger=ledger), "--out", f"next.{ending}", "--json"), "refused"
    read = {"parquet": pq.read_table, "csv": csv.read_csv, "feather": feather.read_table}[ending]
    rows = {str(row["id"]): row for row in read(folder / f"next.{ending}").to_pylist()}
    answers = {row["id"]: row["bought"] for row in pq.read_table(folder / "answers.parquet").to_pylist()}
    for who, (level, likely) in read_decisions(folder, ledger=ledger).items():
        row = rows.get(who)
        assert row is not None, who
        assert (float(row["coupon"]), row["bought"]) == (level, answers[who]), who
        assert row["propensity"] == pytest.approx(likely, abs=1e-9), who


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


def join_odd_tables(folder: Path, rng: Rng) -> bool:
    path = folder / pick(rng, ("customers.parquet", "answers.parquet"))
    table = damage(pq.read_table(path), rng)
    if rng.random() < 0.3:
        table = pa.concat_tables([table, table.slice(0, 3)])
    words = log_words(rng, ledger=bool(rng.random() < 0.5))
    return write_if_possible(table, path) and try_command(folder, *words, "--out", "next.parquet", "--json")


def change_totals(folder: Path, rng: Rng) -> bool:
    """The budget becomes what is asked, or the ledger stays as it was."""
    number = pick(rng, (*NUMBERS, "150", "1000", "151.5", "1_000", "５", "0.0000001", "1e12", "1e13"))
    done = try_command(folder, "ledger", BOOK, "--total", number, *(["--json"] if rng.random() < 0.5 else []))
    with sqlite3.connect(folder / "l.db") as database:
        total, spent, promised = database.execute("SELECT total, spent, promised FROM ledger").fetchone()
    database.close()
    assert total >= spent + promised, f"--total {number}: {total}, {spent}, {promised}"
    assert not done or total == round(float(number) * 1e6 - 0.4999), f"--total {number}: {total}"
    return done


def read_damaged(folder: Path, rng: Rng) -> bool:
    """A ledger in which somebody has written is told to be damaged, or written as it is."""
    table = pick(rng, tuple(LEDGER_COLUMNS))
    with sqlite3.connect(folder / "l.db") as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        with suppress(sqlite3.IntegrityError):
            value = LEDGER_VALUES[rng.integers(len(LEDGER_VALUES))]
            database.execute(f"UPDATE {table} SET {pick(rng, LEDGER_COLUMNS[table])} = ?", (value,))
    database.close()
    words = (["ledger", BOOK, "--json"], ["ledger", BOOK, "--out", "q.csv"], [*log_words(rng), "--out", "q.csv"])
    return try_command(folder, *words[rng.integers(3)])


COMMANDS: tuple[Callable[[Path, Rng], object], ...] = (
    with_odd_path, with_odd_out, with_odd_number, with_odd_word, with_odd_columns, with_odd_options, with_odd_token,
    in_a_read_only_folder, with_odd_log, write_soundly, join_odd_tables, change_totals, read_damaged,
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@examples(2)
@given(st.sampled_from(["plain", "coupons"]), RNGS)
def test_an_odd_command_works_or_is_refused(command: Callable[[Path, Rng], object], kind: str, rng: Rng) -> None:
    with working_folder() as folder, no_server():
        prepare(folder, kind, rng)
        command(folder, rng)
