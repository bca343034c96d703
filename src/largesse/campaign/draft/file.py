"""A first campaign file for a table nobody has described yet: guesses, each with its reason beside it.

Columns are guessed. Costs, budget and an order that the levels' names do not state cannot be: they are left blank, with a
suggestion in a comment where there is one, and nothing runs before they are filled in.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign.draft.leaks import find_consequences
from largesse.campaign.draft.levels import Order, is_nothing, order_levels
from largesse.campaign.draft.roles import MOST_LEVELS, Column, Guess, guess_roles, sounds_like_money
from largesse.campaign.write import to_toml
from largesse.data import (
    CODED,
    Suggestion,
    as_floats,
    as_plain,
    check_names,
    is_yes_or_no,
    kind_of,
    read_notation,
    read_suggested,
    read_table,
    why_skip,
)
from largesse.errors import Problem, join_some, path_problems, plural, refuse, suggest
from largesse.records import ROLES
from largesse.response import list_models

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 40  # columns that a comment lists
CURRENCY = re.compile(r"[€$£¥₹]|\b[A-Z]{3}\b")  # in an amount as a log writes it


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What a look at an undescribed table found."""

    table: pa.Table  # text that can be read in one way only is read so, except for the levels
    columns: Mapping[str, Column]
    guess: Guess
    written: Mapping[str, Suggestion] = field(default_factory=dict)  # columns of text → how it can be read

    @property
    def level(self) -> Column | None:
        """The column of the levels, where one was found."""
        return self.columns.get(self.guess.roles.get("level", ""))

    @property
    def features(self) -> list[str]:
        """The columns that can be learnt from and have no other role."""
        out = {*self.guess.roles.values(), *self.guess.left_out}
        return [name for name, column in self.columns.items() if name not in out and column.learnable]

    @property
    def doses(self) -> list[float] | None:
        """The levels where they are numbers, the smallest first."""
        if self.level is None or self.level.values is None:
            return None
        return [int(d) if d.is_integer() else d for d in map(float, np.unique(self.level.values))]

    @property
    def order(self) -> Order | None:
        """The order of the levels where they are names that state one."""
        return order_levels(self.level.words) if self.level is not None and self.level.words else None


@dataclass(frozen=True, eq=False)
class Seen:
    """A table as it was read, before anything is said of its columns."""

    table: pa.Table  # text as it is written
    read: pa.Table  # text that can be read in one way only is read so
    columns: Mapping[str, Column]
    written: Mapping[str, Suggestion]  # columns of text → how it can be read

    def as_roles(self, guess: Guess) -> FirstLook:
        """Return the look at the table in which columns have these roles."""
        read, columns, written = self.read, dict(self.columns), dict(self.written)
        for role in CODED:  # these are taken as they are written: "5 EUR" is the name of a level
            name = guess.roles.get(role, "")
            if name in written:
                columns[name] = _look(name, self.table.column(name))
                read = read.set_column(read.column_names.index(name), name, self.table.column(name))
                del written[name]
        return FirstLook(read, columns, guess, written)


def see(source: str | os.PathLike[str]) -> Seen:
    """Read a table and look at each of its columns."""
    refuse("log", path_problems(Path(source).absolute(), written=True))
    table = read_table(source, what="log")
    check_names(table, "log")
    read, written = read_suggested(table)
    return Seen(table, read, {name: _look(name, read.column(name)) for name in table.column_names}, written)


def look_at(source: str | os.PathLike[str] | Seen, known: Mapping[str, str] | None = None) -> FirstLook:
    """Look at a table and guess the roles of its columns, except those that are known."""
    seen = source if isinstance(source, Seen) else see(source)
    refuse("log", unknown_columns(known or {}, seen.table.column_names))
    guess = guess_roles(list(seen.columns.values()), seen.table.num_rows, known)
    filled = find_consequences(seen.read, guess.roles)
    return seen.as_roles(replace(guess, left_out={**filled, **guess.left_out}))


def unknown_columns(roles: Mapping[str, str], names: Sequence[str]) -> list[Problem]:
    """Return a problem for each role whose column is not in the table."""
    return [
        Problem(f"the {role} column {name!r} is not in the table", suggest(name, names))
        for role, name in roles.items()
        if name not in names
    ]


def guess_campaign(source: str | os.PathLike[str], out: str | os.PathLike[str] = "campaign.toml") -> str:
    """Return the text of a first campaign file for a table, to be written to `out`; paths in it are relative to that."""
    return _text(Path(source), Path(out), look_at(source))


def _list_words(values: pa.Array) -> tuple[str, ...]:
    """Return values as words; none of dates beyond the calendar."""
    try:
        return tuple(str(value) for value in values.to_pylist())
    except (OverflowError, ValueError):
        return ()


def _look(name: str, column: pa.ChunkedArray) -> Column:
    import pyarrow.compute as pc

    kind = kind_of(column.type)
    if kind in ("nothing", "other"):
        return Column(name, kind, 0, None, learnable=False)
    learnable = not why_skip(name, column)
    unique = pc.unique(as_plain(column)).drop_null()
    if kind != "number":
        words = _list_words(unique) if len(unique) <= MOST_LEVELS else ()
        return Column(name, kind, len(unique), None, learnable, words)
    values = as_floats(column)
    known = values[np.isfinite(values)]
    # NaN and infinities are no values; but ids beyond 2⁵³ differ only as integers.
    distinct = len(np.unique(known)) if len(known) < len(values) else len(unique)
    return Column(name, kind, distinct, known if len(known) else None, learnable and len(known) > 0)


# -- the file ---------------------------------------------------------------------------------------------------------


def _text(source: Path, out: Path, look: FirstLook) -> str:
    name = str(out).encode("utf-8", "replace").decode()
    command = shlex.quote(name) if name.isprintable() else to_toml(name)
    lines = [
        f"# A first campaign file for {to_toml(source.name)}: {look.table.num_rows:,} rows, {look.table.num_columns} columns.",
        "# Columns are guessed from names and values: look through the lines marked CHECK. What only you can know is left",
        f"# blank: fill in the lines marked so. Then: largesse run {command}",
        "",
        f"title = {to_toml(source.name.split('.')[0].replace('_', ' '))}",
        'unit = ""                  # currency of costs, for the report: "€", "USD"',
        *_money_lines(look),
        f"log = {to_toml(_relative(source, out))}",
        '# customers = "customers.parquet"   # who to plan for; without it, the customers of the log',
        "",
        "[columns]",
        *_role_lines(look),
        *_feature_lines(look),
        *_parse_lines(look),
        "",
        "[levels]",
        *_level_lines(look),
        "on_redemption = false      # true: a cost is a face value, paid only to customers who respond: cost × response",
        "",
        "[plan]",
        _budget_line(look),
        "# total = 50000    # or for all customers together",
        "",
        "[model]",
        f'name = "auto"              # one of {", ".join(list_models())}',
        "seed = 0",
    ]
    return "\n".join(lines) + "\n"


def _money_lines(look: FirstLook) -> list[str]:
    """Ask for the response's currency where it looks like money, and for what a response is worth where it does not."""
    response = look.columns.get(look.guess.roles.get("response", ""))
    if response is None or response.yes_or_no:
        worth = "what a response is worth to you, in the unit of costs; then profit is reported, too"
        return [f"# response_value = 1       # {worth}"]
    written = look.written.get(response.name)
    currency = CURRENCY.search(written.example) if written is not None else None
    if currency is not None:
        why = f"the log writes {to_toml(written.example)}" if written is not None else ""
        return [f"response_unit = {to_toml(currency[0])}    # CHECK: {why}; the same as unit, and profit is reported"]
    then = "currency of the response, if it is money; the same as unit, and profit is reported"
    sure = f"CHECK: {to_toml(response.name)} looks like money: " if sounds_like_money(response) else ""
    return [
        f'response_unit = ""         # {sure}{then}',
        "# response_value = 0.35    # or what one unit of it is worth, in the unit of costs, such as your margin",
    ]


def _relative(source: Path, out: Path) -> str:
    """Return the path of the log from the folder of the campaign file; from the root where they share no folder."""
    log, folder = source.absolute().parent.resolve() / source.name, out.absolute().parent.resolve()
    if len(os.path.commonpath([log, folder])) <= len(log.anchor):
        return str(log)
    path = os.path.relpath(log, folder)
    return f"./{path}" if path.startswith("~") else path


def _role_lines(look: FirstLook) -> list[str]:
    roles, lines = look.guess.roles, []
    asked = {"level": "what each customer got", "response": "what happened"}
    for role, meaning in asked.items():
        others = look.guess.others.get(role, ())
        if role in roles:
            more = f"; or is it {join_some([to_toml(name) for name in others])}?" if others else ""
            lines.append(
                f"{role} = {to_toml(roles[role])}    # CHECK: {look.columns[roles[role]].distinct} distinct values{more}"
            )
        else:
            names = [*others, *(name for name in look.columns if name not in others)]
            listed = join_some([to_toml(name) for name in names], SHOWN)
            lines.append(f'{role} = ""    # fill in: the column that says {meaning}, one of {listed}')
    optional = (role for role in ROLES if role not in (*asked, "features"))
    return lines + [_optional_line(role, look) for role in optional]


def _optional_line(role: str, look: FirstLook) -> str:
    if role in look.guess.roles:
        return f"{role} = {to_toml(look.guess.roles[role])}    # CHECK"
    if role == "cost_column":
        name, *others = look.guess.others.get(role) or ("…",)
        more = f"; or is it {join_some([to_toml(other) for other in others])}?" if others else ""
        hint = "what each row really cost, if that depends on what customers do; costs below stay blank then"
        return f"# cost_column = {to_toml(name)}    # {hint}{more}"
    return f'# {role} = "…"'


def _feature_lines(look: FirstLook) -> list[str]:
    features = look.features
    line = (
        f"features = {to_toml(features)}" if features else "# CHECK: no column is left to learn from; a log needs one"
    )
    lines = [
        line,
        "# CHECK: a feature must be known before the level is chosen; take out what only happened afterwards.",
    ]
    reasons: dict[str, list[str]] = {}
    for name, why in look.guess.left_out.items():
        reasons.setdefault(why, []).append(to_toml(name))
    lines += [f"# CHECK: left out ({why}): {join_some(names, SHOWN)}" for why, names in reasons.items()]
    known = {*look.guess.roles.values(), *look.guess.left_out, *look.written}
    plain = [name for name in look.columns if name not in known]  # texts that differ in every row, too
    return [*lines, *(f"# CHECK: {note}" for note in read_notation(look.table.select(plain), {}, ()).notes)]


def _parse_lines(look: FirstLook) -> list[str]:
    """Say how text is read that holds numbers or dates; where there are two ways, ask."""
    lines, features, sure = [], look.features, sure_parse(look)
    for name, found in look.written.items():
        has_role = name in look.guess.roles.values()
        ways, example = " or ".join(to_toml(way) for way in found.ways), to_toml(found.example)
        if name in sure:
            lines.append(f"{to_toml(name)} = {ways}    # CHECK: the log writes {example}")
        elif len(found.ways) > 1 and name not in look.guess.left_out:
            then = "" if has_role or name in features else ", and add it to features"
            asked = f"say which, {ways}{then}: {example} may be both, and without this line it is text"
            lines.append(f"# {to_toml(name)} = …    # {asked}")
    return ["", "[columns.parse]", *lines] if lines else []


def sure_parse(look: FirstLook, features: Sequence[str] | None = None) -> dict[str, Any]:
    """Return how to read the text of columns that have a role or are features, where there is one way to read it."""
    used = {*look.guess.roles.values(), *(look.features if features is None else features)}
    return {
        name: found.ways[0]
        for name, found in look.written.items()
        # As a feature, yes and no are as good as numbers.
        if len(found.ways) == 1
        and name in used
        and (not is_yes_or_no(found) or name == look.guess.roles.get("response"))
    }


def _level_lines(look: FirstLook) -> list[str]:
    ask = "fill in: what each level costs you"
    if look.level is None:
        return [f"costs = []    # {ask}, the cheapest first, like costs = [0, 5, 10]"]
    costs = suggest_costs(look)
    hint = f"; suggestion, if it is the amount itself: costs = {to_toml(costs)}" if costs else ""
    if look.doses is not None:
        return [
            f"doses = {to_toml(look.doses)}    # as the log writes them; CHECK: a larger one costs you no less",
            f"costs = []    # {ask}, {plural(len(look.doses), 'number')} in the order of doses{hint}",
        ]
    line = f"costs = []    # {ask}, {plural(len(look.level.words), 'number')} in the order of names{hint}"
    if look.order is not None:
        return [f"names = {to_toml(look.order.names)}    # CHECK: ordered by what the names say, cheapest first", line]
    return [
        f"names = []    # fill in: the levels as the log writes them, the cheapest first{_suggest_names(look)}",
        line,
    ]


def _suggest_names(look: FirstLook) -> str:
    order = order_by_response(look)
    if order is None:
        return f"; in no order, they are {to_toml(look.level.words if look.level is not None else ())}"
    means = ", ".join(f"{to_toml(word)} {mean:.3g}" for word, mean in order.items())
    return f"; suggestion, by mean response only ({means}): names = {to_toml(list(order))}"


def order_by_response(look: FirstLook) -> dict[str, float] | None:
    """Return level → mean response, nothing first, then the lowest: a suggestion for a person to judge, never an order."""
    means = _mean_responses(look)
    return {word: means[word] for word in sorted(means, key=lambda word: (not is_nothing(word), means[word]))} or None


def _mean_responses(look: FirstLook) -> dict[str, float]:
    """Return level → mean response of its rows; nothing where the response is not known or a level has none."""
    if look.level is None or look.level.values is not None:
        return {}
    found = {word: mean for word, (_, mean) in tally_levels(look).items() if mean is not None}
    return found if len(found) == len(look.level.words) else {}


def tally_levels(look: FirstLook) -> dict[str, tuple[int, float | None]]:
    """Return level → its rows and their mean response, where that is known."""
    if look.level is None:
        return {}
    response = look.columns.get(look.guess.roles.get("response", ""))
    given = as_plain(look.table.column(look.level.name)).to_pylist()
    known = np.array([word is not None for word in given])
    if look.level.values is not None:
        labels: Sequence[str] = [f"{dose:g}" for dose in look.doses or ()]
        levels = as_floats(look.table.column(look.level.name))
        groups = [known & (levels == dose) for dose in look.doses or ()]
    else:
        labels, words = look.level.words, np.array([str(word) for word in given])
        groups = [known & (words == word) for word in labels]
    if response is None or response.values is None:
        return {label: (int(own.sum()), None) for label, own in zip(labels, groups, strict=True)}
    values = as_floats(look.table.column(response.name))
    finite = np.isfinite(values)
    return {
        label: (int(own.sum()), float(values[own & finite].mean()) if (own & finite).any() else None)
        for label, own in zip(labels, groups, strict=True)
    }


def suggest_costs(look: FirstLook) -> list[float] | None:
    """Return the amounts that doses or names state, where they can be costs; never more than a suggestion."""
    stated: Sequence[float] | None = look.doses or (look.order.amounts if look.order is not None else None)
    if not stated or min(stated) < 0:
        return None
    return [int(amount) if float(amount).is_integer() else amount for amount in stated]


def _budget_line(look: FirstLook) -> str:
    ask = 'budget = ""    # fill in: what may be spent per customer on average, a number'
    costs, spent = suggest_costs(look), suggest_budget(look)
    if spent is None:
        return ask
    return (
        f"{ask}; if costs are {to_toml(costs)} and always paid, the log's rows cost {spent:g} each: budget = {spent:g}"
    )


def suggest_budget(look: FirstLook) -> float | None:
    """Return what the rows of the log cost on average, if levels cost what they state and it is always paid."""
    costs = suggest_costs(look)
    if costs is None or look.level is None:
        return None
    return max(float(f"{_mean_cost(look, costs):.3g}"), min(costs))


def _mean_cost(look: FirstLook, costs: Sequence[float]) -> float:
    """Return what the rows of the log cost on average at these costs."""
    assert look.level is not None
    if look.level.values is not None:
        return float(look.level.values.mean())
    assert look.order is not None
    cost: dict[Any, float] = dict(zip(look.order.names, costs, strict=True))
    words = as_plain(look.table.column(look.level.name)).drop_null().to_pylist()
    return float(np.mean([cost[str(word)] for word in words]))
