"""Random groups of customers, defined by conditions on one or two features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from largesse.records import Array

GROUP_KINDS = ("category", "range", "pair")
MAX_GROUP_DRAWS = 200
PAIR_SHARES = (0.2, 0.75)  # of each condition of a pair


@dataclass(frozen=True)
class FeatureCondition:
    """Condition on one feature: a category, or a range of numbers.

    Customers with a missing value do not meet it.
    """

    feature: str
    word: str | None = None
    low: float = -np.inf
    high: float = np.inf

    def find_members(self, table: pa.Table) -> Array:
        """Return the mask (n,) of customers who meet the condition."""
        column = table.column(self.feature)
        if self.word is not None:
            return np.array([value == self.word for value in column.to_pylist()])
        values = np.array([np.nan if value is None else float(value) for value in column.to_pylist()])
        with np.errstate(invalid="ignore"):
            return (values >= self.low) & (values <= self.high)


@dataclass(frozen=True)
class RandomCustomerGroup:
    """Group of customers who meet all of several conditions."""

    kind: str  # of `GROUP_KINDS`
    conditions: tuple[FeatureCondition, ...]

    def find_members(self, table: pa.Table) -> Array:
        """Return the mask (n,) of customers in the group."""
        return np.logical_and.reduce([condition.find_members(table) for condition in self.conditions])


def draw_customer_group(
    table: pa.Table, rng: np.random.Generator, shares: tuple[float, float] = (0.05, 0.4)
) -> RandomCustomerGroup | None:
    """Draw a random group with a share of customers between two limits; None if no such group is found."""
    words = [name for name in table.column_names if pa.types.is_string(table.schema.field(name).type)]
    flags = [name for name in table.column_names if name.startswith("binary")]
    numbers = [name for name in table.column_names if name not in words and name not in flags]
    columns = {"category": words + flags, "range": numbers, "pair": table.column_names}
    kinds = [kind for kind in GROUP_KINDS if len(columns[kind]) > (kind == "pair")]
    kind = str(rng.choice(kinds))
    for _ in range(MAX_GROUP_DRAWS):
        names = rng.choice(columns[kind], 2 if kind == "pair" else 1, replace=False)
        limits = PAIR_SHARES if kind == "pair" else shares
        group = RandomCustomerGroup(
            kind, tuple(_draw_feature_condition(table, str(name), rng, limits) for name in names)
        )
        if shares[0] <= group.find_members(table).mean() <= shares[1]:
            return group
    return None


def _draw_feature_condition(
    table: pa.Table, name: str, rng: np.random.Generator, limits: tuple[float, float]
) -> FeatureCondition:
    """Draw a random category of a feature, or a random range of its values."""
    known = table.column(name).drop_null().to_pylist()
    if isinstance(known[0], str):
        return FeatureCondition(name, word=str(rng.choice(sorted(set(known)))))
    if name.startswith("binary"):
        value = float(rng.integers(2))
        return FeatureCondition(name, low=value, high=value)
    share = rng.uniform(*limits)
    start = float(rng.choice([0.0, 1.0 - share, rng.uniform(0.0, 1.0 - share)]))
    low, high = np.quantile(known, [start, start + share], method="inverted_cdf")
    return FeatureCondition(
        name, low=-np.inf if start == 0 else float(low), high=np.inf if start == 1 - share else float(high)
    )
