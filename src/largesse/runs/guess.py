"""A first campaign file for a table nobody has described yet: guesses, each with its reason beside it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import as_floats, check_names, kind_of, read_table, why_skip
from largesse.errors import path_problems, refuse, some
from largesse.records import ROLES, Array
from largesse.response import list_models
from largesse.runs.toml import to_toml

if TYPE_CHECKING:
    import pyarrow as pa

MOST_LEVELS = 20
# Words people use in column names, the most telling first.
WORDS = {
    "propensity": r"propensit|^p_?score$|^prob(ability)?$|^ps$",
    "weight": r"^(sample_?|row_?)?weights?$",
    "cluster": r"cluster|household|village|^store(_id)?$|^group(_id)?$",
    "logger": r"logger|^policy(_name)?$|^logging",
    "customer": r"^(customer|user|client|member|person|account)(_?id|_?no|_?number)?$|^id$|_id$|^uuid$",
    "level": r"^level$|coupon|incentive|treat|discount|offer|voucher|bonus|subsid|^arm$|^action$|^dose$|promo|match",
    "response": r"^response$|bought|convert|conversion|purchase|redeem|respon|outcome|^reward$|click|revenue|^spend$"
    r"|applied|tookup|gave|^got$|^y$|^r$",
}


@dataclass(frozen=True)
class Column:
    """What a look at one column shows."""

    name: str
    kind: str  # number, text, date, nothing or other
    distinct: int
    values: Array | None  # finite numbers only
    learnable: bool = True  # whether it can be a feature


def guess_campaign(source: str | os.PathLike[str]) -> str:
    """Return the text of a first campaign file for a table, its guesses commented."""
    refuse("log", path_problems(Path(source).absolute(), written=True))
    table = read_table(source, what="log")
    check_names(table, "log")
    columns = [_look(name, table.column(name)) for name in table.column_names]
    roles = guess_roles(columns, table.num_rows)
    return _text(Path(source), table, {c.name: c for c in columns}, roles)


def _look(name: str, column: pa.ChunkedArray) -> Column:
    import pyarrow.compute as pc

    kind = kind_of(column.type)
    if kind in ("nothing", "other"):
        return Column(name, kind, 0, None, learnable=False)
    learnable = not why_skip(name, column)
    distinct = len(pc.unique(column).drop_null())
    if kind != "number":
        return Column(name, kind, distinct, None, learnable)
    values = as_floats(column)
    known = values[np.isfinite(values)]
    if len(known) < len(values):  # NaN and infinities are no values; but ids beyond 2⁵³ differ only as integers
        distinct = len(np.unique(known))
    return Column(name, kind, distinct, known if len(known) else None, learnable and len(known) > 0)


def guess_roles(columns: list[Column], rows: int) -> dict[str, str]:
    """Return the column that each role's name and values point to; level and response may be missing from it."""
    fits = {
        "propensity": lambda c: c.values is not None and bool(c.values.min() > 0 and c.values.max() <= 1),
        "weight": lambda c: c.values is not None and bool(c.values.min() >= 0),
        "cluster": lambda c: 1 < c.distinct < rows,
        "logger": lambda c: 0 < c.distinct <= 100,
        "customer": lambda c: c.distinct == rows,
        "level": lambda c: 2 <= c.distinct <= MOST_LEVELS,
        "response": lambda c: c.values is not None and c.distinct >= 2,
    }
    roles: dict[str, str] = {}
    for role, words in WORDS.items():
        free = [c for c in columns if c.name not in roles.values() and c.kind != "nothing" and fits[role](c)]
        named = [c for c in free if re.search(words, c.name.lower())]
        if role == "response":  # a 0/1 column is the likelier outcome
            named.sort(key=lambda c: c.distinct != 2)
        if named:
            roles[role] = named[0].name
    return roles


def _text(source: Path, table: pa.Table, columns: dict[str, Column], roles: dict[str, str]) -> str:
    taken = set(roles.values())
    features = [name for name in table.column_names if name not in taken and columns[name].learnable]
    lines = [
        f"# A first campaign file for {to_toml(source.name)}: {table.num_rows:,} rows, {table.num_columns} columns.",
        "# Every line is a guess from names and values. Check the ones marked CHECK, then: largesse run campaign.toml",
        "",
        f"title = {to_toml(source.name.split('.')[0].replace('_', ' '))}",
        'unit = ""                  # currency, for the report: "€", "USD"',
        f"log = {to_toml(str(source.absolute()))}",
        '# customers = "customers.parquet"   # who to plan for; without it, the customers of the log',
        "",
        "[columns]",
        *_role_lines(columns, roles),
        f"features = {to_toml(features)}" if features else "# CHECK: no column is left to learn from; a log needs one",
        "# CHECK: a feature must be known before the level is chosen; take out what only happened afterwards.",
        "",
        "[levels]",
        *_level_lines(table, columns, roles),
        "on_redemption = false      # true: a cost is a face value, paid only as far as the customer responds",
        "",
        "[plan]",
        *_budget_lines(columns, roles),
        "",
        "[model]",
        f'name = "auto"              # one of {", ".join(list_models())}',
        "seed = 0",
    ]
    return "\n".join(lines) + "\n"


def _role_lines(columns: dict[str, Column], roles: dict[str, str]) -> list[str]:
    lines = []
    for role in ("level", "response"):
        if role in roles:
            column = columns[roles[role]]
            lines.append(f"{role} = {to_toml(column.name)}    # CHECK: {column.distinct} distinct values")
        else:
            lines.append(
                f'{role} = "?"    # CHECK: no column looked like the {role}; columns: {some([to_toml(name) for name in columns], 12)}'
            )
    for role in (role for role in ROLES if role not in ("level", "response", "features")):
        if role in roles:
            lines.append(f"{role} = {to_toml(roles[role])}")
        else:
            lines.append(f'# {role} = "…"')
    return lines


def _level_lines(table: pa.Table, columns: dict[str, Column], roles: dict[str, str]) -> list[str]:
    if "level" not in roles:
        return ["costs = []    # CHECK: one cost per level, cheapest first"]
    column = columns[roles["level"]]
    if column.values is not None:
        doses = [float(v) for v in np.unique(column.values)]
        shown = [int(d) if d.is_integer() else d for d in doses]
        costs = [d - min(doses) if min(doses) < 0 else d for d in shown]
        return [
            f"doses = {to_toml(shown)}    # as the log writes them",
            f"costs = {to_toml(costs)}    # CHECK: what each costs you",
        ]
    names = sorted(str(v) for v in table.column(column.name).unique().to_pylist() if v is not None)
    return [
        f"names = {to_toml(names)}    # CHECK: put them in order, cheapest first",
        f"costs = {to_toml(list(range(len(names))))}    # CHECK: what each costs you",
    ]


def _budget_lines(columns: dict[str, Column], roles: dict[str, str]) -> list[str]:
    mean: Any = 1.0
    if "level" in roles and (values := columns[roles["level"]].values) is not None:
        lowest = float(values.min())
        spent = float(values.mean()) - min(lowest, 0.0)
        mean = max(float(f"{spent:.3g}"), lowest)
    return [
        f"budget = {mean}    # CHECK: average per customer (here: about what was spent before)",
        "# total = 50000    # or for all customers together",
    ]
