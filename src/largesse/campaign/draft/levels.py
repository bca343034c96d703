"""The order of named levels, from amounts and sizes in their names; never from the alphabet.

"none", "up to $0.50", "$0.50–1", "over $2" can be put in order by their names, "mail" and "call" cannot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


def split_words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


NOTHING = split_words(
    "none no nothing control holdout baseline untreated placebo kein keine keinen keiner nichts ohne kontrolle "
    "kontrollgruppe null zero"
)
UNLIMITED = split_words("limit cap maximum max obergrenze")
SIZES = {
    word: rank
    for rank, words in enumerate(
        (
            "tiny xs mini winzig",
            "small s low klein kleine kleiner kleines niedrig gering bronze",
            "medium m mid middle mittel mittlere mittlerer mittleres silver silber",
            "large l big high groß gross große grosse großer grosser hoch gold",
            "xl huge riesig platinum platin",
            "xxl",
        )
    )
    for word in words.split()
}
AT_MOST = r"up to|less than|at most|under|below|max|bis zu|bis|unter|höchstens|hoechstens|weniger als|<=|≤|<"
AT_LEAST = r"more than|at least|over|above|from|min|mehr als|mindestens|über|ueber|ab|>=|≥|>"
NUMBER = r"\d{1,3}(?:[ '\u202f]\d{3})+(?:[.,]\d+)?|(?<![\w.,])[.,]\d+|\d[\d.,]*\d|\d"
LABELS = split_words("arm group gruppe variant variante version v test cell zelle treatment t t1 wave welle")


@dataclass(frozen=True)
class Order:
    """Level names, cheapest first, and the amounts in them where each has exactly one."""

    names: tuple[str, ...]
    amounts: tuple[float, ...] | None = None


@dataclass(frozen=True)
class _Reading:
    """A name read as an amount: from `low` to `high`, and what else the name says."""

    low: float
    high: float
    rest: str
    money: bool = True


def is_nothing(name: str) -> bool:
    """Whether a level's name says that nothing is given.

    >>> [is_nothing(name) for name in ("none", "No E-Mail", "0", "kein Gutschein", "no limit", "mail")]
    [True, True, True, True, False, False]
    """
    words = re.split(r"[\W_]+", name.casefold().strip())
    words = [word for word in words if word]
    if not words or UNLIMITED.intersection(words):
        return False
    if all(word.strip("0") == "" for word in words if word[0].isdigit()) and any(word[0].isdigit() for word in words):
        return True
    return words[0] in NOTHING or (words[-1] in NOTHING and len(words) <= 2)


def order_levels(names: Sequence[str]) -> Order | None:
    """Return the names in the order that they state themselves, or None where they do not.

    >>> order_levels(["0 EUR", "10 EUR", "20 EUR", "5 EUR"])
    Order(names=('0 EUR', '5 EUR', '10 EUR', '20 EUR'), amounts=(0.0, 5.0, 10.0, 20.0))
    >>> order_levels(["mail", "call"]) is None
    True
    """
    nothing, given = [name for name in names if is_nothing(name)], [name for name in names if not is_nothing(name)]
    if len(nothing) > 1:
        return None
    if len(given) <= 1 and nothing:
        return Order((*nothing, *given))
    readings = [read for decimal in ".," if (read := _order_by_amounts(given, decimal)) is not None]
    if readings and all(read.names == readings[0].names for read in readings):
        found = readings[0]
        same = len({read.amounts for read in readings}) == 1
        amounts = (0.0,) * len(nothing) + found.amounts if same and found.amounts else None
        return Order((*nothing, *found.names), amounts)
    sized = _order_by_sizes(given)
    return None if sized is None else Order((*nothing, *sized))


def _order_by_amounts(names: Sequence[str], decimal: str) -> Order | None:
    """Return the order by amounts, with this decimal mark where a number leaves it open."""
    read = {name: _read_amount(name, decimal) for name in names}
    known = {name: reading for name, reading in read.items() if reading is not None}
    places = {(reading.low, reading.high) for reading in known.values()}
    if len(known) < len(names) or len(places) < len(names) or len({r.rest for r in known.values()}) > 1:
        return None
    order = sorted(known, key=lambda name: (known[name].low, known[name].high))
    if any(known[a].high > known[b].high for a, b in pairwise(order)):
        return None  # one range lies within another
    single = all(reading.money and reading.low == reading.high for reading in known.values())
    return Order(tuple(order), tuple(known[name].low for name in order) if single else None)


def _read_amount(name: str, decimal: str) -> _Reading | None:
    text = name.casefold().replace("−", "-")
    found = re.findall(NUMBER, text)
    numbers = [_read_number(number, decimal) for number in found]
    rest = re.sub(NUMBER, " ", text)
    percent = "%" in rest or "percent" in rest or "prozent" in rest
    rest, most = re.subn(rf"(?<!\w)({AT_MOST})(?!\w)", " ", rest)
    rest, least = re.subn(rf"(?<!\w)({AT_LEAST})(?!\w)|\+\s*$", " ", rest)
    ratio = bool(re.search(rf"({NUMBER})\s*:\s*({NUMBER})", text))
    span = len(numbers) == 2 and bool(re.search(r"\d[^\w]*(-|–|—|to|bis|and|und)\s*[^\w]*\d", text))
    rest = re.sub(r"[-–—:()]|(?<!\w)(to|and|und)(?!\w)", " ", rest)
    words = sorted({_singular(word) for word in re.findall(r"\w+|[^\w\s]", rest)})  # a currency must be the same, too
    if any(number is None for number in numbers) or LABELS.intersection(words):
        return None
    rest, values = " ".join(words), [number for number in numbers if number is not None]
    if ratio and len(values) == 2 and values[1] > 0:
        return _Reading(values[0] / values[1], values[0] / values[1], rest, money=False)
    if len(values) == 1 and not (most and least):
        low = 0.0 if most else values[0]
        return _Reading(low, math.inf if least else values[0], rest, money=not percent)
    if span and values[0] < values[1]:
        return _Reading(values[0], values[1], rest, money=False)
    return None


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _read_number(text: str, decimal: str) -> float | None:
    """Return the number that digits with marks stand for; `decimal` decides where they leave it open.

    >>> [_read_number(text, ".") for text in ("5", "0,50", "1.000,5", "1,000", "1 000")]
    [5.0, 0.5, 1000.5, 1000.0, 1000.0]
    """
    text = re.sub(r"[' \u202f]", "", text)
    marks = [mark for mark in text if mark in ".,"]
    if len(set(marks)) == 2:
        decimal = marks[-1]
    elif len(marks) > 1:
        decimal = "," if marks[0] == "." else "."
    elif marks:
        whole, part = re.split(r"[.,]", text)
        if len(part) != 3 or whole.strip("0") == "":
            decimal = marks[0]
    other = "," if decimal == "." else "."
    try:
        return float(text.replace(other, "").replace(decimal, "."))
    except ValueError:
        return None


def _order_by_sizes(names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the order by words like small and large; everything else in the names must be the same."""
    ranks, rests = {}, set()
    for name in names:
        words = [word for word in re.split(r"[\W_]+", name.casefold()) if word]
        sizes = [word for word in words if word in SIZES]
        if len(sizes) != 1:
            return None
        ranks[name] = SIZES[sizes[0]]
        rests.add(" ".join(word for word in words if word not in SIZES))
    if len(set(ranks.values())) < len(names) or len(rests) != 1:
        return None
    return tuple(sorted(ranks, key=ranks.__getitem__))
