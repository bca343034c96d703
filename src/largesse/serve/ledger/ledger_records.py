"""Records of a ledger: total and period, offers, requests, decisions, redemptions, current sums and audit.

All money is in millionths of a unit, all times are in microseconds since 1970, UTC.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from largesse.errors import Problem, find_integer_problems, join_some, number_or_none, refuse, repr_short
from largesse.records import Array
from largesse.serve.ledger.amounts_and_times import (
    DAY_MICROS,
    MAX_MICROS,
    MAX_TIME_MICROS,
    convert_days_to_micros,
    convert_to_units,
    format_money,
    format_time,
    now_micros,
    read_money,
    read_time,
)

LATE_REDEMPTIONS = ("refuse", "accept")
KEPT_PROMISES, WHILE_IT_LASTS = PROMISES = ("kept", "while_it_lasts")
MAX_VALID_DAYS = 36_525
MAX_ID_LENGTH = 200
# No control letters, separators of lines, or letters that hide or turn others; and, which JSON cannot hold, no half surrogates.
ID_LETTER = r"[^\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
MAX_VARIANCE = 1e100  # squares stay finite
_ID = re.compile(f"(?:(?![\ud800-\udfff]){ID_LETTER})+")


@dataclass(frozen=True)
class LedgerTerms:
    """Terms of a ledger: total budget, period, duration of promises and late redemptions; made by `make_terms`."""

    total: int
    starts: int
    ends: int
    valid: int | None = None  # how long a promise stands; None: until it is redeemed
    late: str = "refuse"  # a redemption after that: refuse it, or accept it while the budget has room
    promises: str = KEPT_PROMISES  # every promise can be redeemed, or only while the budget lasts

    @property
    def keeps_promises(self) -> bool:
        """True if the ledger guarantees every promise, by reserving the promise's face value."""
        return self.promises == KEPT_PROMISES

    @property
    def days(self) -> float:
        """Length of the ledger's period in days."""
        return (self.ends - self.starts) / DAY_MICROS

    @property
    def promise_days(self) -> float:
        """Days until a promise expires; the length of the period if promises do not expire."""
        return self.days if self.valid is None else self.valid / DAY_MICROS

    def counts_in_full(self, expires: int | None) -> bool:
        """Return True if forecasts count a promise's whole face value instead of its expected cost.

        They do for guaranteed promises that expire after the period.
        """
        return self.keeps_promises and (expires is None or expires > self.ends)

    def describe(self) -> str:
        """Describe the ledger's total, period and promises in a sentence."""
        stands = "until it is redeemed" if self.valid is None else f"for {self.promise_days:g} days"
        period = f"from {format_time(self.starts)} until {format_time(self.ends)}"
        lasts = "" if self.keeps_promises else "; promises can be redeemed while the budget lasts"
        return f"{format_money(self.total)} {period}; a promise stands {stands}; late redemptions: {self.late}{lasts}"


def make_terms(
    total: Any,
    ends: Any,
    *,
    starts: Any = None,
    valid_days: float | None = None,
    late: str = "refuse",
    promises: str = KEPT_PROMISES,
) -> LedgerTerms:
    """Make the terms of a ledger from its total, period and promise rules, after validation.

    Parameters
    ----------
    total
        The budget: a number, or its text (``"50000"``, ``"19.99"``).
    starts, ends
        When the period begins (default: now) and ends: a date (``"2027-01-31"``, in UTC; the last day is part of the
        period) or a time (``"2027-01-31T18:00:00+01:00"``).
    valid_days
        How long a promise stands. After that its reservation is released. None: until it is redeemed.
    late
        Treatment of a later redemption: ``"refuse"``, or ``"accept"`` while the budget has room for it.
    promises
        ``"kept"``: every promise can be redeemed; face values are reserved. ``"while_it_lasts"``: the expected cost of
        open promises is reserved, and a redemption that no longer fits into the budget is refused.

    Examples
    --------
    >>> make_terms("500", "2027-01-31", starts="2027-01-01", valid_days=14).describe()
    '500.00 from 2027-01-01 00:00:00Z until 2027-02-01 00:00:00Z; a promise stands for 14 days; late redemptions: refuse'
    """
    problems: list[Problem] = []
    start = now_micros() if starts is None else read_time(starts, "the start", problems)
    end = read_time(ends, "the end", problems, last=True)
    if not problems and end <= start:
        problem = f"the period ends at {format_time(end)}, but begins at {format_time(start)}"
        problems.append(Problem(problem, "give an end after the beginning"))
    days = None if valid_days is None else number_or_none(valid_days)
    if valid_days is not None and (days is None or not 0 < days <= MAX_VALID_DAYS):
        problems.append(Problem(f"a promise stands for {repr_short(valid_days)} days", "give a number of days above 0"))
        days = None
    if not isinstance(late, str) or late not in LATE_REDEMPTIONS:  # type: ignore[redundant-expr]
        problems.append(Problem(f"late redemptions: {repr_short(late)}", "refuse them, or accept them: refuse, accept"))
    if not isinstance(promises, str) or promises not in PROMISES:  # type: ignore[redundant-expr]
        problems.append(Problem(f"promises: {repr_short(promises)}", f"choose one: {', '.join(PROMISES)}"))
    refuse("ledger", problems)
    valid = None if days is None else convert_days_to_micros(days)
    return LedgerTerms(read_money(total, "the total", up=False), start, end, valid, late, promises)


class Reason(IntEnum):
    """Reason for the level that a customer got: shadow price, remaining budget or period."""

    PRICE = 0  # the best level at the price, or one that was drawn to explore
    BUDGET = 1  # a dearer one did not fit into the remaining budget
    PERIOD = 2  # outside the period everyone gets the cheapest level


@dataclass(frozen=True, eq=False)
class Offers:
    """Levels offered to the customers of a request: expected responses and costs of each level.

    A level costs `at_once` when it is given, and up to `face` when it is redeemed; `expected` of that in the mean.
    """

    customers: tuple[str, ...]  # (n,) each once
    responses: Array  # (n, K) float64
    at_once: Array  # (n, K) int64
    face: Array  # (n, K) int64
    expected: Array  # (n, K) int64
    variance: Array | None = None  # (n, K) float64 of a response: needed where levels are drawn by a rule

    def __post_init__(self) -> None:
        refuse("request", self._find_problems())

    def _find_problems(self) -> list[Problem]:
        names: Any = self.customers
        if not isinstance(names, Sequence) or isinstance(names, str | bytes):
            return [Problem(f"the customers are {repr_short(names)}", "give a tuple with the name of each")]
        arrays = (self.responses, self.at_once, self.face, self.expected)
        if not all(isinstance(array, np.ndarray) and array.dtype.kind in "fiu" for array in arrays):  # type: ignore[redundant-expr]
            return [Problem("responses or costs are not arrays of numbers", "give (n, K) arrays")]
        shape = (len(names), *np.shape(self.responses)[1:])
        if len(shape) != 2 or not all(shape) or any(np.shape(array) != shape for array in arrays):
            sizes = join_some([np.shape(array) for array in arrays])
            return [Problem(f"{len(names)} customers, arrays of {sizes}", "give (n, K) arrays")]
        problems = []
        # As unsigned numbers, negative ones are large.
        if any(costs.dtype != np.int64 or costs.view(np.uint64).max() > MAX_MICROS for costs in arrays[1:]):
            problems.append(Problem(f"costs are whole millionths, from 0 to {MAX_MICROS:,}", "use convert_to_micros"))
        variance: Any = self.variance
        if variance is not None:
            fits = isinstance(variance, np.ndarray) and variance.shape == shape and variance.dtype == np.float64
            if not (fits and ((variance >= 0) & (variance <= MAX_VARIANCE)).all()):
                hint = f"give numbers from 0 to {MAX_VARIANCE:g} as an (n, K) array of float64, or none"
                problems.append(Problem("the variances of responses are not valid", hint))
        if not np.isfinite(self.responses).all():
            problems.append(Problem("an expected response is missing or infinite", "look at the customers' features"))
        invalid = [problem for name in names for problem in find_id_problems(name, "a customer")][:1]
        if not invalid and len(set(names)) < len(names):
            twice = join_some(sorted(name for name, count in Counter(names).items() if count > 1))
            problems.append(Problem(f"a customer comes twice: {twice}", "name each customer once in a request"))
        return problems + invalid

    def __len__(self) -> int:
        return len(self.customers)


@dataclass(frozen=True, eq=False)
class DecisionRequest:
    """A request for `Ledger.decide_together`: id, offers, policy version and content."""

    request: str
    offers: Offers
    policy: str = ""
    content: str | bytes | None = None

    def find_problems(self) -> list[Problem]:
        """Return the problems of the request's id, policy version and content."""
        problems = find_id_problems(self.request, "the request's id")
        if self.policy != "":
            problems += find_id_problems(self.policy, "the policy's version")
        content: Any = self.content
        if not isinstance(content, str | bytes | None):
            problems.append(Problem(f"the content is {repr_short(content)}", "give text or bytes"))
        return problems

    @property
    def digest(self) -> str:
        """Hash of the request's content; by default, of the customers' ids."""
        content = "\0".join(self.offers.customers) if self.content is None else self.content
        raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        return hashlib.sha256(raw).hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class ChosenLevels:
    """Levels chosen for a request's customers, with propensities, prices, reasons and the price controller's new state."""

    levels: Array  # (n,) int64
    propensity: Array  # (n,) float64: the probability of this level, after all rules
    price: Array  # (n,) float64, response per unit of money
    reason: Array  # (n,) int64: values of `Reason`
    state: tuple[float, ...]  # of the price
    reserved: int = 0  # where promises hold while the budget lasts: the expected cost of open ones


@dataclass(frozen=True)
class LedgerStanding:
    """Current sums of a ledger (spent, promised, reserved money and counts), with the price controller's state."""

    terms: LedgerTerms
    now: int
    spent: int  # at once and on redemption
    promised: int  # face values that are neither redeemed nor released
    at_once: int  # the part of `spent` that was paid when levels were given
    settled_expected: int  # expected cost of promises whose time is over …
    settled_paid: int  # … and their actual cost
    open_expected: int  # expected cost of promises whose time is not over …
    late_face: int  # … but promises that are kept and outlast the period count with their face values
    requests: int
    decisions: int
    redemptions: int
    expired: int  # promises that were released
    state: tuple[float, ...]  # of the price
    plan: dict[str, Any]  # that the price is controlled by
    settled_wait: int = 0  # `settled_paid`, times the share of the promises' time that redemptions took
    reserved: int = 0  # expected cost of open promises, if they hold while the budget lasts

    @property
    def left(self) -> int:
        """Total budget minus the spent amount, in millionths; never negative."""
        return self.terms.total - self.spent

    @property
    def held(self) -> int:
        """The amount reserved for open promises, in millionths: face values, or expected costs."""
        return self.promised if self.terms.keeps_promises else min(self.reserved, self.promised, self.left)

    @property
    def room(self) -> int:
        """The amount that is neither spent nor reserved, in millionths; never negative."""
        return self.left - self.held

    @property
    def has_open_promises(self) -> bool:
        """True if any promise is neither redeemed nor expired."""
        return bool(self.promised or self.open_expected or self.late_face)

    @property
    def in_period(self) -> bool:
        """True if the current time lies within the ledger's period."""
        return self.terms.starts <= self.now < self.terms.ends

    def as_dict(self) -> dict[str, Any]:
        """Return the sums as JSON types, with amounts in units of money."""
        money = {name: convert_to_units(getattr(self, name)) for name in ("spent", "promised", "held", "room")}
        counts = {name: getattr(self, name) for name in ("requests", "decisions", "redemptions", "expired")}
        terms = self.terms
        period = {"starts": terms.starts / 1e6, "ends": terms.ends / 1e6, "now": self.now / 1e6}
        return {"total": convert_to_units(terms.total), **money, **counts, **period, "promises": terms.promises}


class LevelChooser(Protocol):
    """Interface of an object that chooses a level for each customer of a request, within the budget."""

    def choose(self, standing: LedgerStanding, offers: Offers) -> ChosenLevels:
        """Choose levels for the offers; their costs must fit into `standing.room`.

        It is called while the ledger is locked.
        """
        ...


@dataclass(frozen=True, eq=False)
class LedgerDecisions:
    """Stored decisions on a request; a repeated request returns the same decisions."""

    request: str
    customers: tuple[str, ...]
    levels: Array  # (n,) int64
    propensity: Array  # (n,) float64
    responses: Array  # (n,) float64, expected
    price: Array  # (n,) float64
    reason: Array  # (n,) int64
    at_once: Array  # (n,) int64
    face: Array  # (n,) int64
    expected: Array  # (n,) int64, on redemption
    policy: str  # version
    decided_at: int
    expires_at: int | None
    repeated: bool = False  # whether the ledger held it already

    def __len__(self) -> int:
        return len(self.customers)


@dataclass(frozen=True)
class Redemption:
    """Result of a redemption: the paid amount, and flags for a late or a repeated redemption."""

    request: str
    customer: str
    paid: int
    late: bool  # after the promise's time
    repeated: bool = False


@dataclass(frozen=True)
class Audit:
    """Result of a ledger's audit: differences between the stored sums and the sums of all decisions."""

    decisions: int
    differences: dict[str, tuple[int, int]]  # name → as counted, as added up

    @property
    def matches(self) -> bool:
        """True if the ledger's sums equal those of its decisions."""
        return not self.differences


def is_valid_id(value: Any) -> bool:
    """Return True if a value is a valid id of a request or a customer."""
    return isinstance(value, str) and len(value) <= MAX_ID_LENGTH and _ID.fullmatch(value) is not None


def find_id_problems(value: Any, name: str) -> list[Problem]:
    """Return the problems of a value given as the id of a request or a customer."""
    if is_valid_id(value):
        return []
    return [Problem(f"{name} is {repr_short(value)}", f"give a text of 1 to {MAX_ID_LENGTH} printable letters")]


def find_time_problems(value: Any) -> list[Problem]:
    """Return the problems of a time in microseconds; none if no time is given."""
    return [] if value is None else find_integer_problems(value, "now, in microseconds since 1970,", 0, MAX_TIME_MICROS)
