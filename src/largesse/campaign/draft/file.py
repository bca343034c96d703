"""A first campaign file for an undescribed table: guesses, each with its reason next to it.

Columns are guessed. Costs, budget and an order that the levels' names do not state cannot be: they are left blank, with a
suggestion in a comment if there is one, and nothing runs before they are filled in.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from largesse.campaign.draft.roles import sounds_like_money
from largesse.campaign.draft.table import CampaignDraft, inspect_table
from largesse.campaign.write import to_toml
from largesse.data import read_notation
from largesse.errors import join_some, plural
from largesse.records import ROLES
from largesse.response import list_models

MAX_LISTED = 40  # columns in a comment
CURRENCY = re.compile(r"[€$£¥₹]|\b[A-Z]{3}\b")  # in an amount as a log writes it
REQUIRED = {"level": "what each customer got", "response": "what happened"}


def guess_campaign(source: str | os.PathLike[str], out: str | os.PathLike[str] = "campaign.toml") -> str:
    """Return the text of a first campaign file for a table, to be written to `out`; paths in it are relative to that."""
    draft, log, file = inspect_table(source).guess(), Path(source), Path(out)
    name = str(file).encode("utf-8", "replace").decode()
    command = shlex.quote(name) if name.isprintable() else to_toml(name)
    lines = [
        f"# A first campaign file for {to_toml(log.name)}: {draft.table.num_rows:,} rows, {draft.table.num_columns} columns.",
        "# Columns are guessed from names and values: look through the lines marked CHECK. What only you can know is left",
        f"# blank: fill in the lines marked so. Then: largesse run {command}",
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
    """Ask for the currency of a response that looks like money, and for the value of one that does not."""
    response = draft.response
    if response is None or response.yes_or_no:
        worth = "what a response is worth to you, in the unit of costs; then profit is reported, too"
        return [f"# response_value = 1       # {worth}"]
    written = draft.written.get(response.name)
    currency = CURRENCY.search(written.example) if written is not None else None
    if written is not None and currency is not None:
        why = f"the log writes {to_toml(written.example)}; the same as unit, and profit is reported"
        return [f"response_unit = {to_toml(currency[0])}    # CHECK: {why}"]
    then = "currency of the response, if it is money; the same as unit, and profit is reported"
    guess = f"CHECK: {to_toml(response.name)} looks like money: " if sounds_like_money(response) else ""
    return [
        f'response_unit = ""         # {guess}{then}',
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
        return f"{role} = {to_toml(column)}    # CHECK"
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
    return [*lines, *(f"# CHECK: {note}" for note in read_notation(draft.table.select(plain), {}, ()).notes)]


def _write_parse(draft: CampaignDraft) -> list[str]:
    """State how text that holds numbers or dates is parsed; ask if there are two ways."""
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
    ask = 'budget = ""    # fill in: what may be spent per customer on average, a number'
    costs, spent = draft.suggest_costs(), draft.suggest_budget()
    if spent is None:
        return ask
    return (
        f"{ask}; if costs are {to_toml(costs)} and always paid, the log's rows cost {spent:g} each: budget = {spent:g}"
    )
