"""Amounts in whole millionths and times in microseconds: parsing, rounding and formatting.

Sums are exact, whatever the currency and however many decisions there are.
"""

from __future__ import annotations

import math
import re
import time
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any

import numpy as np

from largesse.errors import Problem, fail, repr_short
from largesse.records import Array

MICROS = 1_000_000  # in one unit of money
MAX_MONEY = 10**12  # the sum of two still fits into 64 bits
MAX_MICROS = MAX_MONEY * MICROS
DAY_MICROS = 86_400_000_000
MAX_TIME_MICROS = 253_402_300_799_000_000  # the last second of the year 9999
UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")  # Decimal also reads 1_0 and ５
MAX_DRIFT_MICROS = 60 * MICROS  # of a clock that is set in small steps
JUMP_MICROS = 600 * MICROS  # then a jump is believed
FLOAT_DIGITS = 3  # of a millionth: a float may be off by less


def read_money(value: Any, name: str, *, up: bool) -> int:
    """Convert an amount to whole millionths, rounded up (for a cost) or down (for a budget).

    >>> read_money("19.99", "the total", up=False), read_money(0.1 + 0.2, "the cost", up=True)
    (19990000, 300000)
    """
    exact = None
    if isinstance(value, str | int | float | Decimal | np.number) and not isinstance(value, bool):
        try:
            exact = Decimal(str(value)) if not isinstance(value, str) or PLAIN_NUMBER.fullmatch(value) else None
        except (InvalidOperation, ValueError):  # ValueError: a whole number of thousands of digits
            exact = None
    if exact is None or not exact.is_finite() or not 0 <= exact <= MAX_MONEY:
        hint = f"give a number from 0 to {MAX_MONEY:,}, such as 50000 or 19.99"
        fail("money", Problem(f"{name} is {repr_short(value)}", hint))
    if isinstance(value, float | np.floating):
        exact = round(exact, 6 + FLOAT_DIGITS)  # 0.1 + 0.2 is 0.3, as for `convert_to_micros`
    return int((exact * MICROS).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))


def convert_to_micros(amounts: Array) -> Array:
    """Convert amounts to whole millionths (int64), rounded up.

    >>> convert_to_micros(np.array([0.1, 0.30000000000000004, 2.0000001]))
    array([ 100000,  300000, 2000001])
    """
    micros = np.ceil(np.round(np.asarray(amounts, dtype=np.float64) * MICROS, FLOAT_DIGITS))
    if not (np.isfinite(micros).all() and (micros >= 0).all() and (micros <= MAX_MICROS).all()):
        fail("money", Problem("a cost is negative, missing or too large", f"costs are numbers from 0 to {MAX_MONEY:,}"))
    return micros.astype(np.int64)


def format_money(micros: int) -> str:
    """Format an amount in millionths with two decimals, or more if needed.

    >>> format_money(19_990_000), format_money(1_234_500_000), format_money(-125_000)
    ('19.99', '1,234.50', '-0.125')
    """
    units, _, decimals = f"{abs(micros) // MICROS:,}.{abs(micros) % MICROS:06d}".rstrip("0").partition(".")
    return f"{'-' if micros < 0 else ''}{units}.{decimals:0<2}"


def convert_to_units(micros: int) -> float:
    """Convert millionths to units of money as a float, for charts, prices and JSON."""
    return micros / MICROS


def read_time(value: Any, name: str, problems: list[Problem], *, last: bool = False) -> int:
    """Convert a date or time to microseconds since 1970 UTC; a `last` date means the end of that day."""
    moment: datetime | None = None
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{4}(-?)[0-9]{2}\1[0-9]{2}", value.strip()):
            value = date.fromisoformat(value.strip())
        if isinstance(value, str) and "W" not in value:  # the end of a week is ambiguous
            moment = datetime.fromisoformat(value.strip())
        elif isinstance(value, datetime):
            moment = value
        elif isinstance(value, date):
            moment = datetime(value.year, value.month, value.day, tzinfo=UTC) + timedelta(days=1 if last else 0)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment != moment:  # the missing time of pandas
        hint = "give a date or a time: 2027-01-31, 2027-01-31T18:00+01:00"
        problems.append(Problem(f"{name} is {repr_short(value)}", hint))
        return 0
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (moment - UNIX_EPOCH) // timedelta(microseconds=1)


def format_time(micros: int) -> str:
    """Format a time in microseconds as UTC text, to the second.

    >>> format_time(0)
    '1970-01-01 00:00:00Z'
    """
    return (UNIX_EPOCH + timedelta(microseconds=min(max(micros, 0), MAX_TIME_MICROS))).strftime("%Y-%m-%d %H:%M:%SZ")


def convert_days_to_micros(days: float) -> int:
    """Convert a number of days to microseconds, at least one.

    >>> convert_days_to_micros(1), convert_days_to_micros(1e-320)
    (86400000000, 1)
    """
    return max(math.floor(days * DAY_MICROS), 1)


def now_micros() -> int:
    """Return the current time of this machine in microseconds since 1970."""
    return time.time_ns() // 1000


class SteadyClock:
    """Clock that ignores jumps of its source (such as a wrong date) until they have lasted for some minutes.

    Between jumps it is the source; during a jump it goes on as the machine's tick counter does.
    """

    def __init__(self) -> None:
        self._offset: int | None = None  # of the source, from the counter of this machine
        self._jump: tuple[int, int] | None = None  # another offset, and since when

    def read(self, source_micros: int) -> int:
        """Return the steady time in microseconds for the current time of the source."""
        ticks = read_uptime_micros()
        offset = source_micros - ticks
        if self._jump is None or abs(offset - self._jump[0]) > MAX_DRIFT_MICROS:
            self._jump = offset, ticks
        if (
            self._offset is None
            or abs(offset - self._offset) <= MAX_DRIFT_MICROS
            or ticks - self._jump[1] >= JUMP_MICROS
        ):
            self._offset, self._jump = offset, None
        return ticks + self._offset


def read_uptime_micros() -> int:
    """Return the microseconds since this machine started, including sleep if the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1000
