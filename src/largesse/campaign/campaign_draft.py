"""Draft of a campaign for a table without description: guessed roles, levels, costs and budget, and the first campaign file.

Columns are guessed. Costs, budget and an order that the levels' names do not state cannot be: the file leaves them blank, with a
suggestion in a comment if there is one, and nothing runs before they are filled in.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign.role_detection import IDENTIFIER, MAX_LEVELS, DraftColumn, Guess, find_consequences, guess_roles
from largesse.data import (
    PLAIN_TEXT_ROLES,
    LevelOrder,
    Suggestion,
    as_floats,
    check_columns,
    decode_dictionary,
    find_assignment_unit,
    group_rows,
    is_nothing,
    kind_of,
    order_levels,
    parse_text_columns,
    read_suggested,
    read_table,
    skip_reason,
)
from largesse.errors import Problem, join_some, path_problems, plural, refuse, suggest
from largesse.io import to_toml
from largesse.records import ROLES
from largesse.response import list_models

if TYPE_CHECKING:
    import pyarrow as pa

MAX_LISTED = 40  # columns in a comment
CURRENCY = re.compile(r"[€$£¥₹]|\b[A-Z]{3}\b")  # in an amount as a log writes it
REQUIRED = {"level": "what each customer got", "response": "what happened"}


@dataclass(frozen=True, eq=False)
class TableProfile:
    """Table and its columns, before any has a role."""

    table: pa.Table  # text as it is written
    read: pa.Table  # text parsed, if there is one way to read it
    columns: Mapping[str, DraftColumn]
    written: Mapping[str, Suggestion]  # columns of text -> how they can be read

    def guess(self, known: Mapping[str, str] | None = None) -> CampaignDraft:
        """Guess the roles of the columns, except those that are known."""
        refuse("log", unknown_columns(known or {}, self.table.column_names))
        guess = guess_roles(list(self.columns.values()), self.table.num_rows, known)
        consequences = find_consequences(self.read, guess.roles)
        guess = replace(guess, left_out={**consequences, **guess.left_out})
        return self.with_roles(guess if "cluster" in (known or {}) else self._propose_cluster(guess))

    def _propose_cluster(self, guess: Guess) -> Guess:
        """Propose as the cluster the column within which levels are constant, unless a finer role is enough."""
        level = self.columns.get(guess.roles.get("level", ""))
        if level is None or level.distinct > MAX_LEVELS or self.read.column(level.name).null_count:
            return guess
        skip = {name for name, why in guess.left_out.items() if why != IDENTIFIER}
        skip |= {column for role, column in guess.roles.items() if role not in ("cluster", "customer")}
        unit = find_assignment_unit(
            self.read, group_rows(self.read.column(level.name)), skip, [*self.columns.keys() - guess.left_out.keys()]
        )
        named = [guess.roles[role] for role in ("cluster", "customer") if role in guess.roles]
        if unit is None or any(unit.column == name or unit.groups >= self.columns[name].distinct for name in named):
            return guess
        left_out = {name: why for name, why in guess.left_out.items() if name != unit.column}
        return replace(guess, roles={**guess.roles, "cluster": unit.column}, left_out=left_out, unit=unit.column)

    def with_roles(self, guess: Guess) -> CampaignDraft:
        """Return the draft in which columns have these roles."""
        read, columns, written = self.read, dict(self.columns), dict(self.written)
        for role in PLAIN_TEXT_ROLES:  # these are taken as they are written: "5 EUR" is the name of a level
            name = guess.roles.get(role, "")
            if name in written:
                columns[name] = _profile_column(name, self.table.column(name))
                read = read.set_column(read.column_names.index(name), name, self.table.column(name))
                del written[name]
        return CampaignDraft(read, columns, guess, written)


@dataclass(frozen=True, eq=False)
class CampaignDraft:
    """Table with guessed roles, and the levels, costs and budget that follow from them."""

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
    def order(self) -> LevelOrder | None:
        """The order of the levels, if their names state one."""
        return order_levels(self.level.words) if self.level is not None and self.level.words else None

    def find_parse(self, features: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the number notation of text columns that have a role or are features, if it is unambiguous."""
        used = {*self.guess.roles.values(), *(self.features if features is None else features)}
        return {
            name: suggestion.ways[0]
            for name, suggestion in self.written.items()
            # As a feature, yes and no are as good as numbers.
            if len(suggestion.ways) == 1
            and name in used
            and (not isinstance(suggestion.ways[0], dict) or name == self.guess.roles.get("response"))
        }

    def count_levels(self) -> dict[str, tuple[int, float | None]]:
        """Return level -> its rows and their mean response, if that is known."""
        if self.level is None:
            return {}
        column = self.table.column(self.level.name)
        if self.doses is not None:
            codes = as_floats(column)
            rows_of = {f"{dose:g}": codes == dose for dose in self.doses}
        else:
            words = np.array([None if word is None else str(word) for word in decode_dictionary(column).to_pylist()])
            rows_of = {label: words == label for label in self.level.words}
        values = np.full(len(column), np.nan)
        if self.response is not None and self.response.values is not None:
            values = as_floats(self.table.column(self.response.name))
        known = {label: values[rows & np.isfinite(values)] for label, rows in rows_of.items()}
        return {
            label: (int(rows.sum()), float(known[label].mean()) if len(known[label]) else None)
            for label, rows in rows_of.items()
        }

    def order_by_response(self) -> dict[str, float] | None:
        """Return the mean response of named levels, no incentive first, then rising: a suggestion for people, not an order."""
        if self.level is None or self.level.values is not None:
            return None
        means = {word: mean for word, (_, mean) in self.count_levels().items() if mean is not None}
        if not means or len(means) < len(self.level.words):
            return None
        return dict(sorted(means.items(), key=lambda item: (not is_nothing(item[0]), item[1])))

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
    check_columns(table.column_names, len(table), "log")
    read, written = read_suggested(table)
    columns = {name: _profile_column(name, read.column(name)) for name in table.column_names}
    return TableProfile(table, read, columns, written)


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


# -- the first campaign file ------------------------------------------------------------------------------------------


def guess_campaign(source: str | os.PathLike[str], out: str | os.PathLike[str] = "campaign.toml") -> str:
    """Return the text of a first campaign file for a table, to be written to `out`; paths in it are relative to that."""
    draft, log, file = inspect_table(source).guess(), Path(source), Path(out)
    name = str(file).encode("utf-8", "replace").decode()
    argument = shlex.quote(name) if name.isprintable() else to_toml(name)
    lines = [
        f"# A first campaign file for {to_toml(log.name)}: {draft.table.num_rows:,} rows, {draft.table.num_columns} columns.",
        "# Columns are guessed from names and values: look through the lines marked CHECK. What only you can know is left",
        f"# blank: fill in the lines marked so. Then: largesse run {argument}",
        "",
        f"title = {to_toml(log.name.split('.')[0].replace('_', ' '))}",
        'unit = ""                  # currency of costs, for the report: "€", "USD"',
        *_write_money(draft),
        f"log = {to_toml(_relative(log, file))}",
        '# customers = "customers.parquet"   # who to plan for; without it, the customers of the log',
        "",
        "[columns]",
        *(_write_role(role, draft) for role in ROLES if role != "features"),
        *_write_features(draft),
        *_write_parse(draft),
        "",
        "[levels]",
        "# Levels are ordered: no customer should respond less to a dearer one. Arms without an order need a campaign each.",
        *_write_levels(draft),
        "on_redemption = false      # true: a cost is a face value, paid only to customers who respond: cost × response",
        "",
        "[plan]",
        _write_budget(draft),
        "# total = 50000    # or for all customers together",
        "",
        "[model]",
        f'name = "auto"              # one of {", ".join(list_models())}',
        "seed = 0",
    ]
    return "\n".join(lines) + "\n"


def _write_money(draft: CampaignDraft) -> list[str]:
    """Write lines that ask for the currency of an amount response, or for the value of a yes/no response."""
    response = draft.response
    if response is None or response.yes_or_no:
        worth = "what a response is worth to you, in the unit of costs; then profit is reported, too"
        return [f"# response_value = 1       # {worth}"]
    written = draft.written.get(response.name)
    if written is not None and (currency := CURRENCY.search(written.example)):
        why = f"the log writes {to_toml(written.example)}; the same as unit, and profit is reported"
        return [f"response_unit = {to_toml(currency[0])}    # CHECK: {why}"]
    return [
        'response_unit = ""         # currency of the response, if it is money; the same as unit, and profit is reported',
        "# response_value = 0.35    # or what one unit of it is worth, in the unit of costs, such as your margin",
    ]


def _relative(source: Path, out: Path) -> str:
    """Return the path of the log from the folder of the campaign file; from the root if they share no folder."""
    log, folder = source.absolute().parent.resolve() / source.name, out.absolute().parent.resolve()
    if len(os.path.commonpath([log, folder])) <= len(log.anchor):
        return str(log)
    path = os.path.relpath(log, folder)
    return f"./{path}" if path.startswith("~") else path


def _write_role(role: str, draft: CampaignDraft) -> str:
    column, others = draft.guess.roles.get(role), draft.guess.others.get(role, ())
    more = f"; or is it {join_some([to_toml(name) for name in others])}?" if others else ""
    if role in REQUIRED and column is not None:
        return f"{role} = {to_toml(column)}    # CHECK: {draft.columns[column].distinct} distinct values{more}"
    if column is not None:
        customers, rows = draft.columns[column].distinct, draft.table.num_rows
        repeated = role == "customer" and customers < rows
        why = f": {customers:,} customers in {rows:,} rows; each is planned once, by their last row" if repeated else ""
        if role == "cluster" and column == draft.guess.unit:
            why = f": levels are constant within its {customers:,} values, as if they were given to groups of rows"
        return f"{role} = {to_toml(column)}    # CHECK{why}"
    if role in REQUIRED:
        names = [*others, *(name for name in draft.columns if name not in others)]
        listed = join_some([to_toml(name) for name in names], MAX_LISTED)
        return f'{role} = ""    # fill in: the column that says {REQUIRED[role]}, one of {listed}'
    if role == "cost_column":
        hint = "what each row really cost, if that depends on what customers do; costs below stay blank then"
        first, *rest = others or ("…",)
        more = f"; or is it {join_some([to_toml(name) for name in rest])}?" if rest else ""
        return f"# cost_column = {to_toml(first)}    # {hint}{more}"
    return f'# {role} = "…"'


def _write_features(draft: CampaignDraft) -> list[str]:
    features = draft.features
    lines = [
        f"features = {to_toml(features)}" if features else "# CHECK: no column is left to learn from; a log needs one",
        "# CHECK: a feature must be known before the level is chosen; take out what only happened afterwards.",
    ]
    reasons: dict[str, list[str]] = {}
    for name, why in draft.guess.left_out.items():
        reasons.setdefault(why, []).append(to_toml(name))
    lines += [f"# CHECK: left out ({why}): {join_some(names, MAX_LISTED)}" for why, names in reasons.items()]
    known = {*draft.guess.roles.values(), *draft.guess.left_out, *draft.written}
    plain = [name for name in draft.columns if name not in known]  # text that differs in every row, too
    return [*lines, *(f"# CHECK: {note}" for note in parse_text_columns(draft.table.select(plain), {}, ())[1])]


def _write_parse(draft: CampaignDraft) -> list[str]:
    """Write the notation of text that holds numbers or dates, as a question if two are possible."""
    lines, sure = [], draft.find_parse()
    for name, suggestion in draft.written.items():
        ways, example = " or ".join(to_toml(way) for way in suggestion.ways), to_toml(suggestion.example)
        if name in sure:
            lines.append(f"{to_toml(name)} = {ways}    # CHECK: the log writes {example}")
        elif len(suggestion.ways) > 1 and name not in draft.guess.left_out:
            used = name in draft.guess.roles.values() or name in draft.features
            then = "" if used else ", and add it to features"
            ask = f"say which, {ways}{then}: {example} may be both, and without this line it is text"
            lines.append(f"# {to_toml(name)} = …    # {ask}")
    return ["", "[columns.parse]", *lines] if lines else []


def _write_levels(draft: CampaignDraft) -> list[str]:
    ask = "fill in: what each level costs you"
    if draft.level is None:
        return [f"costs = []    # {ask}, the cheapest first, like costs = [0, 5, 10]"]
    costs = draft.suggest_costs()
    hint = f"; suggestion, if it is the amount itself: costs = {to_toml(costs)}" if costs else ""
    if draft.doses is not None:
        return [
            f"doses = {to_toml(draft.doses)}    # as the log writes them; CHECK: a larger one costs you no less",
            f"costs = []    # {ask}, {plural(len(draft.doses), 'number')} in the order of doses{hint}",
        ]
    line = f"costs = []    # {ask}, {plural(len(draft.level.words), 'number')} in the order of names{hint}"
    if draft.order is not None:
        return [f"names = {to_toml(draft.order.names)}    # CHECK: ordered by what the names say, cheapest first", line]
    names = "names = []    # fill in: the levels as the log writes them, the cheapest first"
    means = draft.order_by_response()
    if means is None:
        return [f"{names}; in no order, they are {to_toml(draft.level.words)}", line]
    listed = ", ".join(f"{to_toml(word)} {mean:.3g}" for word, mean in means.items())
    return [f"{names}; suggestion, by mean response only ({listed}): names = {to_toml(list(means))}", line]


def _write_budget(draft: CampaignDraft) -> str:
    line = 'budget = ""    # fill in: what may be spent per customer on average, a number'
    costs, spent = to_toml(draft.suggest_costs() or []), draft.suggest_budget()
    if spent is None:
        return line
    return f"{line}; if costs are {costs} and always paid, the log's rows cost {spent:g} each: budget = {spent:g}"
