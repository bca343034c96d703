"""What a ledger is opened with: the budget, the period, how long a promise stands, and how firmly."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from largesse.errors import Problem, as_number, refuse, repr_short
from largesse.serve.ledger.money import read_money, show_money

SECOND = 1_000_000  # microseconds, in which all times are counted
DAY = 86_400 * SECOND
LATEST = 253_402_300_799 * SECOND  # the last second of the year 9999
LATE = ("refuse", "accept")
KEPT, WHILE_IT_LASTS = PROMISES = ("kept", "while_it_lasts")


@dataclass(frozen=True)
class Terms:
    """The terms that a ledger is opened with, checked and counted exactly. Made by `make_terms`."""

    total: int  # millionths of a unit
    starts: int  # microseconds since 1970, UTC
    ends: int
    valid: int | None = None  # microseconds that a promise stands; None: until it is redeemed
    late: str = "refuse"  # a redemption after that: refuse it, or accept it while the budget has room
    promises: str = KEPT  # every promise can be redeemed, or only while the budget lasts

    @property
    def kept(self) -> bool:
        """Whether every promise can be redeemed: face values are reserved."""
        return self.promises == KEPT

    @property
    def days(self) -> float:
        """How long the period is."""
        return (self.ends - self.starts) / DAY

    @property
    def stands(self) -> float:
        """For how many days a promise stands: as long as the period, where it stands until it is redeemed."""
        return self.days if self.valid is None else self.valid / DAY

    def describe(self) -> str:
        """Return the terms in words."""
        stands = "until it is redeemed" if self.valid is None else f"for {self.stands:g} days"
        period = f"from {show_time(self.starts)} until {show_time(self.ends)}"
        lasts = "" if self.kept else "; promises can be redeemed while the budget lasts"
        return f"{show_money(self.total)} {period}; a promise stands {stands}; late redemptions: {self.late}{lasts}"


def make_terms(
    total: Any,
    ends: Any,
    *,
    starts: Any = None,
    valid_days: float | None = None,
    late: str = "refuse",
    promises: str = KEPT,
) -> Terms:
    """Return the terms of a ledger.

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
        What happens to a redemption after that: ``"refuse"``, or ``"accept"`` while the budget has room for it.
    promises
        ``"kept"``: every promise can be redeemed; face values are reserved. ``"while_it_lasts"``: what open promises are
        expected to cost is reserved, and a redemption that no longer fits into the budget is refused.

    Examples
    --------
    >>> make_terms("500", "2027-01-31", starts="2027-01-01", valid_days=14).describe()
    '500.00 from 2027-01-01 00:00:00Z until 2027-02-01 00:00:00Z; a promise stands for 14 days; late redemptions: refuse'
    """
    problems: list[Problem] = []
    begin = now_micros() if starts is None else read_time(starts, "the start", problems)
    end = read_time(ends, "the end", problems, last=True)
    if not problems and end <= begin:
        got = f"the period ends at {show_time(end)}, but begins at {show_time(begin)}"
        problems.append(Problem(got, "give an end after the beginning"))
    days = None if valid_days is None else as_number(valid_days)
    if valid_days is not None and (days is None or not 0 < days <= 36_525):
        problems.append(Problem(f"a promise stands for {repr_short(valid_days)} days", "give a number of days above 0"))
        days = None
    if not isinstance(late, str) or late not in LATE:
        problems.append(Problem(f"late redemptions: {repr_short(late)}", "refuse them, or accept them: refuse, accept"))
    if not isinstance(promises, str) or promises not in PROMISES:
        problems.append(Problem(f"promises: {repr_short(promises)}", f"choose one: {', '.join(PROMISES)}"))
    refuse("ledger", problems)
    valid = None if days is None else count_time(days)
    return Terms(read_money(total, "the total", up=False), begin, end, valid, late, promises)


def count_time(days: float) -> int:
    """Return the microseconds that a promise stands: one at least.

    >>> count_time(1), count_time(1e-320)
    (86400000000, 1)
    """
    return max(math.floor(days * DAY), 1)


def read_terms(values: Sequence[Any]) -> Terms:
    """Return the terms that a ledger holds; ValueError if they are not valid."""
    total, starts, ends, valid, late, promises = values
    whole = all(type(value) is int for value in (total, starts, ends)) and (valid is None or type(valid) is int)
    if (
        not whole
        or late not in LATE
        or promises not in PROMISES
        or not (total >= 0 and starts < ends)
        or (valid is not None and valid < 1)
    ):
        raise ValueError("no terms of a ledger")
    return Terms(total, starts, ends, valid, late, promises)


def read_time(given: Any, name: str, problems: list[Problem], *, last: bool = False) -> int:
    """Return a date or time in microseconds since 1970, UTC; a date that comes `last` stands for its end."""
    found: datetime | None = None
    try:
        text = given.strip() if isinstance(given, str) else None
        if text is not None and re.fullmatch(r"[0-9]{4}(-?)[0-9]{2}\1[0-9]{2}", text):
            given = date.fromisoformat(text)
        if isinstance(given, str) and "W" not in given:  # a week has no moment at which it ends
            found = datetime.fromisoformat(given.strip())
        elif isinstance(given, datetime):
            found = given
        elif isinstance(given, date):
            day = datetime(given.year, given.month, given.day, tzinfo=UTC)
            found = day + timedelta(days=1) if last else day
    except (ValueError, OverflowError):
        found = None
    if found is None or found != found:  # not a time, in tables
        problems.append(
            Problem(f"{name} is {repr_short(given)}", "give a date or a time: 2027-01-31, 2027-01-31T18:00+01:00")
        )
        return 0
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def show_time(micros: int) -> str:
    """Write a time to the second, in UTC.

    >>> show_time(0)
    '1970-01-01 00:00:00Z'
    """
    held = min(max(micros, 0), LATEST)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=held)).strftime("%Y-%m-%d %H:%M:%SZ")


def now_micros() -> int:
    """Return the time of this machine."""
    import time

    return time.time_ns() // 1000
