"""Draft of a campaign for a table: guessed column roles, levels, costs and budget.

Columns are guessed. Costs, budget and an order that the levels' names do not state cannot be: they are suggestions only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign.role_detection import (
    EXCLUDED,
    IDENTIFIER,
    MAX_LEVELS,
    DraftColumn,
    RoleGuesses,
    find_columns_after_response,
    find_columns_fixed_by_level,
    guess_roles,
)
from largesse.data import (
    PLAIN_TEXT_ROLES,
    LevelOrder,
    NotationSuggestion,
    QueriedFile,
    check_column_names,
    convert_to_floats,
    decode_dictionary,
    find_assignment_unit,
    find_encoding_problems,
    find_feature_kind,
    find_skip_reason,
    group_column_values,
    index_distinct_values,
    means_no_incentive,
    order_levels,
    parse_unambiguous_columns,
    read_table,
)
from largesse.errors import Problem, find_path_problems, percent, refuse, suggest
from largesse.evaluation import measure_explained_share
from largesse.records import Array
from largesse.stats import sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

MAX_PROFILED_ROWS = 50_000
N_PROFILE_GROUPS = 50
SUSPECTED_SHARE = 0.5  # of the variance of the response or the level that one column explains


@dataclass(frozen=True, eq=False)
class TableProfile:
    """Table with the kind and the values of each column, before the roles are guessed."""

    table: pa.Table  # text as it is written
    read: pa.Table  # text parsed, if there is one way to read it
    columns: Mapping[str, DraftColumn]
    written: Mapping[str, NotationSuggestion]  # columns of text -> how they can be read

    def make_draft(
        self, known: Mapping[str, str] | None = None, exclude: Sequence[str] = (), known_before: Sequence[str] = ()
    ) -> CampaignDraft:
        """Guess the roles of the columns, given known roles, and return the draft of a campaign.

        Columns in `exclude` get no role; those in `known_before` are features, as far as they have no other role.
        """
        listed = [(word, names) for word, names in (("excluded", exclude), ("known_before", known_before))]
        named = {**(known or {})} | {f"{word} {k + 1}": name for word, names in listed for k, name in enumerate(names)}
        refuse("log", find_unknown_columns(named, self.table.column_names))
        candidates = [column for column in self.columns.values() if column.name not in exclude]
        guess = guess_roles(candidates, self.table.num_rows, known)
        guess = replace(guess, left_out=self._find_left_out_columns(guess, exclude, known_before))
        guess = replace(guess, doubts=self._find_doubtful_features(guess, known_before))
        return self.make_draft_with_roles(guess if "cluster" in (known or {}) else self._propose_cluster(guess))

    def _find_left_out_columns(
        self, guess: RoleGuesses, exclude: Sequence[str], known_before: Sequence[str]
    ) -> dict[str, str]:
        """Return the columns that are unsuitable as features, each with the reason."""
        taken = {*guess.roles.values()}
        free = [name for name, column in self.columns.items() if column.learnable and name not in taken]
        left_out = {
            **find_columns_fixed_by_level(self.read, guess.roles, free),
            **find_columns_after_response(self.read, guess.roles),
            **guess.left_out,
        }
        left_out |= {
            name: f"explains {percent(share)} of the response: did it happen afterwards?"
            for name, share in self._measure_explained_shares(
                guess, "response", [n for n in free if n not in left_out]
            ).items()
        }
        left_out = {name: why for name, why in left_out.items() if name not in known_before}
        return left_out | dict.fromkeys([name for name in exclude if name not in taken], EXCLUDED)

    def _find_doubtful_features(self, guess: RoleGuesses, known_before: Sequence[str]) -> dict[str, str]:
        """Return features that explain the level and may have been set together with it, each with the reason."""
        out = {*guess.roles.values(), *guess.left_out, *known_before}
        names = [name for name, column in self.columns.items() if column.learnable and name not in out]
        return {
            name: f"explains {percent(share)} of the level: was it set with it?"
            for name, share in self._measure_explained_shares(guess, "level", names).items()
        }

    def _measure_explained_shares(self, guess: RoleGuesses, role: str, names: Sequence[str]) -> dict[str, float]:
        """Return the columns that alone explain most variance of the level or the response, each with its share."""
        column = self.columns.get(guess.roles.get(role, ""))
        if column is None or (column.values is None if role == "response" else column.distinct > MAX_LEVELS):
            return {}
        rows = sample_rows(self.table.num_rows, MAX_PROFILED_ROWS)
        values = self.read.column(column.name).take(rows)
        known = np.isfinite(convert_to_floats(values)) if role == "response" else np.asarray(values.is_valid())
        rows, values = rows[known], values.filter(known)
        targets = (
            [_make_indicator_columns(index_distinct_values(values))]
            if role == "level"
            else _make_response_targets(convert_to_floats(values))
        )
        half = np.random.default_rng(0).integers(0, 2, len(rows))
        shares = {}
        for name in names if len(rows) else ():
            code = group_column_values(self.read.column(name).take(rows), N_PROFILE_GROUPS).code
            shares[name] = max(measure_explained_share(code, target, half) for target in targets)
        return {name: share for name, share in shares.items() if share >= SUSPECTED_SHARE}

    def _propose_cluster(self, guess: RoleGuesses) -> RoleGuesses:
        """Propose a column as the cluster if the level is constant within each of its values."""
        level = self.columns.get(guess.roles.get("level", ""))
        if level is None or level.distinct > MAX_LEVELS or self.read.column(level.name).null_count:
            return guess
        skip = {name for name, why in guess.left_out.items() if why != IDENTIFIER}
        skip |= {column for role, column in guess.roles.items() if role not in ("cluster", "customer")}
        unit = find_assignment_unit(
            self.read,
            index_distinct_values(self.read.column(level.name)),
            skip,
            [*self.columns.keys() - guess.left_out.keys()],
        )
        named = [guess.roles[role] for role in ("cluster", "customer") if role in guess.roles]
        if unit is None or any(unit.column == name or unit.groups >= self.columns[name].distinct for name in named):
            return guess
        left_out = {name: why for name, why in guess.left_out.items() if name != unit.column}
        return replace(guess, roles={**guess.roles, "cluster": unit.column}, left_out=left_out, unit=unit.column)

    def make_draft_with_roles(self, guess: RoleGuesses) -> CampaignDraft:
        """Return the draft of a campaign for given column roles."""
        read, columns, written = self.read, dict(self.columns), dict(self.written)
        for role in PLAIN_TEXT_ROLES:  # these are taken as they are written: "5 EUR" is the name of a level
            name = guess.roles.get(role, "")
            if name in written:
                columns[name] = _make_draft_column(name, self.table.column(name))
                read = read.set_column(read.column_names.index(name), name, self.table.column(name))
                del written[name]
        return CampaignDraft(read.replace_schema_metadata(self.table.schema.metadata), columns, guess, written)


@dataclass(frozen=True, eq=False)
class CampaignDraft:
    """Draft of a campaign: table with guessed roles, levels, costs and budget."""

    table: pa.Table  # text parsed, if there is one way to read it, except for the levels
    columns: Mapping[str, DraftColumn]
    guess: RoleGuesses
    written: Mapping[str, NotationSuggestion]  # columns of text -> how they can be read

    @property
    def level(self) -> DraftColumn | None:
        """Column of the level, if one was found."""
        return self.columns.get(self.guess.roles.get("level", ""))

    @property
    def response(self) -> DraftColumn | None:
        """Column of the response, if one was found."""
        return self.columns.get(self.guess.roles.get("response", ""))

    @property
    def features(self) -> list[str]:
        """Names of the feature columns."""
        out = {*self.guess.roles.values(), *self.guess.left_out}
        return [name for name, column in self.columns.items() if name not in out and column.learnable]

    @property
    def doses(self) -> list[float] | None:
        """Numeric levels in ascending order, if the levels are numbers."""
        if self.level is None or self.level.values is None:
            return None
        return [int(d) if d.is_integer() else d for d in map(float, np.unique(self.level.values))]

    @property
    def order(self) -> LevelOrder | None:
        """Order of the level names, if the names state an order (small, large)."""
        return order_levels(self.level.words) if self.level is not None and self.level.words else None

    def find_number_notations(self, features: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the number or date notation of each text column in use, if only one fits."""
        used = {*self.guess.roles.values(), *(self.features if features is None else features)}
        return {
            name: suggestion.ways[0]
            for name, suggestion in self.written.items()
            # As a feature, yes and no are as good as numbers.
            if len(suggestion.ways) == 1
            and name in used
            and (not isinstance(suggestion.ways[0], dict) or name == self.guess.roles.get("response"))
        }

    def summarise_rows_by_level(self) -> dict[str, tuple[int, float | None]]:
        """Return the number of rows and the mean response of each level."""
        if self.level is None:
            return {}
        column = self.table.column(self.level.name)
        if self.doses is not None:
            codes = convert_to_floats(column)
            rows_of = {f"{dose:g}": codes == dose for dose in self.doses}
        else:
            words = np.array([None if word is None else str(word) for word in decode_dictionary(column).to_pylist()])
            rows_of = {label: words == label for label in self.level.words}
        values = np.full(len(column), np.nan)
        if self.response is not None and self.response.values is not None:
            values = convert_to_floats(self.table.column(self.response.name))
        known = {label: values[rows & np.isfinite(values)] for label, rows in rows_of.items()}
        return {
            label: (int(rows.sum()), float(known[label].mean()) if len(known[label]) else None)
            for label, rows in rows_of.items()
        }

    def measure_mean_responses(self) -> dict[str, float] | None:
        """Return the mean response of each named level, no incentive first, then ascending."""
        if self.level is None or self.level.values is not None:
            return None
        means = {word: mean for word, (_, mean) in self.summarise_rows_by_level().items() if mean is not None}
        if not means or len(means) < len(self.level.words):
            return None
        return dict(sorted(means.items(), key=lambda item: (not means_no_incentive(item[0]), item[1])))

    def suggest_costs(self) -> list[float] | None:
        """Return the amounts in the levels' names or doses as costs, if possible."""
        amounts: Sequence[float] | None = self.doses or (self.order.amounts if self.order is not None else None)
        if not amounts or min(amounts) < 0:
            return None
        return [int(amount) if float(amount).is_integer() else amount for amount in amounts]

    def suggest_budget(self) -> float | None:
        """Return the mean cost of the logged levels at the suggested costs, as a budget."""
        costs = self.suggest_costs()
        if costs is None or self.level is None:
            return None
        if self.level.values is not None:
            mean = float(self.level.values.mean())
        else:
            assert self.order is not None
            cost = dict(zip(self.order.names, costs, strict=True))
            words = decode_dictionary(self.table.column(self.level.name)).drop_null().to_pylist()
            mean = float(np.mean([cost[str(word)] for word in words]))
        return max(float(f"{mean:.3g}"), min(costs))


def profile_table(source: str | os.PathLike[str], query: str = "", encoding: str = "") -> TableProfile:
    """Read a table, and describe the kind and the values of each column."""
    problems = find_path_problems(Path(source).absolute(), is_written=True)
    refuse("log", problems + find_encoding_problems(encoding))
    table = read_table(QueriedFile(os.fspath(source), query, encoding), what="log")
    check_column_names(table.column_names, len(table), "log")
    read, written = parse_unambiguous_columns(table)
    columns = {name: _make_draft_column(name, read.column(name)) for name in table.column_names}
    return TableProfile(table, read, columns, written)


def _make_indicator_columns(code: Array) -> Array:
    """Return indicator columns (n, groups) of group numbers (n,)."""
    return np.eye(int(code.max(initial=0)) + 1)[code]


def _make_response_targets(values: Array) -> list[Array]:
    """Return responses (n,) as two columns, values and ranks, because outliers distort the variance of the values."""
    ranks = np.unique(values, return_inverse=True)[1]
    return [values[:, None], ranks[:, None].astype(np.float64)]


def find_unknown_columns(roles: Mapping[str, str], names: Sequence[str]) -> list[Problem]:
    """Return a problem for each role that names a column outside the table."""
    return [
        Problem(f"the {role} column {name!r} is not in the table", suggest(name, names))
        for role, name in roles.items()
        if name not in names
    ]


def _make_draft_column(name: str, column: pa.ChunkedArray) -> DraftColumn:
    import pyarrow.compute as pc

    kind = find_feature_kind(column.type)
    if kind in ("nothing", "other"):
        return DraftColumn(name, kind, 0, None, learnable=False)
    learnable = not find_skip_reason(name, column)
    unique = pc.unique(decode_dictionary(column)).drop_null()
    if kind != "number":
        words: tuple[str, ...] = ()
        if len(unique) <= MAX_LEVELS:
            try:
                words = tuple(str(value) for value in unique.to_pylist())
            except (OverflowError, ValueError):  # dates beyond Python's calendar
                words = ()
        return DraftColumn(name, kind, len(unique), None, learnable, words)
    values = convert_to_floats(column)
    known = values[np.isfinite(values)]
    # NaN and infinities do not count; but ids beyond 2⁵³ differ only as integers.
    distinct = len(np.unique(known)) if len(known) < len(values) else len(unique)
    return DraftColumn(name, kind, distinct, known if len(known) else None, learnable and len(known) > 0)
