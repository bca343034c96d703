"""Search for positivity violations: groups of customers, by one or two features, who never got a level.

For each level, the largest empty cell of every feature, and of every pair of features, is found by exhaustive search over groups
of values; the ends of its ranges are then moved to the nearest customers who got the level. A cell counts if its share of the
level is nearly zero and clearly below the share next to it: in the other categories, or on both sides of a range. The
comparison with neighbours tells a gap from a region where a level is merely rare, and needs no model of the propensities. A cell of
two features must differ from its neighbours in the direction of each; less clearly, if it differs very clearly from all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from largesse.data import (
    convert_to_floats,
    convert_to_seconds,
    count_words,
    find_feature_kind,
    format_group_limit,
    index_words,
)
from largesse.records import MIN_LEVEL_ROWS, Array, CellCondition, Log, UnsupportedCell, UnsupportedCells
from largesse.stats import sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SEARCH_ROWS = 50_000
MAX_CELL_WORDS = 50  # of a feature, the most frequent first
N_FINE_GROUPS, N_COARSE_GROUPS = 64, 12  # of numbers and dates: alone, in pairs
MAX_PAIRED_FEATURES = 24  # those that a level depends on most
MAX_CELLS_PER_LEVEL = 8
MAX_TESTED_CELLS = 12  # of each search, the largest first
MAX_EXCEPTION_SHARE = 0.005  # of a cell's rows
MIN_ROWS_PER_EXCEPTION = 100  # by which a cell must grow to include one more exception
MAX_SHARE_RATIO = 0.1  # of a cell's share of a level to that of its neighbours
MAX_FALSE_ALARM_SHARE = 0.02  # of logs
# Of the threshold of a cell: its evidence in the direction of each condition, if that from all neighbours is larger by the other factor.
DIRECTION_FACTOR, UNION_FACTOR = 0.75, 1.5
MIN_COMMON_SHARE = 0.9  # of the rows in either of two cells, for one description of both
MIN_DESIGNED_SHARE = 0.5  # of a cell's rows, which exceptions represent if their given propensities are right


def find_unsupported_cells(log: Log, seed: int = 0) -> UnsupportedCells:
    """Find the groups of customers, by one or two features, who never got a level.

    A large log is represented by its sample.

    >>> from largesse.data import log_from_arrays
    >>> rng = np.random.default_rng(0)
    >>> x, level = rng.integers(0, 3, (3000, 2)), rng.integers(0, 3, 3000)
    >>> level[(x[:, 0] == 1) & (level == 2)] = 1
    >>> [(str(cell), cell.levels) for cell in find_unsupported_cells(log_from_arrays(x, level, level)).cells]
    [("'x0' is 1", (2,))]
    """
    log = log.seen
    rows = sample_rows(len(log), MAX_SEARCH_ROWS, seed)
    some = log if len(rows) == len(log) else log.take(rows)
    features = [feature for name in some.features.column_names if (feature := _group_feature(name, some)) is not None]
    if not features:
        return UnsupportedCells()
    units = 1.0 if some.assigned is None else len(np.unique(some.assigned)) / len(some)
    search = _UnsupportedCellSearch(features, some.level, len(log.levels), units, some.propensity)
    cells = [cell for level in range(len(log.levels)) for cell in search.find_cells(level)]
    return _measure_cells(
        log, [_describe_cell(cell, features) for cell in _merge_text_cells(_merge_cells_of_levels(cells))]
    )


def find_supported_levels(cells: UnsupportedCells, table: pa.Table, levels: int) -> Array:
    """Return the mask (n, K) of the levels with support for the customers of a feature table."""
    allowed = np.ones((table.num_rows, levels), dtype=bool)
    for cell in cells.cells:
        allowed[np.ix_(_find_cell_rows(cell, table), np.array(cell.levels))] = False
    return allowed


def mark_supported_levels(cells: UnsupportedCells, log: Log) -> Array | None:
    """Return the mask (n, K) of the levels with support for each row of a log, or None if all have support.

    The log may be a large one.
    """
    if not cells:
        return None
    task = partial(find_supported_levels, cells, levels=len(log.levels))
    if log.sample is None:
        return task(log.features)
    names = sorted({condition.feature for cell in cells.cells for condition in cell.conditions})
    return np.concatenate(list(log.sample.map(task, names, np.arange(len(log)))))


def _find_cell_rows(cell: UnsupportedCell, table: pa.Table) -> Array:
    """Return the mask (n,) of a table's rows in a customer group that never got some level."""
    inside = np.ones(table.num_rows, dtype=bool)
    for condition in cell.conditions:
        column = table.column(condition.feature)
        if condition.kind == "words":
            inside &= index_words(column, condition.words) < len(condition.words)
        elif condition.kind == "missing" and find_feature_kind(column.type) == "text":
            inside &= np.asarray(column.is_null())
        else:
            values = (
                convert_to_seconds(column) if find_feature_kind(column.type) == "date" else convert_to_floats(column)
            )
            inside &= _mark_values_inside(condition, values)
    return inside


def _mark_values_inside(condition: CellCondition, values: Array) -> Array:
    """Return the mask (n,) of numbers that meet a condition on their range.

    A missing number is NaN.
    """
    if condition.kind == "missing":
        return ~np.isfinite(values)
    return (values >= condition.low) & (values <= condition.high) & np.isfinite(values)


def _measure_cells(log: Log, described: Sequence[UnsupportedCell]) -> UnsupportedCells:
    """Count the log's rows in each customer group that never got some level, and sort the groups by size."""
    cells, weight = [], log.weights / log.weights.sum()
    for cell in described:
        inside = _find_cell_rows(cell, log.features)
        exceptions = int(np.isin(log.level[inside], cell.levels).sum())
        cells.append(replace(cell, rows=int(inside.sum()), share=float(weight[inside].sum()), exceptions=exceptions))
    cells.sort(key=lambda cell: -cell.rows * len(cell.levels))
    lacking = ~find_supported_levels(found := UnsupportedCells(tuple(cells)), log.features, len(log.levels))
    n_lacking, K = lacking.sum(axis=1), len(log.levels)
    return replace(
        found,
        share=float(weight[n_lacking > 0].sum()),
        single=float(weight[n_lacking >= max(K - 1, 1)].sum()),
        barred=float(weight @ n_lacking / K),
    )


# -- features -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _GroupedFeature:
    """Feature whose values are divided into groups: ranges of numbers, single categories, and all other values.

    First come the groups in an order, then single ones, then the rest, which no cell is made of.
    """

    name: str
    kind: str  # "words", "numbers" or "dates"
    values: Array  # (n,) numbers, NaN if missing; or the codes of words
    fine: Array  # (n,) groups for the search in one feature
    coarse: Array  # (n,) groups for the search in pairs
    n_ordered: tuple[int, int]  # fine and coarse groups
    n_single: tuple[int, int]
    words: tuple[str, ...] = ()
    flags: bool = False

    def make_condition(self, first: int, last: int, *, coarse: bool) -> CellCondition:
        """Return the condition that a range of neighbouring groups of values corresponds to."""
        if first < self.n_ordered[coarse]:
            code = self.coarse if coarse else self.fine
            inside = self.values[(code >= first) & (code <= last)]
            return CellCondition(self.name, self.kind, low=float(inside.min()), high=float(inside.max()))
        if self.kind == "words" and first < self.n_single[coarse] - 1:
            return CellCondition(self.name, "words", words=(self.words[first],))
        return CellCondition(self.name, "missing", "missing")

    def find_rows(self, condition: CellCondition) -> Array:
        """Return the mask (n,) of the rows that meet a condition on the feature."""
        if condition.kind == "words":
            return np.isin(self.values, [self.words.index(word) for word in condition.words])
        if self.kind == "words":
            return self.values == len(self.words) + 1
        return _mark_values_inside(condition, self.values)


def _group_feature(name: str, log: Log) -> _GroupedFeature | None:
    """Divide the values of a feature into groups, or return None for a constant or unusable feature."""
    import pyarrow as pa

    column = log.features.column(name)
    kind = find_feature_kind(column.type)
    if kind in ("nothing", "other"):
        return None
    if kind == "text":
        words = tuple(list(count_words(column))[:MAX_CELL_WORDS])
        code = index_words(column, words)
        code[np.asarray(column.is_null())] = len(words) + 1
        if (code == code[0]).all():
            return None
        sizes, groups = [], []
        for few in (len(words), min(len(words), N_COARSE_GROUPS)):  # single groups: words and missing; the rest: others
            groups.append(np.where(code == len(words) + 1, few, np.where(code < few, code, few + 1)))
            sizes.append(few + 1)
        return _GroupedFeature(name, "words", code, groups[0], groups[1], (0, 0), (sizes[0], sizes[1]), words)
    values = convert_to_seconds(column) if kind == "date" else convert_to_floats(column)
    values = np.where(np.isfinite(values), values, np.nan)
    known = values[~np.isnan(values)]
    if not len(known) or (len(known) == len(values) and known.min() == known.max()):
        return None
    (fine, n_fine), (coarse, n_coarse) = (_cut_into_ranges(values, known, n) for n in (N_FINE_GROUPS, N_COARSE_GROUPS))
    flags = bool(pa.types.is_boolean(column.type))
    kind_name = "dates" if kind == "date" else "numbers"
    return _GroupedFeature(name, kind_name, values, fine, coarse, (n_fine, n_coarse), (1, 1), flags=flags)


def _cut_into_ranges(values: Array, known: Array, groups: int) -> tuple[Array, int]:
    """Divide numbers into ranges with about equally many rows, and return range numbers (n,) and their count.

    Missing values come last.
    """
    ends = np.unique(known)
    if len(ends) > groups:
        ends = np.unique(np.quantile(known, np.arange(1, groups + 1) / groups, method="inverted_cdf"))
    code = np.searchsorted(ends, values, side="left")
    code[np.isnan(values)] = len(ends)
    return code, len(ends)


# -- search -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _CustomerGroup:
    """Group of customers, by conditions on features, and the levels that these customers never got."""

    places: tuple[int, ...]  # of the features
    conditions: tuple[CellCondition, ...]
    inside: Array  # (n,) bool
    levels: tuple[int, ...] = ()
    expected: float = 0.0
    p: float = 1.0


@dataclass(frozen=True, eq=False)
class _ValueGroupRange:
    """Range of neighbouring groups of values of one feature."""

    place: int
    first: int
    last: int
    coarse: bool


ScoredCells: TypeAlias = tuple[list[tuple[float, tuple[_ValueGroupRange, ...]]], int]
Scorer: TypeAlias = Callable[[int, Array, float], ScoredCells]


@dataclass(frozen=True, eq=False)
class _UnsupportedCellSearch:
    """Search for groups of customers who never got a level, in some rows of a log."""

    features: Sequence[_GroupedFeature]
    level: Array  # (n,)
    K: int
    units_per_row: float  # clusters per row: all rows of a cluster may have the same level
    propensity: Array | None  # (n,) as given
    tables: dict[tuple[int, int], Array] = field(default_factory=dict)  # counts of pairs of groups, by level

    def find_cells(self, level: int) -> list[_CustomerGroup]:
        """Find disjoint groups of customers who never got a level."""
        has, cells = self.level == level, list[_CustomerGroup]()
        open_rows = np.ones(len(has), dtype=bool)
        if has.sum() < MIN_LEVEL_ROWS:
            return []  # too rare for any check of its customers
        while len(cells) < MAX_CELLS_PER_LEVEL:
            cell = self._find_largest_cell(level, open_rows, self._score_features)
            cell = cell or self._find_largest_cell(level, open_rows, self._score_pairs)
            if cell is None:
                break
            cells.append(cell)
            open_rows &= ~cell.inside
        return cells

    def _find_largest_cell(self, level: int, open_rows: Array, score: Scorer) -> _CustomerGroup | None:
        """Return the largest customer group that never got a level and passes the significance test."""
        has = self.level == level
        share = float(has[open_rows].mean()) if open_rows.any() else 0.0
        if share == 0:
            return None
        rows_per_exception = max(1 / (MAX_SHARE_RATIO * share), MIN_ROWS_PER_EXCEPTION)
        scored, n_compared = score(level, open_rows, rows_per_exception)
        scored.sort(key=lambda scored_cell: -scored_cell[0])
        threshold = math.log(max(n_compared, 1) * self.K / MAX_FALSE_ALARM_SHARE)
        for _, groups in scored[:MAX_TESTED_CELLS]:
            cell = self._test_cell(self._extend_cell(groups, has, open_rows), level, open_rows, threshold)
            if cell is not None:
                return cell
        return None

    def _score_features(self, level: int, open_rows: Array, rows_per_exception: float) -> ScoredCells:
        """Score, for each feature, the largest customer group that never got a level, and count the compared groups."""
        weight = np.where(self.level[open_rows] == level, 1 - rows_per_exception, 1.0)
        scored, n_compared = list[tuple[float, tuple[_ValueGroupRange, ...]]](), 0
        n_has = int((weight < 0).sum())  # the largest ranges without any of these rows are no more than they
        for place, feature in enumerate(self.features):
            ordered, single = feature.n_ordered[0], feature.n_single[0]
            score = np.bincount(feature.fine[open_rows], weights=weight, minlength=ordered + single + 1)
            n_compared += min(ordered * (ordered + 1) // 2, 2 * n_has) + single
            if ordered:
                sums = np.concatenate([[0.0], np.cumsum(score[:ordered])])
                lowest = np.minimum.accumulate(sums)[:-1]
                last = int(np.argmax(sums[1:] - lowest))
                first = int(np.argmin(sums[: last + 1]))
                scored.append((float(sums[last + 1] - sums[first]), (_ValueGroupRange(place, first, last, False),)))
            for group in range(ordered, ordered + single):
                scored.append((float(score[group]), (_ValueGroupRange(place, group, group, False),)))
        return [(score, groups) for score, groups in scored if score > 0], n_compared

    def _score_pairs(self, level: int, open_rows: Array, rows_per_exception: float) -> ScoredCells:
        """Score, for each pair of features, the largest group that never got a level, and count the compared groups."""
        scored, n_compared = list[tuple[float, tuple[_ValueGroupRange, ...]]](), 0
        for left, right in combinations(self._choose_features_for_pairs(level, open_rows), 2):
            (left_ranges, left_ends), (right_ranges, right_ends) = (
                _list_group_ranges(self.features[place].n_ordered[1], self.features[place].n_single[1])
                for place in (left, right)
            )
            counts = self._count_pair(left, right, open_rows)
            table = counts.sum(axis=2) - rows_per_exception * counts[:, :, level]
            score = left_ranges @ table @ right_ranges.T
            n_compared += score.size
            i, j = divmod(int(np.argmax(score)), score.shape[1])
            if score[i, j] > 0:
                (a, b), (c, d) = left_ends[i], right_ends[j]
                groups = _ValueGroupRange(left, a, b, True), _ValueGroupRange(right, c, d, True)
                scored.append((float(score[i, j]), groups))
        return scored, n_compared

    def _count_pair(self, left: int, right: int, open_rows: Array) -> Array:
        """Count the rows by the value groups of two features and by level."""
        if (every := bool(open_rows.all())) and (left, right) in self.tables:
            return self.tables[left, right]
        sizes = [
            sum((feature.n_ordered[1], feature.n_single[1], 1))
            for feature in (self.features[left], self.features[right])
        ]
        codes = [self.features[left].coarse, self.features[right].coarse, self.level]
        first, second, level = codes if every else [code[open_rows] for code in codes]
        counts = np.bincount((first * sizes[1] + second) * self.K + level, minlength=sizes[0] * sizes[1] * self.K)
        counts = counts.reshape(*sizes, self.K).astype(np.float64)
        if every:
            self.tables[left, right] = counts
        return counts

    def _choose_features_for_pairs(self, level: int, open_rows: Array) -> list[int]:
        """Choose the features with the most significant lack of a level in some range or category.

        It is measured in standard errors.
        """
        has = self.level[open_rows] == level
        share, lacks = float(has.mean()), []
        for feature in self.features:
            ranges, _ = _list_group_ranges(feature.n_ordered[1], feature.n_single[1])
            code = feature.coarse[open_rows]
            n = ranges @ np.bincount(code, minlength=ranges.shape[1])
            got = ranges @ np.bincount(code[has], minlength=ranges.shape[1])
            lacks.append(float(((n * share - got) / np.sqrt(n * share * (1 - share) + 1e-12)).max(initial=0.0)))
        return sorted(np.argsort(lacks, kind="stable")[-MAX_PAIRED_FEATURES:].tolist())

    def _extend_cell(self, groups: Sequence[_ValueGroupRange], has: Array, open_rows: Array) -> _CustomerGroup:
        """Return the customers in ranges of values, widened to the nearest rows that got the level."""
        places = tuple(part.place for part in groups)
        conditions = [
            self.features[part.place].make_condition(part.first, part.last, coarse=part.coarse) for part in groups
        ]
        for j in [0] if len(places) == 1 else [0, 1, 0]:
            condition, values = conditions[j], self.features[places[j]].values
            if condition.kind not in ("numbers", "dates"):
                continue
            within = open_rows & self._find_rows(places, conditions, left_out=j)
            stops, known = values[within & has], values[within]
            below = float(stops[stops < condition.low].max(initial=-math.inf))
            above = float(stops[stops > condition.high].min(initial=math.inf))
            inside = known[(known > below) & (known < above)]
            if len(inside):
                conditions[j] = replace(condition, low=float(inside.min()), high=float(inside.max()))
        return _CustomerGroup(places, tuple(conditions), open_rows & self._find_rows(places, conditions))

    def _find_rows(self, places: Sequence[int], conditions: Sequence[CellCondition], left_out: int = -1) -> Array:
        """Return the mask (n,) of the rows that meet all conditions, except the condition number `left_out`."""
        rows = np.ones(len(self.level), dtype=bool)
        for j, (place, condition) in enumerate(zip(places, conditions, strict=True)):
            if j != left_out:
                rows &= self.features[place].find_rows(condition)
        return rows

    def _test_cell(self, cell: _CustomerGroup, level: int, open_rows: Array, threshold: float) -> _CustomerGroup | None:
        """Return a customer group if its share of a level is significantly below its neighbours' share, else None.

        It must be so in the direction of every condition.
        """
        has = self.level == level
        n, exceptions = int(cell.inside.sum()), cell.inside & has
        x = int(exceptions.sum())
        if x > MAX_EXCEPTION_SHARE * n or n == 0:
            return None
        if self.propensity is not None and (1 / self.propensity[exceptions]).sum() >= MIN_DESIGNED_SHARE * n:
            return None  # as rare as it was meant to be
        evidence, shares, beside = [], [], []
        for j in range(len(cell.places)):
            around = open_rows & ~cell.inside & self._find_rows(cell.places, cell.conditions, left_out=j)
            neighbours = _find_neighbours(self.features[cell.places[j]].values, cell.conditions[j], around, n)
            m, y = len(neighbours), int(has[neighbours].sum())
            if y * MAX_SHARE_RATIO * n <= x * m:
                return None
            evidence.append(self.units_per_row * _compare_shares(n, x, m, y))
            shares.append(y / m)
            beside.append((m, y))
        m, y = (sum(counts) for counts in zip(*beside, strict=True))
        together = self.units_per_row * _compare_shares(n, x, m, y)
        clear = max(min(evidence), min(min(evidence) / DIRECTION_FACTOR, together / UNION_FACTOR))
        if clear < threshold:
            return None
        p = MAX_FALSE_ALARM_SHARE * math.exp(threshold - clear)
        return replace(cell, levels=(level,), expected=n * min(shares), p=p)


def _list_group_ranges(ordered: int, single: int) -> tuple[Array, list[tuple[int, int]]]:
    """List all ranges of neighbouring value groups of a feature, as masks (ranges, groups) and end points."""
    ends = [(first, last) for first in range(ordered) for last in range(first, ordered)]
    ends += [(group, group) for group in range(ordered, ordered + single)]
    groups, firsts, lasts = np.arange(ordered + single + 1), *np.array(ends).T
    return ((groups >= firsts[:, None]) & (groups <= lasts[:, None])).astype(np.float64), ends


def _find_neighbours(values: Array, condition: CellCondition, around: Array, n: int) -> Array:
    """Return the rows next to a range of values, at most n on each side, or all rows outside a category."""
    rows = np.flatnonzero(around)
    if condition.kind not in ("numbers", "dates"):
        return rows
    distance = [condition.low - values[rows], values[rows] - condition.high]
    sides = [rows[d > 0][np.argsort(d[d > 0], kind="stable")[:n]] for d in distance]
    return np.concatenate(sides)


def _compare_shares(n: int, x: int, m: int, y: int) -> float:
    """Return the log-likelihood ratio of two different shares, x of n and y of m, against a common share."""

    def fit(rows: int, hits: int) -> float:
        return sum(count * math.log(count / rows) for count in (hits, rows - hits) if count)

    return fit(n, x) + fit(m, y) - fit(n + m, x + y)


# -- descriptions -------------------------------------------------------------------------------------------------------


def _merge_cells_of_levels(cells: Sequence[_CustomerGroup]) -> list[_CustomerGroup]:
    """Merge groups of customers that lack different levels but consist of nearly the same rows.

    The smaller range of each feature holds for all.
    """
    merged: list[_CustomerGroup] = []
    for cell in cells:
        for k, other in enumerate(merged):
            same = [(c.feature, c.kind, c.words) for c in cell.conditions] == [
                (c.feature, c.kind, c.words) for c in other.conditions
            ]
            common = (cell.inside & other.inside).sum() >= MIN_COMMON_SHARE * (cell.inside | other.inside).sum()
            if same and common and not set(cell.levels) & set(other.levels):
                conditions = tuple(
                    replace(a, low=max(a.low, b.low), high=min(a.high, b.high))
                    for a, b in zip(cell.conditions, other.conditions, strict=True)
                )
                merged[k] = replace(
                    other,
                    conditions=conditions,
                    inside=cell.inside & other.inside,
                    levels=tuple(sorted((*other.levels, *cell.levels))),
                    expected=other.expected + cell.expected,
                    p=max(other.p, cell.p),
                )
                break
        else:
            merged.append(cell)
    return merged


def _merge_text_cells(cells: Sequence[_CustomerGroup]) -> list[_CustomerGroup]:
    """Merge groups of customers, by categories of one text feature, that lack the same levels."""
    merged: list[_CustomerGroup] = []
    by_words: dict[tuple[int, tuple[int, ...]], int] = {}
    for cell in cells:
        condition = cell.conditions[0]
        if len(cell.conditions) > 1 or condition.kind != "words":
            merged.append(cell)
        elif (key := (cell.places[0], cell.levels)) in by_words:
            other = merged[by_words[key]]
            words = tuple(sorted((*other.conditions[0].words, *condition.words)))
            merged[by_words[key]] = replace(
                other,
                conditions=(replace(condition, words=words),),
                inside=cell.inside | other.inside,
                expected=other.expected + cell.expected,
                p=max(other.p, cell.p),
            )
        else:
            by_words[key] = len(merged)
            merged.append(cell)
    return merged


def _describe_cell(cell: _CustomerGroup, features: Sequence[_GroupedFeature]) -> UnsupportedCell:
    """Return the record of a customer group that never got some level, with its conditions in words.

    Ranges end half-way to the next value.
    """
    conditions = tuple(
        _describe_condition(condition, features[place])
        for place, condition in zip(cell.places, cell.conditions, strict=True)
    )
    return UnsupportedCell(conditions, cell.levels, 0, 0.0, 0, cell.expected, cell.p)


def _describe_condition(condition: CellCondition, feature: _GroupedFeature) -> CellCondition:
    if condition.kind == "words":
        return replace(condition, label=" or ".join(map(repr, condition.words)))
    if condition.kind == "missing":
        return condition
    below = feature.values[feature.values < condition.low].max(initial=-math.inf)
    above = feature.values[feature.values > condition.high].min(initial=math.inf)

    def name(value: float) -> str:
        if feature.flags:
            return "yes" if value else "no"
        return str(np.datetime64(int(value), "s"))[:10] if feature.kind == "dates" else format_group_limit(value)

    first, last = name(condition.low), name(condition.high)
    if condition.low == condition.high:
        label = first
    elif math.isinf(below):
        label = f"up to {last}"
    else:
        label = f"{first} or more" if math.isinf(above) else f"{first} to {last}"
    low = -math.inf if math.isinf(below) else (below + condition.low) / 2
    high = math.inf if math.isinf(above) else (above + condition.high) / 2
    return replace(condition, label=label, low=float(low), high=float(high))
