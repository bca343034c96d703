"""Commands that a tired person, or one who means harm, may type."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from commands import call, judge, list_files, own_folder, try_command
from harness import Outcome
from shops import copy_run, write_shop

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


def attack(seed: int) -> Outcome:
    """Type one odd command."""
    rng = np.random.default_rng(seed)
    kind = CALLS[seed % len(CALLS)]
    with own_folder() as folder:
        write_shop(folder)
        copy_run(folder)
        return kind(folder, rng)


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
        "",
        ".",
        "..",
        "/",
        "/dev/null",
        "nowhere",
        "nowhere/log.csv",
        "a" * 300,
        "a/" * 2500,
        "~",
        "~nobody/x",
        "*",
        "[",
        "**",
    ]
    paths += [
        "log.parquet/x",
        "run/plan.parquet",
        "run/policy.largesse",
        "run/fit.json",
        "-",
        "file:log.csv",
        "\x1b[2J.csv",
    ]
    return str(rng.choice(np.array(paths, dtype=object)))


def odd_out(folder: Path, rng: Rng) -> str:
    """Return a place where nothing should be written, or nothing can."""
    (folder / "full").mkdir(exist_ok=True)
    (folder / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    (folder / "file").write_text("mine", encoding="utf-8")
    (folder / "here").symlink_to("nowhere-yet")
    os.mkfifo(folder / "pipe")
    outs = [
        "new",
        "full",
        "file",
        "here",
        "pipe",
        "a" * 300,
        "a/b/c",
        ".",
        "..",
        "",
        "log.parquet",
        "file/x",
        "é",
        "run",
        "x.csv",
    ]
    return str(rng.choice(np.array([*outs, os.fsdecode(b"caf\xe9"), "\x1b[2J", "x.parquet", "x.xyz"], dtype=object)))


def call_with_odd_path(folder: Path, rng: Rng) -> Outcome:
    path = odd_path(folder, rng)
    fit = ["--level", "coupon", "--response", "bought", "--costs", "0,5,10", "--model", "linear", "--out", "q"]
    commands: list[list[Any]] = [
        ["init", path, "--out", "new.toml"], ["run", path, "--out", "q"], ["fit", path, *fit], ["doctor", path],
        ["doctor", path, "--level", "coupon", "--response", "bought"], ["plan", path], ["plan", "run", path],
        ["evaluate", path], ["evaluate", "run", path], ["report", path],
    ]  # fmt: skip
    return try_command(folder, *commands[rng.integers(len(commands))])


def call_with_odd_out(folder: Path, rng: Rng) -> Outcome:
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
    found = try_command(folder, *words)
    if not all(path.exists() for path in kept) or not (folder / "pipe").is_fifo():
        return Outcome("half-written", f"{words}: a file or pipe that was there is gone")
    return found


def call_with_odd_number(folder: Path, rng: Rng) -> Outcome:
    number = str(rng.choice(NUMBERS))
    option = f"--{rng.choice(['budget', 'total'])}"
    commands: list[list[Any]] = [
        ["run", "campaign.toml", option, number, "--out", "q"], ["plan", "run", option, number],
        ["plan", "run", option, number, "--out", "x.csv"], ["evaluate", "run", "--budget", number],
        ["fit", "log.parquet", "--level", "coupon", "--response", "bought", "--costs", "0,5,10", "--seed", number,
         "--model", "linear", "--out", "q"],
    ]  # fmt: skip
    return try_command(folder, *commands[rng.integers(len(commands))])


def call_with_odd_columns(folder: Path, rng: Rng) -> Outcome:
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


def call_with_odd_options(folder: Path, rng: Rng) -> Outcome:
    verbs = [
        "init",
        "run",
        "fit",
        "plan",
        "evaluate",
        "report",
        "doctor",
        "demo",
        "nosuch",
        "",
        "--version",
        "experiment",
    ]
    words = [str(rng.choice(verbs))]
    words += [
        str(rng.choice(np.array([*OPTIONS, "log.parquet", "run", "campaign.toml", "1"])))
        for _ in range(rng.integers(0, 5))
    ]
    if "demo" in words:  # it takes seconds and holds nothing of ours
        words.remove("demo")
    return try_command(folder, *words)


def call_with_a_read_only_folder(folder: Path, rng: Rng) -> Outcome:
    """What cannot be written leaves nothing behind; root may write anywhere, so root becomes nobody for a while."""
    commands = (
        ["plan", "run", "--budget", "1"],
        ["plan", "run", "--budget", "1", "--out", "run/x.csv"],
        ["report", "run"],
    )
    words = [*commands, ["evaluate", "run"]][rng.integers(4)]
    call("evaluate", "run")  # everything that is needed is loaded
    before, user = list_files(folder), os.geteuid()
    folder.chmod(0o755)
    (folder / "run").chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    try:
        found = judge(call(*words), *words)
    finally:
        os.seteuid(user)
        (folder / "run").chmod(0o755)
    if left := list_files(folder) - before:
        return Outcome("half-written", f"{words}: {left}")
    return found if found.kind != "fine" else Outcome("wrong", f"{words} said that it wrote where it could not")


CALLS: tuple[Callable[[Path, Rng], Outcome], ...] = (
    call_with_odd_path, call_with_odd_out, call_with_odd_number, call_with_odd_columns, call_with_odd_options,
    call_with_a_read_only_folder,
)  # fmt: skip
