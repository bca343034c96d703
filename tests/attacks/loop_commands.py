"""The commands of the loop (export, pace, check, power, serve) as a tired person, or one who means harm, may type them.

A refused command leaves everything as it was; what is written is whole; JSON is JSON; and the exit code says what happened.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cli_calls import COLUMN_NAMES, NUMBERS, odd_path
from commands import Answer, call, judge, own_folder
from harness import FINE, Outcome
from loops import ran
from odd_values import draw_values
from shops import shop_table
from strict_json import read_strictly

Rng = np.random.Generator
WORDS = (
    "",
    " ",
    "x",
    "duckdb",
    "DuckDB",
    "sql",
    "onnx",
    "é",
    "\x1b[2J",
    "a" * 300,
    "--",
    "'; DROP TABLE x; --",
    "0",
    "nan",
    "uniform",
    "before",
    "5",
)
TOKENS = (
    "0123456789abcdef",
    "short",
    "",
    "with a space in between",
    "\x00" * 20,
    "é" * 20,
    "0123456789abcdef\n",
    "a\nb" * 10,
)
CHECKED = (10, 20)  # exit codes of check: careful, no
QUICK = ["--streams", "1", "--customers", "40", "--days", "7"]


def attack(seed: int) -> Outcome:
    """Type one odd command in a folder with a run."""
    rng = np.random.default_rng([seed, 51])
    kind = "plain" if seed < 20 or rng.random() < 0.5 else "coupons"
    with own_folder() as folder, no_server():
        shop = ran(kind)
        shutil.copytree(shop, folder / "run")
        for name in ("log.parquet", "customers.parquet", "campaign.toml"):
            shutil.copy(shop.parent / name, folder / name)
        write_new_log(folder, rng)
        return CALLS[seed % len(CALLS)](folder, rng)


@contextmanager
def no_server() -> Iterator[None]:
    """Let a service start, and stop at once."""
    from largesse.serve import server

    kept = server.run_server, server.run_workers
    server.run_server = server.run_workers = lambda *_, **__: None  # type: ignore[assignment]
    try:
        yield
    finally:
        server.run_server, server.run_workers = kept  # type: ignore[assignment]


def write_new_log(folder: Path, rng: Rng) -> None:
    """Write what came of the plan: mostly followed."""
    plan = pq.read_table(folder / "run" / "plan.parquet")
    table = shop_table(60, seed=2)
    level = plan["level_number"].to_numpy().copy()
    other = rng.random(len(level)) < rng.choice([0.0, 0.3])
    level[other] = rng.integers(0, 3, int(other.sum()))
    given = pa.array(np.array([0, 5, 10])[level])
    pq.write_table(table.set_column(table.column_names.index("coupon"), "coupon", given), folder / "new.parquet")


def look(folder: Path) -> dict[str, Any]:
    """Return what lies in a folder: content, kind and rights; what is in a pipe is not read."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        content = (
            path.read_bytes() if stat.S_ISREG(state.st_mode) else bytes(path.readlink()) if path.is_symlink() else b""
        )
        found[str(path.relative_to(folder))] = (state.st_mode, content)
    return found


def type_it(folder: Path, *words: Any, out: str | None = None) -> Outcome:
    """Run a command: refused, it changes nothing; done, it changes only what it writes."""
    before = look(folder)
    answer = call(*words)
    found = judge_loop(answer, *words)
    if not found.good:
        return found
    after, name = look(folder), " ".join(str(word)[:60] for word in words)
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    if found.kind == "refused" and changed:
        return Outcome("half-written", f"{name}: refused, and changed {changed[:5]}")
    own = {out, *(str(word).rpartition("/")[2] for word in words if str(word).startswith("sqlite:"))}
    foreign = [
        path
        for path in changed
        if not any(one and (path == one or path.startswith((f"{one}/", f"{one}-"))) for one in own)
    ]
    if found.kind == "fine" and [path for path in foreign if path in before]:
        return Outcome("half-written", f"{name}: changed {foreign[:5]}")
    hidden = [path for path in after if Path(path).name.startswith(".") and path not in before]
    return Outcome("half-written", f"{name}: left {hidden}") if hidden else found


def judge_loop(answer: Answer, *words: Any) -> Outcome:
    """Judge a command by its code and words; `check` has codes of its own, and JSON is read strictly."""
    code = 0 if words and words[0] == "check" and answer.code in CHECKED else answer.code
    found = judge(Answer(code, answer.shown, answer.error), *words)
    if found.kind == "fine" and "--json" in words and "--help" not in words:
        try:
            read_strictly(answer.shown)
        except ValueError as error:
            return Outcome("wrong", f"{words}: no strict JSON: {error}: {answer.shown[:200]}")
    return found


def pick(rng: Rng, choices: Any) -> str:
    return str(choices[rng.integers(len(choices))])


# -- places --------------------------------------------------------------------------------------------------------------


def with_odd_path(folder: Path, rng: Rng) -> Outcome:
    path = odd_path(folder, rng)
    commands: list[list[str]] = [
        ["export", path, "--to", "sql", "--out", "q.sql"], ["export", path, "--to", "card", "--out", "q.txt"],
        ["pace", path, *QUICK], ["pace", "run", "--stream", path, *QUICK], ["check", path, "new.parquet"],
        ["check", "run", path], ["check", "run", path, "--out", "q.html"], ["power", path], ["serve", path, "--port", "0"],
        ["serve", "run", "--port", "0", "--token-file", path], ["serve", path, "--port", "0", "--ledger", "sqlite:///q.db",
        "--total", "5",
         "--until", "2999-01-01"],
    ]  # fmt: skip
    return type_it(folder, *commands[rng.integers(len(commands))], out="q")


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
        "new.sql",
        "new",
        "full",
        "full/new.txt",
        "file",
        "file.sql",
        "dangling.sql",
        "loop.sql",
        "pipe.sql",
        "a/b/c.sql",
        ".",
        "..",
        "",
    ]
    found += [
        "log.parquet",
        "customers.parquet",
        "file/x.sql",
        "run",
        "run/x.sql",
        "run/policy.largesse",
        "é.html",
        "new.html",
        "new.TXT",
    ]
    found += [
        "a" * 300,
        os.fsdecode(b"caf\xe9.sql"),
        "\x1b[2J.sql",
        "new.parquet",
        "campaign.toml",
        "-",
        "new.xyz",
        "run/plan.parquet",
    ]
    for name, minor in (("null.sql", 3), ("disk.sql", 7)):  # /dev/null and /dev/full under names of our own
        try:
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            found += [name] * 2
        except OSError:
            continue
    return found


def with_odd_out(folder: Path, rng: Rng) -> Outcome:
    """Whatever the output is called, files of other people stay, and devices and pipes stay what they are."""
    out = pick(rng, odd_outs(folder))
    commands = [
        ["export", "run", "--to", "sql"], ["export", "run", "--to", "onnx"], ["export", "run", "--to", "card", "--depth", "1"],
        ["check", "run", "new.parquet"], ["pace", "run", *QUICK],
        ["pace", "run", "--stream", "new.parquet", *QUICK],
    ]  # fmt: skip
    words = commands[rng.integers(len(commands))]
    return type_it(
        folder,
        *words,
        "--out",
        out,
        out=str(Path(out)) if "link" not in out and "dangling" not in out else "nowhere-yet.sql",
    )


# -- options -------------------------------------------------------------------------------------------------------------


def with_odd_numbers(folder: Path, rng: Rng) -> Outcome:
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
            "serve",
            "run",
            "--port",
            "0",
            "--ledger",
            "sqlite:///q.db",
            "--total",
            "5",
            "--until",
            "2999-01-01",
            pick(rng, serve),
            number,
        ]
    if rng.random() < 0.4 and kind < 2:
        words.append("--json")
    return type_it(folder, *words, out="q.txt")


def with_odd_words(folder: Path, rng: Rng) -> Outcome:
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
    return type_it(folder, *commands[rng.integers(len(commands))], out="q.sql")


def with_odd_options(folder: Path, rng: Rng) -> Outcome:
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
    return type_it(folder, *words, out="x.sql")


def with_odd_tokens(folder: Path, rng: Rng) -> Outcome:
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
        found = type_it(folder, *words)
        return found if found.kind != "fine" else Outcome("wrong", f"{words} serves without a token")
    return type_it(folder, *words)


# -- logs ----------------------------------------------------------------------------------------------------------------


def check_odd_logs(folder: Path, rng: Rng) -> Outcome:
    """A new log with columns gone, renamed, doubled or filled with odd values; or of other people."""
    table = pq.read_table(folder / "new.parquet")
    for _ in range(1 + int(rng.integers(2))):
        table = damage(table, rng)
    try:
        pq.write_table(table, folder / "odd.parquet")
    except Exception:  # a table that no file can hold
        return FINE
    words = [
        "check",
        "run",
        "odd.parquet",
        *(["--json"] if rng.random() < 0.5 else []),
        *(["--out", "q.html"] if rng.random() < 0.3 else []),
    ]
    if rng.random() < 0.3:
        words = ["pace", "run", "--stream", "odd.parquet", *QUICK, *(["--time", "since"] if rng.random() < 0.5 else [])]
    return type_it(folder, *words, out="q.html")


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


CALLS: tuple[Callable[[Path, Rng], Outcome], ...] = (
    with_odd_path, with_odd_out, with_odd_numbers, with_odd_words, with_odd_options, with_odd_tokens, check_odd_logs,
    with_odd_out, check_odd_logs,
)  # fmt: skip
