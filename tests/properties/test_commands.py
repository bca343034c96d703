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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

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
from support.commands import check_answer, list_files, run_command, try_command, try_strictly, working_folder
from support.examples import RNGS, examples
from support.odd_values import LEDGER_COLUMNS, LEDGER_VALUES, draw_values
from support.services import connect
from support.shops import copy_run, customers_of, run_folder, shop_table, write_shop

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
OPTIONS = (
    "--help", "--json", "--jso", "--no-such", "-x", "--", "--budget", "--out", "--force", "--seed", "--model", "--estimator",
)  # fmt: skip


WORDS = (
    "", " ", "x", "duckdb", "DuckDB", "sql", "onnx", "é", "\x1b[2J", "a" * 300, "--", "'; DROP TABLE x; --", "0",
    "nan", "uniform", "before", "5",
)  # fmt: skip
TOKENS = (
    "0123456789abcdef", "short", "", "with a space in between", "\x00" * 20, "é" * 20, "0123456789abcdef\n",
    "a\nb" * 10,
)  # fmt: skip
QUICK = ["--streams", "1", "--customers", "40", "--days", "7"]


BOOK = "sqlite:///l.db"


def pick(rng: Rng, choices: Any) -> str:
    return str(choices[rng.integers(len(choices))])


@contextmanager
def no_server() -> Iterator[None]:
    """Let a service start, and stop at once."""
    kept = server_process.run_server, server_process.run_workers
    server_process.run_server = server_process.run_workers = lambda *_, **__: None  # type: ignore[assignment]
    try:
        yield
    finally:
        server_process.run_server, server_process.run_workers = kept  # type: ignore[assignment]


def write_new_log(folder: Path, rng: Rng) -> None:
    """Write what came of the plan: mostly followed."""
    plan = pq.read_table(folder / "run" / "plan.parquet")
    table = shop_table(60, seed=2)
    level = plan["level_number"].to_numpy().copy()
    other = rng.random(len(level)) < rng.choice([0.0, 0.3])
    level[other] = rng.integers(0, 3, int(other.sum()))
    given = pa.array(np.array([0, 5, 10])[level])
    pq.write_table(table.set_column(table.column_names.index("coupon"), "coupon", given), folder / "new.parquet")


# -- planning -----------------------------------------------------------------------------------------------------------


def odd_path(folder: Path, rng: Rng) -> str:
    """Return a path that is not what a command hopes for."""
    (folder / "empty.csv").touch()
    (folder / "empty.toml").touch()
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "dangling.csv").symlink_to("nowhere.csv")
    (folder / "link.parquet").symlink_to("log.parquet")
    (folder / "text.parquet").write_text("not a table", encoding="utf-8")
    os.mkfifo(folder / "fifo.csv")
    (folder / os.fsdecode(b"caf\xe9.csv")).write_text("coupon,bought\n0,1\n5,0\n", encoding="utf-8")
    (folder / "one-row.csv").write_text("coupon,bought,age\n0,1,3\n", encoding="utf-8")
    paths = [path.name for path in folder.iterdir() if path.name != "fifo.csv"]
    paths += [
        "", ".", "..", "/", "/dev/null", "nowhere", "nowhere/log.csv", "a" * 300, "a/" * 2500, "~", "~nobody/x", "*",
        "[", "**",
    ]  # fmt: skip
    paths += [
        "log.parquet/x", "run/plan.parquet", "run/policy.largesse", "run/fit.json", "-", "file:log.csv", "\x1b[2J.csv",
    ]  # fmt: skip
    return str(rng.choice(np.array(paths, dtype=object)))


def odd_out(folder: Path, rng: Rng) -> str:
    """Return a place where nothing should be written, or nothing can."""
    (folder / "full").mkdir(exist_ok=True)
    (folder / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    (folder / "file").write_text("mine", encoding="utf-8")
    (folder / "here").symlink_to("nowhere-yet")
    os.mkfifo(folder / "pipe")
    outs = [
        "new", "full", "file", "here", "pipe", "a" * 300, "a/b/c", ".", "..", "", "log.parquet", "file/x", "é", "run",
        "x.csv",
    ]  # fmt: skip
    return str(rng.choice(np.array([*outs, os.fsdecode(b"caf\xe9"), "\x1b[2J", "x.parquet", "x.xyz"], dtype=object)))


def call_with_odd_path(folder: Path, rng: Rng) -> bool:
    path = odd_path(folder, rng)
    fit = ["--level", "coupon", "--response", "bought", "--costs", "0,5,10", "--model", "linear", "--out", "q"]
    commands: list[list[Any]] = [
        ["init", path, "--out", "new.toml"], ["run", path, "--out", "q"], ["fit", path, *fit], ["doctor", path],
        ["doctor", path, "--level", "coupon", "--response", "bought"], ["plan", path], ["plan", "run", path],
        ["evaluate", path], ["evaluate", "run", path], ["report", path],
    ]  # fmt: skip
    return try_command(folder, *commands[rng.integers(len(commands))])


def call_with_odd_out(folder: Path, rng: Rng) -> bool:
    """Whatever the output is called, files of other people stay."""
    out = odd_out(folder, rng)
    fit = ["--level", "coupon", "--response", "bought", "--costs", "0,5,10", "--model", "linear"]
    commands = [
        ["init", "log.parquet", "--out", out], ["init", "log.parquet", "--force", "--out", out],
        ["run", "campaign.toml", "--out", out], ["fit", "log.parquet", *fit, "--out", out],
        ["plan", "run", "--budget", "1", "--out", out], ["report", "run", "--out", out],
        ["doctor", "log.parquet", "--out", out],
    ]  # fmt: skip
    words = commands[rng.integers(len(commands))]
    kept = (folder / "full" / "mine.txt", folder / "pipe", folder / "log.parquet")
    done = try_command(folder, *words)
    assert all(path.exists() for path in kept), words
    assert (folder / "pipe").is_fifo(), words
    return done


def call_with_odd_number(folder: Path, rng: Rng) -> bool:
    number = str(rng.choice(NUMBERS))
    option = f"--{rng.choice(['budget', 'total'])}"
    commands: list[list[Any]] = [
        ["run", "campaign.toml", option, number, "--out", "q"], ["plan", "run", option, number],
        ["plan", "run", option, number, "--out", "x.csv"], ["evaluate", "run", "--budget", number],
        ["fit", "log.parquet", "--level", "coupon", "--response", "bought", "--costs", "0,5,10", "--seed", number,
         "--model", "linear", "--out", "q"],
    ]  # fmt: skip
    return try_command(folder, *commands[rng.integers(len(commands))])


def call_with_odd_columns(folder: Path, rng: Rng) -> bool:
    names = [str(rng.choice(COLUMN_NAMES)) for _ in range(3)]
    roles = ["--level", names[0], "--response", names[1]]
    if rng.random() < 0.5:
        roles += [f"--{rng.choice(['propensity', 'cluster', 'weight', 'customer', 'logger', 'features'])}", names[2]]
    costs = ["--costs", str(rng.choice(COSTS))]
    if rng.random() < 0.3:
        costs += [f"--{rng.choice(['names', 'doses'])}", str(rng.choice(COSTS))]
    if rng.random() < 0.5:
        return try_command(folder, "doctor", "log.parquet", *roles, *costs[:2])
    return try_command(folder, "fit", "log.parquet", *roles, *costs, "--model", "linear", "--out", "q")


def call_with_odd_options(folder: Path, rng: Rng) -> bool:
    verbs = [
        "init", "run", "fit", "plan", "evaluate", "report", "doctor", "demo", "nosuch", "", "--version", "experiment",
    ]  # fmt: skip
    words = [str(rng.choice(verbs))]
    words += [
        str(rng.choice(np.array([*OPTIONS, "log.parquet", "run", "campaign.toml", "1"])))
        for _ in range(rng.integers(0, 5))
    ]
    if "demo" in words:  # it takes seconds and holds nothing of ours
        words.remove("demo")
    return try_command(folder, *words)


def call_with_a_read_only_folder(folder: Path, rng: Rng) -> bool:
    """What cannot be written leaves nothing behind; root may write anywhere, so root becomes nobody for a while."""
    commands = (
        ["plan", "run", "--budget", "1"],
        ["plan", "run", "--budget", "1", "--out", "run/x.csv"],
        ["report", "run"],
    )
    words = [*commands, ["evaluate", "run"]][rng.integers(4)]
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


# -- the loop: export, pace, check, power, serve ------------------------------------------------------------------------


def with_odd_path(folder: Path, rng: Rng) -> bool:
    path = odd_path(folder, rng)
    commands: list[list[str]] = [
        ["export", path, "--to", "sql", "--out", "q.sql"], ["export", path, "--to", "card", "--out", "q.txt"],
        ["pace", path, *QUICK], ["pace", "run", "--stream", path, *QUICK], ["check", path, "new.parquet"],
        ["check", "run", path], ["check", "run", path, "--out", "q.html"], ["power", path], ["serve", path, "--port", "0"],
        ["serve", "run", "--port", "0", "--token-file", path], ["serve", path, "--port", "0", "--ledger", "sqlite:///q.db",
        "--total", "5",
         "--until", "2999-01-01"],
    ]  # fmt: skip
    return try_strictly(folder, *commands[rng.integers(len(commands))], out="q")


def odd_outs(folder: Path) -> list[str]:
    """Make places where nothing should be written, or nothing can, and return them with some that are free."""
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    (folder / "file").write_text("mine")
    (folder / "file.sql").write_text("old")
    (folder / "dangling.sql").symlink_to("nowhere-yet.sql")
    (folder / "loop.sql").symlink_to("loop.sql")
    (folder / "link.sql").symlink_to("file")
    os.mkfifo(folder / "pipe.sql")
    found = [
        "new.sql", "new", "full", "full/new.txt", "file", "file.sql", "dangling.sql", "loop.sql", "pipe.sql",
        "a/b/c.sql", ".", "..", "",
    ]  # fmt: skip
    found += [
        "log.parquet", "customers.parquet", "file/x.sql", "run", "run/x.sql", "run/policy.largesse", "é.html",
        "new.html", "new.TXT",
    ]  # fmt: skip
    found += [
        "a" * 300, os.fsdecode(b"caf\xe9.sql"), "\x1b[2J.sql", "new.parquet", "campaign.toml", "-", "new.xyz",
        "run/plan.parquet",
    ]  # fmt: skip
    for name, minor in (("null.sql", 3), ("disk.sql", 7)):  # /dev/null and /dev/full under names of our own
        try:
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            found += [name] * 2
        except OSError:
            continue
    return found


def with_odd_out(folder: Path, rng: Rng) -> bool:
    """Whatever the output is called, files of other people stay, and devices and pipes stay what they are."""
    out = pick(rng, odd_outs(folder))
    commands = [
        ["export", "run", "--to", "sql"], ["export", "run", "--to", "onnx"], ["export", "run", "--to", "card", "--depth", "1"],
        ["check", "run", "new.parquet"], ["pace", "run", *QUICK],
        ["pace", "run", "--stream", "new.parquet", *QUICK],
    ]  # fmt: skip
    words = commands[rng.integers(len(commands))]
    return try_strictly(
        folder,
        *words,
        "--out",
        out,
        out=str(Path(out)) if "link" not in out and "dangling" not in out else "nowhere-yet.sql",
    )


# -- options -------------------------------------------------------------------------------------------------------------


def with_odd_numbers(folder: Path, rng: Rng) -> bool:
    number, other = pick(rng, NUMBERS), pick(rng, NUMBERS)
    pace = ("--total", "--budget", "--customers", "--days", "--valid-days", "--streams", "--seed", "--most")
    power = ("--gain", "--power", "--coverage", "--per-day", "--share")
    serve = ("--total", "--customers", "--valid-days", "--most", "--workers", "--until", "--since", "--late")
    kind = rng.integers(4)
    if kind == 0:
        words = ["pace", "run", *QUICK, pick(rng, pace), number]
    elif kind == 1:
        words = ["power", "run", pick(rng, power), number, *([pick(rng, power), other] if rng.random() < 0.3 else [])]
    elif kind == 2:
        words = ["export", "run", "--to", "card", "--out", "q.txt", "--depth", number]
    else:
        words = [
            "serve", "run", "--port", "0", "--ledger", "sqlite:///q.db", "--total", "5", "--until", "2999-01-01",
            pick(rng, serve), number,
        ]  # fmt: skip
    if rng.random() < 0.4 and kind < 2:
        words.append("--json")
    return try_strictly(folder, *words, out="q.txt")


def with_odd_words(folder: Path, rng: Rng) -> bool:
    word = pick(rng, WORDS)
    commands = [
        ["export", "run", "--to", word, "--out", "q.sql"], ["export", "run", "--to", "sql", "--dialect", word, "--out", "q.sql"],
        ["export", "run", "--to", "sql", "--table", word, "--out", "q.sql"], ["export", "run", "--to", "sql", "--customer",
        word, "--out", "q.sql"],
        ["export", "run", "--to", "card", "--dialect", word, "--out", "q.sql"], ["power", "run", "--incumbent", word],
        ["power", "run", "--incumbent", word, "--json"], ["pace", "run", "--stream", "new.parquet", "--time", word, *QUICK],
        ["serve", "run", "--port", "0", "--host", word], ["serve", "run", "--port", word], ["serve", "run", "--port", "0",
        "--ledger", word],
        ["serve", "run", "--port", "0", "--ledger", f"sqlite:///{word}", "--total", "5", "--until", "2999-01-01"],
        ["pace", "run", "--stream", "new.parquet", "--time", pick(rng, COLUMN_NAMES), *QUICK, "--json"],
    ]  # fmt: skip
    return try_strictly(folder, *commands[rng.integers(len(commands))], out="q.sql")


def with_odd_options(folder: Path, rng: Rng) -> bool:
    verbs = ("export", "pace", "check", "power", "serve")
    options = ("--help", "--json", "--out", "--to", "--dialect", "--no-such", "-q", "--", "run", "new.parquet", "1",
    "--total", "--ledger", "--token-file",
               "--workers", "--stream", "--most", "0,5,10", "--share", "sql", "x.sql", "--depth", "--late", "accept",
               "--without-rules")  # fmt: skip
    words = [pick(rng, verbs), *(pick(rng, options) for _ in range(rng.integers(0, 6)))]
    if words[0] == "serve":
        words += ["--port", "0"]
    if words[0] == "pace":
        words += QUICK
    return try_strictly(folder, *words, out="x.sql")


def with_odd_tokens(folder: Path, rng: Rng) -> bool:
    """A token that could be guessed, or cannot be read, is refused; so is another host without one."""
    text = pick(rng, TOKENS)
    (folder / "token").write_text(text, encoding="utf-8")
    if rng.random() < 0.2:
        (folder / "token").write_bytes(b"\xff\xfe" * 20)
    host = pick(
        rng, ("127.0.0.1", "localhost", "0.0.0.0", "::1", "evil.example.invalid", "a" * 300, "", "256.1.1.1", "é")
    )
    words = ["serve", "run", "--port", pick(rng, ("0", "0", "-1", "65536", "x", "1e3", "")), "--host", host]
    if rng.random() < 0.7:
        words += ["--token-file", "token"]
    elif host not in ("127.0.0.1", "localhost"):
        done = try_strictly(folder, *words)
        assert not done, f"{words} serves without a token"
        return done
    return try_strictly(folder, *words)


# -- logs ----------------------------------------------------------------------------------------------------------------


def check_odd_logs(folder: Path, rng: Rng) -> bool:
    """A new log with columns gone, renamed, doubled or filled with odd values; or of other people."""
    table = pq.read_table(folder / "new.parquet")
    for _ in range(1 + int(rng.integers(2))):
        table = damage(table, rng)
    try:
        pq.write_table(table, folder / "odd.parquet")
    except Exception:  # a table that no file can hold
        return False
    words = [
        "check", "run", "odd.parquet", *(["--json"] if rng.random() < 0.5 else []),
        *(["--out", "q.html"] if rng.random() < 0.3 else []),
    ]  # fmt: skip
    if rng.random() < 0.3:
        words = ["pace", "run", "--stream", "odd.parquet", *QUICK, *(["--time", "since"] if rng.random() < 0.5 else [])]
    return try_strictly(folder, *words, out="q.html")


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


# -- ledger and log -----------------------------------------------------------------------------------------------------


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


def log_words(rng: Rng, *, ledger: bool = True) -> list[Any]:
    joined = ["--join", "customers.parquet", "--join", "answers.parquet"]
    return [
        "log",
        "run",
        *joined,
        *(["--ledger", BOOK] if ledger else []),
        *(["--missing", "0"] if rng.random() < 0.5 else []),
    ]


def write_soundly(folder: Path, rng: Rng) -> None:
    """A sound command writes what the ledger, or the plan, holds."""
    ledger, ending = bool(rng.random() < 0.7), pick(rng, ("parquet", "csv", "feather"))
    done = try_strictly(
        folder, *log_words(rng, ledger=ledger), "--out", f"next.{ending}", "--json", out=f"next.{ending}"
    )
    assert done, "refused"
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
    name = pick(rng, ("customers.parquet", "answers.parquet"))
    table = damage(pq.read_table(folder / name), rng)
    if rng.random() < 0.3:
        table = pa.concat_tables([table, table.slice(0, 3)])
    try:
        pq.write_table(table, folder / name)
    except Exception:  # a table that no file can hold
        return False
    return try_strictly(
        folder, *log_words(rng, ledger=bool(rng.random() < 0.5)), "--out", "next.parquet", "--json", out="next.parquet"
    )


def use_odd_paths(folder: Path, rng: Rng) -> bool:
    path = odd_path(folder, rng)
    commands: list[list[Any]] = [
        ["log", path, "--out", "q.csv"], ["log", "run", "--join", path, "--out", "q.csv"], ["ledger", path], ["ledger",
        f"sqlite:///{path}"],
        ["log", "run", "--ledger", f"sqlite:///{path}", "--out", "q.csv"], [*log_words(rng), "--out", "q.csv", "--campaign", "q.toml"],
        ["check", "run", "answers.parquet", "--ledger", f"sqlite:///{path}"], ["check", "run", path, "--ledger", BOOK],
    ]  # fmt: skip
    return try_strictly(folder, *commands[rng.integers(len(commands))], out="q")


def use_odd_outs(folder: Path, rng: Rng) -> bool:
    out = pick(rng, [*odd_outs(folder), "x.csv", "x.parquet", "x.feather", "l.db", "answers.parquet"])
    words = ["ledger", BOOK] if rng.random() < 0.5 else log_words(rng)
    more = (
        ["--campaign", pick(rng, ("c.toml", "file", "full", "log.parquet", "x.csv"))]
        if words[0] == "log" and rng.random() < 0.3
        else []
    )
    own = "nowhere-yet.sql" if "dangling" in out else str(Path(out))
    return try_strictly(folder, *words, "--out", out, *more, out=own)


def change_totals(folder: Path, rng: Rng) -> bool:
    """The budget becomes what is asked, or the ledger stays as it was."""
    number = pick(rng, (*NUMBERS, "150", "1000", "151.5", "1_000", "５", "0.0000001", "1e12", "1e13"))
    done = try_strictly(
        folder, "ledger", BOOK, "--total", number, *(["--json"] if rng.random() < 0.5 else []), out="l.db"
    )
    with sqlite3.connect(folder / "l.db") as database:
        total, spent, promised = database.execute("SELECT total, spent, promised FROM ledger").fetchone()
    database.close()
    assert total >= spent + promised, f"--total {number}: {total}, {spent}, {promised}"
    assert not done or total == round(float(number) * 1e6 - 0.4999), f"--total {number}: {total}"
    return done


def read_damaged(folder: Path, rng: Rng) -> bool:
    """A ledger in which somebody has written is told to be damaged, or written as it is."""
    with sqlite3.connect(folder / "l.db") as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        table = pick(rng, tuple(LEDGER_COLUMNS))
        with suppress(sqlite3.IntegrityError):
            database.execute(
                f"UPDATE {table} SET {pick(rng, LEDGER_COLUMNS[table])} = ?",
                (LEDGER_VALUES[rng.integers(len(LEDGER_VALUES))],),
            )
    database.close()
    words = (["ledger", BOOK, "--json"], ["ledger", BOOK, "--out", "q.csv"], [*log_words(rng), "--out", "q.csv"])[
        rng.integers(3)
    ]
    return try_strictly(folder, *words, out="q.csv")


# -- the tests ----------------------------------------------------------------------------------------------------------

Command = Callable[[Path, Rng], object]
COMMANDS: tuple[Command, ...] = (
    call_with_odd_path, call_with_odd_out, call_with_odd_number, call_with_odd_columns, call_with_odd_options,
    call_with_a_read_only_folder,
)  # fmt: skip
LOOP_COMMANDS: tuple[Command, ...] = (
    with_odd_path, with_odd_out, with_odd_numbers, with_odd_words, with_odd_options, with_odd_tokens, check_odd_logs,
)  # fmt: skip
LOG_COMMANDS: tuple[Command, ...] = (
    write_soundly, join_odd_tables, use_odd_paths, use_odd_outs, change_totals, read_damaged,
)  # fmt: skip
KINDS = st.sampled_from(["plain", "coupons"])


@pytest.mark.parametrize("command", COMMANDS)
@examples(1)
@given(rng=RNGS)
def test_an_odd_command_works_or_is_refused(command: Command, rng: Rng) -> None:
    with working_folder() as folder:
        write_shop(folder)
        copy_run(folder)
        command(folder, rng)


@pytest.mark.parametrize("command", LOOP_COMMANDS)
@examples(2)
@given(KINDS, RNGS)
def test_an_odd_command_after_a_plan_works_or_is_refused(command: Command, kind: str, rng: Rng) -> None:
    with working_folder() as folder, no_server():
        copy_run(folder, kind)
        for name in ("log.parquet", "customers.parquet", "campaign.toml"):
            shutil.copy(run_folder(kind).parent / name, folder / name)
        write_new_log(folder, rng)
        command(folder, rng)


@pytest.mark.parametrize("command", LOG_COMMANDS)
@examples(1)
@given(KINDS, RNGS)
def test_ledger_and_log_tell_what_was_decided_or_refuse(command: Command, kind: str, rng: Rng) -> None:
    with working_folder() as folder:
        copy_run(folder, kind)
        for name in ("log.parquet", "customers.parquet"):
            shutil.copy(run_folder(kind).parent / name, folder / name)
        shutil.copy(booked(kind), folder / "l.db")
        pq.write_table(shop_table(60, seed=2).select(["id", "bought"]), folder / "answers.parquet")
        command(folder, rng)
