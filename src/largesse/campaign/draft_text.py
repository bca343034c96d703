"""Text of a campaign file for a draft: guesses to check, and blank settings to fill in.

Known settings are written. Costs, budget and an order that the levels' names do not state are left blank otherwise, with a
suggestion in a comment if there is one, and nothing runs before they are filled in.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from largesse.campaign.campaign_draft import CampaignDraft, TableProfile, profile_table
from largesse.campaign.role_detection import BY_NAME, EXCLUDED, MAX_LEVELS
from largesse.data import list_reading_notes, parse_text_columns
from largesse.errors import Problem, join_some, plural, refuse, suggest
from largesse.io import to_toml
from largesse.records import ROLES
from largesse.response import list_models

MAX_LISTED = 40  # columns in a comment
CURRENCY = re.compile(r"[€$£¥₹]|\b[A-Z]{3}\b")  # in an amount as a log writes it
REQUIRED = {"level": "what each customer got", "response": "what happened"}


@dataclass(frozen=True)
class DraftAnswers:
    """Settings of a new campaign file that the user has given."""

    roles: Mapping[str, str] = field(default_factory=dict)  # role → column
    exclude: Sequence[str] = ()  # columns without a role
    known_before: Sequence[str] = ()  # suspicious features that were known before the level was chosen
    protected: Sequence[str] = ()  # columns that plans must not follow
    names: Sequence[str] = ()  # of the levels, the cheapest first
    costs: Sequence[float] = ()  # of the levels
    budget: float | None = None  # average per customer
    total: float | None = None  # or for all together
    unit: str = ""  # of costs
    query: str = ""  # that selects the log from a file with several tables
    encoding: str = ""  # of a CSV; empty: guessed
    response_unit: str = ""
    response_value: float | None = None

    def make_draft(self, profile: TableProfile) -> CampaignDraft:
        """Guess the roles that the user has not given; refuse answers that do not fit the table."""
        draft = profile.make_draft(self.roles, [*self.exclude, *self.protected], self.known_before)
        left_out = {**draft.guess.left_out, **dict.fromkeys(self.protected, "protected")}
        draft = replace(draft, guess=replace(draft.guess, left_out=left_out))
        refuse(
            "init", [*_check_number_of_levels(draft), *self._check_level_names(draft), *self._check_level_costs(draft)]
        )
        return draft

    def _check_level_names(self, draft: CampaignDraft) -> list[Problem]:
        """Return the problems of the given level names."""
        if not self.names:
            return []
        if draft.level is None:
            return [Problem("--names is given, and no column is the level", "add --level COLUMN")]
        known = draft.level.words if draft.doses is None else [f"{dose:g}" for dose in draft.doses]
        problems = [
            Problem(f"{draft.level.name!r} has no level {name!r}", suggest(name, known))
            for name in self.names
            if name not in known
        ]
        if missing := [repr(name) for name in known if name not in self.names]:
            problems.append(Problem(f"--names lacks {join_some(missing)}", "list all levels, the cheapest first"))
        return problems

    def _check_level_costs(self, draft: CampaignDraft) -> list[Problem]:
        """Return the problems of the given costs."""
        levels = len(self.names) or (0 if draft.level is None else draft.level.distinct)
        if not self.costs or not levels or len(self.costs) == levels:
            return []
        got = f"--costs has {plural(len(self.costs), 'number')}, and there are {plural(levels, 'level')}"
        return [Problem(got, "give one number for each level, the cheapest first")]


def _check_number_of_levels(draft: CampaignDraft) -> list[Problem]:
    """Return a problem if the level column has too many distinct values."""
    if draft.level is None or draft.level.distinct <= MAX_LEVELS:
        return []
    text = f"the level column {draft.level.name!r} has {draft.level.distinct:,} distinct values"
    return [Problem(text, f"name a column with at most {MAX_LEVELS}, or group its values first")]


def write_guessed_campaign(source: str | os.PathLike[str], out: str | os.PathLike[str] = "campaign.toml") -> str:
    """Guess a campaign for a table, and return the text of its campaign file."""
    return write_campaign_text(profile_table(source).make_draft(), source, out)


def write_campaign_text(
    draft: CampaignDraft,
    source: str | os.PathLike[str],
    out: str | os.PathLike[str] = "campaign.toml",
    answers: DraftAnswers | None = None,
) -> str:
    """Return the text of the campaign file for a draft."""
    answers = answers or DraftAnswers()
    log, file = Path(source), Path(out)
    name = str(file).encode("utf-8", "replace").decode()
    argument = shlex.quote(name) if name.isprintable() else to_toml(name)
    lines = [
        f"# A first campaign file for {to_toml(log.name)}: {draft.table.num_rows:,} rows, {draft.table.num_columns} columns.",
        "# Columns are guessed from names and values: look through the lines marked CHECK. What only you can know is left",
        f"# blank: fill in the lines marked so. Then: largesse run {argument}",
        "",
        f"title = {to_toml(log.name.split('.')[0].replace('_', ' '))}",
        _write_cost_unit(draft, answers),
        *_write_response_unit(draft, answers),
        f"log = {to_toml(_make_relative_path(log, file))}",
        *([f"query = {to_toml(answers.query)}"] if answers.query else []),
        *([f"encoding = {to_toml(answers.encoding)}"] if answers.encoding else []),
        *(f"# CHECK: {note}" for note in list_reading_notes(draft.table.schema)),
        '# customers = "customers.parquet"   # who to plan for; without it, the customers of the log',
        "",
        "[columns]",
        *(_write_role(role, draft) for role in ROLES if role != "features"),
        *_write_features(draft, answers),
        *_write_number_notations(draft),
        *(["", "[checks]", f"known_before = {to_toml(list(answers.known_before))}"] if answers.known_before else []),
        "",
        "[levels]",
        "# Levels are ordered: no customer should respond less to a dearer one. Arms without an order need a campaign each.",
        *_write_levels(draft, answers),
        "on_redemption = false      # true: a cost is a face value, paid only to customers who respond: cost × response",
        "",
        "[plan]",
        *_write_budget(draft, answers),
        "",
        "[model]",
        f'name = "auto"              # one of {", ".join(list_models())}',
        "seed = 0",
    ]
    return "\n".join(lines) + "\n"


def _write_cost_unit(draft: CampaignDraft, answers: DraftAnswers) -> str:
    """Write the line with the currency of costs."""
    written = [suggestion.example for suggestion in draft.written.values() if CURRENCY.search(suggestion.example)]
    if answers.unit or not written:
        return f'unit = {to_toml(answers.unit):<18} # currency of costs, for the report: "€", "USD"'
    currency = CURRENCY.search(written[0])
    assert currency is not None
    return f"unit = {to_toml(currency[0]):<18} # CHECK: currency of costs; the log writes {to_toml(written[0])}"


def _write_response_unit(draft: CampaignDraft, answers: DraftAnswers) -> list[str]:
    """Write the lines with the currency or the value of the response."""
    response, known = draft.response, []
    if answers.response_unit:
        known.append(f"response_unit = {to_toml(answers.response_unit)}")
    if answers.response_value is not None:
        known.append(f"response_value = {answers.response_value:g}")
    if known:
        return known
    if response is None or response.is_zero_or_one:
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


def _make_relative_path(source: Path, out: Path) -> str:
    """Return the path of the log relative to the folder of the campaign file."""
    log, folder = source.absolute().parent.resolve() / source.name, out.absolute().parent.resolve()
    if len(os.path.commonpath([log, folder])) <= len(log.anchor):
        return str(log)
    path = os.path.relpath(log, folder)
    return f"./{path}" if path.startswith("~") else path


def _write_role(role: str, draft: CampaignDraft) -> str:
    column, others = draft.guess.roles.get(role), draft.guess.others.get(role, ())
    more = f"; or is it {join_some([to_toml(name) for name in others])}?" if others else ""
    if column is not None and draft.guess.reasons.get(role) == EXCLUDED:
        return f"{role} = {to_toml(column)}"
    if role in REQUIRED and column is not None:
        why = draft.guess.reasons.get(role, BY_NAME)
        return f"{role} = {to_toml(column)}    # CHECK: {_describe_distinct_values(draft, column)}, {why}{more}"
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


def _describe_distinct_values(draft: CampaignDraft, column: str) -> str:
    return plural(draft.columns[column].distinct, "distinct value")


def find_protected_columns(draft: CampaignDraft) -> list[str]:
    """Return the features that are named like protected attributes."""
    return [name for name in draft.features if draft.columns[name].looks_protected]


def _write_protected(draft: CampaignDraft, answers: DraftAnswers) -> list[str]:
    """Write the line with the protected columns, or a question about likely ones."""
    if answers.protected:
        return [
            f"protected = {to_toml(list(answers.protected))}    # not learnt from; the report compares their groups"
        ]
    names = find_protected_columns(draft)
    if not names:
        return []
    ask = "CHECK: if a plan must not follow these, remove the # and take them out of features"
    return [f"# protected = {to_toml(names)}    # {ask}"]


def _write_features(draft: CampaignDraft, answers: DraftAnswers) -> list[str]:
    features = draft.features
    lines = [
        f"features = {to_toml(features)}" if features else "# CHECK: no column is left to learn from; a log needs one",
        "# CHECK: a feature must be known before the level is chosen; take out what only happened afterwards.",
    ]
    reasons: dict[str, list[str]] = {}
    for name, why in draft.guess.left_out.items():
        reasons.setdefault(why, []).append(to_toml(name))
    lines += [f"# CHECK: left out ({why}): {join_some(names, MAX_LISTED)}" for why, names in reasons.items()]
    lines += [f"# CHECK: {to_toml(name)} {why}" for name, why in draft.guess.doubts.items()]
    lines += _write_protected(draft, answers)
    known = {*draft.guess.roles.values(), *draft.guess.left_out, *draft.written}
    plain = [name for name in draft.columns if name not in known]  # text that differs in every row, too
    return [*lines, *(f"# CHECK: {note}" for note in parse_text_columns(draft.table.select(plain), {}, ())[1])]


def _write_number_notations(draft: CampaignDraft) -> list[str]:
    """Write the lines with the number or date notation of text columns."""
    lines, sure = [], draft.find_number_notations()
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


def _write_levels(draft: CampaignDraft, answers: DraftAnswers) -> list[str]:
    ask, written = "fill in: what each level costs you", bool(answers.costs)
    known = f"costs = {to_toml(list(answers.costs))}"
    if draft.level is None:
        return [known if written else f"costs = []    # {ask}, the cheapest first, like costs = [0, 5, 10]"]
    costs = draft.suggest_costs()
    hint = f"; suggestion, if it is the amount itself: costs = {to_toml(costs)}" if costs else ""
    if draft.doses is not None:
        doses = [float(name) for name in answers.names] or draft.doses
        doses = [int(dose) if float(dose).is_integer() else dose for dose in doses]
        blank = f"costs = []    # {ask}, {plural(len(doses), 'number')} in the order of doses{hint}"
        check = "as the log writes them" + ("" if answers.names else "; CHECK: a larger one costs you no less")
        return [f"doses = {to_toml(doses)}    # {check}", known if written else blank]
    line = f"costs = []    # {ask}, {plural(len(draft.level.words), 'number')} in the order of names{hint}"
    line = known if written else line
    if answers.names:
        return [f"names = {to_toml(list(answers.names))}", line]
    if draft.order is not None:
        return [f"names = {to_toml(draft.order.names)}    # CHECK: ordered by what the names say, cheapest first", line]
    names = "names = []    # fill in: the levels as the log writes them, the cheapest first"
    means = draft.measure_mean_responses()
    if means is None:
        return [f"{names}; in no order, they are {to_toml(draft.level.words)}", line]
    listed = ", ".join(f"{to_toml(word)} {mean:.3g}" for word, mean in means.items())
    return [f"{names}; suggestion, by mean response only ({listed}): names = {to_toml(list(means))}", line]


def _write_budget(draft: CampaignDraft, answers: DraftAnswers) -> list[str]:
    if answers.budget is not None:
        return [f"budget = {answers.budget:g}    # per customer on average"]
    if answers.total is not None:
        return [f"total = {answers.total:g}    # for all customers together"]
    line = 'budget = ""    # fill in: what may be spent per customer on average, a number'
    costs, spent = to_toml(draft.suggest_costs() or []), draft.suggest_budget()
    if spent is not None:
        line += f"; if costs are {costs} and always paid, the log's rows cost {spent:g} each: budget = {spent:g}"
    return [line, "# total = 50000    # or for all customers together"]
