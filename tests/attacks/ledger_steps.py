"""A ledger asked by several workers, in any order and with odd arguments, against a plain model of its money.

Promises end, workers lose their connection, amounts and ids are odd. Whatever is accepted must be what the model accepts,
with the same sums; whatever is refused changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from commands import own_folder
from harness import FINE, Outcome
from ledgers import DAY, START, Dearest, fixed_terms, make_offers
from serve_model import to_micros as to_micros_up

Rng = np.random.Generator
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
    START,
    START - DAY,
    0,
    -5,
    2**63,
    10**30,
    "now",
    1.5,
    math.nan,
    None,
    True,
    [],
    np.int64(START),
)


@dataclass
class Promise:
    """What one customer was given."""

    level: int
    at_once: int
    face: int
    paid: int | None = None


@dataclass
class Kept:
    """What one request was answered with."""

    at: int
    promises: dict[str, Promise]
    content: Any = None
    released: bool = False


@dataclass
class Model:
    """A ledger in plain Python: everything is added up anew whenever it is asked."""

    total: int
    ends: int
    valid: int | None
    late: str
    promises: str
    reserved: int = 0
    requests: dict[str, Kept] = field(default_factory=dict)

    def release(self, now: int) -> None:
        for kept in self.requests.values():
            kept.released |= self.valid is not None and kept.at + self.valid <= now

    @property
    def spent(self) -> int:
        return sum(one.at_once + (one.paid or 0) for kept in self.requests.values() for one in kept.promises.values())

    @property
    def promised(self) -> int:
        open_ = (kept for kept in self.requests.values() if not kept.released)
        return sum(one.face for kept in open_ for one in kept.promises.values() if one.paid is None)

    @property
    def held(self) -> int:
        return self.promised if self.promises == "kept" else min(self.reserved, self.promised, self.total - self.spent)

    def decide(self, customers: list[str], face: list[int], at_once: list[int], now: int) -> dict[str, Promise]:
        self.release(now)
        room = self.total - self.spent - self.held if START <= now < self.ends else 0
        made = {}
        for customer in customers:
            for level in range(len(face) - 1, -1, -1):
                cost = at_once[level] + (face[level] if self.promises == "kept" else face[level] // 2)
                if cost <= room:
                    made[customer] = Promise(level, at_once[level], face[level])
                    room -= cost
                    break
        return made

    def keep(self, name: str, now: int, made: dict[str, Promise], content: Any = None) -> None:
        self.reserved = self.held + sum(one.face // 2 for one in made.values())
        self.requests[name] = Kept(now, made, content)

    def takes(self, name: str, customer: str, amount: int | None, now: int) -> bool:
        """Whether a redemption counts; if so, it is counted."""
        kept = self.requests[name]
        one = kept.promises[customer]
        value = one.face if amount is None else amount
        if one.paid is not None:
            return one.paid == value
        if one.face == 0 or value > one.face:
            return False
        late = kept.released or (self.valid is not None and kept.at + self.valid <= now)
        if late:
            self.release(now)
            if self.late == "refuse" or value > self.total - self.spent - self.held:
                return False
        if value > self.total - self.spent:
            return False
        if not late:
            self.reserved = max(self.reserved - value, 0)
        one.paid = value
        return True


class Play:
    """A ledger with two workers, its model, and the time."""

    def __init__(self, folder: Any, rng: Rng) -> None:
        from largesse.serve import open_ledger

        self.rng = rng
        total, days = float(rng.choice([0.0, 9.0, 60.0, 1e12])), float(rng.choice([0.001, 3, 20]))
        valid = [None, 0.5, 5, 50][rng.integers(4)]
        late, promises = str(rng.choice(["refuse", "accept"])), str(rng.choice(["kept", "while_it_lasts"]))
        terms = fixed_terms(total, days=days, valid_days=valid, late=late, promises=promises)
        self.address = f"sqlite:///{folder}/l.db"
        self.workers = [open_ledger(self.address, terms), open_ledger(self.address)]
        self.model = Model(terms.total, terms.ends, terms.valid, late, promises)
        self.now = START
        self.face, self.at_once = FACES[rng.integers(len(FACES))]

    @property
    def ledger(self) -> Any:
        return self.workers[self.rng.integers(2)]

    def step(self) -> Outcome | None:
        """Do one thing."""
        kind = self.rng.choice(
            ["decide", "again", "redeem", "odd decide", "odd redeem", "wait", "lose", "total"], p=CHANCES
        )
        return getattr(self, str(kind).replace(" ", "_"))()  # type: ignore[no-any-return]

    def try_step(self) -> Outcome | None:
        """Do one thing; what is odd is refused within it, so nothing else may be."""
        from largesse.errors import LargesseError

        try:
            return self.step()
        except LargesseError as error:
            return Outcome("wrong", f"a sound step is refused: {str(error)[:200]}")

    def decide(self) -> Outcome | None:
        name, customers = f"q{len(self.model.requests)}", [f"c{i}" for i in range(self.rng.integers(1, 5))]
        offers = make_offers(customers, self.face, self.at_once)
        wanted = self.model.decide(customers, *(to_micros(part) for part in (self.face, self.at_once)), self.now)
        if len(wanted) < len(customers):  # not even the cheapest level fits: the chooser of these attacks cannot say so
            return None
        levels = self.ledger.decide(name, offers, Dearest(), now=self.now).levels.tolist()
        self.model.keep(name, self.now, wanted)
        plain = [one.level for one in wanted.values()]
        return None if levels == plain else Outcome("wrong", f"{name} gets {levels} instead of {plain}")

    def again(self) -> Outcome | None:
        if not self.model.requests:
            return None
        name = sorted(self.model.requests)[self.rng.integers(len(self.model.requests))]
        kept = self.model.requests[name]
        offers = make_offers(list(kept.promises), self.face, self.at_once)
        again = self.ledger.decide(name, offers, Dearest(), content=kept.content, now=self.now)
        same = again.repeated and again.levels.tolist() == [one.level for one in kept.promises.values()]
        return None if same else Outcome("wrong", f"{name} asked again: {again}")

    def redeem(self) -> Outcome | None:
        from largesse.errors import LedgerError

        names = [(name, who) for name, kept in self.model.requests.items() for who in kept.promises]
        if not names:
            return None
        name, who = names[self.rng.integers(len(names))]
        face = self.model.requests[name].promises[who].face
        amount = [None, 0, face // 3, face, face + 1][self.rng.integers(5)]
        counts = self.model.takes(name, who, amount, self.now)
        given = None if amount is None else Decimal(amount) / 10**6
        try:
            paid = self.ledger.redeem(name, who, given, now=self.now).paid
        except LedgerError as error:
            return Outcome("wrong", f"{name} {who} {given} is refused: {error}") if counts else None
        wanted = self.model.requests[name].promises[who].paid
        return (
            None if counts and paid == wanted else Outcome("wrong", f"{name} {who} {given} pays {paid}, not {wanted}")
        )

    def odd_decide(self) -> Outcome | None:
        """Odd ids, moments and contents are refused, or do what a sound call does."""
        from largesse.errors import LargesseError

        rng, model = self.rng, self.model
        name, who, at = (choices[rng.integers(len(choices))] for choices in (IDS, IDS, MOMENTS))
        name = f"odd{len(model.requests)}" if rng.random() < 0.5 else name
        who = "c0" if rng.random() < 0.5 else who
        at = self.now if rng.random() < 0.7 else at
        content = [None, "x", b"x", 5, [], "\ud800", {}][rng.integers(7)] if rng.random() < 0.4 else None
        policy = ["", "v", None, 5, b"x", "\ud800", "a\0b", []][rng.integers(8)] if rng.random() < 0.3 else "v"
        try:
            offers = make_offers([who], [0.0], [0.0])  # costs nothing: only the ids are odd
            found = self.ledger.decide(name, offers, Dearest(), policy=policy, content=content, now=at)
        except LargesseError as error:
            return check_words(error)
        if found.repeated:
            return None if name in model.requests else Outcome("wrong", f"{name!r} is said to be repeated")
        if not isinstance(name, str) or not isinstance(who, str) or name in model.requests:
            return Outcome("wrong", f"accepted: {name!r}, {who!r}")
        if isinstance(at, bool | float) or (at is not None and at < 0):
            return Outcome("wrong", f"accepted at {at!r}")
        model.keep(name, int(found.decided_at), {who: Promise(0, 0, 0)}, content)
        return None

    def odd_redeem(self) -> Outcome | None:
        from largesse.errors import LargesseError

        rng = self.rng
        name, who, amount = (choices[rng.integers(len(choices))] for choices in (IDS, IDS, AMOUNTS))
        names = [(name, who) for name, kept in self.model.requests.items() for who in kept.promises]
        if names and rng.random() < 0.6:
            name, who = names[rng.integers(len(names))]
        try:
            paid = self.ledger.redeem(name, who, amount, now=self.now).paid
        except LargesseError as error:
            return check_words(error)
        if (name, who) not in names or not isinstance(amount, int | float | str | Decimal | np.number):
            return Outcome("wrong", f"accepted: {name!r} {who!r} {amount!r}")
        if isinstance(amount, bool) or (isinstance(amount, str) and amount != "4"):
            return Outcome("wrong", f"accepted an amount of {amount!r}")
        exact = to_micros_up(amount)
        counts = self.model.takes(name, who, exact, self.now)
        return None if counts and paid == exact else Outcome("wrong", f"{name} {who} {amount!r} pays {paid}")

    def wait(self) -> None:
        """Let time pass; now and then the clock is put back."""
        self.now = max(self.now + int(float(self.rng.choice([0.0001, 0.5, 1, 6, 60, -0.04, -3])) * DAY), 0)

    def lose(self) -> None:
        self.ledger._store.disconnect()

    def total(self) -> Outcome | None:
        """Change the total to something odd; the clock of this is the machine's, so promises that ended are released."""
        from largesse.errors import LargesseError

        if self.model.valid is not None:  # it would release by the machine's clock, not by this one
            return None
        amount = AMOUNTS[self.rng.integers(len(AMOUNTS))]
        try:
            changed = self.ledger.change_total(amount)
        except LargesseError as error:
            return check_words(error)
        if isinstance(amount, bool | str) and amount != "4":
            return Outcome("wrong", f"accepted a total of {amount!r}")
        self.model.total = changed.terms.total
        exact = math.floor(Decimal(str(amount)) * 10**6)
        return None if exact == changed.terms.total else Outcome("wrong", f"{amount!r} becomes {changed.terms.total}")

    def compare(self) -> Outcome | None:
        """The ledger stands where the model stands."""
        standing = self.ledger.standing(now=self.now)
        self.model.release(self.now)
        got, plain = (standing.spent, standing.promised), (self.model.spent, self.model.promised)
        if got != plain:
            return Outcome("wrong", f"spent, promised: {got} instead of {plain}")
        if standing.held != self.model.held:
            return Outcome("wrong", f"held: {standing.held} instead of {self.model.held}")
        if standing.room < 0 or standing.spent + standing.held > standing.terms.total:
            return Outcome("over budget", str(standing)[:300])
        audit = self.ledger.audit()
        return None if audit.fine else Outcome("wrong", f"the audit differs: {audit.differences}")


CHANCES = (0.3, 0.1, 0.2, 0.1, 0.1, 0.12, 0.04, 0.04)
FACES = (((0, 4, 10), (0, 1, 0.5)), ((0, 5, 10), (0, 0, 0)), ((0, 0, 0), (0, 2, 7)), ((0, 1e-6, 3.3), (0, 1e-6, 0)))


def to_micros(amounts: Any) -> list[int]:
    return [int(amount * 1e6) for amount in amounts]


def check_words(error: Exception) -> Outcome | None:
    """A refusal is about what was given, not about the database."""
    said = str(error)
    for word in ("binding", "constraint", "datatype", "check the file"):
        if word in said:
            return Outcome("wrong", f"a message of the database: {said[:200]}")
    return Outcome("wrong", f"a message of {len(said)} letters") if len(said) > 2000 else None


def attack(seed: int) -> Outcome:
    """Do forty things to a ledger."""
    rng = np.random.default_rng([seed, 33])
    with own_folder() as folder:
        play = Play(folder, rng)
        try:
            for _ in range(40):
                found = play.try_step() or play.compare()
                if found is not None:
                    return found
        finally:
            for worker in play.workers:
                worker.close()
    return FINE
