"""Files that are no ledgers, damaged ones, and addresses that lead to odd places.

A file that is refused is left as it was. One that is accepted decides within its total, or says what is wrong with it.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from commands import own_folder
from harness import FINE, Outcome, judge_message
from loops import customers_of, policy_of
from mutations import ODD, change

Rng = np.random.Generator
FAR = "2999-12-31"
COLUMNS = {
    "ledger": ("format", "total", "starts", "ends", "valid", "late", "spent", "promised", "requests",
               "decisions", "state", "plan", "open_expected"),
    "request": ("number", "id", "digest", "policy", "decided_at", "expires_at", "closed"),
    "decision": ("number", "customer", "place", "level", "at_once", "face", "expected", "propensity", "response", "price",
                 "reason", "paid"),
}  # fmt: skip
VALUES: tuple[Any, ...] = (
    0, -1, 1, 2, 7, 10**15, 2**62, "x", "", "[]", "{}", "NaN", "[NaN]", "[1e999]", b"\x00\xff", 1.5, "null", "[" * 5000, '"', "1" * 400,
    "a\x1b[2J",
)  # fmt: skip


@cache
def sound() -> Path:
    """Return a ledger in which something was decided and redeemed."""
    from largesse.serve import Pacer, make_offers, make_population, make_terms, open_ledger, plan_pace

    home = Path(tempfile.mkdtemp(prefix="largesse-ledgers-"))
    policy, rows = policy_of("coupons"), customers_of("coupons")
    table = {name: [row[name] for row in rows] for name in ("age", "city")}
    table["since"] = np.array([row["since"] for row in rows], dtype="M8[D]").tolist()
    terms = make_terms(100, FAR, starts="2020-01-01", valid_days=100)
    plan = plan_pace(make_population(policy, table), terms, 300)
    with open_ledger(f"sqlite:///{home}/sound.db", terms, plan=plan.as_dict()) as ledger:
        for number in range(4):
            part = {name: values[number * 3 : number * 3 + 3] for name, values in table.items()}
            offers = make_offers(policy, part, [f"c{i}" for i in range(3)])
            done = ledger.decide(f"r{number}", offers, Pacer(seed=0), policy="v")
        promised = [who for who, face in zip(done.customers, done.face, strict=True) if face]
        if promised:
            ledger.redeem("r3", promised[0], 1)
    return home / "sound.db"


@cache
def offers() -> Any:
    from largesse.serve import make_offers

    rows = customers_of("coupons")[:2]
    table: dict[str, Any] = {name: [row[name] for row in rows] for name in ("age", "city")}
    table["since"] = np.array([row["since"] for row in rows], dtype="M8[D]").tolist()
    return make_offers(policy_of("coupons"), table, ["n0", "n1"])


def attack(seed: int) -> Outcome:
    """Open one odd file."""
    rng = np.random.default_rng([seed, 41])
    sound()
    with own_folder() as folder:
        return KINDS[seed % len(KINDS)](folder, rng)


def use(address: Any, terms: Any = None) -> Outcome:
    """Open a ledger and do everything with it; what is accepted keeps to the total."""
    from largesse.errors import LargesseError
    from largesse.serve import Pacer, open_ledger

    try:
        ledger = open_ledger(address, terms, timeout=0.2)
    except LargesseError as error:
        return judge_message(str(error))
    with ledger:
        said = FINE
        for work in (
            lambda: ledger.decide("new", offers(), Pacer(seed=1), policy="v"),
            lambda: ledger.decide("r1", offers(), Pacer(seed=1), content="x"),
            lambda: ledger.redeem("r2", "c1"),
            lambda: ledger.standing(),
            lambda: ledger.audit(),
            lambda: list(ledger.decisions()),
        ):
            try:
                done = work()
            except LargesseError as error:
                judged = judge_message(str(error))
                if not judged.good:
                    return judged
                usual = ("other content", "no plan for its price", "holds no decision")
                said = said if any(word in str(error) for word in usual) else judged
                continue
            wrong = judge(done)
            if wrong is not None:
                return wrong
        return said


def judge(done: Any) -> Outcome | None:
    """Decisions are possible ones: probabilities, finite prices, amounts that are not negative."""
    from largesse.serve import Decisions, Standing

    if isinstance(done, Decisions):
        if not done.repeated and not ((done.propensity > 0) & (done.propensity <= 1 + 1e-9)).all():
            return Outcome("wrong", f"propensities {done.propensity}")
        if not np.isfinite(done.price).all() or (done.price < 0).any():
            return Outcome("wrong", f"prices {done.price}")
    if isinstance(done, Standing) and (done.room < 0 or done.spent < 0 or done.promised < 0):
        return Outcome("over budget", str(done)[:300])
    return None


# -- what is odd ---------------------------------------------------------------------------------------------------------


def damage_bytes(folder: Path, rng: Rng) -> Outcome:
    """Flip, cut or overwrite bytes of a ledger."""
    raw = bytearray(sound().read_bytes())
    how = rng.integers(4)
    if how == 0:
        for _ in range(int(rng.integers(1, 30))):
            raw[rng.integers(len(raw))] = rng.integers(256)
    elif how == 1:
        raw = raw[: rng.integers(len(raw))]
    elif how == 2:
        at = int(rng.integers(len(raw)))
        raw[at : at + 300] = bytes(rng.integers(0, 256, 300, dtype=np.uint8))
    else:
        raw[rng.integers(100)] = rng.integers(256)  # the header
    path = folder / "l.db"
    path.write_bytes(raw)
    return use(f"sqlite:///{path}")


def change_values(folder: Path, rng: Rng) -> Outcome:
    """Write something odd into the tables."""
    path = Path(shutil.copy(sound(), folder / "l.db"))
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        for _ in range(1 + int(rng.integers(2))):
            table = str(rng.choice(list(COLUMNS)))
            column = str(rng.choice(COLUMNS[table]))
            value = VALUES[rng.integers(len(VALUES))]
            try:
                database.execute(f"UPDATE {table} SET {column} = ?", (value,))
            except sqlite3.IntegrityError:
                continue
    database.close()
    return use(f"sqlite:///{path}")


def change_plan(folder: Path, rng: Rng) -> Outcome:
    """Change the plan or the state of the price a little: absurd ones are refused, none gives absurd decisions."""
    path = Path(shutil.copy(sound(), folder / "l.db"))
    column = str(rng.choice(["plan", "state"]))
    with sqlite3.connect(path) as database:
        tree = json.loads(database.execute(f"SELECT {column} FROM ledger").fetchone()[0])
        for _ in range(1 + int(rng.integers(3))):
            tree = change(tree, rng) if isinstance(tree, dict | list) and tree else tree
        database.execute(f"UPDATE ledger SET {column} = ?", (json.dumps(tree, default=str),))
    database.close()
    return use(f"sqlite:///{path}")


def change_tables(folder: Path, rng: Rng) -> Outcome:
    """Take tables, rows or columns away."""
    path = Path(shutil.copy(sound(), folder / "l.db"))
    statements = [f"DROP TABLE {table}" for table in COLUMNS] + [f"DELETE FROM {table}" for table in COLUMNS]
    statements += [
        "ALTER TABLE ledger RENAME COLUMN plan TO plan2",
        "ALTER TABLE request RENAME TO r2",
        "PRAGMA application_id = 5",
    ]
    statements += [
        "CREATE TRIGGER t BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END",
        "DROP INDEX request_open",
    ]
    statements += [
        "DELETE FROM decision WHERE number = 2",
        "UPDATE decision SET number = 9 WHERE number = 1",
        "PRAGMA user_version = 7",
    ]
    with sqlite3.connect(path) as database:
        database.execute(statements[rng.integers(len(statements))])
    database.close()
    return use(f"sqlite:///{path}")


def open_other_files(folder: Path, rng: Rng) -> Outcome:
    """Files of somebody else: refused, and not changed by a byte."""
    from largesse.serve import make_terms

    path = folder / "other"
    kind = rng.integers(6)
    if kind == 0:
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE ledger (id INTEGER)")
        database.close()
    elif kind == 1:
        path.write_bytes(bytes(rng.integers(0, 256, int(rng.integers(1, 5000)), dtype=np.uint8)))
    elif kind == 2:
        path.write_text("a,b\n1,2\n")
    elif kind == 3:
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 3")
            database.execute("CREATE TABLE mine (x)")
        database.close()
    elif kind == 4:
        with sqlite3.connect(path) as database:
            database.execute(f"PRAGMA application_id = {int(rng.integers(1, 2**31))}")
        database.close()
    else:
        path.write_bytes(sound().read_bytes()[: int(rng.integers(1, 600))])
    before = path.read_bytes()
    terms = make_terms(5, FAR) if rng.random() < 0.5 else None
    found = use(f"sqlite:///{path}", terms)
    if found.kind == "refused" and (path.read_bytes() != before or {one.name for one in folder.iterdir()} != {"other"}):
        return Outcome("half-written", f"a refused file was changed: kind {kind}, {list(folder.iterdir())}")
    return (
        found
        if found.good and found.kind == "refused"
        else found
        if not found.good
        else Outcome("wrong", f"accepted: kind {kind}")
    )


def open_odd_places(folder: Path, rng: Rng) -> Outcome:
    """Addresses that lead to folders, devices, pipes and nowhere."""
    from largesse.serve import make_terms

    (folder / "folder").mkdir()
    (folder / "dangling").symlink_to("nowhere/l.db")
    (folder / "loop").symlink_to("loop")
    (folder / "link").symlink_to(sound())
    os.mkfifo(folder / "fifo")
    (folder / "empty").touch()
    (folder / "file").write_text("mine")
    places = (
        "folder",
        "dangling",
        "loop",
        "fifo",
        "file/x.db",
        "no/x.db",
        "a" * 300,
        "",
        ".",
        "..",
        "a\0b",
        os.fsdecode(b"caf\xe9.db"),
    )
    places += (
        ":memory:",
        "/dev/null",
        "/dev/full",
        "/dev/zero",
        "/proc/self/mem",
        "?mode=memory",
        "file:x?mode=memory",
        "~/x.db",
        "a" * 5000,
    )
    schemes: tuple[Any, ...] = (
        "sqlite:///",
        "sqlite://",
        "sqlite:",
        "",
        "postgresql://",
        "mysql://",
        "SQLITE:///",
    )
    if rng.random() < 0.75:
        address: Any = f"sqlite:///{places[rng.integers(len(places))]}"
    else:
        address = f"{schemes[rng.integers(len(schemes))]}{places[rng.integers(len(places))]}"
        if address.startswith("postgresql"):
            address = "postgresql://localhost:1/x" if rng.random() < 0.5 else "postgresql://\0"
    before = {one.name for one in folder.iterdir()}
    found = use(address, make_terms(5, FAR) if rng.random() < 0.7 else None)
    left = {one.name for one in folder.iterdir()} - before
    if found.kind == "refused" and left:
        return Outcome("half-written", f"{address!r}: {sorted(left)}")
    nowhere = (":memory:", "/dev/", "/proc")  # "?mode=memory" is a name, and four slashes lead to the root
    if found.kind == "fine" and any(word in str(address) for word in nowhere) and not left:
        return Outcome("wrong", f"accepted: {address!r}")
    return found


def open_read_only(folder: Path, rng: Rng) -> Outcome:
    """A file or a folder that may not be written; root becomes nobody for a while."""
    folder.chmod(0o755)
    (folder / "l").mkdir()
    path = Path(shutil.copy(sound(), folder / "l" / "l.db"))
    before, user = path.read_bytes(), os.geteuid()
    path.chmod(int(rng.choice([0o444, 0o000, 0o644])))
    (folder / "l").chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    try:
        found = use(f"sqlite:///{path}")
    finally:
        os.seteuid(user)
        (folder / "l").chmod(0o755)
    if path.read_bytes() != before:
        return Outcome("half-written", "a file that may not be written was changed")
    return found if found.kind != "fine" else Outcome("wrong", "a file that may not be written was written")


def open_on_other_terms(folder: Path, rng: Rng) -> Outcome:
    """Terms that are not the ledger's are refused; odd ones never begin one."""
    from largesse.errors import LargesseError
    from largesse.serve import make_terms

    path = Path(shutil.copy(sound(), folder / "l.db"))
    given = {
        "total": [100, 100.0, "100", 99, -1, "x", None, float("nan"), 10**400, 10**5000, 1e13, True, [], "1_00", "１００"],
        "ends": [FAR, "2020-01-01", "2019-01-01", "x", "", None, 5, "9999-12-31", "2999-12-31T25:00",
                 "2999-12-31T00:00+99:00", [], "0001-01-01"],
        "starts": [None, "2020-01-01", "2021-01-01", "3000-01-01", "x", 5, "0001-01-01T00:00+14:00", [], float("nan")],
        "valid_days": [100, 100.0, None, 0, -1, float("nan"), float("inf"), 1e-300, 1e308, "7", True, [], 36_526, 10**400],
        "late": ["refuse", "accept", "", None, 5, [], np.array(["refuse", "accept"])],
    }  # fmt: skip
    usual = {"total": 100, "ends": FAR, "starts": "2020-01-01", "valid_days": 100, "late": "refuse"}
    asked = {
        name: values[rng.integers(len(values))] if rng.random() < 0.35 else usual[name]
        for name, values in given.items()
    }
    try:
        terms = make_terms(asked.pop("total"), asked.pop("ends"), **asked)
    except LargesseError as error:
        return judge_message(str(error))
    if not (0 <= terms.total <= 10**18 and terms.starts < terms.ends and (terms.valid is None or terms.valid > 0)):
        return Outcome("wrong", f"accepted: {terms}")
    terms.describe()
    return use(f"sqlite:///{path if rng.random() < 0.5 else folder / 'new.db'}", terms)


def begin_oddly(folder: Path, rng: Rng) -> Outcome:
    """Plans, terms and patience of odd types: refused, and no file is left."""
    from largesse.serve import make_terms, open_ledger

    odd = (
        *ODD,
        object(),
        {1, 2},
        b"x",
        1j,
        [float("nan")],
        [object()],
        {"a": object()},
        "abc",
        np.zeros(3),
        (1.0, "x"),
    )
    name = str(rng.choice(["plan", "timeout", "terms"]))
    value = odd[rng.integers(len(odd))]
    given: dict[str, Any] = {"terms": make_terms(5, FAR), "timeout": 0.1, name: value}
    address = f"sqlite:///{folder}/new.db"
    from largesse.errors import LargesseError

    try:
        with open_ledger(address, **given):
            pass
    except LargesseError as error:
        left = list(folder.iterdir())
        return Outcome("half-written", f"{name}={value!r:.80}: {left}") if left else judge_message(str(error))
    return use(address)


KINDS = (
    damage_bytes, change_values, change_plan, change_tables, open_other_files, open_odd_places, open_read_only,
    open_on_other_terms, begin_oddly, damage_bytes, change_values, change_plan,
)  # fmt: skip
