"""The money of a ledger in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Promise:
    """A promise to one customer."""

    level: int
    at_once: int
    face: int
    paid: int | None = None


@dataclass
class Request:
    """The promises of one request."""

    at: int
    promises: dict[str, Promise]
    content: Any = None
    released: bool = False


@dataclass
class LedgerModel:
    """A ledger in plain Python that adds everything up again whenever it is asked."""

    total: int
    starts: int
    ends: int
    valid: int | None
    late: str
    promises: str
    reserved: int = 0
    requests: dict[str, Request] = field(default_factory=dict)

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
        room = self.total - self.spent - self.held if self.starts <= now < self.ends else 0
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
        self.requests[name] = Request(now, made, content)

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
