"""Profile of an undescribed table, and the draft of a campaign that follows from it: roles, levels, costs and budget."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign.draft.levels import Order, is_nothing, order_levels
from largesse.campaign.draft.roles import MAX_LEVELS, DraftColumn, Guess, find_consequences, guess_roles
from largesse.data import (
    CODED,
    Suggestion,
    as_floats,
    check_names,
    decode_dictionary,
    is_yes_or_no,
    kind_of,
    read_suggested,
    read_table,
    skip_reason,
)
from largesse.errors import Problem, path_problems, refuse, suggest

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class TableProfile:
    """A table and its columns, before any has a role."""

    table: pa.Table  # text as it is written
    read: pa.Table  # text parsed, if there is one way to read it
    columns: Mapping[str, DraftColumn]
    written: Mapping[str, Suggestion]  # columns of text -> how they can be read

    def guess(self, known: Mapping[str, str] | None = None) -> CampaignDraft:
        """Guess the roles of the columns, except those that are known."""
        refuse("log", unknown_columns(known or {}, self.table.column_names))
        guess = guess_roles(list(self.columns.values()), self.table.num_rows, known)
        after = find_consequences(self.read, guess.roles)
        return self.with_roles(replace(guess, left_out={**after, **guess.left_out}))

    def with_roles(self, guess: Guess) -> CampaignDraft:
        """Return the draft in which columns have these roles."""
        read, columns, written = self.read, dict(self.columns), dict(self.written)
        for role in CODED:  # these are taken as they are written: "5 EUR" is the name of a level
            name = guess.roles.get(role, "")
            if name in written:
                columns[name] = _profile_column(name, self.table.column(name))
                read = read.set_column(read.column_names.index(name), name, self.table.column(name))
                del written[name]
        return CampaignDraft(read, columns, guess, written)


@dataclass(frozen=True, eq=False)
class CampaignDraft:
    """A table with guessed roles, and the levels, costs and budget that it suggests."""

    table: pa.Table  # text parsed, if there is one way to read it, except for the levels
    columns: Mapping[str, DraftColumn]
    guess: Guess
    written: Mapping[str, Suggestion]  # columns of text -> how they can be read

    @property
    def level(self) -> DraftColumn | None:
        """The column of the levels, if one was found."""
        return self.columns.get(self.guess.roles.get("level", ""))

    @property
    def response(self) -> DraftColumn | None:
        """The column of the responses, if one was found."""
        return self.columns.get(self.guess.roles.get("response", ""))

    @property
    def features(self) -> list[str]:
        """The columns that can be learnt from and have no other role."""
        out = {*self.guess.roles.values(), *self.guess.left_out}
        return [name for name, column in self.columns.items() if name not in out and column.learnable]

    @property
    def doses(self) -> list[float] | None:
        """The levels in order, if they are numbers."""
        if self.level is None or self.level.values is None:
            return None
        return [int(d) if d.is_integer() else d for d in map(float, np.unique(self.level.values))]

    @property
    def order(self) -> Order | None:
        """The order of the levels, if their names state one."""
        return order_levels(self.level.words) if self.level is not None and self.level.words else None

    def find_parse(self, features: Sequence[str] | None = None) -> dict[str, Any]:
        """Return how to parse the text of columns that have a role or are features, if there is one way to read it."""
        used = {*self.guess.roles.values(), *(self.features if features is None else features)}
        return {
            name: suggestion.ways[0]
            for name, suggestion in self.written.items()
            # As a feature, yes and no are as good as numbers.
            if len(suggestion.ways) == 1
            and name in used
            and (not is_yes_or_no(suggestion) or name == self.guess.roles.get("response"))
        }

    def count_levels(self) -> dict[str, tuple[int, float | None]]:
        """Return level -> its rows and their mean response, if that is known."""
        if self.level is None:
            return {}
        column = self.table.column(self.level.name)
        if self.level.values is not None:
            labels, codes = [f"{dose:g}" for dose in self.doses or ()], as_floats(column)
            groups = [codes == dose for dose in self.doses or ()]
        else:
            labels = list(self.level.words)
            words = np.array([None if word is None else str(word) for word in decode_dictionary(column).to_pylist()])
            groups = [words == label for label in labels]
        if self.response is None or self.response.values is None:
            return {label: (int(rows.sum()), None) for label, rows in zip(labels, groups, strict=True)}
        values = as_floats(self.table.column(self.response.name))
        finite = np.isfinite(values)
        return {
            label: (int(rows.sum()), float(values[rows & finite].mean()) if (rows & finite).any() else None)
            for label, rows in zip(labels, groups, strict=True)
        }

    def order_by_response(self) -> dict[str, float] | None:
        """Return named level -> mean response, nothing first, then the lowest: a suggestion for people, not an order."""
        if self.level is None or self.level.values is not None:
            return None
        means = {word: mean for word, (_, mean) in self.count_levels().items() if mean is not None}
        if len(means) < len(self.level.words):
            return None
        return {
            word: means[word] for word in sorted(means, key=lambda word: (not is_nothing(word), means[word]))
        } or None

    def suggest_costs(self) -> list[float] | None:
        """Return the amounts that doses or names state, if they can be costs."""
        amounts: Sequence[float] | None = self.doses or (self.order.amounts if self.order is not None else None)
        if not amounts or min(amounts) < 0:
            return None
        return [int(amount) if float(amount).is_integer() else amount for amount in amounts]

    def suggest_budget(self) -> float | None:
        """Return the mean cost of the log's rows at the suggested costs, if these are always paid."""
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


def inspect_table(source: str | os.PathLike[str]) -> TableProfile:
    """Read a table and profile its columns."""
    refuse("log", path_problems(Path(source).absolute(), written=True))
    table = read_table(source, what="log")
    check_names(table, "log")
    read, written = read_suggested(table)
    return TableProfile(
        table, read, {name: _profile_column(name, read.column(name)) for name in table.column_names}, written
    )


def unknown_columns(roles: Mapping[str, str], names: Sequence[str]) -> list[Problem]:
    """Return a problem for each role whose column is not in the table."""
    return [
        Problem(f"the {role} column {name!r} is not in the table", suggest(name, names))
        for role, name in roles.items()
        if name not in names
    ]


def _profile_column(name: str, column: pa.ChunkedArray) -> DraftColumn:
    import pyarrow.compute as pc

    kind = kind_of(column.type)
    if kind in ("nothing", "other"):
        return DraftColumn(name, kind, 0, None, learnable=False)
    learnable = not skip_reason(name, column)
    unique = pc.unique(decode_dictionary(column)).drop_null()
    if kind != "number":
        words: tuple[str, ...] = ()
        if len(unique) <= MAX_LEVELS:
            try:
                words = tuple(str(value) for value in unique.to_pylist())
            except (OverflowError, ValueError):  # dates beyond Python's calendar
                words = ()
        return DraftColumn(name, kind, len(unique), None, learnable, words)
    values = as_floats(column)
    known = values[np.isfinite(values)]
    # NaN and infinities do not count; but ids beyond 2⁵³ differ only as integers.
    distinct = len(np.unique(known)) if len(known) < len(values) else len(unique)
    return DraftColumn(name, kind, distinct, known if len(known) else None, learnable and len(known) > 0)
