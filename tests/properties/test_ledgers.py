"""Ledgers against a plain model of their money, under odd arguments, and as damaged or foreign files.

Whatever is accepted is what the model accepts, with the same sums; whatever is refused changes nothing. A file that is
refused is left as it was; one that is accepted decides within its total, or says what is wrong with it.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.errors import LargesseError, LedgerError
from largesse.serve import (
    DecisionRequest,
    LedgerDecisions,
    LedgerStanding,
    Pacer,
    make_offers,
    make_population,
    make_terms,
    open_ledger,
    plan_pace,
)
from oracles.ledger import LedgerModel, Promise
from oracles.service import to_micros as round_up_to_micros
from support.answers import MAX_LETTERS, check_message
from support.commands import working_folder
from support.examples import RNGS, examples
from support.ledgers import DAY, START, Dearest, fixed_terms
from support.ledgers import make_offers as make_plain_offers
from support.mutations import ODD, change
from support.odd_values import LEDGER_COLUMNS, LEDGER_VALUES
from support.postgres import Server
from support.shops import customers_of, policy_of

Rng = np.random.Generator
FAR = "2999-12-31"
IDS: tuple[Any, ...] = (
    "x", "", "a\0b", "\ud800", "é", "x" * 200, "x" * 201, 5, None, True, b"x", [], {}, 1.5, "\n", "'; DROP TABLE request; --",
    object(), "r0", "r1",
)  # fmt: skip
AMOUNTS: tuple[Any, ...] = (
    0, 1, 2.5, 4, 10, 11, -1, math.nan, math.inf, "4", "x", "", True, 10**400, 10**5000, Decimal("1.5"), Decimal("sNaN"), Decimal("-0"),
    1j, [], {}, b"4", np.float32(0.1), np.int64(3), np.array(3), np.array([1.0]), 1e-7, 0.1 + 0.2, 1.1 * 3, 5e-324, object(), "1_0", "４",
    "1e400", Decimal("1e-999999"),
)  # fmt: skip
MOMENTS: tuple[Any, ...] = (
    START, START - DAY, 0, -5, 2**63, 10**30, "now", 1.5, math.nan, None, True, [], np.int64(START),
)  # fmt: skip


FACES = (((0, 4, 10), (0, 1, 0.5)), ((0, 5, 10), (0, 0, 0)), ((0, 0, 0), (0, 2, 7)), ((0, 1e-6, 3.3), (0, 1e-6, 0)))


# -- steps against the model ----------------------------------------------------------------------------------------------


class Play:
    """A ledger with two workers, its model, and the time."""

    def __init__(self, address: str, rng: Rng, late: str, promises: str) -> None:
        self.rng = rng
        total, days = float(rng.choice([0.0, 9.0, 60.0, 1e12])), float(rng.choice([0.001, 3, 20]))
        terms = fixed_terms(
            total, days=days, valid_days=[None, 0.5, 5, 50][rng.integers(4)], late=late, promises=promises
        )
        self.workers = [open_ledger(address, terms), open_ledger(address)]
        self.model = LedgerModel(terms.total, terms.starts, terms.ends, terms.valid, late, promises)
        self.now = START
        self.face, self.at_once = FACES[rng.integers(len(FACES))]

    @property
    def ledger(self) -> Any:
        return self.workers[self.rng.integers(2)]

    def decide(self) -> None:
        name, customers = f"q{len(self.model.requests)}", [f"c{i}" for i in range(self.rng.integers(1, 5))]
        offers = make_plain_offers(customers, self.face, self.at_once)
        wanted = self.model.decide(customers, to_micros(self.face), to_micros(self.at_once), self.now)
        if len(wanted) < len(customers):  # not even the cheapest level fits: `Dearest` cannot say so
            return
        levels = self.ledger.decide(name, offers, Dearest(), now=self.now).levels.tolist()
        self.model.keep(name, self.now, wanted)
        assert levels == [promise.level for promise in wanted.values()]

    def decide_together(self) -> None:
        """Decide several requests in one transaction, one of them twice."""
        first, sizes = len(self.model.requests), self.rng.integers(1, 4, 3)
        asks = [
            DecisionRequest(f"q{first + k}", make_plain_offers([f"c{i}" for i in range(size)], self.face, self.at_once))
            for k, size in enumerate(sizes)
        ]
        wanted = []
        for ask in asks:
            customers = list(ask.offers.customers)
            made = self.model.decide(customers, to_micros(self.face), to_micros(self.at_once), self.now)
            if len(made) < len(customers):
                break
            self.model.keep(ask.request, self.now, made)
            wanted.append([promise.level for promise in made.values()])
        asks = asks[: len(wanted)]
        results = self.ledger.decide_together([*asks, *asks[:1]], Dearest(), now=self.now)
        assert [result.levels.tolist() for result in results] == [*wanted, *wanted[:1]]

    def repeat(self) -> None:
        if not self.model.requests:
            return
        name = sorted(self.model.requests)[self.rng.integers(len(self.model.requests))]
        request = self.model.requests[name]
        offers = make_plain_offers(list(request.promises), self.face, self.at_once)
        again = self.ledger.decide(name, offers, Dearest(), content=request.content, now=self.now)
        assert again.repeated
        assert again.levels.tolist() == [promise.level for promise in request.promises.values()]

    def redeem(self) -> None:
        names = [(name, who) for name, request in self.model.requests.items() for who in request.promises]
        if not names:
            return
        name, who = names[self.rng.integers(len(names))]
        face = self.model.requests[name].promises[who].face
        amount = [None, 0, face // 3, face, face + 1][self.rng.integers(5)]
        counts = self.model.takes(name, who, amount, self.now)
        given = None if amount is None else Decimal(amount) / 10**6
        if counts:
            paid = self.ledger.redeem(name, who, given, now=self.now).paid
            assert paid == self.model.requests[name].promises[who].paid
        else:
            with pytest.raises(LedgerError):
                self.ledger.redeem(name, who, given, now=self.now)

    def decide_oddly(self) -> None:
        """Odd ids, moments and contents are refused, or do what a sound call does."""
        rng, model = self.rng, self.model
        name, who, at = (choices[rng.integers(len(choices))] for choices in (IDS, IDS, MOMENTS))
        name = f"odd{len(model.requests)}" if rng.random() < 0.5 else name
        who = "c0" if rng.random() < 0.5 else who
        at = self.now if rng.random() < 0.7 else at
        content = [None, "x", b"x", 5, [], "\ud800", {}][rng.integers(7)] if rng.random() < 0.4 else None
        policy = ["", "v", None, 5, b"x", "\ud800", "a\0b", []][rng.integers(8)] if rng.random() < 0.3 else "v"
        try:
            offers = make_plain_offers([who], [0.0], [0.0])  # costs nothing: only the ids are odd
            found = self.ledger.decide(name, offers, Dearest(), policy=policy, content=content, now=at)
        except LargesseError as error:
            return check_words(error)
        if found.repeated:
            assert name in model.requests
            return None
        assert isinstance(name, str)
        assert isinstance(who, str)
        assert name not in model.requests
        assert not isinstance(at, bool | float), at
        assert at is None or at >= 0
        model.keep(name, int(found.decided_at), {who: Promise(0, 0, 0)}, content)
        return None

    def redeem_oddly(self) -> None:
        rng = self.rng
        name, who, amount = (choices[rng.integers(len(choices))] for choices in (IDS, IDS, AMOUNTS))
        names = [(name, who) for name, request in self.model.requests.items() for who in request.promises]
        if names and rng.random() < 0.6:
            name, who = names[rng.integers(len(names))]
        try:
            paid = self.ledger.redeem(name, who, amount, now=self.now).paid
        except LargesseError as error:
            return check_words(error)
        assert (name, who) in names
        check_amount(amount)
        exact = round_up_to_micros(amount)
        assert self.model.takes(name, who, exact, self.now), f"{name} {who} {amount!r} is paid"
        assert paid == exact
        return None

    def wait(self) -> None:
        """Let time pass; now and then the clock is put back."""
        self.now = max(self.now + int(float(self.rng.choice([0.0001, 0.5, 1, 6, 60, -0.04, -3])) * DAY), 0)

    def lose_connection(self) -> None:
        self.ledger._store.disconnect()

    def change_total(self) -> None:
        """Change the total to something odd, where no promise ends: the clock of this is the machine's."""
        if self.model.valid is not None:
            return None
        amount = AMOUNTS[self.rng.integers(len(AMOUNTS))]
        try:
            changed = self.ledger.change_total(amount)
        except LargesseError as error:
            return check_words(error)
        check_amount(amount)
        self.model.total = changed.terms.total
        assert changed.terms.total == math.floor(Decimal(str(amount)) * 10**6)
        return None

    def compare(self) -> None:
        """Check that the ledger stands where the model stands."""
        standing = self.ledger.standing(now=self.now)
        self.model.release(self.now)
        model = (self.model.spent, self.model.promised, self.model.held)
        assert (standing.spent, standing.promised, standing.held) == model
        assert standing.room >= 0
        assert standing.spent + standing.held <= standing.terms.total
        assert self.ledger.audit().matches, self.ledger.audit().differences


def to_micros(amounts: Any) -> list[int]:
    return [int(amount * 1e6) for amount in amounts]


def check_amount(amount: Any) -> None:
    """Check that an amount that was accepted is a number, or the text of one."""
    assert isinstance(amount, int | float | str | Decimal | np.number), repr(amount)
    assert not isinstance(amount, bool)
    assert not isinstance(amount, str) or amount == "4"


def check_words(error: Exception) -> None:
    """Check that a refusal is about what was given, not about the database."""
    assert len(str(error)) <= MAX_LETTERS
    assert not [word for word in ("binding", "constraint", "datatype", "check the file") if word in str(error)], error


STEPS = (
    *[Play.decide] * 5, Play.decide_together,
    *[Play.redeem] * 4, Play.repeat, Play.repeat, Play.decide_oddly, Play.decide_oddly, Play.redeem_oddly,
    Play.redeem_oddly, Play.wait, Play.wait, Play.lose_connection, Play.change_total,
)  # fmt: skip


def play_steps(address: str, steps: list[Callable[[Play], None]], rng: Rng, late: str, promises: str) -> None:
    play = Play(address, rng, late, promises)
    try:
        for step in steps:
            step(play)
            play.compare()
    finally:
        for worker in play.workers:
            worker.close()


HISTORIES = (
    st.lists(st.sampled_from(STEPS), min_size=40, max_size=40),
    RNGS,
    st.sampled_from(["refuse", "accept"]),
    st.sampled_from(["kept", "while_it_lasts"]),
)


@examples(9)
@given(*HISTORIES)
def test_a_ledger_in_a_file_adds_up_as_the_model_does(steps: Any, rng: Rng, late: str, promises: str) -> None:
    with working_folder() as folder:
        play_steps(f"sqlite:///{folder}/l.db", steps, rng, late, promises)


@examples(6)
@given(history=st.tuples(*HISTORIES))
def test_a_ledger_on_a_server_adds_up_as_the_model_does(server: Server, history: Any) -> None:
    import psycopg

    address = server.address("model")
    with psycopg.connect(address.split("&schema")[0]) as connection:
        connection.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS model CASCADE")
    play_steps(address, *history)


# -- files ----------------------------------------------------------------------------------------------------------------


@cache
def sound() -> Path:
    """Return a ledger in which something was decided and redeemed."""
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
    rows = customers_of("coupons")[:2]
    table: dict[str, Any] = {name: [row[name] for row in rows] for name in ("age", "city")}
    table["since"] = np.array([row["since"] for row in rows], dtype="M8[D]").tolist()
    return make_offers(policy_of("coupons"), table, ["n0", "n1"])


def use(address: Any, terms: Any = None) -> bool:
    """Open a ledger and do everything with it; return whether it works. Whatever is accepted keeps to the total."""
    try:
        ledger = open_ledger(address, terms, timeout=0.2)
    except LargesseError as error:
        check_message(str(error))
        return False
    works = True
    with ledger:
        for work in (
            lambda: ledger.decide("new", offers(), Pacer(seed=1), policy="v"),
            lambda: ledger.decide("r1", offers(), Pacer(seed=1), content="x"),
            lambda: ledger.redeem("r2", "c1"),
            ledger.standing,
            ledger.audit,
            lambda: list(ledger.decisions()),
        ):
            try:
                check_result(work())
            except LargesseError as error:
                check_message(str(error))
                usual = ("other content", "no plan for its price", "holds no decision")
                works &= any(word in str(error) for word in usual)
    return works


def check_result(done: Any) -> None:
    """Check that decisions are possible ones: probabilities, finite prices, amounts that are not negative."""
    if isinstance(done, LedgerDecisions):
        assert done.repeated or ((done.propensity > 0) & (done.propensity <= 1 + 1e-9)).all(), done.propensity
        assert np.isfinite(done.price).all()
        assert (done.price >= 0).all()
    if isinstance(done, LedgerStanding):
        assert min(done.room, done.spent, done.promised) >= 0, done


def damage_bytes(folder: Path, rng: Rng) -> None:
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
    use(f"sqlite:///{path}")


def change_values(folder: Path, rng: Rng) -> None:
    """Write something odd into the tables."""
    path = Path(shutil.copy(sound(), folder / "l.db"))
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        for _ in range(1 + int(rng.integers(2))):
            table = str(rng.choice(list(LEDGER_COLUMNS)))
            column = str(rng.choice(LEDGER_COLUMNS[table]))
            value = LEDGER_VALUES[rng.integers(len(LEDGER_VALUES))]
            try:
                database.execute(f"UPDATE {table} SET {column} = ?", (value,))
            except sqlite3.IntegrityError:
                continue
    database.close()
    use(f"sqlite:///{path}")


def change_plan(folder: Path, rng: Rng) -> None:
    """Change the plan or the state of the price a little: absurd ones are refused, none gives absurd decisions."""
    path = Path(shutil.copy(sound(), folder / "l.db"))
    column = str(rng.choice(["plan", "state"]))
    with sqlite3.connect(path) as database:
        tree = json.loads(database.execute(f"SELECT {column} FROM ledger").fetchone()[0])
        for _ in range(1 + int(rng.integers(3))):
            tree = change(tree, rng) if isinstance(tree, dict | list) and tree else tree
        database.execute(f"UPDATE ledger SET {column} = ?", (json.dumps(tree, default=str),))
    database.close()
    use(f"sqlite:///{path}")


def change_tables(folder: Path, rng: Rng) -> None:
    """Take tables, rows or columns away."""
    path = Path(shutil.copy(sound(), folder / "l.db"))
    statements = [f"DROP TABLE {table}" for table in LEDGER_COLUMNS] + [
        f"DELETE FROM {table}" for table in LEDGER_COLUMNS
    ]
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
    use(f"sqlite:///{path}")


def open_other_files(folder: Path, rng: Rng) -> None:
    """Files of somebody else: refused, and not changed by a byte."""
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
    assert not use(f"sqlite:///{path}", terms), f"accepted: kind {kind}"
    assert path.read_bytes() == before
    assert {one.name for one in folder.iterdir()} == {"other"}


def open_odd_places(folder: Path, rng: Rng) -> None:
    """Addresses that lead to folders, devices, pipes and nowhere."""
    (folder / "folder").mkdir()
    (folder / "dangling").symlink_to("nowhere/l.db")
    (folder / "loop").symlink_to("loop")
    (folder / "link").symlink_to(sound())
    os.mkfifo(folder / "fifo")
    (folder / "empty").touch()
    (folder / "file").write_text("mine")
    places = (
        "folder", "dangling", "loop", "fifo", "file/x.db", "no/x.db", "a" * 300, "", ".", "..", "a\0b",
        os.fsdecode(b"caf\xe9.db"),
    )  # fmt: skip
    places += (
        ":memory:", "/dev/null", "/dev/full", "/dev/zero", "/proc/self/mem", "?mode=memory", "file:x?mode=memory",
        "~/x.db", "a" * 5000,
    )  # fmt: skip
    schemes: tuple[Any, ...] = (
        "sqlite:///", "sqlite://", "sqlite:", "", "postgresql://", "mysql://", "SQLITE:///",
    )  # fmt: skip
    if rng.random() < 0.75:
        address: Any = f"sqlite:///{places[rng.integers(len(places))]}"
    else:
        address = f"{schemes[rng.integers(len(schemes))]}{places[rng.integers(len(places))]}"
        if address.startswith("postgresql"):
            address = "postgresql://localhost:1/x" if rng.random() < 0.5 else "postgresql://\0"
    before = {one.name for one in folder.iterdir()}
    works = use(address, make_terms(5, FAR) if rng.random() < 0.7 else None)
    left = {one.name for one in folder.iterdir()} - before
    nowhere = (":memory:", "/dev/", "/proc")  # "?mode=memory" is a name, and four slashes lead to the root
    if works:
        assert left or not any(word in str(address) for word in nowhere), f"accepted: {address!r}"
    else:
        assert not left, address


def open_read_only(folder: Path, rng: Rng) -> None:
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
        works = use(f"sqlite:///{path}")
    finally:
        os.seteuid(user)
        (folder / "l").chmod(0o755)
    assert path.read_bytes() == before
    assert not works, "a file that may not be written was written"


def open_on_other_terms(folder: Path, rng: Rng) -> None:
    """Terms that are not the ledger's are refused; odd ones never begin one."""
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
        return check_message(str(error))
    assert 0 <= terms.total <= 10**18
    assert terms.starts < terms.ends
    assert terms.valid is None or terms.valid > 0
    terms.describe()
    use(f"sqlite:///{path if rng.random() < 0.5 else folder / 'new.db'}", terms)
    return None


def begin_oddly(folder: Path, rng: Rng) -> None:
    """Plans, terms and patience of odd types: refused, and no file is left."""
    odd = (
        *ODD, object(), {1, 2}, b"x", 1j, [float("nan")], [object()], {"a": object()}, "abc", np.zeros(3), (1.0, "x"),
    )  # fmt: skip
    name = str(rng.choice(["plan", "timeout", "terms"]))
    value = odd[rng.integers(len(odd))]
    given: dict[str, Any] = {"terms": make_terms(5, FAR), "timeout": 0.1, name: value}
    address = f"sqlite:///{folder}/new.db"
    try:
        with open_ledger(address, **given):
            pass
    except LargesseError as error:
        assert list(folder.iterdir()) == [], name
        return check_message(str(error))
    use(address)
    return None


FILES: tuple[Callable[[Path, Rng], None], ...] = (
    damage_bytes, change_values, change_plan, change_tables, open_other_files, open_odd_places, open_read_only,
    open_on_other_terms, begin_oddly,
)  # fmt: skip


@pytest.mark.parametrize("make", FILES)
@examples(2)
@given(rng=RNGS)
def test_an_odd_ledger_is_refused_or_keeps_to_its_total(make: Callable[[Path, Rng], None], rng: Rng) -> None:
    sound()
    with working_folder() as folder:
        make(folder, rng)
