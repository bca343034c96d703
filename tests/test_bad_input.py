"""Whatever is wrong with what a person gives: one message that says it, exit code 2, and nothing left behind.

Every row of the two tables is one mistake: how to make it, and what must stand in the message.
"""

import datetime as dt
import errno
import gzip
import hashlib
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
from folders import everything_in

import largesse as lg
from largesse import cli
from largesse.campaign.file import read_campaign
from largesse.data.read import read_table
from largesse.errors import BudgetError, InputError, LargesseError, NotFittedError, PolicyFileError
from largesse.pipeline.line import run

Make = Callable[[Path], Any]
N = 60
LEVELS = lg.Levels(costs=[0, 5, 10])


def content(**columns: Any) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    usual = {
        "age": rng.normal(40, 10, N),
        "city": rng.choice(["Oslo", "Rome"], N),
        "coupon": np.arange(N) % 3,
        "bought": rng.integers(0, 2, N),
    }
    return usual | columns


def log_with(levels: Any = LEVELS, roles: dict[str, Any] | None = None, **columns: Any) -> lg.Levels:
    names = {"level": "coupon", "response": "bought"} | (roles or {})
    return lg.read_log(pa.table(content(**columns)), levels=levels, **names)


def but(row: int, value: Any, usual: Any) -> list[Any]:
    values = list(usual)
    values[row] = value
    return values


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


# -- from Python --------------------------------------------------------------------------------------------------------

HALF = np.full(N, 0.5)
IDS = np.arange(N)
OWN = {"c0": np.zeros(N), "c1": np.ones(N), "c2": np.full(N, 2.0)}
PER_CUSTOMER = lg.Levels(costs=["c0", "c1", "c2"])


def model() -> lg.Linear:
    return lg.Linear(penalty=0.01).fit(log_with(day=[dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(N)]))


def differing_files(folder: Path) -> Any:
    write(folder / "a.csv", b"x,y\n1,2\n")
    write(folder / "b.csv", b"x,z\n1,2\n")
    return read_table(str(folder / "*.csv"))


def differing_types(folder: Path) -> Any:
    write(folder / "a.csv", b"x,y\n1,2\n")
    write(folder / "b.csv", b"x,y\none,2\n")
    return read_table(str(folder / "*.csv"))


def cut_parquet(folder: Path) -> Any:
    pq.write_table(pa.table(content()), folder / "t.parquet")
    whole = (folder / "t.parquet").read_bytes()
    return read_table(write(folder / "t.parquet", whole[: len(whole) // 2]))


def cut_gzip(folder: Path) -> Any:
    whole = gzip.compress(b"a,b\n" + os.urandom(4000).hex().encode())
    return read_table(write(folder / "t.csv.gz", whole[: len(whole) // 2]))


def garbled_gzip(folder: Path) -> Any:
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 500 + np.random.default_rng(0).bytes(3000).hex().encode())
    return read_table(write(folder / "t.csv.gz", whole[:60] + bytes([255] * 40) + whole[100:]))


def two_of_a_name(folder: Path) -> Any:
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), folder / "t.parquet")
    return lg.read_log(folder / "t.parquet", level="a", response="b", levels=LEVELS)


# name: (how to make it, what must be in the message, all of it)
FROM_PYTHON: dict[str, tuple[Make, tuple[str, ...]]] = {
    # columns
    "misspelt level": (
        lambda _: log_with(roles={"level": "coupn"}),
        ("the level column 'coupn' is not in the table", "did you mean 'coupon'?"),
    ),
    "missing response": (
        lambda _: log_with(roles={"response": "zzz"}),
        ("the response column 'zzz' is not in the table", "known: age, city, coupon, bought"),
    ),
    "misspelt feature": (lambda _: log_with(roles={"features": ["Age", "citty"]}), ("'citty'", "did you mean 'city'?")),
    "one column in two roles": (
        lambda _: log_with(roles={"weight": "bought"}),
        ("'bought' is named both as response and as weight", "each role needs its own column"),
    ),
    "response listed as feature": (
        lambda _: log_with(roles={"features": ["age", "bought"]}),
        ("the response column 'bought' is also listed as a feature",),
    ),
    "features as one text": (lambda _: log_with(roles={"features": "age"}), ("features is the text 'age'", "['age']")),
    "no features": (lambda _: log_with(roles={"features": []}), ("no column left to learn from",)),
    "a list as feature": (
        lambda _: log_with(roles={"features": ["tags"]}, tags=pa.array([[1]] * N)),
        ("the feature 'tags' holds list<", "features are numbers, booleans, text, dates or times"),
    ),
    "duplicate names": (two_of_a_name, ("two columns have the same name: a", "rename one of them")),
    "duplicate names in pandas": (
        lambda _: read_table(pd.DataFrame([[1, 2]], columns=["a", "a"])),
        ("two columns have the same name: a",),
    ),
    # levels
    "a level not in the list": (
        lambda _: log_with(coupon=but(3, 15, np.array([0, 5, 10])[np.arange(N) % 3])),
        ("a level that is not in the list", "15", "the list is: 0, 1, 2"),
    ),
    "a name not in the list": (
        lambda _: log_with(
            lg.Levels([0, 5, 10], names=["none", "small", "big"]), coupon=["none", "small", "BIG"] * (N // 3)
        ),
        ("not in the list in 20 rows: BIG", "the list is: none, small, big"),
    ),
    "a level with no rows": (
        lambda _: log_with(lg.Levels([0, 5, 10, 20])),
        ("no row of the log has level 3", "leave it out of the levels"),
    ),
    "a missing level": (
        lambda _: log_with(coupon=pa.array(but(0, None, (np.arange(N) % 3).tolist()))),
        ("the level column 'coupon' is missing in 1 row", "the lowest, if nothing was given"),
    ),
    "levels that are dates": (
        lambda _: log_with(coupon=pa.array([dt.date(2024, 1, 1)] * N)),
        ("the level column 'coupon' holds date32", "levels are numbers, amounts or names"),
    ),
    "one level only": (lambda _: log_with(lg.Levels([5])), ("there is only one level", "at least two")),
    "levels that are a list": (lambda _: log_with([0, 5]), ("levels is not Levels but [0, 5]", "Levels(costs=")),
    "costs that fall": (lambda _: lg.Levels([0, 10, 5]), ("falls from 10 to 5 as the level rises from 1 to 2",)),
    "a negative cost": (lambda _: lg.Levels([-1, 5]), ("the cost of level 0 is negative: -1", "zero or more")),
    "a cost that is not a number": (lambda _: lg.Levels([0, float("nan")]), ("the cost of level 1 is nan", "finite")),
    "a cost that is a word": (lambda _: lg.Levels([0, "five"]), ("a cost is not a number: 0, five",)),
    "no costs": (lambda _: lg.Levels([]), ("there are no costs", "costs=[0, 5, 10]")),
    "one number for costs": (lambda _: lg.Levels(5), ("costs is 5", "give a list")),
    "too few names": (lambda _: lg.Levels([0, 1], names=["a"]), ("2 costs but 1 names", "per level")),
    "names alike": (lambda _: lg.Levels([0, 1], names=["a", "a"]), ("two levels share a name: a, a",)),
    "too many doses": (lambda _: lg.Levels([0, 1], doses=[1, 2, 3]), ("2 costs but 3 doses",)),
    "doses that do not rise": (lambda _: lg.Levels([0, 1], doses=[2, 1]), ("doses do not rise: 2.0, 1.0",)),
    "a dose that is missing": (lambda _: lg.Levels([0, 1], doses=[0, float("nan")]), ("a dose is missing",)),
    # response
    "a response in words": (
        lambda _: log_with(bought=["bought", "left"] * (N // 2)),
        ("the response column 'bought' does not hold numbers but string: bought, left, bought",),
    ),
    "a response that is missing everywhere": (
        lambda _: log_with(bought=pa.nulls(N)),
        ("the response 'bought' is missing in every row", "name the column that says what happened"),
    ),
    "a response that is often missing": (
        lambda _: log_with(bought=pa.array([1, None, 0] * (N // 3))),
        ("missing in 33 % of the rows", "write 0 if missing means that nothing happened"),
    ),
    "a constant response": (
        lambda _: log_with(bought=np.ones(N)),
        ("the response 'bought' is 1 in every row", "nothing to learn from"),
    ),
    "an infinite response": (
        lambda _: log_with(bought=but(2, np.inf, HALF)),
        ("the response 'bought' is infinite in 1 row",),
    ),
    # propensity, weight, cluster, customer
    **{
        f"a propensity of {value}": (
            lambda _, value=value: log_with(roles={"propensity": "p"}, p=but(7, value, HALF)),
            (f"the propensity 'p' is not in (0, 1] in 1 row: {value:g}", "leave the column out to have it estimated"),
        )
        for value in (0.0, -0.5, 1.2, float("nan"), float("inf"))
    },
    "a propensity in words": (
        lambda _: log_with(roles={"propensity": "p"}, p=["x"] * N),
        ("the propensity column 'p' does not hold numbers but string",),
    ),
    "a negative weight": (
        lambda _: log_with(roles={"weight": "w"}, w=but(0, -1.0, HALF)),
        ("the weight 'w' is missing, infinite or negative in 1 row", "zero or more"),
    ),
    "weights that are all zero": (
        lambda _: log_with(roles={"weight": "w"}, w=np.zeros(N)),
        ("every weight in 'w' is zero",),
    ),
    "a missing cluster": (
        lambda _: log_with(roles={"cluster": "g"}, g=pa.array(but(1, None, IDS.tolist()))),
        ("the cluster column 'g' is missing in 1 row",),
    ),
    "a cluster that is not a number": (
        lambda _: log_with(roles={"cluster": "g"}, g=but(1, float("nan"), IDS * 1.0)),
        ("the cluster column 'g' is missing in 1 row",),
    ),
    "a cluster of records": (
        lambda _: log_with(roles={"cluster": "g"}, g=pa.array([{"a": 1}] * N)),
        ("the cluster column 'g' holds struct<a: int64>", "write numbers or text"),
    ),
    "ids that repeat": (
        lambda _: log_with(roles={"customer": "id"}, id=but(1, 0, IDS)),
        ("the customer id 'id' repeats 1 customer: 0", "name 'id' as the cluster too"),
    ),
    "missing ids": (
        lambda _: log_with(roles={"customer": "id"}, id=pa.array(but(1, None, IDS.tolist()))),
        ("the customer id 'id' is missing in 1 row",),
    ),
    "ids that are lists": (
        lambda _: log_with(roles={"customer": "id"}, id=pa.array([[k] for k in range(N)])),
        ("the customer column 'id' holds list<",),
    ),
    "ids of customers that repeat": (
        lambda _: lg.read_customers({"id": [1, 1], "age": [1, 2]}, customer="id"),
        ("customers: the customer id 'id' repeats 1 customer: 1",),
    ),
    # costs per customer
    "a negative cost of one customer": (
        lambda _: log_with(PER_CUSTOMER, **(OWN | {"c1": but(4, -1.0, np.ones(N))})),
        ("a cost is negative, missing or infinite in 1 row of c1",),
    ),
    "a missing cost of one customer": (
        lambda _: log_with(PER_CUSTOMER, **(OWN | {"c2": but(4, float("nan"), OWN["c2"])})),
        ("a cost is negative, missing or infinite in 1 row of c2",),
    ),
    "costs that fall for one customer": (
        lambda _: log_with(PER_CUSTOMER, **(OWN | {"c2": but(4, 0.5, OWN["c2"])})),
        ("costs fall as levels rise in 1 row",),
    ),
    "a cost column that is not there": (
        lambda _: log_with(PER_CUSTOMER, c0=OWN["c0"], c1=OWN["c1"]),
        ("the cost column 'c2' is not in the table",),
    ),
    # files
    "an empty file": (lambda folder: read_table(write(folder / "t.csv", b"")), ("is empty (0 bytes)",)),
    "a file of blank lines": (lambda folder: read_table(write(folder / "t.csv", b"\n\n")), ("t.csv is empty",)),
    "a header only": (
        lambda folder: lg.read_log(
            write(folder / "t.csv", b"age,coupon,bought\n"), level="coupon", response="bought", levels=LEVELS
        ),
        ("it has 3 columns but no rows",),
    ),
    "a Parquet file cut in half": (cut_parquet, ("t.parquet is damaged or cut off", "was the export interrupted?")),
    "garbage called Parquet": (
        lambda folder: read_table(write(folder / "t.parquet", b"not a table at all")),
        ("t.parquet is damaged or cut off",),
    ),
    "garbage called Arrow": (
        lambda folder: read_table(write(folder / "t.arrow", b"not a table at all")),
        ("t.arrow is damaged or cut off",),
    ),
    "rows of different length": (
        lambda folder: read_table(write(folder / "t.csv", b"a,b\n1,2\n1,2,3\n")),
        ("t.csv: line 3 has 3 fields where the header has 2", "quote fields"),
    ),
    "text that is not UTF-8": (
        lambda folder: read_table(write(folder / "t.csv", "a,b\n1,é\n".encode("latin-1"))),
        ("t.csv is not UTF-8 text", "save it as UTF-8"),
    ),
    "a header that is not UTF-8": (
        lambda folder: read_table(write(folder / "t.csv", "a,é\n1,2\n".encode("latin-1"))),
        ("t.csv is not UTF-8 text",),
    ),
    "text in UTF-16": (
        lambda folder: read_table(write(folder / "t.csv", "a,b\n1,2\n".encode("utf-16"))),
        ("t.csv is not UTF-8 text",),
    ),
    "a gzip file cut in half": (cut_gzip, ("t.csv.gz is damaged or cut off",)),
    "a garbled gzip file": (garbled_gzip, ("t.csv.gz is damaged or cut off",)),
    "a gzip file that is none": (
        lambda folder: read_table(write(folder / "t.csv.gz", b"a,b\n1,2\n")),
        ("is not a gzip file, though its name says so",),
    ),
    "an unknown kind of file": (
        lambda folder: read_table(write(folder / "t.xlsx", b"PK\x03\x04")),
        ("t.xlsx is of an unknown kind", "Parquet (.parquet), CSV (.csv, .csv.gz)"),
    ),
    "a file that is not there": (
        lambda folder: (write(folder / "log.csv", b"a\n1\n"), read_table(folder / "logg.csv")),
        ("there is no file", "tables in", "log.csv"),
    ),
    "a folder that is not there": (
        lambda folder: read_table(folder / "none" / "log.csv"),
        ("there is no file", "does not exist either"),
    ),
    "a home that is nobody's": (lambda _: read_table("~nobody-here/log.csv"), ("there is no file ~nobody-here",)),
    "a path far too long": (lambda _: read_table("a,b\n1,2\n" * 1000), ("is too long",)),
    "a glob without match": (lambda folder: read_table(str(folder / "*.csv")), ("there is no file", "holds no table")),
    "a folder without tables": (
        lambda folder: (write(folder / "readme.md", b"x"), read_table(folder)),
        ("holds no table", "known kinds"),
    ),
    "files with different columns": (differing_files, ("b.csv and a.csv do not have the same columns: y, z",)),
    "files with different types": (differing_types, ("the column 'x' has different types in the 2 files",)),
    # tables in memory
    "a number for a table": (lambda _: read_table(5), ("not a table: got int", "give a path, or a pandas")),
    "nothing for a table": (lambda _: read_table(None), ("not a table: got None",)),
    "one column for a table": (lambda _: read_table(pd.Series([1, 2])), ("not a table: got Series",)),
    "columns of different length": (
        lambda _: read_table({"a": [1, 2], "b": [1]}),
        ("the table could not be converted", "expected length 2 but got length 1", "all columns of one length"),
    ),
    "objects of different types": (
        lambda _: read_table(pd.DataFrame({"n": [1, 2], "mixed": ["a", 1]})),
        ("the column 'mixed' holds values of different types", "astype(str)"),
    ),
    # arrays
    "level of another length": (
        lambda _: lg.Linear().fit(np.eye(4), [0, 1, 0], [0, 1, 0, 1]),
        ("level has shape (3,), features have 4 rows",),
    ),
    "level in words": (
        lambda _: lg.Linear().fit(np.eye(4), ["a", "b", "a", "b"], [0, 1, 0, 1]),
        ("level does not hold numbers: a, b, a",),
    ),
    "level far too high": (
        lambda _: lg.Linear().fit(np.eye(4), [0, 1, 0, 10**9], [0, 1, 0, 1]),
        ("level goes up to 1000000000 in 4 rows", "Levels(costs=…)"),
    ),
    "features of one dimension": (
        lambda _: lg.Linear().fit(np.zeros(4), [0, 1, 0, 1], [0, 1, 0, 1]),
        ("features have shape (4,)",),
    ),
    "ragged features": (
        lambda _: lg.Linear().fit([[1], [1, 2]], [0, 1], [0, 1]),
        ("features cannot be made an array", "rows of one length"),
    ),
    "a response of mixed objects": (
        lambda _: lg.Linear().fit(np.eye(2), [0, 1], np.array([1, "a"], dtype=object)),
        ("response cannot be made an array", "values of one type"),
    ),
    "features without level": (lambda _: lg.Linear().fit(np.eye(2)), ("got a ndarray and no level or response",)),
    # customers
    "customers without a feature": (
        lambda _: model().predict({"agee": [1.0], "city": ["Oslo"], "day": [dt.date(2024, 1, 1)]}),
        ("the feature 'age' is not in the table", "did you mean 'agee'?"),
    ),
    "a feature that changed its kind": (
        lambda _: model().predict({"age": ["old"], "city": [1], "day": ["2024-01-01"]}),
        (
            "3 things are wrong",
            "the feature 'age' holds text; in the log it held numbers",
            "the feature 'city' holds numbers; in the log it held text",
            "the feature 'day' holds text; in the log it held dates",
        ),
    ),
    "a feature that became a list": (
        lambda _: model().predict(pa.table({"age": [[1.0]], "city": ["Oslo"], "day": [dt.date(2024, 1, 1)]})),
        ("the feature 'age' holds lists or bytes; in the log it held numbers",),
    ),
    "a feature that is there twice": (
        lambda _: model().predict(pa.table([[1.0], [2.0], ["a"]], names=["age", "age", "city"])),
        ("two columns have the name 'age'",),
    ),
    # models and budgets
    "a model not fitted": (lambda _: lg.Linear().predict(np.eye(2)), ("it has not been fitted yet", "fit(log) first")),
    "a policy without price": (
        lambda _: lg.Policy(model(), LEVELS).decide(content()),
        ("it has no price yet", "price=plan.price"),
    ),
    "a budget below the cheapest plan": (
        lambda _: lg.allocate([[0.1, 0.2]], costs=[1, 2], budget=0.5),
        ("the budget of 0.5 is below the cheapest plan, which costs 1 per customer",),
    ),
    "a negative budget": (lambda _: lg.allocate([[0.1, 0.2]], costs=[1, 2], budget=-1), ("the budget is -1",)),
    "a budget that is not a number": (
        lambda _: lg.allocate([[0.1, 0.2]], costs=[1, 2], budget=float("nan")),
        ("the budget is nan",),
    ),
    "both budget and total": (
        lambda _: lg.allocate([[0.1, 0.2]], costs=[1, 2], budget=1, total=1),
        ("give either budget",),
    ),
}


@pytest.mark.parametrize("name", FROM_PYTHON)
def test_a_mistake_in_python_is_named(name: str, tmp_path: Path) -> None:
    make, parts = FROM_PYTHON[name]
    with pytest.raises(LargesseError) as caught:
        make(tmp_path)
    message = str(caught.value)
    for part in parts:
        assert part in message
    assert "\n   → " in message  # and what to do about it
    assert not re.search(r"Arrow(Invalid|Type|NotImpl)|numpy\.|<class", message)


def test_errors_are_of_the_kind_that_a_program_can_tell_apart() -> None:
    kinds = {
        InputError: ValueError,
        BudgetError: ValueError,
        PolicyFileError: ValueError,
        NotFittedError: AttributeError,
    }
    for kind, usual in kinds.items():
        assert issubclass(kind, LargesseError)
        assert issubclass(kind, usual)


# -- on the command line ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder, made once and copied by whoever wants to spoil it."""
    folder = tmp_path_factory.mktemp("finished")
    pq.write_table(small_log(), folder / "log.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN)
    run(read_campaign(folder / "campaign.toml"), folder / "run")
    return folder / "run"


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


def campaign(old: str = "", new: str = "", *, text: str | None = None) -> Make:
    """Spoil the campaign file and run it."""

    def make(folder: Path) -> list[str]:
        assert text is not None or old in CAMPAIGN
        (folder / "campaign.toml").write_text(CAMPAIGN.replace(old, new) if text is None else text)
        return ["run", "campaign.toml", "--out", "out"]

    return make


def asked(*words: str) -> Make:
    return lambda _: list(words)


FIT = ("fit", "log.parquet", "--level", "coupon", "--response", "bought", "--model", "linear", "--out", "out")
RUN = ("run", "campaign.toml", "--out")


def spoilt(name: str, change: Callable[[bytes], bytes | None], *words: str) -> Make:
    """Spoil one file of the run folder; None takes it away."""

    def make(folder: Path) -> list[str]:
        changed = change((folder / "run" / name).read_bytes())
        if changed is None:
            (folder / "run" / name).unlink()
        else:
            (folder / "run" / name).write_bytes(changed)
        return list(words)

    return make


def repacked(change: Callable[[dict[str, Any], bytes], bytes | None], *, sign: bool) -> Callable[[bytes], bytes]:
    """Change the manifest or the arrays of a policy; `sign` writes the digest that goes with the change."""

    def rewrite(old: bytes) -> bytes:
        from io import BytesIO

        with zipfile.ZipFile(BytesIO(old)) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            arrays = archive.read("arrays.safetensors")
        arrays = change(manifest, arrays) or arrays
        if sign:
            rest = {key: value for key, value in manifest.items() if key != "digest"}
            text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
            manifest["digest"] = hashlib.sha256(text.encode()).hexdigest()
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("manifest.json", json.dumps(manifest))
            archive.writestr("arrays.safetensors", arrays)
        return out.getvalue()

    return rewrite


def flipped(arrays: bytes) -> bytes:
    return arrays[:-3] + bytes([arrays[-3] ^ 1]) + arrays[-2:]


PLAN = ("plan", "run", "log.parquet", "--budget", "2")


def spoilt_policy(change: Callable[[dict[str, Any], bytes], bytes | None], *, sign: bool = True) -> Make:
    return spoilt("policy.largesse", repacked(change, sign=sign), *PLAN)


def customers(**columns: Any) -> Make:
    def make(folder: Path) -> list[str]:
        table = {name: values for name, values in columns.items() if values is not None}
        pq.write_table(pa.table(table), folder / "new.parquet")
        return ["plan", "run", "new.parquet", "--budget", "2"]

    return make


def logged(old: str, new: Any) -> Make:
    """Change one column of the log, and run."""

    def make(folder: Path) -> list[str]:
        table = small_log()
        pq.write_table(table.set_column(table.column_names.index(old), old, pa.array(new)), folder / "log.parquet")
        return ["run", "campaign.toml", "--out", "out"]

    return make


def other_budget(folder: Path) -> list[str]:
    found = json.loads((folder / "run" / "plan.json").read_text())
    found["budget"]["average"] = 1.23456789
    (folder / "run" / "plan.json").write_text(json.dumps(found))
    return ["report", "run"]


def out_that_is_a_file(folder: Path) -> list[str]:
    write(folder / "taken", b"mine")
    return [*RUN, "taken"]


def out_below_a_file(folder: Path) -> list[str]:
    write(folder / "taken", b"mine")
    return [*RUN, "taken/deep/run"]


def out_that_holds_other_things(folder: Path) -> list[str]:
    (folder / "full").mkdir()
    write(folder / "full" / "thesis.tex", b"mine")
    return [*RUN, "full"]


def out_with_notes_beside_a_run(folder: Path) -> list[str]:
    write(folder / "run" / "notes.md", b"mine")
    return [*RUN, "run"]


def out_that_holds_the_log(folder: Path) -> list[str]:
    shutil.move(folder / "log.parquet", folder / "run" / "log.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN.replace('"log.parquet"', '"run/log.parquet"'))
    return [*RUN, "run"]


def plan_into_a_folder(folder: Path) -> list[str]:
    (folder / "p.parquet").mkdir()
    return [*PLAN, "--out", "p.parquet"]


FROM_THE_COMMAND_LINE: dict[str, tuple[Make, tuple[str, ...]]] = {
    # the campaign file
    "no campaign file": (asked("run", "nowhere.toml"), ("there is no file nowhere.toml", "largesse init LOG")),
    "invalid TOML": (campaign("costs = [0, 5, 10]", "costs = [0, 5"), ("campaign.toml is not valid TOML", "brackets")),
    "a campaign that is not text": (
        lambda folder: (write(folder / "campaign.toml", b"\xff\xfe\x00"), [*RUN, "out"])[1],
        ("campaign.toml is not UTF-8 text",),
    ),
    "an unknown setting": (campaign("costs =", "cots ="), ("'levels.cots' is not a setting", "did you mean 'costs'?")),
    "a setting in the wrong place": (
        campaign('log = "log.parquet"', 'log = "log.parquet"\nbudget = 2'),
        ("'budget' is not a setting", "it belongs under [plan]"),
    ),
    "a campaign without log": (campaign('log = "log.parquet"'), ("no log is named", "log = ")),
    "a campaign with an empty log": (campaign('"log.parquet"', '""'), ("log is left blank", "fill in")),
    "a campaign without level": (campaign('level = "coupon"'), ("[columns] does not name the level column",)),
    "a campaign without costs": (campaign("costs = [0, 5, 10]"), ("[levels] does not give the costs",)),
    "a campaign without budget": (campaign("budget = 2.5"), ("no budget is set", "--budget")),
    "a campaign with both budget and total": (
        campaign("budget = 2.5", "budget = 2.5\ntotal = 5"),
        ("[plan] gives both budget and total",),
    ),
    "an empty campaign": (campaign(text=""), ("4 things are wrong", "log", "level", "response", "costs")),
    "an unknown model": (campaign('"linear"', '"lineer"'), ("model 'lineer' is not known", "did you mean 'linear'?")),
    "a seed too large": (campaign("[model]", "[model]\nseed = 4294967296"), ("model.seed is 4294967296",)),
    # the log
    "no log": (campaign('"log.parquet"', '"lgo.parquet"'), ("there is no file", "tables in", "log.parquet")),
    "a misspelt column": (campaign('"coupon"', '"coupn"'), ("'coupn' is not in the table", "did you mean 'coupon'?")),
    "a misspelt feature": (campaign('"age"', '"agee"'), ("'agee' is not in the table", "did you mean 'age'?")),
    "costs in the wrong order": (campaign("[0, 5, 10]", "[10, 5, 0]"), ("levels: the cost falls from 10 to 5",)),
    "a level that nobody got": (campaign("[0, 5, 10]", "[0, 5, 10, 20]"), ("no row of the log has level 3",)),
    "a response in words": (logged("bought", ["left", "came"] * 60), ("does not hold numbers but string",)),
    "a constant response": (logged("bought", [0] * 120), ("is 0 in every row",)),
    "customers that repeat": (logged("id", [1] * 120), ("the customer id 'id' repeats 1 customer: 1",)),
    "customers that repeat, as clusters": (
        lambda folder: (
            logged("id", np.arange(120) // 2)(folder),
            campaign('customer = "id"', 'customer = "id"\ncluster = "id"')(folder),
        )[1],
        ("the log has some customers more than once", "name a table with one row per customer"),
    ),
    # budgets
    "a budget below the cheapest plan": (
        campaign("[0, 5, 10]", "[5, 6, 10]"),
        ("the budget of 2.5 is below the cheapest plan, which costs 5 per customer",),
    ),
    "a negative budget": (asked(*RUN, "out", "--budget", "-1"), ("the budget is -1", "zero or more")),
    "a budget that is not a number": (asked(*RUN, "out", "--budget", "nan"), ("the budget is nan",)),
    "a budget without end": (asked(*RUN, "out", "--budget", "inf"), ("the budget is inf", "the dearest level costs")),
    "a budget in words": (asked(*RUN, "out", "--budget", "much"), ("Invalid value for '--budget'",)),
    "both --budget and --total": (asked(*RUN, "out", "--budget", "1", "--total", "9"), ("both --budget and --total",)),
    "a negative total": (asked("plan", "run", "log.parquet", "--total", "-5"), ("the total is -5",)),
    "both budgets of a plan": (asked(*PLAN, "--total", "9"), ("both --budget and --total",)),
    "an evaluation with a negative budget": (asked("evaluate", "run", "--budget", "-2"), ("the budget is -2",)),
    # fit
    "a cost in words": (asked(*FIT, "--costs", "0,5,1O"), ("levels: a cost is not a number: 0.0, 5.0, 1O",)),
    "no cost at all": (asked(*FIT, "--costs", ""), ("levels.costs is left blank",)),
    "cost columns that are not there": (asked(*FIT, "--costs", "a0,a1,a2"), ("the cost column 'a0' is not in the",)),
    "names of another length": (asked(*FIT, "--costs", "0,5,10", "--names", "a,b"), ("3 costs but 2 names",)),
    "doses that fall": (asked(*FIT, "--costs", "0,5,10", "--doses", "2,1,0"), ("doses do not rise",)),
    "a negative seed": (asked(*FIT, "--costs", "0,5,10", "--seed", "-1"), ("model.seed is -1",)),
    "an unknown model for fit": (
        asked(*FIT[:-4], "--costs", "0,5,10", "--model", "tree", "--out", "out"),
        ("model 'tree' is not known", "known: ire, sire", "auto, linear, additive"),
    ),
    "no --out": (asked(*FIT[:-2], "--costs", "0,5,10"), ("--out",)),
    # run folders and their steps
    "a run folder that is none": (
        asked("report", "nowhere"),
        ("there is no folder nowhere", "run folders beside it: run"),
    ),
    "a plan without a run folder": (asked("plan", ".", "log.parquet", "--budget", "1"), ("policy.largesse",)),
    "a report before the plan": (
        spoilt("plan.json", lambda _: None, "report", "run"),
        ("has no plan.json yet", "run: largesse plan run"),
    ),
    "a report before the evaluation": (
        spoilt("evaluation.json", lambda _: None, "report", "run"),
        ("has no evaluation.json yet", "run: largesse evaluate run"),
    ),
    "numbers cut in half": (
        spoilt("plan.json", lambda old: old[: len(old) // 2], "report", "run"),
        ("plan.json is damaged", "run largesse plan again"),
    ),
    "numbers that are a list": (spoilt("plan.json", lambda _: b"[1, 2]", "report", "run"), ("plan.json is damaged",)),
    "numbers that are none": (
        spoilt("fit.json", lambda _: b"{}", "report", "run"),
        ("fit.json was written by another version",),
    ),
    "plan and evaluation for different budgets": (
        other_budget,
        ("the plan is for a budget of 1.23456789, the evaluation for 2.5", "largesse evaluate run --budget 1.23456789"),
    ),
    # customers
    "no table of customers": (asked("plan", "run", "nobody.csv", "--budget", "1"), ("there is no file nobody.csv",)),
    "customers without a feature": (
        customers(id=[1, 2], city=["Oslo", "Rome"], Alter=[1, 2]),
        ("the feature 'age' is not in the table",),
    ),
    "customers whose feature changed its kind": (
        customers(id=[1, 2], city=["Oslo", "Rome"], age=["old", "young"]),
        ("the feature 'age' holds text; in the log it held numbers",),
    ),
    "customers with a misspelt id": (
        customers(ids=[1, 2], city=["Oslo", "Rome"], age=[1.0, 2.0]),
        ("'id' is not in the table", "did you mean 'ids'?"),
    ),
    "customers that are there twice": (
        customers(id=[1, 1], city=["Oslo", "Rome"], age=[1.0, 2.0]),
        ("the customer id 'id' repeats 1 customer: 1",),
    ),
    # policy files
    "a policy of another version": (
        spoilt_policy(lambda manifest, _: manifest.update(version=99)),
        ("was written by a newer version of largesse (format 99)", "update largesse"),
    ),
    "a policy with a changed manifest": (
        spoilt_policy(lambda manifest, _: manifest.update(price=1e9), sign=False),
        ("does not match its own digest",),
    ),
    "a policy with a changed byte": (
        spoilt_policy(lambda _, arrays: flipped(arrays)),
        ("does not match its own digest",),
    ),
    "a policy with an unknown model": (
        spoilt_policy(lambda manifest, _: manifest["model"].update(kind="Linnear")),
        ("holds a model of kind 'Linnear'", "did you mean 'Linear'?"),
    ),
    "a policy without a model": (spoilt_policy(lambda manifest, _: manifest.pop("model") and None), ("not expected",)),
    "a policy that is not a zip": (
        spoilt("policy.largesse", lambda _: b"hello", *PLAN),
        ("is not a policy file, or is damaged",),
    ),
    "a policy cut in half": (
        spoilt("policy.largesse", lambda old: old[: len(old) // 2], *PLAN),
        ("is not a policy file, or is damaged",),
    ),
    "a policy with a changed compressed byte": (
        spoilt("policy.largesse", lambda old: old[:90] + bytes([old[90] ^ 0xFF]) + old[91:], *PLAN),
        ("policy.largesse",),
    ),
    "no policy": (spoilt("policy.largesse", lambda _: None, *PLAN), ("it holds no policy.largesse",)),
    # where to write
    "an output that is a file": (out_that_is_a_file, ("taken is a file, not a folder", "--out")),
    "an output below a file": (out_below_a_file, ("a part of the path is a file",)),
    "an output that holds other things": (out_that_holds_other_things, ("holds other files", "thesis.tex")),
    "an output with notes beside a run": (out_with_notes_beside_a_run, ("holds other files", ": notes.md")),
    "an output that holds the campaign": (asked(*RUN, "."), ("lies in", "would be replaced")),
    "an output that holds the log": (out_that_holds_the_log, ("run/log.parquet lies in", "would be replaced")),
    "a plan of an unknown kind": (
        asked(*PLAN, "--out", "plan.xlsx"),
        ("plan.xlsx has an ending that names no table format", ".csv"),
    ),
    "a plan into a folder": (plan_into_a_folder, ("p.parquet is a folder, not a file",)),
    "a first campaign over another": (asked("init", "log.parquet"), ("campaign.toml already exists", "--force")),
    "a first campaign for nothing": (asked("init", "no.csv", "--out", "c.toml"), ("there is no file no.csv",)),
    # words
    "an unknown verb": (asked("rnu"), ("No such command 'rnu'",)),
    "an unknown option": (asked("run", "campaign.toml", "--bugdet", "1"), ("No such option: --bugdet",)),
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
    make, parts = FROM_THE_COMMAND_LINE[name]
    words = make(house)
    before = everything_in(house)
    code = command(monkeypatch, *words)
    shown = capsys.readouterr()
    assert code == 2
    for part in parts:
        assert part in shown.err
    assert "Traceback" not in shown.err + shown.out
    assert shown.out == ""
    assert everything_in(house) == before


def test_nothing_spoilt_there_is_nothing_to_complain_of(
    house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, *RUN, "out") == 0
    assert command(monkeypatch, *FIT[:-1], "fitted", "--costs", "0,5,10") == 0
    assert command(monkeypatch, *PLAN, "--out", "plan.csv") == 0
    assert capsys.readouterr().err == ""


def test_the_command_as_it_is_installed_says_the_same(house: Path) -> None:
    (house / "campaign.toml").write_text(CAMPAIGN.replace('"coupon"', '"coupn"'))
    before = everything_in(house)
    words = [sys.executable, "-m", "largesse.cli", *RUN, "out"]
    done = subprocess.run(words, cwd=house, capture_output=True, text=True, timeout=60, check=False)
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
@pytest.mark.parametrize("words", [(*RUN, "out"), (*RUN, "run"), (*PLAN, "--out", "p.parquet"), ("report", "run")])
def test_a_disk_that_fails_is_named_and_what_was_there_stays(
    number: int,
    what: str,
    words: tuple[str, ...],
    house: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = everything_in(house)

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", failing)
    monkeypatch.setattr(pq, "write_table", failing)
    assert command(monkeypatch, *words) == 2
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
