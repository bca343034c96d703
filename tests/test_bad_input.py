"""Bad input: one message that names the mistake and the remedy, exit code 2, and nothing left behind.

Every row of the two tables is one mistake: how to make it, and the subject and the hint that its message must contain. What
`Levels` and the campaign file refuse is in tests/test_levels.py and tests/campaign.
"""

import datetime as dt
import errno
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import largesse as lg
from largesse.data import read_table
from largesse.errors import BudgetError, InputError, LargesseError, NotFittedError, PolicyFileError
from support.commands import Call
from support.folders import everything_in
from support.shops import CAMPAIGN, shop_table

Make = Callable[[Path], Any]
Row = tuple[Make, str, str]  # how to make the mistake; what its message names; what the message suggests
N = 60
LEVELS = lg.Levels(costs=[0, 5, 10])
NAMED = lg.Levels([0, 5, 10], names=["none", "small", "big"])
PER_CUSTOMER = lg.Levels(costs=["c0", "c1", "c2"])
OWN_COSTS = {"c0": np.zeros(N), "c1": np.ones(N), "c2": np.full(N, 2.0)}
HALF, IDS = np.full(N, 0.5), np.arange(N)


def content(**columns: Any) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    usual = {
        "age": rng.normal(40, 10, N),
        "city": rng.choice(["Oslo", "Rome"], N),
        "coupon": np.arange(N) % 3,
        "bought": rng.integers(0, 2, N),
    }
    return usual | columns


def log(levels: Any = LEVELS, *, columns: dict[str, Any] | None = None, **roles: Any) -> Make:
    """Read a log with other columns or roles."""
    names = {"level": "coupon", "response": "bought"} | roles
    return lambda _: lg.read_log(pa.table(content(**(columns or {}))), levels=levels, **names)


def with_role(role: str, values: Any) -> Make:
    return log(columns={"x": values}, **{role: "x"})


def costs(**columns: Any) -> Make:
    return log(PER_CUSTOMER, columns=OWN_COSTS | columns)


def call(function: Callable[..., Any], *given: Any, **named: Any) -> Make:
    return lambda _: function(*given, **named)


def but(row: int, value: Any, usual: Any) -> list[Any]:
    values = list(usual)
    values[row] = value
    return values


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def file(name: str, data: bytes, read: Callable[[Path], Any] = read_table) -> Make:
    return lambda folder: read(write(folder / name, data))


def files(read: str, **contents: bytes) -> Make:
    """Read a path or a glob in a folder of CSV files."""

    def make(folder: Path) -> Any:
        for name, data in contents.items():
            write(folder / f"{name}.csv", data)
        return read_table(folder / read)

    return make


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def read_two(path: Path) -> Any:
    return lg.read_log(path, level="a", response="b", levels=LEVELS)


def fit(*arrays: Any) -> Make:
    return lambda _: lg.Linear().fit(*arrays)


def predict(table: Any) -> Make:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(N)]
    return lambda folder: lg.Linear(penalty=0.01).fit(log(columns={"day": days})(folder)).predict(table)


def allocate(**named: Any) -> Make:
    return lambda _: lg.allocate([[0.1, 0.2]], costs=[1, 2], **named)


CUT_GZIP = gzip.compress(b"a,b\n" + os.urandom(4000).hex().encode())[:2000]
WHOLE_GZIP = gzip.compress(b"a,b\n" + b"1,2\n" * 500 + np.random.default_rng(0).bytes(3000).hex().encode())
GARBLED_GZIP = WHOLE_GZIP[:60] + bytes([255] * 40) + WHOLE_GZIP[100:]
CUT_PARQUET = parquet(pa.table(content()))[:1500]
DAY = dt.date(2024, 1, 1)
LISTS = pa.table({"age": [[1.0]], "city": ["Oslo"], "day": [DAY]})
TWICE = pa.table([[1.0], [2.0], ["a"]], names=["age", "age", "city"])

FROM_PYTHON: dict[str, Row] = {
    # columns
    "missing response": (log(response="zzz"), "'zzz'", "age, city, coupon, bought"),
    "misspelt feature": (log(features=["Age", "citty"]), "'citty'", "'city'"),
    "one column in two roles": (log(weight="bought"), "'bought'", "response and as weight"),
    "response listed as feature": (log(features=["age", "bought"]), "'bought'", "feature"),
    "features as one text": (log(features="age"), "the text 'age'", "['age']"),
    "no features": (log(features=[]), "no column left", "at least one feature"),
    "a list as feature": (log(columns={"tags": pa.array([[1]] * N)}, features=["tags"]), "'tags' holds list<", "text"),
    "duplicate names": (file("t.parquet", parquet(pa.table([[1], [2]], names=["a", "a"])), read_two), ": a", "rename"),
    "duplicate names in pandas": (call(read_table, pd.DataFrame([[1, 2]], columns=["a", "a"])), ": a", "rename"),
    # levels
    "a name not in the list": (
        log(NAMED, columns={"coupon": ["none", "small", "BIG"] * 20}),
        "20 rows: BIG",
        "none, small, big",
    ),
    "a level with no rows": (log(lg.Levels([0, 5, 10, 20])), "level 3", "leave it out"),
    "a missing level": (log(columns={"coupon": pa.array(but(0, None, IDS % 3))}), "'coupon'", "the lowest"),
    "levels that are dates": (log(columns={"coupon": pa.array([DAY] * N)}), "'coupon' holds date32", "names"),
    "levels that are a list": (log([0, 5]), "[0, 5]", "Levels(costs="),
    # response
    "a response in words": (log(columns={"bought": ["bought", "left"] * 30}), "'bought'", "bought, left, bought"),
    "a missing response in every row": (log(columns={"bought": pa.nulls(N)}), "'bought'", "column with the response"),
    "a missing response in many rows": (log(columns={"bought": pa.array([1, None, 0] * 20)}), "33 %", "write 0"),
    "a constant response": (log(columns={"bought": np.ones(N)}), "'bought' is 1", "nothing to learn"),
    # propensity, weight, cluster, customer
    **{
        f"a propensity of {p}": (with_role("propensity", but(7, p, HALF)), f"in 1 row: {p:g}", "leave the column out")
        for p in (0.0, -0.5, 1.2, np.nan, np.inf)
    },
    "a propensity in words": (with_role("propensity", ["x"] * N), "propensity column 'x'", "string"),
    "a missing cluster": (with_role("cluster", pa.array(but(1, None, IDS.tolist()))), "cluster column 'x'", "1 row"),
    "a cluster of NaN": (with_role("cluster", but(1, float("nan"), IDS * 1.0)), "cluster column 'x'", "1 row"),
    "a cluster of records": (with_role("cluster", pa.array([{"a": 1}] * N)), "'x' holds struct<", "numbers or text"),
    "ids that are lists": (with_role("customer", pa.array([[k] for k in range(N)])), "'x' holds list<", "text"),
    "ids of customers that repeat": (
        call(lg.read_customers, {"id": [1, 1]}, customer="id"),
        "'id' repeats",
        "one row per customer",
    ),
    # costs per customer
    "a negative cost of one customer": (costs(c1=but(4, -1.0, np.ones(N))), "in 1 row of c1", "zero or more"),
    "a missing cost of one customer": (costs(c2=but(4, np.nan, OWN_COSTS["c2"])), "in 1 row of c2", "zero or more"),
    "costs that fall for one customer": (costs(c2=but(4, 0.5, OWN_COSTS["c2"])), "1 row", "cheapest"),
    "a cost column that is not there": (log(PER_CUSTOMER, columns={"c0": HALF, "c1": HALF}), "'c2'", "c0, c1"),
    # files
    "an empty file": (file("t.csv", b""), "t.csv is empty (0 bytes)", "interrupted"),
    "a file of blank lines": (file("t.csv", b"\n\n"), "t.csv is empty", "interrupted"),
    "a header only": (file("t.csv", b"a,b,c\n", read_two), "3 columns but no rows", "filtered"),
    "a Parquet file cut in half": (file("t.parquet", CUT_PARQUET), "t.parquet is damaged", "interrupted"),
    "garbage called Parquet": (file("t.parquet", b"not a table at all"), "t.parquet is damaged", "again"),
    "garbage called Arrow": (file("t.arrow", b"not a table at all"), "t.arrow is damaged", "again"),
    "rows of different length": (file("t.csv", b"a,b\n1,2\n1,2,3\n"), "t.csv: line 3 has 3 fields", "quote"),
    "text in two encodings": (file("t.csv", "ä,b\n1,".encode() + b"\xe9\n"), "t.csv", "UTF-8"),
    "text that is neither UTF-8 nor Western": (file("t.csv", b"a,b\n1,\x81\xe9\n"), "t.csv", "UTF-8"),
    "a gzip file cut in half": (file("t.csv.gz", CUT_GZIP), "t.csv.gz is damaged", "interrupted"),
    "a garbled gzip file": (file("t.csv.gz", GARBLED_GZIP), "t.csv.gz is damaged", "again"),
    "plain text called gzip": (file("t.csv.gz", b"a,b\n1,2\n"), "t.csv.gz is not a gzip file", "rename"),
    "an unknown kind of file": (file("t.docx", b"PK\x03\x04"), "t.docx", ".parquet"),
    "a file that is not there": (files("logg.csv", log=b"a\n1\n"), "logg.csv", "log.csv"),
    "a folder that is not there": (files("none/log.csv"), "none/log.csv", "does not exist either"),
    "an unknown home": (call(read_table, "~nobody-here/log.csv"), "~nobody-here", ""),
    "a path far too long": (call(read_table, "a,b\n1,2\n" * 1000), "too long", ""),
    "a glob without match": (files("*.csv"), "*.csv", "holds no table"),
    "a folder without tables": (lambda folder: read_table(write(folder / "readme.md", b"x").parent), "no table", "CSV"),
    # tables in memory
    "a number for a table": (call(read_table, 5), "int", "pandas"),
    "nothing for a table": (call(read_table, None), "None", "pandas"),
    "one column for a table": (call(read_table, pd.Series([1, 2])), "Series", "pandas"),
    "columns of different length": (
        call(read_table, {"a": [1, 2], "b": [1]}),
        "length 2 but got length 1",
        "one length",
    ),
    "mixed objects": (call(read_table, pd.DataFrame({"n": [1, 2], "mixed": ["a", 1]})), "'mixed'", "astype(str)"),
    # arrays
    "level in words": (fit(np.eye(4), ["a", "b", "a", "b"], [0, 1, 0, 1]), "level", "a, b, a"),
    "level far too high": (fit(np.eye(4), [0, 1, 0, 10**9], [0, 1, 0, 1]), "1000000000 in 4 rows", "Levels(costs=…)"),
    "ragged features": (fit([[1], [1, 2]], [0, 1], [0, 1]), "features", "rows of one length"),
    "a response of mixed objects": (
        fit(np.eye(2), [0, 1], np.array([1, "a"], object)),
        "response",
        "values of one type",
    ),
    # customers
    "a number that became a list": (predict(LISTS), "'age' holds lists", "numbers"),
    "a feature that is there twice": (predict(TWICE), "'age'", "rename"),
    # models and budgets
    "a budget below the cheapest plan": (allocate(budget=0.5), "0.5 is below the cheapest plan", "1 per customer"),
}


@pytest.mark.parametrize("name", FROM_PYTHON)
def test_a_mistake_in_python_is_named(name: str, tmp_path: Path) -> None:
    make, subject, hint = FROM_PYTHON[name]
    with pytest.raises(LargesseError) as caught:
        make(tmp_path)
    message = str(caught.value)
    assert subject in message
    assert hint in message
    assert "\n   → " in message  # and what to do about it
    assert not re.search(r"Arrow(Invalid|Type|NotImpl)|numpy\.|<class", message)


def test_errors_are_of_the_kind_that_a_program_can_tell_apart() -> None:
    values = dict.fromkeys((InputError, BudgetError, PolicyFileError), ValueError)
    for kind, parent in {**values, NotFittedError: AttributeError}.items():
        assert issubclass(kind, LargesseError)
        assert issubclass(kind, parent)


# -- on the command line ----------------------------------------------------------------------------------------------

FIT = ("fit", "log.parquet", "--level", "coupon", "--response", "bought", "--model", "linear", "--out", "out")
COSTS = ("--costs", "0,5,10")
RUN = ("run", "campaign.toml", "--out")
PLAN = ("plan", "run", "customers.parquet", "--budget", "2")
REPORT = ("report", "run")


def words(*given: str) -> Make:
    return lambda _: given


def after(change: Callable[[Path], Any], *given: str) -> Make:
    """Return a command that is called after a change of the folder."""
    return lambda folder: (change(folder), given)[1]


def campaign(old: str = "", new: str = "", *, text: bytes | None = None) -> Make:
    """Spoil the campaign file and run it."""
    assert text is not None or old in CAMPAIGN
    content = CAMPAIGN.replace(old, new).encode() if text is None else text
    return after(lambda folder: write(folder / "campaign.toml", content), *RUN, "out")


def spoilt(name: str, change: Callable[[bytes], bytes | None], *given: str) -> Make:
    """Spoil one file of the run folder; None removes it."""

    def spoil(folder: Path) -> None:
        path = folder / "run" / name
        changed = change(path.read_bytes())
        path.unlink()
        if changed is not None:
            path.write_bytes(changed)

    return after(spoil, *given)


def spoilt_policy(change: Callable[[dict[str, Any]], Any], *, sign: bool = True, flip: bool = False) -> Make:
    """Change the manifest or a byte of the arrays of a policy; `sign` writes the matching digest of the manifest."""

    def rewrite(old: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(old)) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            arrays = bytearray(archive.read("arrays.safetensors"))
        change(manifest)
        arrays[-3] ^= flip
        if sign:
            rest = {key: value for key, value in manifest.items() if key != "digest"}
            text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
            manifest["digest"] = hashlib.sha256(text.encode()).hexdigest()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("manifest.json", json.dumps(manifest))
            archive.writestr("arrays.safetensors", arrays)
        return out.getvalue()

    return spoilt("policy.largesse", rewrite, *PLAN)


def customers(**columns: Any) -> Make:
    """Plan for other customers."""
    table = pa.table({"since": [DAY] * len(columns["city"]), **columns})
    return after(lambda folder: pq.write_table(table, folder / "new.parquet"), "plan", "run", "new.parquet")


def change_budget(folder: Path) -> None:
    plan = json.loads((folder / "run" / "plan.json").read_text())
    plan["budget"]["average"] = 1.23456789
    (folder / "run" / "plan.json").write_text(json.dumps(plan))


def move_log(folder: Path) -> None:
    (folder / "log.parquet").rename(folder / "run" / "log.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN.replace('"log.parquet"', '"run/log.parquet"'))


def make_file(name: str) -> Callable[[Path], Any]:
    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        write(folder / name, b"mine")

    return make


FROM_THE_COMMAND_LINE: dict[str, Row] = {
    # the campaign file and the log
    "no campaign file": (words("run", "nowhere.toml"), "nowhere.toml", "largesse init LOG"),
    "invalid TOML": (campaign("costs = [0, 5, 10]", "costs = [0, 5"), "campaign.toml", "TOML"),
    "a campaign that is not text": (campaign(text=b"\xff\xfe\x00"), "campaign.toml", "UTF-8"),
    "an unknown setting": (campaign("costs =", "cots ="), "'levels.cots'", "'costs'"),
    "an empty log": (campaign('"log.parquet"', '""'), "log is left blank", ""),
    "no budget": (campaign("budget = 2.5"), "budget", "--budget"),
    "an empty campaign": (campaign(text=b""), "4 things are wrong", "costs"),
    "an unknown model": (campaign('"linear"', '"lineer"'), "'lineer'", "'linear'"),
    "no log": (campaign('"log.parquet"', '"lgo.parquet"'), "lgo.parquet", " log.parquet"),
    "a misspelt column": (campaign('"coupon"', '"coupn"'), "'coupn'", "'coupon'"),
    # budgets
    "a budget below the cheapest plan": (
        campaign("costs =", "doses = [0, 5, 10]\ncosts = [5, 6, 10] #"),
        "2.5 is below",
        "5 per customer",
    ),
    **{
        f"a budget of {budget}": (words(*RUN, "out", "--budget", budget), f"the budget is {budget}", "zero or more")
        for budget in ("-1", "nan", "inf")
    },
    "a budget in words": (words(*RUN, "out", "--budget", "much"), "'--budget'", "number"),
    "both --budget and --total": (words(*RUN, "out", "--budget", "1", "--total", "9"), "--budget", "--total"),
    "a negative total": (words("plan", "run", "log.parquet", "--total", "-5"), "the total is -5", ""),
    "both budgets of a plan": (words(*PLAN, "--total", "9"), "--budget", "--total"),
    "a negative budget to judge": (words("evaluate", "run", "--budget", "-2"), "the budget is -2", ""),
    # fit
    "a cost in words": (words(*FIT, "--costs", "0,5,1O"), "levels", "1O"),
    "no cost at all": (words(*FIT, "--costs", ""), "costs", "blank"),
    "cost columns that are not there": (words(*FIT, "--costs", "a0,a1,a2"), "'a0'", ""),
    "names of another length": (words(*FIT, *COSTS, "--names", "a,b"), "3 costs but 2 names", ""),
    "doses that fall": (words(*FIT, *COSTS, "--doses", "2,1,0"), "doses", "2"),
    "a negative seed": (words(*FIT, *COSTS, "--seed", "-1"), "model.seed is -1", ""),
    "an unknown model for fit": (words(*FIT, *COSTS, "--model", "tree"), "'tree'", "linear"),
    "no --out": (words(*FIT[:-2], *COSTS), "--out", ""),
    # run folders and their steps
    "a missing run folder": (words("report", "nowhere"), "nowhere", ": run"),
    "a plan without a run folder": (words("plan", ".", "log.parquet", "--budget", "1"), "policy.largesse", ""),
    "a report before the plan": (spoilt("plan.json", lambda _: None, *REPORT), "plan.json", "largesse plan run"),
    "a report before the evaluation": (
        spoilt("evaluation.json", lambda _: None, *REPORT),
        "evaluation.json",
        "largesse evaluate run",
    ),
    "numbers cut in half": (spoilt("plan.json", lambda old: old[:99], *REPORT), "plan.json", "largesse plan"),
    "numbers that are a list": (spoilt("plan.json", lambda _: b"[1, 2]", *REPORT), "plan.json", "largesse plan"),
    "numbers of another version": (spoilt("fit.json", lambda _: b"{}", *REPORT), "fit.json", "another version"),
    "plan and evaluation for different budgets": (
        after(change_budget, *REPORT),
        "2.5",
        "largesse evaluate run --budget 1.23456789",
    ),
    # customers
    "no table of customers": (words("plan", "run", "nobody.csv", "--budget", "1"), "nobody.csv", ""),
    "customers without a feature": (customers(id=[1, 2], city=["Oslo", "Rome"], Alter=[1, 2]), "'age'", ""),
    "a feature of another kind": (customers(id=[1], city=["Oslo"], age=["old"]), "'age' holds text", "numbers"),
    "customers with a misspelt id": (customers(ids=[1], city=["Oslo"], age=[1.0]), "'id'", "'ids'"),
    "customers that are there twice": (customers(id=[1, 1], city=["Oslo"] * 2, age=[1.0, 2.0]), "'id' repeats", ": 1"),
    # policy files
    "a policy of another version": (spoilt_policy(lambda m: m.update(version=99)), "format 99", "update largesse"),
    "a policy with a changed manifest": (spoilt_policy(lambda m: m.update(price=1e9), sign=False), "policy", "digest"),
    "a policy with a changed byte": (spoilt_policy(lambda m: m, flip=True), "policy", "digest"),
    "a policy of an unknown model": (spoilt_policy(lambda m: m["model"].update(kind="Linn")), "'Linn'", "'Linear'"),
    "a policy without a model": (spoilt_policy(lambda m: m.pop("model")), "policy", "unexpected content"),
    "a policy that is not a zip": (spoilt("policy.largesse", lambda _: b"hello", *PLAN), "policy.largesse", "fit"),
    "a policy cut in half": (spoilt("policy.largesse", lambda old: old[: len(old) // 2], *PLAN), "policy", "fit"),
    "no policy": (spoilt("policy.largesse", lambda _: None, *PLAN), "policy.largesse", ""),
    # where to write
    "an output that is a file": (after(make_file("taken"), *RUN, "taken"), "taken", "--out"),
    "an output below a file": (after(make_file("taken"), *RUN, "taken/deep/run"), "taken", "--out"),
    "an output that holds other things": (after(make_file("full/thesis.tex"), *RUN, "full"), "thesis.tex", "--out"),
    "an output with notes beside a run": (after(make_file("run/notes.md"), *RUN, "run"), ": notes.md", "--out"),
    "an output that holds the campaign": (words(*RUN, "."), "lies in", "--out"),
    "an output that holds the log": (after(move_log, *RUN, "run"), "run/log.parquet lies in", "--out"),
    "a plan of an unknown kind": (words(*PLAN, "--out", "plan.xlsx"), "plan.xlsx", ".csv"),
    "a plan into a folder": (after(make_file("p.parquet/x"), *PLAN, "--out", "p.parquet"), "p.parquet", "a folder"),
    "a first campaign over another": (words("init", "log.parquet"), "campaign.toml", "--force"),
    "a first campaign for nothing": (words("init", "no.csv", "--out", "c.toml"), "no.csv", ""),
    # words
    "an unknown verb": (words("rnu"), "'rnu'", ""),
    "an unknown option": (words("run", "campaign.toml", "--bugdet", "1"), "--bugdet", ""),
}


@pytest.fixture
def folder(shop: Path, run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: a log, customers, a campaign file and a run folder."""
    monkeypatch.chdir(shop)
    return shop


@pytest.mark.parametrize("name", FROM_THE_COMMAND_LINE)
def test_a_mistake_on_the_command_line_is_one_message_and_leaves_nothing(name: str, folder: Path, call: Call) -> None:
    make, subject, hint = FROM_THE_COMMAND_LINE[name]
    given = make(folder)
    before = everything_in(folder)
    done = call(*given)
    assert (done.code, done.out) == (2, "")
    assert subject in done.err
    assert hint in done.err
    assert "Traceback" not in done.err
    assert everything_in(folder) == before


def test_without_a_mistake_there_is_no_message(folder: Path, call: Call) -> None:
    for given in ((*RUN, "out"), (*FIT[:-1], "fitted", *COSTS), (*PLAN, "--out", "plan.csv")):
        done = call(*given)
        assert done.code in (0, 10)  # fine, or careful
        assert done.err == ""


def test_the_installed_command_prints_the_same(folder: Path) -> None:
    (folder / "campaign.toml").write_text(CAMPAIGN.replace('"coupon"', '"coupn"'))
    before = everything_in(folder)
    installed = [sys.executable, "-m", "largesse", *RUN, "out"]
    done = subprocess.run(installed, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("largesse: log: ")
    assert "'coupn'" in done.stderr
    assert done.stderr.endswith("'coupon'?\n")
    assert everything_in(folder) == before


# -- places that cannot be written to ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "what", "given"),
    [
        (errno.ENOSPC, "the disk is full", (*RUN, "out")),
        (errno.EROFS, "may not be written", (*RUN, "run")),
        (errno.EACCES, "may not be written", (*PLAN, "--out", "p.parquet")),
        (errno.EIO, "could not be written", REPORT),
    ],
)
def test_a_disk_that_fails_is_named_and_the_old_content_stays(
    number: int, what: str, given: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    before = everything_in(folder)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", fail)
    done = call(*given)
    assert done.code == 2
    assert what in done.err
    assert "Traceback" not in done.err
    assert everything_in(folder) == before


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB, where the machine can mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount here")
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_really_full_or_read_only_is_named_and_left(folder: Path, tiny_disk: Path, call: Call) -> None:
    write(tiny_disk / "other", b"x" * 40_000)
    before = everything_in(tiny_disk)
    done = call(*RUN, str(tiny_disk / "out"))
    assert done.code == 2
    assert "the disk is full" in done.err
    assert everything_in(tiny_disk) == before
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    for given in ((*RUN, str(tiny_disk / "out")), (*PLAN, "--out", str(tiny_disk / "p.csv"))):
        done = call(*given)
        assert done.code == 2
        assert "may not be written" in done.err


# -- odd and valid ----------------------------------------------------------------------------------------------------


def test_customers_without_ids_are_numbered_even_if_a_feature_is_called_alike(folder: Path, call: Call) -> None:
    table = shop_table(300, seed=1).select(["id", "age", "coupon", "bought"])
    pq.write_table(table.rename_columns(["customer", "customer_age", "coupon", "bought"]), "log.parquet")
    text = CAMPAIGN.replace('"id"', '"customer"').replace("customers = ", "# ")
    Path("campaign.toml").write_text(text)
    assert call(*RUN, "again").code in (0, 10)
    pq.write_table(pa.table({"customer_age": [30.0, 40.0]}), "new.parquet")
    assert call("plan", "again", "new.parquet", "--budget", "2", "--out", "p.csv").code == 0
    assert read_table("p.csv")["customer"].to_pylist() == [0, 1]


def test_the_budget_that_the_message_gives_makes_the_report(folder: Path, call: Call) -> None:
    assert call("plan", "run", "--budget", "1.23456789").code == 0
    assert call(*REPORT).code == 2
    assert call("evaluate", "run", "--budget", "1.23456789").code == 0
    assert call(*REPORT).code == 0


def test_a_log_as_spreadsheets_and_notebooks_write_it_goes_all_the_way(folder: Path, call: Call) -> None:
    frame = shop_table(360, seed=1).to_pandas()
    frame["Größe (m²)"] = "1.234,5"
    frame["seen"] = pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(np.arange(360), unit="h")
    frame["empty"] = None
    frame["note, free"] = ['said "no"\nthen yes', "NA"] * 180
    frame.to_csv("log.csv", index=True, sep=";", decimal=",", encoding="utf-8-sig", lineterminator="\r\n")
    Path("campaign.toml").write_text(CAMPAIGN.replace("log.parquet", "log.csv").replace("customers = ", "# "))
    assert call(*RUN, "out").code in (0, 20)
    assert "row numbers" in Path("out/evaluation.json").read_text()
