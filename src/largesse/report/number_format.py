"""How numbers are written: percentages, money, intervals, and a dash where a number is missing."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from largesse.levels import SYMBOLS

DASH = "–"
DUST = 1e-9  # an interval that is narrower than this, relative to its ends, is a rounding error
NO_INTERVAL = "no interval: too few responses"
THIN = "\u202f"  # narrow no-break space, between a number and its unit
CENT = 0.1  # amounts of money from here on are written to the cent, however well they are known
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
LARGE = ((1e12, "trillion", "tn"), (1e9, "billion", "bn"), (1e6, "million", "M"))


def finite(value: Any) -> float | None:
    """Return the number, or None when it is missing, not a number or infinite.

    >>> finite(2), finite(float("nan")), finite(None)
    (2.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def name_day() -> str:
    """Return today's date in words, or that of SOURCE_DATE_EPOCH, so that pages can be made again to the last bit."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    day = datetime.fromtimestamp(int(seconds), UTC) if seconds.isdigit() else datetime.now()
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def places(spread: float, digits: int = 2) -> int:
    """Return how many decimals show `digits` significant digits of `spread`.

    >>> places(5.1), places(0.023), places(400.0)
    (1, 3, 0)
    """
    if spread <= 0:
        return 0
    return min(max(digits - 1 - math.floor(math.log10(spread) + 1e-6), 0), 9)


@dataclass(frozen=True)
class Style:
    """One way to write numbers: divide by `unit`, keep `decimals`, put `prefix` and `suffix` around."""

    unit: float = 1.0
    decimals: int = 0
    prefix: str = ""
    suffix: str = ""

    def bare(self, value: Any, signed: bool = False) -> str:
        """Write a number without prefix or suffix; a dash when it is missing.

        >>> Style(decimals=1).bare(-1234.56), Style().bare(None)
        ('−1,234.6', '–')
        """
        number = finite(value)
        if number is None:
            return DASH
        digits = f"{abs(number) / self.unit:,.{self.decimals}f}"
        rounds_to_zero = not any(c in "123456789" for c in digits)
        sign = "" if rounds_to_zero else "−" if number < 0 else "+" if signed else ""
        return sign + digits

    def text(self, value: Any, signed: bool = False) -> str:
        """Write a number with its prefix and suffix.

        >>> Style(prefix="€", decimals=2).text(-0.5)
        '−€0.50'
        """
        bare = self.bare(value, signed)
        if bare == DASH:
            return DASH
        sign, digits = (bare[0], bare[1:]) if bare[0] in "+−" else ("", bare)
        return f"{sign}{self.prefix}{digits}{self.suffix}"

    def interval(self, estimate: Mapping[str, Any], signed: bool = False) -> str:
        """Write ``low to high`` of an estimate; words where it has no interval, a dash where there is no estimate.

        >>> Style(prefix="€", decimals=2).interval({"low": -0.5, "high": 1}), Style(suffix=" %").interval({"low": 1, "high": 2})
        ('−€0.50 to €1.00', '1 to 2 %')
        """
        low, high = finite(estimate.get("low")), finite(estimate.get("high"))
        if low is None or high is None:
            return DASH if finite(estimate.get("estimate")) is None else NO_INTERVAL
        return f"{replace(self, suffix='').text(low, signed)} to {self.text(high, signed)}"

    def both(self, estimate: Mapping[str, Any], signed: bool = False) -> str:
        """Write an estimate and, in brackets, its interval or that it has none."""
        between = self.interval(estimate, signed)
        return self.text(estimate.get("estimate"), signed) + ("" if between == DASH else f" ({between})")


def choose_style(values: Iterable[Any], spread: float | None = None, digits: int = 2, short: bool = False) -> Style:
    """Return the plain style in which these numbers read best: few decimals, millions when they are large.

    `spread` is the difference a reader must be able to see; without it, three digits of the smallest number are kept.
    """
    sizes = [abs(number) for number in map(finite, values) if number]
    top = max(sizes, default=0.0)
    unit, words = 1.0, ""
    for size, long_name, short_name in LARGE:
        if top >= size:
            unit, words = size, THIN + (short_name if short else long_name)
            break
    if spread:
        return Style(unit, places(spread / unit, digits), suffix=words)
    return Style(unit, places(min(sizes, default=1.0) / unit, 3), suffix=words)


def label_interval(between: str) -> str:
    r"""Return an interval with the words that go before it; none where there is no interval.

    >>> label_interval("1 to 2"), label_interval(NO_INTERVAL)
    ('95\xa0% interval 1 to 2', 'no interval: too few responses')
    """
    return between if between == NO_INTERVAL else f"95\u00a0% interval {between}"


def half_width(estimate: Mapping[str, Any]) -> float | None:
    """Return half the width of an interval, or None when it has none; what only rounding left is none."""
    low, high = finite(estimate.get("low")), finite(estimate.get("high"))
    if low is None or high is None or high - low <= DUST * max(abs(low), abs(high)):
        return None
    return (high - low) / 2


def parts(estimate: Mapping[str, Any]) -> list[Any]:
    """Return estimate, low and high of an estimate as a list."""
    return [estimate.get("estimate"), estimate.get("low"), estimate.get("high")]


def write_percent(share: Any) -> str:
    """Write a share as a percentage, with more digits when it is tiny.

    >>> write_percent(0.6234), write_percent(0.00012), write_percent(0.0)
    ('62\u202f%', '0.012\u202f%', '0\u202f%')
    """
    number = finite(share)
    if number is None:
        return DASH
    size = abs(number) * 100
    return Style(0.01, 0 if size >= 10 or size == 0 else places(size), suffix=f"{THIN}%").text(number)


def write_rate(value: Any) -> str:
    """Write a number of any size with two significant digits.

    >>> write_rate(0.0312), write_rate(None)
    ('0.031', '–')
    """
    number = finite(value)
    return choose_style([number], abs(number) if number else None).text(number)


def write_count(value: Any) -> str:
    """Write how many there are; with one decimal when it is a small fraction.

    >>> write_count(2825), write_count(3.25), write_count(1.2e9)
    ('2,825', '3.2', '1.20\u202fbillion')
    """
    number = finite(value)
    if number is None:
        return DASH
    if abs(number) >= 1e8:
        return choose_style([number]).text(number)
    whole = abs(number) >= 100 or number == int(number)
    return Style(decimals=0 if whole else max(places(abs(number)), 1)).text(number)


@dataclass(frozen=True)
class Units:
    """What the response and the budget are counted in.

    Parameters
    ----------
    kind
        ``"binary"``: responses are written as percentages and their differences as percentage points;
        ``"amount"``: plain numbers.
    currency
        What the budget is counted in, or an empty string.
    response_unit
        What amounts of the response are counted in, or an empty string.
    """

    kind: str
    currency: str
    response_unit: str = ""

    @classmethod
    def of(cls, numbers: Mapping[str, Any]) -> Units:
        """Return the units of the numbers of a page."""
        return cls(numbers["response"]["kind"], numbers["unit"], numbers.get("response_unit", ""))

    @property
    def profit(self) -> Units:
        """The units in which profits are amounts: those of costs."""
        return Units("amount", self.currency, self.currency)

    @property
    def binary(self) -> bool:
        """Whether the response is yes or no."""
        return self.kind == "binary"

    @property
    def one(self) -> str:
        """One unit of budget, in words."""
        return _add_unit(Style(), self.currency).text(1.0) if self.currency else "unit of budget"

    @property
    def one_more(self) -> str:
        """One further unit of budget, in words."""
        return f"{self.one} more" if self.currency else "one more unit of budget"

    def title_axis(self, words: str) -> str:
        """Return the title of an axis of budgets, with their unit."""
        return f"{words} ({self.currency})" if self.currency else words

    def response(self, values: Iterable[Any], spread: float | None = None, **options: Any) -> Style:
        """Return the style of responses: percentages, or numbers with their unit."""
        return self._share(values, spread, "%", options) if self.binary else self._amount(values, spread, options)

    def difference(self, values: Iterable[Any], spread: float | None = None, **options: Any) -> Style:
        """Return the style of differences of responses: percentage points, or numbers with their unit."""
        return self._share(values, spread, "pp", options) if self.binary else self._amount(values, spread, options)

    def money(self, values: Iterable[Any], spread: float | None = None, **options: Any) -> Style:
        """Return the style of amounts of budget."""
        kept = [number for number in map(finite, values) if number is not None]
        plain = choose_style(kept, spread, **options)
        if "digits" not in options:  # an axis knows how many digits it needs; a sum is written to the cent
            plain = Style(plain.unit, _cents(kept, plain, spread, is_money(self.currency)), suffix=plain.suffix)
        return _add_unit(plain, self.currency)

    def rate(self, value: Any) -> str:
        """Write how much response one more unit of budget brings.

        >>> Units("binary", "€").rate(0.0312), Units("amount", "€", "€").rate(0.19), Units("amount", "").rate(None)
        ('0.031 responses', '€0.19', '–')
        """
        number = finite(value)
        if number is None:
            return DASH
        if not self.binary and self.response_unit:
            return self._amount([number], abs(number) or None, {}).text(number)
        return f"{write_rate(number)} responses" if self.binary else write_rate(number)

    def value_style(self, estimate: Mapping[str, Any]) -> Style:
        """Return the style of an estimated response: as many digits as its interval deserves."""
        return self.response(parts(estimate), half_width(estimate))

    def gain_style(self, estimate: Mapping[str, Any]) -> Style:
        """Return the style of an estimated difference of responses."""
        return self.difference(parts(estimate), half_width(estimate))

    def spend_style(self, estimate: Mapping[str, Any], *others: Any) -> Style:
        """Return the style of an estimated spend, and of other amounts of budget beside it."""
        return self.money([*parts(estimate), *others], half_width(estimate))

    def cost(self, value: Any) -> str:
        """Write one amount of budget."""
        return self.money([value]).text(value)

    def total(self, value: Any) -> str:
        """Write what all customers cost together: whole, unless it is small.

        >>> Units("binary", "€").total(576.4), Units("binary", "€").total(0), Units("binary", "€").total(7.5)
        ('€576', '€0', '€7.50')
        """
        number = finite(value)
        if number is None or 0 < abs(number) < 100 or abs(number) >= 1e6:
            return self.cost(value)
        return _add_unit(Style(), self.currency).text(number)

    def _amount(self, values: Iterable[Any], spread: float | None, options: Mapping[str, Any]) -> Style:
        """Return the style of amounts of the response: money to the cent, anything else with its unit after it."""
        if is_money(self.response_unit) or (self.response_unit and self.response_unit == self.currency):
            return replace(self, currency=self.response_unit).money(values, spread, **options)
        return _add_unit(choose_style(values, spread, **options), self.response_unit)

    @staticmethod
    def _share(values: Iterable[Any], spread: float | None, sign: str, options: Mapping[str, Any]) -> Style:
        largest = max((abs(number) for number in map(finite, values) if number), default=0.1)
        digits = int(options.get("digits", 2))
        decimals = places(spread * 100, digits) if spread else places(largest * 100, 3)
        return Style(0.01, decimals, suffix=f"{THIN}{sign}")


def is_money(unit: str) -> bool:
    """Whether a unit is a currency: a sign, or a code of three capital letters.

    >>> is_money("€"), is_money("CHF"), is_money("visits")
    (True, True, False)
    """
    return unit in SYMBOLS or (len(unit) == 3 and unit.isascii() and unit.isalpha() and unit.isupper())


def _add_unit(style: Style, unit: str) -> Style:
    """Return a style with a unit: a currency's sign before the number, anything else after it."""
    if unit in SYMBOLS:
        return replace(style, prefix=unit)
    return replace(style, suffix=style.suffix + (f"{THIN}{unit}" if unit else ""))


def _cents(values: list[float], plain: Style, spread: float | None, money: bool) -> int:
    """Return the decimals of amounts: none for large sums, two for small ones, more where tiny sums need them.

    Whole amounts of what is no currency have none. Those of money have two: beside others they must look alike.
    """
    sizes = [abs(value) for value in values if value]
    if plain.unit > 1:
        return plain.decimals
    if sizes and min(sizes) >= 1000:
        return 0
    if all(size == int(size) for size in sizes):
        return 2 if money else 0
    if min(sizes) >= CENT or (money and all(round(size, 2) == size for size in sizes)):
        return 2
    return max(2, places(spread, 1) if spread else places(min(sizes)))
