"""The records of a ledger: what may be offered, what was chosen, what was decided, and where the budget stands."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from largesse.errors import Problem, join_some, refuse, repr_short, whole_problems
from largesse.records import Array
from largesse.serve.ledger.money import MOST_MICROS, as_units
from largesse.serve.ledger.terms import LATEST, Terms

MAX_ID_LENGTH = 200  # letters of a request or a customer
MOST_VARIANCE = 1e100  # of a response: squares stay finite


class Reason(IntEnum):
    """Why a customer got this level and no other."""

    PRICE = 0  # the best level at the price, or one that was drawn to explore
    BUDGET = 1  # a dearer one did not fit into what is left
    PERIOD = 2  # outside the period everyone gets the cheapest level


@dataclass(frozen=True, eq=False)
class Offers:
    """What each customer of a request may get: expected responses, and costs in millionths of a unit.

    A level costs `at_once` when it is given, and up to `face` when it is redeemed; `expected` of that in the mean.
    """

    customers: tuple[str, ...]  # (n,) each once
    responses: Array  # (n, K) float64
    at_once: Array  # (n, K) int64
    face: Array  # (n, K) int64
    expected: Array  # (n, K) int64
    variance: Array | None = None  # (n, K) float64 of a response: needed where levels are drawn for a purpose

    def __post_init__(self) -> None:
        refuse("request", self._problems())

    def _problems(self) -> list[Problem]:
        found = []
        names: Any = self.customers
        if not isinstance(names, Sequence) or isinstance(names, str | bytes):
            return [Problem(f"the customers are {repr_short(names)}", "give a tuple with the name of each")]
        parts = (self.responses, self.at_once, self.face, self.expected)
        if not all(isinstance(part, np.ndarray) and part.dtype.kind in "fiu" for part in parts):
            return [Problem("responses or costs are no arrays of numbers", "give (n, K) arrays")]
        shape = (len(self.customers), *np.shape(self.responses)[1:])
        if len(shape) != 2 or not all(shape) or any(np.shape(part) != shape for part in parts):
            sizes = join_some([np.shape(part) for part in parts])
            found.append(Problem(f"{len(self.customers)} customers, arrays of {sizes}", "give (n, K) arrays"))
            return found
        for part in (self.at_once, self.face, self.expected):
            if part.dtype != np.int64 or (part < 0).any() or (part > MOST_MICROS).any():
                rule = f"costs are whole millionths, from 0 to {MOST_MICROS:,}"
                found.append(Problem(rule, "use count_micros"))
                break
        if self.variance is not None:
            found += self._variance_problems(shape)
        if not np.isfinite(self.responses).all():
            found.append(Problem("an expected response is missing or infinite", "look at the customers' features"))
        odd = [problem for name in self.customers for problem in id_problems(name, "a customer")][:1]
        if not odd and len(set(self.customers)) < len(self.customers):
            twice = sorted(name for name, many in Counter(self.customers).items() if many > 1)
            found.append(Problem(f"a customer comes twice: {join_some(twice)}", "name each customer once in a request"))
        return found + odd

    def _variance_problems(self, shape: tuple[int, ...]) -> list[Problem]:
        given: Any = self.variance
        fits = isinstance(given, np.ndarray) and given.shape == shape and given.dtype == np.float64
        if fits and ((given >= 0) & (given <= MOST_VARIANCE)).all():
            return []
        hint = f"give numbers from 0 to {MOST_VARIANCE:g} as an (n, K) array of float64, or none"
        return [Problem("the variances of responses are not valid", hint)]

    def __len__(self) -> int:
        return len(self.customers)

    @property
    def digest(self) -> str:
        """Tells requests for other customers apart."""
        return digest_of("\0".join(self.customers))


@dataclass(frozen=True, eq=False)
class DecisionRequest:
    """A request: for `Ledger.decide_together`, with what `Ledger.decide` takes."""

    request: str
    offers: Offers
    policy: str = ""
    content: str | bytes | None = None

    @property
    def digest(self) -> str:
        """Tells requests of other content apart."""
        return self.offers.digest if self.content is None else digest_of(self.content)


@dataclass(frozen=True, eq=False)
class Choice:
    """The levels that a chooser picked for a request, and what it wants to remember."""

    levels: Array  # (n,) int64
    propensity: Array  # (n,) float64: the probability of this level, after all rules
    price: Array  # (n,) float64, response per unit of money
    reason: Array  # (n,) int64: values of `Reason`
    state: tuple[float, ...]  # of the price
    reserved: int = 0  # where promises hold while the budget lasts: what open ones will probably cost


@dataclass(frozen=True)
class Standing:
    """Where the budget stands, in millionths, and what the price goes by."""

    terms: Terms
    now: int  # microseconds since 1970
    spent: int  # at once and on redemption
    promised: int  # face values that are neither redeemed nor released
    at_once: int  # the part of `spent` that was paid when levels were given
    settled_expected: int  # promises whose time is over: what they were expected to cost …
    settled_paid: int  # … and what they cost
    open_expected: int  # promises whose time is not over: what they are expected to cost …
    late_face: int  # … but promises that are kept and outlast the period count with their face values
    requests: int
    decisions: int
    redemptions: int
    expired: int  # promises that were released
    state: tuple[float, ...]  # of the price
    plan: dict[str, Any]  # what the price is controlled by
    settled_wait: int = 0  # `settled_paid`, times the share of the promises' time that redemptions took
    reserved: int = 0  # what open promises will probably cost, if they hold while the budget lasts

    @property
    def left(self) -> int:
        """What is not spent: never negative."""
        return self.terms.total - self.spent

    @property
    def held(self) -> int:
        """What is kept back for open promises: their face values, or what they will probably cost."""
        return self.promised if self.terms.kept else min(self.reserved, self.promised, self.left)

    @property
    def room(self) -> int:
        """What may still be given: never negative."""
        return self.left - self.held

    @property
    def open(self) -> bool:
        """Whether the time of a promise is not over yet."""
        return bool(self.promised or self.open_expected or self.late_face)

    @property
    def within(self) -> bool:
        """Whether now is in the period."""
        return self.terms.starts <= self.now < self.terms.ends

    def as_dict(self) -> dict[str, Any]:
        """Return the amounts in units, for people and monitoring."""
        money = {word: as_units(getattr(self, word)) for word in ("spent", "promised", "held", "room")}
        counts = {word: getattr(self, word) for word in ("requests", "decisions", "redemptions", "expired")}
        terms = self.terms
        period = {"starts": terms.starts / 1e6, "ends": terms.ends / 1e6, "now": self.now / 1e6}
        return {"total": as_units(terms.total), **money, **counts, **period, "promises": terms.promises}


class Chooser(Protocol):
    """Picks a level for each customer of a request; a ledger calls it while it holds the budget."""

    def choose(self, standing: Standing, offers: Offers) -> Choice:
        """Return levels whose costs fit into `standing.room`."""
        ...


@dataclass(frozen=True, eq=False)
class Decisions:
    """A request's decisions as the ledger holds them; the same request gets the same again."""

    request: str
    customers: tuple[str, ...]
    levels: Array  # (n,) int64
    propensity: Array  # (n,) float64
    responses: Array  # (n,) float64, expected
    price: Array  # (n,) float64
    reason: Array  # (n,) int64
    at_once: Array  # (n,) int64, millionths
    face: Array  # (n,) int64
    expected: Array  # (n,) int64, on redemption
    policy: str  # version
    decided_at: int  # microseconds since 1970
    expires_at: int | None
    repeated: bool = False  # whether the ledger held it already

    def __len__(self) -> int:
        return len(self.customers)


@dataclass(frozen=True)
class Redemption:
    """What became of a redemption."""

    request: str
    customer: str
    paid: int  # millionths
    late: bool  # after the promise's time
    repeated: bool = False


@dataclass(frozen=True)
class Audit:
    """Whether what the ledger counts is what its decisions add up to."""

    decisions: int
    differences: dict[str, tuple[int, int]]  # name → as counted, as added up

    @property
    def fine(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def is_id(given: Any) -> bool:
    """Whether a request or a customer can be called so."""
    return isinstance(given, str) and 0 < len(given) <= MAX_ID_LENGTH and given.isprintable()


def id_problems(given: Any, name: str) -> list[Problem]:
    """Return what is wrong with the id of a request or a customer."""
    hint = f"give a text of 1 to {MAX_ID_LENGTH} printable letters"
    return [] if is_id(given) else [Problem(f"{name} is {repr_short(given)}", hint)]


def moment_problems(given: Any) -> list[Problem]:
    """Return what is wrong with a moment, if one is given."""
    return [] if given is None else whole_problems(given, "now, in microseconds since 1970,", 0, LATEST)


def request_problems(request: Any, policy: Any, content: Any) -> list[Problem]:
    """Return what is wrong with what a request for decisions is called, decided by, and made of."""
    found = id_problems(request, "the request's id")
    if policy != "":
        found += id_problems(policy, "the policy's version")
    if not isinstance(content, str | bytes | None):
        found.append(Problem(f"the content is {repr_short(content)}", "give what was asked as text or bytes"))
    return found


def digest_of(content: str | bytes) -> str:
    """Return a short name of some content: other content has another."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(raw).hexdigest()[:32]
