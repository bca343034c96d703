"""Bad input: one message that names the mistake and the remedy, exit code 2, and nothing left behind.

Every row of the two tables is one mistake: how to make it, and the subject and the hint that its message must contain.
"""

import datetime as dt
import errno
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
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
from largesse import cli
from largesse.campaign.file import read_campaign
from largesse.data.table_reader import read_table
from largesse.errors import BudgetError, InputError, LargesseError, NotFittedError, PolicyFileError
from largesse.pipeline.commands import run
from support.folders import everything_in

Make = Callable[[Path], Any]
Row = tuple[Make, str, str]  # how to make the mistake; what its message names; what the message suggests
N = 60
LEVELS = lg.Levels(costs=[0, 5, 10])
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

FROM_PYTHON: dict[str, Row] = {
    # columns
    "misspelt level": (log(level="coupn"), "'coupn'", "'coupon'"),
    "missing response": (log(response="zzz"), "'zzz'", "age, city, coupon, bought"),
    "misspelt feature": (log(features=["Age", "citty"]), "'citty'", "'city'"),
    "two misspelt features": (log(features=["Age", "citty"]), "'Age'", "'age'"),
    "one column in two roles": (log(weight="bought"), "'bought'", "response and as weight"),
    "response listed as feature": (log(features=["age", "bought"]), "'bought'", "feature"),
    "features as one text": (log(features="age"), "the text 'age'", "['age']"),
    "no features": (log(features=[]), "no column left", "at least one feature"),
    "a list as feature": (log(columns={"tags": pa.array([[1]] * N)}, features=["tags"]), "'tags' holds list<", "text"),
    "duplicate names": (file("t.parquet", parquet(pa.table([[1], [2]], names=["a", "a"])), read_two), ": a", "rename"),
    "duplicate names in pandas": (call(read_table, pd.DataFrame([[1, 2]], columns=["a", "a"])), ": a", "rename"),
    # levels
    "a level not in the list": (log(columns={"coupon": but(3, 15, IDS % 3 * 5)}), "15", "0, 1, 2"),
    "a name not in the list": (
        log(lg.Levels([0, 5, 10], names=["none", "small", "big"]), columns={"coupon": ["none", "small", "BIG"] * 20}),
        "20 rows: BIG",
        "none, small, big",
    ),
    "a level with no rows": (log(lg.Levels([0, 5, 10, 20])), "level 3", "leave it out"),
    "a missing level": (log(columns={"coupon": pa.array(but(0, None, IDS % 3))}), "'coupon'", "the lowest"),
    "levels that are dates": (log(columns={"coupon": pa.array([DAY] * N)}), "'coupon' holds date32", "names"),
    "one level only": (log(lg.Levels([5])), "only one level", "at least two"),
    "levels that are a list": (log([0, 5]), "[0, 5]", "Levels(costs="),
    "costs that fall": (call(lg.Levels, [0, 10, 5]), "10 to 5 as the level rises from 1 to 2", "cheapest"),
    "a negative cost": (call(lg.Levels, [-1, 5]), "level 0 is negative: -1", "zero or more"),
    "a missing cost": (call(lg.Levels, [0, float("nan")]), "level 1 is nan", "finite"),
    "a cost in words": (call(lg.Levels, [0, "five"]), "0, five", "number"),
    "no costs": (call(lg.Levels, []), "no costs", "costs=[0, 5, 10]"),
    "one number for costs": (call(lg.Levels, 5), "costs is 5", "list"),
    "too few names": (call(lg.Levels, [0, 1], names=["a"]), "2 costs but 1 names", "per level"),
    "equal names": (call(lg.Levels, [0, 1], names=["a", "a"]), "a, a", "differ"),
    "too many doses": (call(lg.Levels, [0, 1], doses=[1, 2, 3]), "2 costs but 3 doses", "per level"),
    "doses that do not rise": (call(lg.Levels, [0, 1], doses=[2, 1]), "2.0, 1.0", "dose"),
    "a missing dose": (call(lg.Levels, [0, 1], doses=[0, float("nan")]), "dose", ""),
    # response
    "a response in words": (
        log(columns={"bought": ["bought", "left"] * 30}),
        "'bought'",
        "string: bought, left, bought",
    ),
    "a missing response in every row": (log(columns={"bought": pa.nulls(N)}), "'bought'", "what happened"),
    "a missing response in many rows": (log(columns={"bought": pa.array([1, None, 0] * 20)}), "33 %", "write 0"),
    "a constant response": (log(columns={"bought": np.ones(N)}), "'bought' is 1", "nothing to learn"),
    "an infinite response": (log(columns={"bought": but(2, np.inf, HALF)}), "'bought' is infinite in 1 row", "finite"),
    # propensity, weight, cluster, customer
    **{
        f"a propensity of {value}": (
            with_role("propensity", but(7, value, HALF)),
            f"in 1 row: {value:g}",
            "leave the column out",
        )
        for value in (0.0, -0.5, 1.2, float("nan"), float("inf"))
    },
    "a propensity in words": (with_role("propensity", ["x"] * N), "propensity column 'x'", "string"),
    "a negative weight": (with_role("weight", but(0, -1.0, HALF)), "'x'", "zero or more"),
    "weights that are all zero": (with_role("weight", np.zeros(N)), "'x'", "zero"),
    "a missing cluster": (with_role("cluster", pa.array(but(1, None, IDS.tolist()))), "cluster column 'x'", "1 row"),
    "a cluster of NaN": (with_role("cluster", but(1, float("nan"), IDS * 1.0)), "cluster column 'x'", "1 row"),
    "a cluster of records": (with_role("cluster", pa.array([{"a": 1}] * N)), "'x' holds struct<", "numbers or text"),
    "ids that repeat": (with_role("customer", but(1, 0, IDS)), "'x' repeats 1 customer: 0", "name 'x' as the cluster"),
    "missing ids": (with_role("customer", pa.array(but(1, None, IDS.tolist()))), "'x' is missing in 1 row", "id"),
    "ids that are lists": (with_role("customer", pa.array([[k] for k in range(N)])), "'x' holds list<", "text"),
    "ids of customers that repeat": (
        call(lg.read_customers, {"id": [1, 1], "age": [1, 2]}, customer="id"),
        "customers: the customer id 'id' repeats",
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
    "text in Latin-1": (file("t.csv", "a,b\n1,é\n".encode("latin-1")), "t.csv", "UTF-8"),
    "a header in Latin-1": (file("t.csv", "a,é\n1,2\n".encode("latin-1")), "t.csv", "UTF-8"),
    "text in UTF-16": (file("t.csv", "a,b\n1,2\n".encode("utf-16")), "t.csv", "UTF-8"),
    "a gzip file cut in half": (file("t.csv.gz", CUT_GZIP), "t.csv.gz is damaged", "interrupted"),
    "a garbled gzip file": (file("t.csv.gz", GARBLED_GZIP), "t.csv.gz is damaged", "again"),
    "plain text called gzip": (file("t.csv.gz", b"a,b\n1,2\n"), "t.csv.gz is not a gzip file", "rename"),
    "an unknown kind of file": (file("t.xlsx", b"PK\x03\x04"), "t.xlsx", ".parquet"),
    "a file that is not there": (files("logg.csv", log=b"a\n1\n"), "logg.csv", "log.csv"),
    "a folder that is not there": (files("none/log.csv"), "none/log.csv", "does not exist either"),
    "an unknown home": (call(read_table, "~nobody-here/log.csv"), "~nobody-here", ""),
    "a path far too long": (call(read_table, "a,b\n1,2\n" * 1000), "too long", ""),
    "a glob without match": (files("*.csv"), "*.csv", "holds no table"),
    "a folder without tables": (lambda folder: read_table(write(folder / "readme.md", b"x").parent), "no table", "CSV"),
    "files with different columns": (files("*.csv", a=b"x,y\n1,2\n", b=b"x,z\n1,2\n"), "b.csv and a.csv", "y, z"),
    "files with different types": (files("*.csv", a=b"x,y\n1,2\n", b=b"x,y\none,2\n"), "'x'", "2 files"),
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
    "level of another length": (fit(np.eye(4), [0, 1, 0], [0, 1, 0, 1]), "level has shape (3,)", "4 rows"),
    "level in words": (fit(np.eye(4), ["a", "b", "a", "b"], [0, 1, 0, 1]), "level", "a, b, a"),
    "level far too high": (fit(np.eye(4), [0, 1, 0, 10**9], [0, 1, 0, 1]), "1000000000 in 4 rows", "Levels(costs=…)"),
    "features of one dimension": (fit(np.zeros(4), [0, 1, 0, 1], [0, 1, 0, 1]), "shape (4,)", "(n, p)"),
    "ragged features": (fit([[1], [1, 2]], [0, 1], [0, 1]), "features", "rows of one length"),
    "a response of mixed objects": (
        fit(np.eye(2), [0, 1], np.array([1, "a"], dtype=object)),
        "response",
        "values of one type",
    ),
    "features without level": (fit(np.eye(2)), "ndarray", "level"),
    # customers
    "customers without a feature": (predict({"agee": [1.0], "city": ["Oslo"], "day": [DAY]}), "'age'", "'agee'"),
    **{
        f"a {was} that holds {now}": (
            predict({"age": ["old"], "city": [1], "day": ["2024"]}),
            f"{name!r} holds {now}",
            was,
        )
        for name, was, now in (("age", "numbers", "text"), ("city", "text", "numbers"), ("day", "dates", "text"))
    },
    "a number that became a list": (
        predict(pa.table({"age": [[1.0]], "city": ["Oslo"], "day": [DAY]})),
        "'age' holds lists",
        "numbers",
    ),
    "a feature that is there twice": (
        predict(pa.table([[1.0], [2.0], ["a"]], names=["age", "age", "city"])),
        "'age'",
        "rename",
    ),
    # models and budgets
    "a model not fitted": (lambda _: lg.Linear().predict(np.eye(2)), "not been fitted", "fit(log) first"),
    "a policy without price": (
        lambda folder: lg.Policy(lg.Linear().fit(log()(folder)), LEVELS).decide(content()),
        "no price",
        "price=plan.price",
    ),
    "a budget below the cheapest plan": (allocate(budget=0.5), "0.5 is below the cheapest plan", "1 per customer"),
    "a negative budget": (allocate(budget=-1), "-1", "zero or more"),
    "a missing budget": (allocate(budget=float("nan")), "nan", "zero or more"),
    "both budget and total": (allocate(budget=1, total=1), "budget", "total"),
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
    usual = {
        InputError: ValueError,
        BudgetError: ValueError,
        PolicyFileError: ValueError,
        NotFittedError: AttributeError,
    }
    for kind, parent in usual.items():
        assert issubclass(kind, LargesseError)
        assert issubclass(kind, parent)


# -- on the command line ------------------------------------------------------------------------------------------------

CAMPAIGN = """
log = "log.parquet"
[columns]
level = "coupon"
response = "bought"
customer = "id"
features = ["age", "city"]
[levels]
costs = [0, 5, 10]
[plan]
budget = 2.5
[model]
name = "linear"
"""
FIT = ("fit", "log.parquet", "--level", "coupon", "--response", "bought", "--model", "linear", "--out", "out")
COSTS = ("--costs", "0,5,10")
RUN = ("run", "campaign.toml", "--out")
PLAN = ("plan", "run", "log.parquet", "--budget", "2")


def small_log(rows: int = 120) -> pa.Table:
    rng = np.random.default_rng(6)
    return pa.table(
        {
            "id": np.arange(rows),
            "age": rng.normal(40, 9, rows),
            "city": rng.choice(["Oslo", "Rome"], rows),
            "coupon": np.arange(rows) % 3,
            "bought": rng.integers(0, 2, rows),
        }
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder, made once and copied by tests that spoil it."""
    folder = tmp_path_factory.mktemp("finished")
    pq.write_table(small_log(), folder / "log.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN)
    run(read_campaign(folder / "campaign.toml"), folder / "run")
    return folder / "run"


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command line as `largesse` does, in this process."""
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "argv", ["largesse", *words])
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        signal.signal(signal.SIGTERM, handler)
    return 0


def words(*given: str) -> Make:
    return lambda _: list(given)


def after(change: Callable[[Path], Any], *given: str) -> Make:
    """Return a command that is called after a change of the folder."""

    def make(folder: Path) -> list[str]:
        change(folder)
        return list(given)

    return make


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
    table = pa.table(columns)
    return after(
        lambda folder: pq.write_table(table, folder / "new.parquet"), "plan", "run", "new.parquet", "--budget", "2"
    )


def change_log(old: str, new: Any) -> Callable[[Path], Any]:
    table = small_log()
    table = table.set_column(table.column_names.index(old), old, pa.array(new))
    return lambda folder: pq.write_table(table, folder / "log.parquet")


def logged(old: str, new: Any) -> Make:
    return after(change_log(old, new), *RUN, "out")


def repeat_clusters(folder: Path) -> list[str]:
    change_log("id", np.arange(120) // 2)(folder)
    found: list[str] = campaign('customer = "id"', 'customer = "id"\ncluster = "id"')(folder)
    return found


def change_budget(folder: Path) -> None:
    found = json.loads((folder / "run" / "plan.json").read_text())
    found["budget"]["average"] = 1.23456789
    (folder / "run" / "plan.json").write_text(json.dumps(found))


def move_log(folder: Path) -> None:
    shutil.move(folder / "log.parquet", folder / "run" / "log.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN.replace('"log.parquet"', '"run/log.parquet"'))


def make_file(name: str) -> Callable[[Path], Any]:
    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        write(folder / name, b"mine")

    return make


FROM_THE_COMMAND_LINE: dict[str, Row] = {
    # the campaign file
    "no campaign file": (words("run", "nowhere.toml"), "nowhere.toml", "largesse init LOG"),
    "invalid TOML": (campaign("costs = [0, 5, 10]", "costs = [0, 5"), "campaign.toml", "TOML"),
    "a campaign that is not text": (campaign(text=b"\xff\xfe\x00"), "campaign.toml", "UTF-8"),
    "an unknown setting": (campaign("costs =", "cots ="), "'levels.cots'", "'costs'"),
    "a setting in the wrong place": (campaign("\n[columns]", "\nbudget = 2\n[columns]"), "'budget'", "[plan]"),
    "a campaign without log": (campaign('log = "log.parquet"'), "log", "log = "),
    "a campaign with an empty log": (campaign('"log.parquet"', '""'), "log is left blank", ""),
    "a campaign without level": (campaign('level = "coupon"'), "level", "[columns]"),
    "a campaign without costs": (campaign("costs = [0, 5, 10]"), "costs", "[levels]"),
    "a campaign without budget": (campaign("budget = 2.5"), "budget", "--budget"),
    "both budget and total": (campaign("budget = 2.5", "budget = 2.5\ntotal = 5"), "budget and total", "[plan]"),
    "an empty campaign": (campaign(text=b""), "4 things are wrong", "costs"),
    "an unknown model": (campaign('"linear"', '"lineer"'), "'lineer'", "'linear'"),
    "a seed too large": (campaign("[model]", "[model]\nseed = 4294967296"), "model.seed is 4294967296", ""),
    # the log
    "no log": (campaign('"log.parquet"', '"lgo.parquet"'), "lgo.parquet", " log.parquet"),
    "a misspelt column": (campaign('"coupon"', '"coupn"'), "'coupn'", "'coupon'"),
    "a misspelt feature": (campaign('"age"', '"agee"'), "'agee'", "'age'"),
    "costs in the wrong order": (campaign("[0, 5, 10]", "[10, 5, 0]"), "levels", "10 to 5"),
    "a level that nobody got": (campaign("[0, 5, 10]", "[0, 5, 10, 20]"), "level 3", "leave it out"),
    "a response in words": (logged("bought", ["left", "came"] * 60), "'bought'", "string"),
    "a constant response": (logged("bought", [0] * 120), "'bought' is 0", ""),
    "customers that repeat": (logged("id", [1] * 120), "'id' repeats 1 customer: 1", "cluster"),
    "customers that repeat as clusters": (repeat_clusters, "customers", "one row per customer"),
    # budgets
    "a budget below the cheapest plan": (campaign("[0, 5, 10]", "[5, 6, 10]"), "2.5 is below", "5 per customer"),
    **{
        f"a budget of {budget}": (words(*RUN, "out", "--budget", budget), f"the budget is {budget}", "zero or more")
        for budget in ("-1", "nan", "inf")
    },
    "a budget in words": (words(*RUN, "out", "--budget", "much"), "'--budget'", "number"),
    "both --budget and --total": (words(*RUN, "out", "--budget", "1", "--total", "9"), "--budget", "--total"),
    "a negative total": (words("plan", "run", "log.parquet", "--total", "-5"), "the total is -5", ""),
    "both budgets of a plan": (words(*PLAN, "--total", "9"), "--budget", "--total"),
    "an evaluation with a negative budget": (words("evaluate", "run", "--budget", "-2"), "the budget is -2", ""),
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
    "a report before the plan": (
        spoilt("plan.json", lambda _: None, "report", "run"),
        "plan.json",
        "largesse plan run",
    ),
    "a report before the evaluation": (
        spoilt("evaluation.json", lambda _: None, "report", "run"),
        "evaluation.json",
        "largesse evaluate run",
    ),
    "numbers cut in half": (spoilt("plan.json", lambda old: old[:99], "report", "run"), "plan.json", "largesse plan"),
    "numbers that are a list": (
        spoilt("plan.json", lambda _: b"[1, 2]", "report", "run"),
        "plan.json",
        "largesse plan",
    ),
    "numbers of another version": (spoilt("fit.json", lambda _: b"{}", "report", "run"), "fit.json", "another version"),
    "plan and evaluation for different budgets": (
        after(change_budget, "report", "run"),
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
    "a policy with an unknown model": (
        spoilt_policy(lambda m: m["model"].update(kind="Linnear")),
        "'Linnear'",
        "'Linear'",
    ),
    "a policy without a model": (spoilt_policy(lambda m: m.pop("model")), "policy", "not expected"),
    "a policy that is not a zip": (spoilt("policy.largesse", lambda _: b"hello", *PLAN), "policy.largesse", "fit"),
    "a policy cut in half": (
        spoilt("policy.largesse", lambda old: old[: len(old) // 2], *PLAN),
        "policy.largesse",
        "fit",
    ),
    "a policy with a changed compressed byte": (
        spoilt("policy.largesse", lambda old: old[:90] + bytes([old[90] ^ 0xFF]) + old[91:], *PLAN),
        "policy.largesse",
        "",
    ),
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
def house(tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in: a log, a campaign file and a run folder."""
    pq.write_table(small_log(), tmp_path / "log.parquet")
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    shutil.copytree(finished, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FROM_THE_COMMAND_LINE)
def test_a_mistake_on_the_command_line_is_one_message_and_leaves_nothing(
    name: str, house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make, subject, hint = FROM_THE_COMMAND_LINE[name]
    given = make(house)
    before = everything_in(house)
    code = command(monkeypatch, *given)
    shown = capsys.readouterr()
    assert code == 2
    assert subject in shown.err
    assert hint in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert everything_in(house) == before


def test_nothing_spoilt_there_is_nothing_to_complain_of(
    house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, *RUN, "out") == 0
    assert command(monkeypatch, *FIT[:-1], "fitted", *COSTS) == 0
    assert command(monkeypatch, *PLAN, "--out", "plan.csv") == 0
    assert capsys.readouterr().err == ""


def test_the_command_as_it_is_installed_says_the_same(house: Path) -> None:
    (house / "campaign.toml").write_text(CAMPAIGN.replace('"coupon"', '"coupn"'))
    before = everything_in(house)
    installed = [sys.executable, "-m", "largesse.cli", *RUN, "out"]
    done = subprocess.run(installed, cwd=house, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "largesse: log: the level column 'coupn' is not in the table\n   → did you mean 'coupon'?\n"
    assert done.stdout == ""
    assert everything_in(house) == before


# -- places that cannot be written to --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "may not be written"),
        (errno.EACCES, "may not be written"),
        (errno.EIO, "could not be written"),
    ],
)
@pytest.mark.parametrize("given", [(*RUN, "out"), (*RUN, "run"), (*PLAN, "--out", "p.parquet"), ("report", "run")])
def test_a_disk_that_fails_is_named_and_what_was_there_stays(
    number: int,
    what: str,
    given: tuple[str, ...],
    house: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = everything_in(house)

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", failing)
    monkeypatch.setattr(pq, "write_table", failing)
    assert command(monkeypatch, *given) == 2
    shown = capsys.readouterr()
    assert what in shown.err
    assert "Traceback" not in shown.err
    assert everything_in(house) == before


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB, where the machine lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("no mount here")
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_really_full_is_named_and_left_as_it_was(
    house: Path, tiny_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tiny_disk / "other", b"x" * 40_000)
    before = everything_in(tiny_disk)
    assert command(monkeypatch, *RUN, str(tiny_disk / "out")) == 2
    assert "the disk is full" in capsys.readouterr().err
    assert everything_in(tiny_disk) == before


def test_a_disk_that_is_really_read_only_is_named(
    house: Path, tiny_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    assert command(monkeypatch, *RUN, str(tiny_disk / "out")) == 2
    assert "may not be written" in capsys.readouterr().err
    assert command(monkeypatch, *PLAN, "--out", str(tiny_disk / "p.csv")) == 2
    assert "may not be written" in capsys.readouterr().err


# -- what is odd but right -------------------------------------------------------------------------------------------------


def test_customers_without_ids_are_numbered_even_if_a_feature_is_called_alike(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("log.parquet", "campaign.toml"):
        (house / name).unlink()
    table = small_log().rename_columns(["customer", "customer_age", "city", "coupon", "bought"])
    pq.write_table(table, "log.parquet")
    Path("campaign.toml").write_text(CAMPAIGN.replace('"age"', '"customer_age"').replace('"id"', '"customer"'))
    assert command(monkeypatch, *RUN, "again") == 0
    pq.write_table(pa.table({"customer_age": [30.0, 40.0], "city": ["Oslo", "Bern"]}), "new.parquet")
    assert command(monkeypatch, "plan", "again", "new.parquet", "--budget", "2", "--out", "p.csv") == 0
    assert read_table("p.csv")["customer"].to_pylist() == [0, 1]


def test_the_budget_that_the_message_gives_makes_the_report(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(monkeypatch, "plan", "run", "--budget", "1.23456789") == 0
    assert command(monkeypatch, "report", "run") == 2
    assert command(monkeypatch, "evaluate", "run", "--budget", "1.23456789") == 0
    assert command(monkeypatch, "report", "run") == 0


def test_a_log_as_spreadsheets_and_notebooks_write_it_goes_all_the_way(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = small_log().to_pandas()
    frame["Größe (m²)"] = "1.234,5"
    frame["seen"] = pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(np.arange(120), unit="h")
    frame["empty"] = None
    frame["note, free"] = ['said "no"\nthen yes', "NA"] * 60
    frame.to_csv("log.csv", index=True, sep=";", decimal=",", encoding="utf-8-sig", lineterminator="\r\n")
    text = CAMPAIGN.replace("log.parquet", "log.csv").replace('features = ["age", "city"]\n', "")
    Path("campaign.toml").write_text(text)
    assert command(monkeypatch, *RUN, "out") == 0
    assert "row numbers" in Path("out/evaluation.json").read_text()
