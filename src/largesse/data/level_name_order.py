"""Order of named levels, from the amounts or sizes in their names; never alphabetical.

"none", "5 EUR", "10 EUR" can be put in order by their names, "mail" and "call" cannot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from largesse.data.text_parsing import parse_numbers


def split_words(text: str) -> frozenset[str]:
    """Split a text into its set of words."""
    return frozenset(text.split())


NOTHING = split_words(
    "none no nothing control holdout baseline untreated placebo zero kein keine keinen keiner nichts ohne "
    "kontrolle kontrollgruppe null"
)
UNLIMITED = {"limit", "cap", "maximum", "max"}  # "no limit" is not nothing
SIZES = {
    word: rank
    for rank, words in enumerate(("xs", "small s low klein", "medium m mittel", "large l big high groß gross", "xl"))
    for word in words.split()
}
NUMBER = r"\d{1,3}(?:[ '\u202f]\d{3})+(?:[.,]\d+)?|\d[\d.,]*\d|\d"
PLURAL = r"(?<=\w\w\w)s\b"
ARM_LABELS = {"arm", "group", "gruppe", "variant", "variante", "version", "v", "test", "cell", "treatment", "t", "wave"}


@dataclass(frozen=True)
class LevelOrder:
    """Level names from cheapest to dearest, with the amounts that the names contain."""

    names: tuple[str, ...]
    amounts: tuple[float, ...] | None = None


def _split_name_words(name: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", name.casefold()) if word]


def means_no_incentive(name: str) -> bool:
    """Test if a level's name (none, control, 0, …) means no incentive.

    >>> [means_no_incentive(name) for name in ("none", "No E-Mail", "0", "kein Gutschein", "no limit", "mail")]
    [True, True, True, True, False, False]
    """
    words = _split_name_words(name)
    if not words or UNLIMITED.intersection(words):
        return False
    numbers = [word for word in words if word[0].isdigit()]
    if numbers and all(word.strip("0") == "" for word in numbers):
        return True
    return words[0] in NOTHING or (words[-1] in NOTHING and len(words) <= 2)


def order_levels(names: Sequence[str]) -> LevelOrder | None:
    """Order level names by the amounts or sizes in them; return None if the names state no order.

    >>> order_levels(["0 EUR", "10 EUR", "20 EUR", "5 EUR"])
    LevelOrder(names=('0 EUR', '5 EUR', '10 EUR', '20 EUR'), amounts=(0.0, 5.0, 10.0, 20.0))
    >>> order_levels(["mail", "call"]) is None
    True
    """
    nothing, others = (
        [name for name in names if means_no_incentive(name)],
        [name for name in names if not means_no_incentive(name)],
    )
    if len(nothing) > 1:
        return None
    if nothing and len(others) <= 1:
        return LevelOrder((*nothing, *others))
    order = _order_by_amounts(others) or _order_by_sizes(others)
    if order is None:
        return None
    amounts = None if order.amounts is None else (0.0,) * len(nothing) + order.amounts
    return LevelOrder((*nothing, *order.names), amounts)


def _order_by_amounts(names: Sequence[str]) -> LevelOrder | None:
    """Order level names that contain one number each and are otherwise equal; else return None."""
    numbers = [re.findall(NUMBER, name) for name in names]
    others = [re.sub(PLURAL, "", re.sub(NUMBER, " ", name.casefold())) for name in names]
    rests = {" ".join(sorted(re.findall(r"\w+|[^\w\s]", other))) for other in others}
    if len(rests) != 1 or any(len(number) != 1 for number in numbers):
        return None
    rest = rests.pop()
    amounts = parse_numbers([number[0] for number in numbers])
    if amounts is None or len(set(amounts)) < len(names) or ARM_LABELS.intersection(rest.split()):
        return None
    ordered = sorted(zip(amounts, names, strict=True))
    money = not re.search(r"%|percent|prozent", rest)
    return LevelOrder(tuple(name for _, name in ordered), tuple(amount for amount, _ in ordered) if money else None)


def _order_by_sizes(names: Sequence[str]) -> LevelOrder | None:
    """Order level names by words such as small and large; return None if other words differ."""
    ranks, rests = {}, set()
    for name in names:
        words = _split_name_words(name)
        sizes = [SIZES[word] for word in words if word in SIZES]
        if len(sizes) != 1:
            return None
        ranks[name] = sizes[0]
        rests.add(" ".join(word for word in words if word not in SIZES))
    if len(set(ranks.values())) < len(names) or len(rests) != 1:
        return None
    return LevelOrder(tuple(sorted(ranks, key=ranks.__getitem__)))
