"""Number formats of the report: percentages, money, intervals, and a dash for a missing number."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from largesse.levels import LEADING_SYMBOLS

Numbers: TypeAlias = Mapping[str, Any]  # a summary of a run, or a part of one, as JSON types
View: TypeAlias = dict[str, Any]  # text and figures of a template

MISSING_DASH = "–"
NO_INTERVAL = "no interval: too few responses"
THIN_SPACE = "\u202f"  # narrow and without a line break, between a number and its unit
MAX_ROUNDING_WIDTH = 1e-9  # width of an interval, relative to its ends, that rounding errors explain
MIN_CENTS_AMOUNT = 0.1
MAX_CENTS_SPREAD = 10.0  # half an interval from which cents say nothing
MAX_PERCENT_DECIMALS = 4
MAX_ZERO_DECIMALS = 2  # of a zero; more would pretend a precision
PRICE_DIGITS = 3
RATE_BOUNDS = (0.0, 1.0)
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
LARGE_UNITS = ((1e12, "trillion", "tn"), (1e9, "billion", "bn"), (1e6, "million", "M"))


def finite_or_none(value: Any) -> float | None:
    """Return a number as a float, or None if it is missing or not finite.

    >>> finite_or_none(2), finite_or_none(float("nan")), finite_or_none(None)
    (2.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def write_report_date() -> str:
    """Return the date of the report in words: today, or the day of SOURCE_DATE_EPOCH."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    day = datetime.fromtimestamp(int(seconds), UTC) if seconds.isdigit() else datetime.now()
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def count_decimals(spread: float, digits: int = 2) -> int:
    """Return the number of decimals that show `digits` significant digits of `spread`.

    >>> count_decimals(5.1), count_decimals(0.023), count_decimals(400.0)
    (1, 3, 0)
    """
    if spread <= 0:
        return 0
    return min(max(digits - 1 - math.floor(math.log10(spread) + 1e-6), 0), 9)


def is_zero_text(text: str) -> bool:
    """Return True for a formatted number whose digits are all zero."""
    return not any(digit in text for digit in "123456789")


@dataclass(frozen=True)
class NumberStyle:
    """Number format: unit to divide by, decimals, prefix and suffix."""

    unit: float = 1.0
    decimals: int = 0
    prefix: str = ""
    suffix: str = ""
    bounds: tuple[float, float] | None = None  # of the numbers: estimates of a rate may lie below 0 or above 1

    def bare(self, value: Any, signed: bool = False) -> str:
        """Format a number without prefix or suffix; a dash for a missing number.

        >>> NumberStyle(decimals=1).bare(-1234.56), NumberStyle().bare(None)
        ('−1,234.6', '–')
        """
        number = finite_or_none(value)
        if number is None:
            return MISSING_DASH
        if self.bounds is not None:
            number = min(max(number, self.bounds[0]), self.bounds[1])
        digits = f"{abs(number) / self.unit:,.{self.decimals}f}"
        if self.decimals > MAX_ZERO_DECIMALS and is_zero_text(digits):
            digits = "0"
        sign = "" if is_zero_text(digits) else "−" if number < 0 else "+" if signed else ""
        return sign + digits

    def text(self, value: Any, signed: bool = False) -> str:
        """Format a number with its prefix and suffix.

        >>> NumberStyle(prefix="€", decimals=2).text(-0.5)
        '−€0.50'
        """
        bare = self.bare(value, signed)
        if bare == MISSING_DASH:
            return MISSING_DASH
        sign, digits = (bare[0], bare[1:]) if bare[0] in "+−" else ("", bare)
        return f"{sign}{self.prefix}{digits}{self.suffix}"

    def interval(self, estimate: Numbers, signed: bool = False) -> str:
        """Format the interval of an estimate as ``low to high``.

        Words if it has no interval, a dash without an estimate.

        >>> NumberStyle(prefix="€", decimals=2).interval({"low": -0.5, "high": 1})
        '−€0.50 to €1.00'
        >>> NumberStyle(suffix=" %").interval({"low": 1, "high": 2})
        '1 to 2 %'
        """
        low, high = finite_or_none(estimate.get("low")), finite_or_none(estimate.get("high"))
        if low is None or high is None:
            return MISSING_DASH if finite_or_none(estimate.get("estimate")) is None else NO_INTERVAL
        return f"{replace(self, suffix='').text(low, signed)} to {self.text(high, signed)}"

    def with_interval(self, estimate: Numbers, signed: bool = False) -> str:
        """Format an estimate with its interval in brackets."""
        interval = self.interval(estimate, signed)
        return self.text(estimate.get("estimate"), signed) + ("" if interval == MISSING_DASH else f" ({interval})")


def choose_style(
    values: Iterable[Any], spread: float | None = None, digits: int = 2, short: bool = False
) -> NumberStyle:
    """Choose a number format with few decimals, in millions for large numbers.

    `spread` is the smallest difference that must be visible; without it, three digits of the smallest number are kept.
    """
    sizes = [abs(number) for number in map(finite_or_none, values) if number]
    largest = max(sizes, default=0.0)
    unit, suffix = 1.0, ""
    for size, long_name, short_name in LARGE_UNITS:
        if largest >= size:
            unit, suffix = size, THIN_SPACE + (short_name if short else long_name)
            break
    if spread:
        return NumberStyle(unit, count_decimals(spread / unit, digits), suffix=suffix)
    return NumberStyle(unit, count_decimals(min(sizes, default=1.0) / unit, 3), suffix=suffix)


def add_interval_label(interval: str) -> str:
    r"""Return a formatted interval preceded by "95 % interval".

    >>> add_interval_label("1 to 2"), add_interval_label(NO_INTERVAL)
    ('95\xa0% interval 1 to 2', 'no interval: too few responses')
    """
    return interval if interval == NO_INTERVAL else f"95\u00a0% interval {interval}"


def measure_half_width(estimate: Numbers) -> float | None:
    """Return the half-width of an estimate's interval; None for a missing or negligible interval."""
    low, high = finite_or_none(estimate.get("low")), finite_or_none(estimate.get("high"))
    if low is None or high is None or high - low <= MAX_ROUNDING_WIDTH * max(abs(low), abs(high)):
        return None
    return (high - low) / 2


def list_estimate_and_ends(estimate: Numbers) -> list[Any]:
    """Return the estimate and both ends of its interval."""
    return [estimate.get("estimate"), estimate.get("low"), estimate.get("high")]


def write_percent(share: Any) -> str:
    """Format a share as a percentage, with more digits for small shares.

    >>> write_percent(0.6234), write_percent(0.00012), write_percent(0.0)
    ('62\u202f%', '0.012\u202f%', '0\u202f%')
    """
    number = finite_or_none(share)
    if number is None:
        return MISSING_DASH
    size = abs(number) * 100
    return NumberStyle(0.01, 0 if size >= 10 or size == 0 else count_decimals(size), suffix=f"{THIN_SPACE}%").text(
        number
    )


def write_two_digits(value: Any) -> str:
    """Format a number of any size with two significant digits.

    >>> write_two_digits(0.0312), write_two_digits(None)
    ('0.031', '–')
    """
    number = finite_or_none(value)
    return choose_style([number], abs(number) if number else None).text(number)


def write_count(value: Any) -> str:
    """Format a count, with one decimal if it is small and not whole.

    >>> write_count(2825), write_count(3.25), write_count(1.2e9)
    ('2,825', '3.2', '1.20\u202fbillion')
    """
    number = finite_or_none(value)
    if number is None:
        return MISSING_DASH
    if abs(number) >= 1e8:
        return choose_style([number]).text(number)
    whole = abs(number) >= 100 or number == int(number)
    return NumberStyle(decimals=0 if whole else max(count_decimals(abs(number)), 1)).text(number)


@dataclass(frozen=True)
class Units:
    """Units of the response and the budget, and the number formats that follow from them.

    Parameters
    ----------
    kind
        ``"binary"``: responses are written as percentages, their differences as percentage points; ``"amount"``: plain numbers.
    currency
        The unit of the budget, or an empty string.
    response_unit
        The unit of responses that are amounts, or an empty string.
    """

    kind: str
    currency: str
    response_unit: str = ""

    @classmethod
    def from_numbers(cls, numbers: Numbers) -> Units:
        """Return the units of the response and the budget from the numbers of a report."""
        return cls(numbers["response"]["kind"], numbers["unit"], numbers.get("response_unit", ""))

    @property
    def profit(self) -> Units:
        """Units of profits: amounts of money in the unit of costs."""
        return Units("amount", self.currency, self.currency)

    @property
    def has_binary_response(self) -> bool:
        """True for yes/no responses."""
        return self.kind == "binary"

    @property
    def budget_unit_text(self) -> str:
        """Text for one unit of budget, such as "€1"."""
        return _add_unit_to_style(NumberStyle(), self.currency).text(1.0) if self.currency else "unit of budget"

    @property
    def spent_unit_text(self) -> str:
        """Text for the unit before the word "spent": "€1", or "unit" without a currency."""
        return self.budget_unit_text if self.currency else "unit"

    @property
    def one_more_unit_text(self) -> str:
        """Text for one more unit of budget, such as "€1 more"."""
        return f"{self.budget_unit_text} more" if self.currency else "one more unit of budget"

    @property
    def response_bounds(self) -> tuple[float, float] | None:
        """Smallest and largest possible mean response: 0 and 1 for yes/no responses, else None."""
        return RATE_BOUNDS if self.has_binary_response else None

    @property
    def has_amount_unit(self) -> bool:
        """True if responses are amounts with a unit, such as "€"."""
        return bool(self.response_unit) and not self.has_binary_response

    @property
    def price_title(self) -> str:
        """Table title of the budget's shadow price."""
        if self.has_amount_unit:
            return f"What {self.one_more_unit_text} brings"
        return f"Cost of one more {'response' if self.has_binary_response else 'unit of response'}"

    def title_axis(self, words: str) -> str:
        """Return an axis title with the unit of the budget."""
        return f"{words} ({self.currency})" if self.currency else words

    def response(
        self, values: Iterable[Any], spread: float | None = None, *, digits: int | None = None, short: bool = False
    ) -> NumberStyle:
        """Return the number format of responses: percentages, or numbers with their unit."""
        return replace(self._choose_response_style(values, spread, "%", digits, short), bounds=self.response_bounds)

    def difference(
        self, values: Iterable[Any], spread: float | None = None, *, digits: int | None = None, short: bool = False
    ) -> NumberStyle:
        """Return the number format of response differences: percentage points, or numbers with their unit."""
        return self._choose_response_style(values, spread, "pp", digits, short)

    def money(
        self, values: Iterable[Any], spread: float | None = None, *, digits: int | None = None, short: bool = False
    ) -> NumberStyle:
        """Return the number format of amounts of budget."""
        known = [number for number in map(finite_or_none, values) if number is not None]
        style = choose_style(known, spread, 2 if digits is None else digits, short)
        if digits is None:
            style = replace(style, decimals=_count_money_decimals(known, style, spread, is_money(self.currency)))
        return _add_unit_to_style(style, self.currency)

    def write_price_number(self, price: Any) -> str:
        """Format the budget's shadow price: cost of one more response, or response to one more unit of budget.

        >>> Units("binary", "€").write_price_number(0.000064), Units("amount", "€", "€").write_price_number(0.19)
        ('€15,600', '€0.19')
        """
        number = finite_or_none(price)
        if number is None:
            return MISSING_DASH
        if number <= 0:
            return "nothing more to gain"
        if self.has_amount_unit:
            return self.response([number], number).text(number)
        return self.write_cost(float(f"{1 / number:.{PRICE_DIGITS}g}"))

    def write_price(self, price: Any) -> str:
        """Write the budget's shadow price as a clause; empty for an unknown price.

        >>> Units("binary", "€").write_price(0.02), Units("amount", "€", "€").write_price(0.19)
        ('one more response costs €50.00', '€1 more brings €0.19')
        """
        number = finite_or_none(price)
        if number is None:
            return ""
        if number <= 0:
            return "more budget buys nothing more"
        if self.has_amount_unit:
            return f"{self.one_more_unit_text} brings {self.write_price_number(number)}"
        return f"one more {'response' if self.has_binary_response else 'unit of response'} costs {self.write_price_number(number)}"

    def value_style(self, estimate: Numbers) -> NumberStyle:
        """Return the number format of an estimated response, with digits chosen by its interval."""
        return self.response(list_estimate_and_ends(estimate), measure_half_width(estimate))

    def gain_style(self, estimate: Numbers) -> NumberStyle:
        """Return the number format of an estimated response difference, with digits chosen by its interval."""
        return self.difference(list_estimate_and_ends(estimate), measure_half_width(estimate))

    def spend_style(self, estimate: Numbers, *others: Any) -> NumberStyle:
        """Return the number format of an estimated spend, with digits chosen by its interval."""
        return self.money([*list_estimate_and_ends(estimate), *others], measure_half_width(estimate))

    def write_gain(self, gain: Numbers) -> str:
        """Format a gain with its sign and interval: +1.1 pp (−1.3 to +3.5 pp)."""
        return self.gain_style(gain).with_interval(gain, signed=True)

    def write_cost(self, value: Any) -> str:
        """Format an amount of budget."""
        return self.money([value]).text(value)

    def write_total_cost(self, value: Any) -> str:
        """Format the total cost of all customers, without cents unless it is small.

        >>> Units("binary", "€").write_total_cost(576.4), Units("binary", "€").write_total_cost(7.5)
        ('€576', '€7.50')
        """
        number = finite_or_none(value)
        if number is None or 0 < abs(number) < 100 or abs(number) >= 1e6:
            return self.write_cost(value)
        return _add_unit_to_style(NumberStyle(), self.currency).text(number)

    def _choose_response_style(
        self, values: Iterable[Any], spread: float | None, sign: str, digits: int | None, short: bool
    ) -> NumberStyle:
        if self.has_binary_response:
            largest = max((abs(number) for number in map(finite_or_none, values) if number), default=0.1)
            decimals = count_decimals(spread * 100, digits or 2) if spread else count_decimals(largest * 100, 3)
            return NumberStyle(0.01, min(decimals, MAX_PERCENT_DECIMALS), suffix=f"{THIN_SPACE}{sign}")
        if is_money(self.response_unit) or (self.response_unit and self.response_unit == self.currency):
            return replace(self, currency=self.response_unit).money(values, spread, digits=digits, short=short)
        return _add_unit_to_style(choose_style(values, spread, digits or 2, short), self.response_unit)


def is_money(unit: str) -> bool:
    """Return True if a unit is a currency: a currency sign, or a code of three capital letters.

    >>> is_money("€"), is_money("CHF"), is_money("visits")
    (True, True, False)
    """
    return unit in LEADING_SYMBOLS or (len(unit) == 3 and unit.isascii() and unit.isalpha() and unit.isupper())


def _add_unit_to_style(style: NumberStyle, unit: str) -> NumberStyle:
    """Add a unit to a number format: a currency sign before the number, other units after it."""
    if unit in LEADING_SYMBOLS:
        return replace(style, prefix=unit)
    return replace(style, suffix=style.suffix + (f"{THIN_SPACE}{unit}" if unit else ""))


def _count_money_decimals(values: list[float], style: NumberStyle, spread: float | None, money: bool) -> int:
    """Return the number of decimals for amounts of money: none for large sums, more for small ones.

    Whole amounts of money keep two decimals, so that they match other amounts; whole amounts of other units have none.
    """
    sizes = [abs(value) for value in values if value]
    if style.unit > 1:
        return style.decimals
    if (sizes and min(sizes) >= 1000) or (spread or 0.0) >= MAX_CENTS_SPREAD:
        return 0
    if all(size == int(size) for size in sizes):
        return 2 if money else 0
    if min(sizes) >= MIN_CENTS_AMOUNT or (money and all(round(size, 2) == size for size in sizes)):
        return 2
    return max(2, count_decimals(spread, 1) if spread else count_decimals(min(sizes)))
