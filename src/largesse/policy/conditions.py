"""Conditions on raw features that people can read: what a score card asks of a customer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from largesse.data import DAY
from largesse.records import Array

WORDS = 12  # of a text, the most frequent, that a condition may ask for
CUTS = 12  # of a number
LEAST = 0.01  # share of customers on either side of a condition
DIGITS = 3


@dataclass(frozen=True)
class Condition:
    """One question about one feature: whether a number or date is below a value, or a text is a word, or it is missing.

    A missing number is below nothing, and missing text is no word.
    """

    feature: str
    kind: str  # "number", "date" or "text"
    value: float | str | None  # None: whether it is missing
    whether: bool = False  # the feature is 0 or 1
    gaps: bool = False  # some customers have no value

    def holds(self, plain: Mapping[str, Array]) -> Array:
        """Return for whom (n,) it holds."""
        column = plain[self.feature]
        if self.kind == "text":
            return np.array([word is None for word in column]) if self.value is None else column == self.value
        known = np.isfinite(column)
        return ~known if self.value is None else known & (np.where(known, column, 0.0) < self.value)

    def words(self, true: bool) -> str:
        """Say that it holds, or that it does not."""
        if self.value is None:
            return f"{self.feature} is {'' if true else 'not '}missing"
        if self.kind == "text":
            return f"{self.feature} is {'' if true else 'not '}{self.value!r}"
        rest = " or missing" if self.gaps and not true else ""
        if self.whether:
            return f"{self.feature} is {0 if true else 1}{rest}"
        if self.kind == "date":
            day = datetime.fromtimestamp(float(self.value), UTC).date().isoformat()
            return f"{self.feature} {'' if true else 'not '}before {day}{rest}"
        return f"{self.feature} {'below' if true else 'at least'} {self.value:g}{rest}"


def list_conditions(plain: Mapping[str, Array], kinds: Mapping[str, str]) -> list[Condition]:
    """Return the conditions that split customers into two parts, neither of them tiny."""
    found = [
        condition
        for name, kind in kinds.items()
        for condition in (_of_text(name, plain[name]) if kind == "text" else _of_numbers(name, kind, plain[name]))
    ]
    shares = [float(condition.holds(plain).mean()) for condition in found]
    return [one for one, share in zip(found, shares, strict=True) if LEAST <= share <= 1 - LEAST]


def _of_text(name: str, column: Array) -> list[Condition]:
    tally = Counter(word for word in column if word is not None)
    words = sorted(tally, key=lambda word: (-tally[word], word))[:WORDS]
    return [Condition(name, "text", word) for word in words] + [Condition(name, "text", None)]


def _of_numbers(name: str, kind: str, column: Array) -> list[Condition]:
    known = column[np.isfinite(column)]
    values, gaps = np.unique(known), len(known) < len(column)
    if len(values) == 2 and tuple(values) == (0.0, 1.0):
        return [Condition(name, kind, 1.0, whether=True, gaps=gaps), Condition(name, kind, None)]
    cuts = np.quantile(known, np.arange(1, CUTS + 1) / (CUTS + 1)) if len(known) else known
    cuts = np.ceil(cuts / DAY) * DAY if kind == "date" else np.array([float(f"{cut:.{DIGITS}g}") for cut in cuts])
    return [Condition(name, kind, float(cut), gaps=gaps) for cut in np.unique(cuts)] + [Condition(name, kind, None)]
