"""Checks of log and customer tables, which report all problems together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.arrow_columns import (
    convert_to_comparable,
    convert_to_floats,
    count_words,
    decode_dictionary,
    find_skip_reason,
    format_values,
    is_number_type,
    is_text_type,
    is_unusable_type,
)
from largesse.data.propensity_checks import PROPENSITY_HINT
from largesse.data.text_parsing import detect_number_notation, is_plain_number, parse_numbers, replace_words
from largesse.errors import Problem, join_some, percent, plural, suggest
from largesse.levels import Levels
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

MAX_RESPONSE = 1e30  # models work in float32, and with squares in float64
MIN_LARGEST_WEIGHT, MAX_LARGEST_WEIGHT = 1e-100, 1e100  # squares of larger or smaller weights overflow or underflow
MIN_WEIGHTED_ROWS = 10.0
MIN_WEIGHT_SHARE = 1e-9  # of all weight; levels with less cannot be estimated
MAX_MISSING_RESPONSES = 0.2  # share of the rows; with more, missing values probably have a meaning


@dataclass
class TableChecker:
    """Checker of one table: its methods read columns by role and collect all problems."""

    table: pa.Table
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stand_ins: Mapping[str, pa.ChunkedArray] = field(
        default_factory=dict
    )  # short columns in place of features, for logs larger than memory

    def add_problem(self, what: str, hint: str) -> None:
        """Add a problem and its hint to the list of problems."""
        self.problems.append(Problem(what, hint))

    def require_column(self, name: str, role: str) -> None:
        """Add a problem if the table lacks a column."""
        if name not in self.table.column_names:
            self.add_problem(f"the {role} column {name!r} is not in the table", suggest(name, self.table.column_names))

    def check_roles(self, named: dict[str, str], levels: Levels, features: Sequence[str] | None) -> None:
        """Check that all named columns exist and have compatible roles."""
        for role, column in named.items():
            self.require_column(column, role.removesuffix("_column"))
        for column in levels.cost_columns or ():
            self.require_column(column, "cost")
        for column in features or ():
            self.require_column(column, "feature")
        seen: dict[str, str] = {}
        for role, column in named.items():
            # One column may be customer and cluster: repeated customers are their own cluster.
            if column in seen and {role, seen[column]} != {"customer", "cluster"}:
                self.add_problem(
                    f"{column!r} is named both as {seen[column]} and as {role}", "each role needs its own column"
                )
            seen[column] = role
        listed = list(features or ())
        targets = ("level", "response", "propensity", "cost_column")
        if clashes := [column for column in dict.fromkeys(listed) if seen.get(column) in targets]:
            roles = join_some([f"{column!r} ({seen[column].removesuffix('_column')})" for column in clashes])
            hint = "a model may not see what it must predict: take them out of the features"
            self.add_problem(f"columns with another role are also listed as features: {roles}", hint)
        if repeated := [column for column in dict.fromkeys(listed) if listed.count(column) > 1]:
            self.add_problem(
                f"features are listed twice: {join_some([*map(repr, repeated)])}", "list each feature once"
            )
        if len(levels) < 2:
            self.add_problem("there is only one level", "a choice needs at least two levels with their costs")

    def check_protected(self, protected: Sequence[str], named: dict[str, str]) -> None:
        """Check that the protected columns exist, can be grouped and have no other role."""
        roles = {column: role for role, column in named.items()}
        for name in protected:
            self.require_column(name, "protected")
            if name in roles:
                role = roles[name].removesuffix("_column")
                self.add_problem(f"{name!r} is named both as {role} and as protected", "each role needs its own column")
            elif name in self.table.column_names and is_unusable_type(self.table.column(name).type):
                kind = self.table.column(name).type
                self.add_problem(f"the protected column {name!r} holds {kind}", "write numbers, text or dates")

    def read_level(self, name: str, levels: Levels) -> tuple[Array, Levels]:
        """Return the level number (n,) of each row, and the levels in the log's notation.

        Unknown values get −1.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        column = convert_to_comparable(self.table.column(name))
        if column.null_count:
            self.add_problem(
                f"the level column {name!r} is missing in {plural(column.null_count, 'row')}",
                "write the level they got (the lowest, if nothing was given)",
            )
        if not (is_text_type(column.type) or is_number_type(column.type) or pa.types.is_null(column.type)):
            self.add_problem(f"the level column {name!r} holds {column.type}", "levels are numbers, amounts or names")
            return np.zeros(len(column), dtype=np.int64), levels
        column = _convert_numeric_levels(column, levels)
        distinct = pc.unique(column).drop_null()
        words = is_text_type(distinct.type)
        levels = _set_costs_as_doses(levels, distinct, words)
        values: Sequence[Any] = levels.labels if words else _list_level_numbers(levels)
        lookup = pa.array(values, type=pa.string() if words else pa.float64())
        keys = column if words else column.cast(pa.float64(), safe=False)
        index = pc.fill_null(pc.index_in(keys, value_set=lookup), -1)
        codes = np.asarray(index, dtype=np.int64)
        odd = column.filter(pa.array(codes < 0)).drop_null()
        if len(odd):
            unknown = sorted(format_values(pc.unique(odd)))
            known = join_some([f"{v:g}" if isinstance(v, float) else v for v in values], 12)
            self.add_problem(
                f"{name!r} holds a level that is not in the list in {plural(len(odd), 'row')}: {join_some(unknown)}",
                f"the list is: {known}",
            )
        return codes, levels

    def read_response(self, name: str, *, may_be_constant: bool = False) -> Array:
        """Return the response (n,) of each row; a missing response is NaN.

        They must be finite, mostly present, and not constant unless `may_be_constant`.
        """
        values = self.read_numbers(name, "response")
        if values is None:
            return np.zeros(len(self.table))
        if np.isinf(values).any():
            self.add_problem(
                f"the response {name!r} is infinite in {plural(int(np.isinf(values).sum()), 'row')}",
                "write finite numbers",
            )
        missing = np.isnan(values)
        if missing.all():
            self.add_problem(f"the response {name!r} is missing in every row", "name the column with the response")
        elif missing.mean() > MAX_MISSING_RESPONSES:
            share = percent(missing.mean())
            self.add_problem(
                f"the response {name!r} is missing in {share} of the rows",
                "write 0 if missing means that nothing happened; else leave those rows out",
            )
        elif np.nanmax(np.abs(values), where=np.isfinite(values), initial=0.0) > MAX_RESPONSE:
            largest = values[np.nanargmax(np.abs(values))]
            self.add_problem(
                f"the response {name!r} is as large as {largest:g}",
                f"the largest number allowed is {MAX_RESPONSE:g}: is it a code for missing? Else use a larger unit",
            )
        elif missing.any():
            self.notes.append(f"{plural(int(missing.sum()), 'row')} without a response left out")
        if not may_be_constant and not missing.all() and np.nanmin(values) == np.nanmax(values):
            self.add_problem(
                f"the response {name!r} is {np.nanmin(values):g} in every row",
                "there is nothing to learn from; is it the right column?",
            )
        return values

    def read_propensity(self, name: str) -> Array | None:
        """Return the propensity (n,) of each row, which must lie in (0, 1]."""
        values = self.read_numbers(name, "propensity")
        if values is None:
            return None
        bad = ~((values > 0) & (values <= 1))
        if bad.any():
            examples = join_some([f"{v:g}" for v in np.unique(values[bad])], 3)
            percent = np.nanmin(values, initial=1) >= 0 and 1 < np.nanmax(values, initial=0) <= 100
            hint = f'if these are percentages: parse = {{"{name}" = "percent"}}; ' if percent else ""
            self.add_problem(
                f"the propensity {name!r} is not in (0, 1] in {plural(int(bad.sum()), 'row')}: {examples}",
                hint + PROPENSITY_HINT,
            )
            return None
        return values

    def read_weight(self, name: str) -> Array | None:
        """Return the weights (n,) of the rows.

        They must be zero or more, and positive in enough rows.
        """
        values = self.read_numbers(name, "weight")
        if values is None:
            return None
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            self.add_problem(
                f"the weight {name!r} is missing, infinite or negative in {plural(int(bad.sum()), 'row')}",
                "weights are zero or more",
            )
            return None
        largest = float(values.max())
        if largest == 0:
            self.add_problem(f"every weight in {name!r} is zero", "at least one row must count")
        elif not MIN_LARGEST_WEIGHT <= largest <= MAX_LARGEST_WEIGHT:
            self.add_problem(
                f"the largest weight in {name!r} is {largest:g}", "divide all weights by it: only ratios matter"
            )
        else:
            self._check_effective_rows(name, values / largest)
        return values

    def _check_effective_rows(self, name: str, weight: Array) -> None:
        """Add a problem if the row weights (n,) leave too small an effective sample size."""
        effective = float(weight.sum()) ** 2 / float(weight @ weight)
        if effective < min(MIN_WEIGHTED_ROWS, len(weight) / 2):
            top = np.argsort(-weight, kind="stable")[:3]
            share = float(weight[top].sum() / weight.sum())
            self.add_problem(
                f"the weights {name!r} leave only about {effective:.1f} of {plural(len(weight), 'row')} to learn from: "
                f"{percent(share, 1)} of the weight is on rows {join_some([str(row) for row in top])}",
                "check the computation of the weights; leave the column out to weight all rows equally",
            )

    def read_groups(self, name: str, role: str) -> Array:
        """Return the group number (n,) of each row, numbered by first appearance."""
        import pyarrow.compute as pc

        column = convert_to_comparable(self.table.column(name))
        if self._refuse_incomparable_type(name, role, column.type):
            return np.zeros(len(column), dtype=np.int64)
        if column.null_count:
            self.add_problem(
                f"the {role} column {name!r} is missing in {plural(column.null_count, 'row')}",
                f"give every row its {role}",
            )
        return np.asarray(pc.fill_null(pc.index_in(column, value_set=pc.unique(column)), -1), dtype=np.int64)

    def read_ids(self, name: str, *, repeats: bool) -> pa.Array:
        """Return the customer ids (n,); missing ids are a problem, and so are repeated ids unless allowed."""
        import pyarrow.compute as pc

        column = convert_to_comparable(self.table.column(name)).combine_chunks()
        if self._refuse_incomparable_type(name, "customer", column.type):
            return column
        if column.null_count:
            self.add_problem(
                f"the customer id {name!r} is missing in {plural(column.null_count, 'row')}", "give every row an id"
            )
        tally = pc.value_counts(column.drop_null())
        twice = tally.filter(pc.greater(tally.field("counts"), 1))
        if len(twice) and not repeats:
            examples = join_some(format_values(twice.field("values")), 3)
            hint = f"keep one row per customer, or, in a log, name {name!r} as the cluster too"
            self.add_problem(f"the customer id {name!r} repeats {plural(len(twice), 'customer')}: {examples}", hint)
        return column

    def _refuse_incomparable_type(self, name: str, role: str, kind: pa.DataType) -> bool:
        """Add a problem, and return True, if a column's type, such as a list, cannot identify or group rows."""
        import pyarrow.types as types

        if not is_unusable_type(kind) or types.is_binary(kind) or types.is_fixed_size_binary(kind):
            return False
        self.add_problem(f"the {role} column {name!r} holds {kind}", "write numbers or text")
        return True

    def read_costs(self, levels: Levels) -> Array | None:
        """Return each customer's costs (n, K); None if all customers have the same costs.

        They must be zero or more, and non-decreasing in the level.
        """
        if levels.cost_columns is None:
            return None
        columns = [self.read_numbers(name, "cost") for name in levels.cost_columns]
        if any(column is None for column in columns):
            return None
        costs = np.column_stack([column for column in columns if column is not None])
        bad = ~np.isfinite(costs) | (costs < 0)
        if bad.any():
            names = join_some([levels.cost_columns[k] for k in np.flatnonzero(bad.any(axis=0))])
            self.add_problem(
                f"a cost is negative, missing or infinite in {plural(int(bad.any(axis=1).sum()), 'row')} of {names}",
                "every customer needs a cost of zero or more for every level",
            )
        elif (np.diff(costs, axis=1) < 0).any():
            falls = int((np.diff(costs, axis=1) < 0).any(axis=1).sum())
            self.add_problem(
                f"costs fall as levels rise in {plural(falls, 'row')}",
                "list the cost columns from the cheapest level to the dearest",
            )
        return costs

    def check_rows_per_level(self, codes: Array, outcome: Array, levels: Levels, weight: Array | None) -> None:
        """Check that every level has logged rows with a positive weight."""
        if self.problems:
            return
        seen = np.isfinite(outcome) & (codes >= 0)
        rows = np.bincount(codes[seen], minlength=len(levels))
        empty = [levels.labels[k] for k in np.flatnonzero(rows == 0)]
        hint = "a level without rows cannot be evaluated: leave it out of the levels, or try it on some customers first"
        if empty:
            self.add_problem(f"no row of the log has level {join_some(empty)}", hint)
        if weight is None:
            return
        mass = np.bincount(codes[seen], weights=weight[seen] / weight[seen].max(initial=0.0), minlength=len(levels))
        light = [levels.labels[k] for k in np.flatnonzero((rows > 0) & (mass <= MIN_WEIGHT_SHARE * mass.sum()))]
        if light:
            self.add_problem(f"all rows with level {join_some(light)} have weight zero, or nearly zero", hint)

    def mark_observed_costs(self, levels: Levels, named: bool) -> Levels:
        """Return the levels, marked as having observed costs if the log has a cost column."""
        if levels.observed and not named:
            hint = "name the column with what each row cost: cost_column=…"
            self.problems.append(Problem("costs are observed, but no column with the paid costs is named", hint))
        if levels.observed or not named:
            return levels
        cost_settings = {
            "on_redemption": levels.on_redemption,
            "contact_cost": levels.contact_cost,
            "costs": levels.cost_columns,
        }
        if clash := [word for word, on in cost_settings.items() if on]:
            hint = "a column of observed costs holds all that a row cost: keep one of the two"
            self.problems.append(Problem(f"a cost column is named, and also {clash[0]}", hint))
            return levels
        if any(levels.costs):
            self.notes.append("costs are observed: the costs listed for the levels are not used")
        return replace(levels, observed=True)

    def read_observed_costs(self, name: str, outcome: Array) -> Array | None:
        """Return the observed cost (n,) of each row.

        They must be zero or more, and not all zero; rows without a response need none.
        """
        values = self.read_numbers(name, "cost")
        if values is None:
            return None
        known = np.isfinite(outcome)
        bad = known & ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            self.add_problem(
                f"the cost {name!r} is missing, infinite or negative in {plural(int(bad.sum()), 'row')}",
                "write the cost of the row, 0 if nothing was paid",
            )
        elif values[known].max(initial=0.0) > MAX_RESPONSE:
            hint = f"the largest number allowed is {MAX_RESPONSE:g}: is it a code for missing? Else use a larger unit"
            self.add_problem(f"the cost {name!r} is as large as {values[known].max():g}", hint)
        elif not values[known].any():
            self.add_problem(f"the cost {name!r} is 0 in every row", "name the column with the paid costs")
        return values

    def select_features(self, listed: Sequence[str] | None, taken: set[str]) -> pa.Table:
        """Return the feature columns: the listed columns, or all usable columns without a role."""
        names = list(listed) if listed is not None else [n for n in self.table.column_names if n not in taken]
        selected = []
        for name in names:
            column = self.stand_ins.get(name, self.table.column(name))
            if listed is not None and is_unusable_type(column.type):
                hint = "features are numbers, booleans, text, dates or times"
                self.add_problem(f"the feature {name!r} holds {column.type}", hint)
            elif listed is None and (reason := find_skip_reason(name, column)):
                self.notes.append(f"column {name!r} left out: {reason}")
            else:
                selected.append(name)
                self.notes += _note_doubtful_feature(name, column)
        if not selected and not self.problems:
            self.add_problem("there is no column left to learn from", "the log needs at least one feature")
        return self.table.select(selected)

    def read_numbers(self, name: str, role: str) -> Array | None:
        """Return a column as float64 (n,) with NaN for missing values; None if the column is not numeric."""
        import pyarrow as pa

        column = decode_dictionary(self.table.column(name))
        kind = column.type
        if pa.types.is_null(kind):
            return np.full(len(column), np.nan)
        words = list(count_words(column)) if is_text_type(kind) else []
        if values := parse_numbers(words):  # numbers, yes or no as text
            examples = join_some([f"{word!r} is {value:g}" for word, value in zip(words, values, strict=True)], 2)
            self.notes.append(f"the {role} {name!r} is text, read as numbers: {examples}")
            return convert_to_floats(replace_words(column, words, values))
        if not is_number_type(kind):
            self.add_problem(*_describe_non_numbers(name, role, column))
            return None
        return convert_to_floats(column)


def _describe_non_numbers(name: str, role: str, column: pa.ChunkedArray) -> tuple[str, str]:
    """Describe the non-numeric values of a column, and suggest a remedy.

    Of a mostly numeric column, only the other words are named.
    """
    key = f'"{name}"'
    if is_text_type(column.type):
        tally = count_words(column)
        style = detect_number_notation(list(tally))
        rows = sum(tally[word] for word in style.odd)
        if style.way != "none" and 0 < rows < len(column) / 2:
            got = f"the {role} column {name!r} holds text in {plural(rows, 'row')}: {join_some([repr(w) for w in style.odd])}"
            return got, "write numbers there; leave the cell empty where there is none"
    examples = join_some(format_values(column.slice(0, 3)))
    return (
        f"the {role} column {name!r} does not hold numbers but {column.type}: {examples}",
        f'give numbers, or name the notation: parse = {{{key} = "decimal comma"}} or {{{key} = {{yes = 1, no = 0}}}}',
    )


def _convert_numeric_levels(column: pa.ChunkedArray, levels: Levels) -> pa.ChunkedArray:
    """Convert a level column with numbers written as text to numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if levels.names is not None or not is_text_type(column.type):
        return column
    words = pc.unique(column).drop_null()
    texts = words.to_pylist()
    if not all(re.search("[0-9]", text) for text in texts):  # "yes" and "no" are names of levels
        return column
    values = [float(t) for t in texts] if all(map(is_plain_number, texts)) else parse_numbers(texts)
    if values is None:
        return column
    numbers = pa.array(values, type=pa.float64())
    return numbers.take(pc.index_in(column, value_set=words).combine_chunks())


def _set_costs_as_doses(levels: Levels, distinct: pa.Array, words: bool) -> Levels:
    """Return the levels with their costs as doses if the log holds costs in place of level numbers."""
    common = None if levels.cost_columns else np.asarray(levels.costs, dtype=np.float64)
    if words or levels.doses is not None or common is None or len(set(common.tolist())) < len(common):
        return levels
    if levels.names is not None and all(is_plain_number(name) for name in levels.names):
        return levels
    logged = {float(value) for value in distinct.to_pylist()}
    if logged <= set(range(len(levels))) or not logged <= set(common.tolist()):
        return levels
    return replace(levels, doses=tuple(common.tolist()))


def _list_level_numbers(levels: Levels) -> list[float]:
    """Return the number that denotes each level in the log: its dose, its numeric name, or 0..K−1."""
    if levels.doses is not None:
        return list(levels.doses)
    if levels.names is not None and all(is_plain_number(name) for name in levels.names):
        return [float(name) for name in levels.names]
    return [float(k) for k in range(len(levels))]


def _note_doubtful_feature(name: str, column: pa.ChunkedArray) -> list[str]:
    """Return notes on a feature that is empty, constant or like an identifier."""
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return [f"column {name!r} is empty: it has no information"]
    if reason := find_skip_reason(name, column):
        return [f"column {name!r} is listed as a feature: {reason}"]
    if len(column) > 1 and all(len(pc.unique(part)) == 1 for part in (column.slice(0, 1000), column)):
        value = join_some(format_values(decode_dictionary(column).slice(0, 1)))
        return [f"column {name!r} is {value} in every row: it has no information"]
    return []
