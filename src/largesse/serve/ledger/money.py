"""Money as whole millionths of a unit: sums are exact, whatever the currency and however many decisions there are."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any

import numpy as np

from largesse.errors import Problem, fail, repr_short
from largesse.records import Array

MICROS = 1_000_000  # in one unit
MOST = 10**12  # units; the sum of two still fits into 64 bits
MOST_MICROS = MOST * MICROS
_PLAIN = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")  # Decimal itself reads 1_0 and ５, too
_DIGITS = 6  # of a unit
_FINE = 3  # digits of a millionth that a float may be off by


def read_money(given: Any, name: str, *, up: bool) -> int:
    """Return an amount in millionths; finer parts are rounded up (what may be spent on us) or down (a budget).

    >>> read_money("19.99", "the total", up=False), read_money(0.1 + 0.2, "the cost", up=True)
    (19990000, 300000)
    """
    exact = None
    if isinstance(given, str | int | float | Decimal | np.number) and not isinstance(given, bool):
        try:
            exact = Decimal(str(given)) if not isinstance(given, str) or _PLAIN.fullmatch(given) else None
        except (InvalidOperation, ValueError):  # ValueError: a whole number of thousands of digits
            exact = None
    if exact is None or not exact.is_finite() or not 0 <= exact <= MOST:
        fail(
            "money",
            Problem(f"{name} is {repr_short(given)}", f"give a number from 0 to {MOST:,}, such as 50000 or 19.99"),
        )
    if isinstance(given, float | np.floating):
        exact = round(exact, _DIGITS + _FINE)  # 0.1 + 0.2 is 0.3, as for `count_micros`
    return int((exact * MICROS).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))


def count_micros(amounts: Array) -> Array:
    """Return amounts, one each of an array, in whole millionths (int64), rounded up.

    >>> count_micros(np.array([0.1, 0.30000000000000004, 2.0000001]))
    array([ 100000,  300000, 2000001])
    """
    found = np.ceil(np.round(np.asarray(amounts, dtype=np.float64) * MICROS, _FINE))
    if not (np.isfinite(found).all() and (found >= 0).all() and (found <= MOST_MICROS).all()):
        fail("money", Problem("a cost is negative, missing or too large", f"costs are numbers from 0 to {MOST:,}"))
    return found.astype(np.int64)


def show_money(micros: int) -> str:
    """Write an amount with two digits after the point, more where it has them.

    >>> show_money(19_990_000), show_money(1_234_500_000), show_money(-125_000)
    ('19.99', '1,234.50', '-0.125')
    """
    text = f"{abs(micros) // MICROS:,}.{abs(micros) % MICROS:06d}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"{'-' if micros < 0 else ''}{whole}.{part:0<2}"


def as_units(micros: int) -> float:
    """Return an amount as a float in units, for what need not be exact: charts, prices, JSON."""
    return micros / MICROS
