"""Whatever is done to a ledger, in any order, it stands where a plain model of it stands."""

import tempfile
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from largesse.errors import LargesseError, LedgerError
from largesse.serve import DecisionRequest, Ledger, open_ledger
from support.ledgers import DAY, START, Dearest, fixed_terms, make_offers
from support.postgres import Server

TOTAL, PERIOD, VALID = 60_000_000, 20, 5
FACES, AT_ONCE = (0, 4, 10), (0, 1, 0.5)


@dataclass
class Promise:
    customer: str
    level: int
    at_once: int
    face: int
    paid: int | None = None


@dataclass
class Kept:
    at: int
    promises: list[Promise]
    released: bool = False


@dataclass
class Model:
    """A ledger in plain Python: everything is added up anew whenever it is asked."""

    late: str
    promises: str
    requests: dict[str, Kept] = field(default_factory=dict)
    reserved: int = 0

    def release(self, now: int) -> None:
        for kept in self.requests.values():
            kept.released |= kept.at + VALID * DAY <= now

    @property
    def spent(self) -> int:
        return sum(one.at_once + (one.paid or 0) for kept in self.requests.values() for one in kept.promises)

    @property
    def promised(self) -> int:
        open_ = (kept for kept in self.requests.values() if not kept.released)
        return sum(one.face for kept in open_ for one in kept.promises if one.paid is None)

    @property
    def held(self) -> int:
        return self.promised if self.promises == "kept" else min(self.reserved, self.promised, TOTAL - self.spent)

    def decide(self, name: str, customers: list[str], now: int) -> list[int]:
        self.release(now)
        held = self.held
        room = TOTAL - self.spent - held if now < START + PERIOD * DAY else 0
        made = []
        for customer in customers:
            for level in (2, 1, 0):
                at_once, face = int(AT_ONCE[level] * 1e6), int(FACES[level] * 1e6)
                cost = at_once + (face if self.promises == "kept" else face // 2)
                if cost <= room:
                    made.append(Promise(customer, level, at_once, face))
                    room -= cost
                    break
        self.reserved = held + sum(one.face // 2 for one in made)
        self.requests[name] = Kept(now, made)
        return [one.level for one in made]

    def redeem(self, name: str, customer: str, amount: int, now: int) -> bool:
        """Return whether the redemption counts."""
        kept = self.requests[name]
        one = next(one for one in kept.promises if one.customer == customer)
        if one.paid is not None:
            return one.paid == amount
        if one.face == 0 or amount > one.face:
            return False
        late = kept.at + VALID * DAY <= now
        if late:
            if self.late == "refuse":
                return False
            self.release(now)
            if amount > TOTAL - self.spent - self.held:
                return False
        if amount > TOTAL - self.spent:
            return False
        one.paid = amount
        if not late:
            self.reserved = max(self.reserved - amount, 0)
        return True


class Machine(RuleBasedStateMachine):
    """Decides, redeems and waits, on a ledger and on its model."""

    store = "sqlite"
    server: Any = None

    @initialize(late=st.sampled_from(["refuse", "accept"]), promises=st.sampled_from(["kept", "while_it_lasts"]))
    def begin(self, late: str, promises: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        address = f"sqlite:///{self.folder.name}/x.db" if self.server is None else self.server.address("model")
        terms = fixed_terms(60, days=PERIOD, valid_days=VALID, late=late, promises=promises)
        if self.server is not None:
            drop(address)
        self.ledger: Ledger = open_ledger(address, terms)
        self.model, self.now = Model(late, promises), START

    @rule(many=st.integers(1, 4))
    def decide(self, many: int) -> None:
        name, customers = f"r{len(self.model.requests)}", [f"c{i}" for i in range(many)]
        offers = make_offers(customers, FACES, AT_ONCE)
        levels = self.ledger.decide(name, offers, Dearest(), now=self.now).levels.tolist()
        assert levels == self.model.decide(name, customers, self.now)

    @rule(sizes=st.lists(st.integers(1, 3), min_size=2, max_size=4))
    def decide_together(self, sizes: list[int]) -> None:
        first = len(self.model.requests)
        asks = [
            DecisionRequest(f"r{first + k}", make_offers([f"c{i}" for i in range(many)], FACES, AT_ONCE))
            for k, many in enumerate(sizes)
        ]
        for ask, found in zip(asks, self.ledger.decide_together(asks, Dearest(), now=self.now), strict=True):
            assert not isinstance(found, LargesseError)
            assert found.levels.tolist() == self.model.decide(ask.request, list(ask.offers.customers), self.now)

    @precondition(lambda self: self.model.requests)
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.requests)))
        kept = self.model.requests[name]
        offers = make_offers([one.customer for one in kept.promises], FACES, AT_ONCE)
        again = self.ledger.decide(name, offers, Dearest(), now=self.now)
        assert again.repeated
        assert again.levels.tolist() == [one.level for one in kept.promises]

    @precondition(lambda self: self.model.requests)
    @rule(data=st.data(), share=st.sampled_from([0.0, 0.5, 1.0, 1.5]))
    def redeem(self, data: st.DataObject, share: float) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.requests)))
        one = data.draw(st.sampled_from(self.model.requests[name].promises))
        amount = int(one.face * share)
        if self.model.redeem(name, one.customer, amount, self.now):
            assert self.ledger.redeem(name, one.customer, amount / 1e6, now=self.now).paid == amount
        else:
            with pytest.raises(LedgerError):
                self.ledger.redeem(name, one.customer, amount / 1e6, now=self.now)

    @rule(days=st.sampled_from([0.5, 1, 3, 6]))
    def wait(self, days: float) -> None:
        self.now += int(days * DAY)

    @rule()
    def lose_the_connection(self) -> None:
        self.ledger._store.disconnect()

    @invariant()
    def they_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        standing = self.ledger.standing(now=self.now)
        self.model.release(self.now)
        assert (standing.spent, standing.promised) == (self.model.spent, self.model.promised)
        assert standing.held == self.model.held
        assert 0 <= standing.room == TOTAL - self.model.spent - self.model.held
        assert self.ledger.audit().differences == {}

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            self.folder.cleanup()


def drop(address: str) -> None:
    import psycopg

    with psycopg.connect(address.split("&schema")[0]) as connection:
        connection.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS model CASCADE")


def explore(server: Server | None, examples: int, steps: int) -> None:
    class Own(Machine):
        pass

    Own.server = server
    quiet = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=examples < 50,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Own, settings=quiet)


def test_sqlite_agrees_with_the_model() -> None:
    explore(None, 12, 20)


def test_postgres_agrees_with_the_model(server: Server) -> None:
    explore(server, 6, 15)


@pytest.mark.slow
def test_sqlite_agrees_with_the_model_for_long() -> None:
    explore(None, 400, 50)


@pytest.mark.slow
def test_postgres_agrees_with_the_model_for_long(server: Server) -> None:
    explore(server, 150, 40)
