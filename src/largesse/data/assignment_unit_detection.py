"""Detection of the assignment unit: the coarsest column, such as a village, within which the level never varies.

Rows of such a group did not get their levels independently of each other, whether or not the log names the group as a cluster. A
column counts if its groups agree far more often than independent levels would, and if their levels do not follow its values: a
rule that gave a level from some age on has constant levels within each age, but no unit of chance.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.data.arrow_columns import convert_to_comparable, convert_to_floats, convert_to_seconds, find_feature_kind
from largesse.records import Array, AssignmentUnit
from largesse.stats import sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

MAX_UNIT_SEARCH_ROWS = 200_000
MIN_UNITS, MIN_UNITS_PER_LEVEL = 10, 2
MIN_CONSTANT_SHARE = 0.98  # of the groups with several rows: a few rows may be recorded wrongly
MIN_GROUPED_SHARE = 0.05  # of the rows, in groups with several rows
MAX_CHANCE = 1e-9  # probability that independent levels agree as often, by Chernoff's bound
# Changes of level along the values of a column that a rule makes: relative to those of a random order, and per level.
MAX_RULE_SHARE, MAX_RULE_CHANGES = 0.25, 3
MAX_GROUP_RATIO = 1.25  # of columns with the same groups, up to ties


@dataclass(frozen=True, eq=False)
class _CandidateUnit:
    """Column that may be the assignment unit, because the level is constant within each of its values."""

    name: str
    groups: int
    rank: tuple[bool, bool]  # not the named cluster; a feature


def find_assignment_unit(
    table: pa.Table,
    level: Array,
    skip: Collection[str] = (),
    features: Collection[str] = (),
    cluster: str | None = None,
) -> AssignmentUnit | None:
    """Find the coarsest column within whose values the level is constant; return None without such a column.

    Columns in `skip`, such as the level itself, are not searched. Of columns with the same groups, the named `cluster` is preferred,
    then one that is no feature.

    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> village = rng.integers(0, 40, 400)
    >>> table = pa.table({"age": rng.integers(18, 80, 400), "village": village})
    >>> find_assignment_unit(table, rng.integers(0, 3, 40)[village]).column
    'village'
    """
    rows, candidates = sample_rows(table.num_rows, MAX_UNIT_SEARCH_ROWS), []
    for name in table.column_names:
        if name in skip:
            continue
        column = table.column(name) if len(rows) == table.num_rows else table.column(name).take(rows)
        if groups := _count_units(column, level[rows]):
            candidates.append(_CandidateUnit(name, groups, (name != cluster, name in features)))
    if not candidates:
        return None
    fewest = min(candidate.groups for candidate in candidates)
    same = [candidate for candidate in candidates if candidate.groups <= MAX_GROUP_RATIO * fewest]
    chosen = min(same, key=lambda candidate: (candidate.rank, -candidate.groups))
    code = index_distinct_values(table.column(chosen.name))
    return AssignmentUnit(chosen.name, code, int(code.max()) + 1)


def index_distinct_values(column: pa.ChunkedArray) -> Array:
    """Return the index (n,) of each row's distinct value; each missing value gets an index of its own."""
    values = convert_to_comparable(column).combine_chunks().dictionary_encode()
    missing = np.asarray(values.indices.is_null())
    code = np.asarray(values.indices.fill_null(0), dtype=np.int64)
    code[missing] = len(values.dictionary) + np.arange(int(missing.sum()))
    return code


def _count_units(column: pa.ChunkedArray, level: Array) -> int:
    """Return the number of distinct values of a column if levels (n,) are constant within each, else 0."""
    kind = find_feature_kind(column.type)
    if kind in ("nothing", "other"):
        return 0
    code, K = index_distinct_values(column), int(level.max()) + 1
    groups = int(code.max()) + 1
    if not max(MIN_UNITS, MIN_UNITS_PER_LEVEL * K) <= groups <= (1 - MIN_GROUPED_SHARE / 2) * len(code):
        return 0
    counts = np.bincount(code * K + level, minlength=groups * K).reshape(groups, K)
    sizes, most = counts.sum(axis=1), counts.max(axis=1)
    several = sizes > 1
    if sizes[several].sum() < MIN_GROUPED_SHARE * len(code):
        return 0
    constant = float((most == sizes)[several].mean())
    shares = np.bincount(level, minlength=K) / len(level)
    by_chance = float((shares[None, :] ** sizes[several][:, None]).sum(axis=1).mean())
    if constant < MIN_CONSTANT_SHARE or several.sum() * _measure_divergence(constant, by_chance) < -np.log(MAX_CHANCE):
        return 0
    if kind == "text":
        return groups
    values = convert_to_seconds(column) if kind == "date" else convert_to_floats(column)
    if kind == "number" and (values[np.isfinite(values)] % 1).any():
        return 0  # a measure: groups are named by ids, words or dates
    first = np.unique(code, return_index=True)[1]
    ordered = np.argsort(values[first], kind="stable")
    return 0 if _follows_row_order(counts.argmax(axis=1)[ordered]) else groups


def _measure_divergence(share: float, expected: float) -> float:
    """Return the Kullback–Leibler divergence of an observed from an expected share; 0 unless it is larger."""
    if share <= expected or not 0 < expected < 1:
        return 0.0
    left = (1 - share) * np.log((1 - share) / (1 - expected)) if share < 1 else 0.0
    return float(share * np.log(share / expected) + left)


def _follows_row_order(level: Array) -> bool:
    """Test if levels (m,) change far less often from row to row than randomly ordered levels."""
    changes, counts, m = int((level[1:] != level[:-1]).sum()), np.bincount(level), len(level)
    K = int(np.count_nonzero(counts))
    expected = (m - 1) * (1 - float((counts * (counts - 1)).sum()) / (m * (m - 1)))
    return changes <= max(K - 1, min(MAX_RULE_SHARE * expected, MAX_RULE_CHANGES * K))
