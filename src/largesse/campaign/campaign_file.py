"""Campaign file (TOML): reading, checks and writing of its settings.

`read_campaign` checks all of it and names everything that is wrong together; `Campaign.text` writes it back with every
default spelt out, so that a run folder states all settings of its run.
"""

from __future__ import annotations

import errno
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from largesse.campaign.plan_settings import KEYS, PlanSettings, parse_plan_settings
from largesse.data import QueriedFile, expand_home, find_encoding_problems, find_parse_setting_problems, is_remote
from largesse.errors import (
    InputError,
    Problem,
    fail,
    find_budget_problems,
    find_confidence_problems,
    find_path_problems,
    find_response_value_problems,
    find_row_limit_problems,
    refuse,
    repr_short,
    suggest,
)
from largesse.io import to_toml
from largesse.levels import PER_UNIT, Levels
from largesse.records import CHECK_TOPICS, ROLES, Roles

TEXTS = ("title", "unit", "response_unit", "log", "query", "customers", "customers_query", "encoding", "out")
TOP = (*TEXTS, "response_value")
LEVEL_OPTIONS = (
    "unit",
    "response_unit",
    "response_value",
)  # options of levels that stand at the top of a campaign file
CAMPAIGN_SECTIONS = {
    "columns": (*ROLES, "protected", "parse"),
    "checks": ("known_before", "accepted"),
    "levels": ("costs", "names", "doses", "dose_unit", "on_redemption", "contact_cost", "propensities"),
    "plan": KEYS,
    "model": ("name", "seed"),
    "data": ("most_rows",),
}
LABELS = "labels"  # section of a campaign file: name of a column or level -> label on pages
MAX_SEED = 2**32 - 1  # scikit-learn takes no more
MAX_FILE_BYTES = 2**24  # of a campaign file

# Settings that only the owner can know. A first campaign file leaves them blank, `costs = []`, with a comment that asks for them.
BLANKS = {
    "log": 'fill in: the table to learn from, like log = "log.parquet"',
    "columns.level": 'fill in: the column that says what each customer got, like level = "coupon"',
    "columns.response": 'fill in: the column that says what happened, like response = "bought"',
    "levels.names": "fill in: the levels as the log writes them, the cheapest first",
    "levels.doses": "fill in: the amounts as the log writes them, the smallest first",
    "levels.costs": "fill in: what each level costs you, the cheapest first, like costs = [0, 5, 10]",
    "plan.budget": "fill in: what may be spent per customer on average, like budget = 1.7; or remove the line",
    "plan.total": "fill in: what may be spent on all customers together, like total = 50000; or remove the line",
}
BUDGET_KEYS = ("plan.budget", "plan.total")
CHECKUP_KEYS = (*BUDGET_KEYS, "levels.costs")  # settings that a checkup of the log does not need
BLANK_LINE = re.compile(r'^\s*([\w-]+)\s*=\s*(?:""|\'\'|\[\s*\])\s*#\s*(fill in:.*?)\s*$')
SECTION_LINE = re.compile(r"^\s*\[\s*([\w.-]+)\s*\]")


class SpendingOverrides(TypedDict, total=False):
    """Budget and exploration settings that override those of a campaign."""

    budget: float | None  # average per customer
    total: float | None  # or for all of them together
    confidence: float | None  # probability that the true cost is within it, where costs are not certain
    explore: float | None  # how much is explored
    explore_for: str | None  # and what for


@dataclass(frozen=True)
class Campaign:
    """Settings of a campaign: its tables, columns, levels, planning and model."""

    log: str
    levels: Levels
    roles: Roles  # which column of the log has which role
    propensities: tuple[float, ...] | None = None  # of the levels, where all customers had the same
    customers: str | None = None  # the table to plan for; None: the customers of the log
    planning: PlanSettings = field(default_factory=PlanSettings)
    model: str = "auto"
    seed: int = 0
    most_rows: int | str = "auto"  # of a log that is in memory; models learn from as many of a larger one
    title: str = "Campaign"
    unit: str = ""  # of costs
    response_unit: str = ""
    response_value: float | None = None  # what one unit of response is worth, in the unit of costs
    labels: Mapping[str, str] = field(default_factory=dict)  # column or level -> its label on pages
    query: str = ""  # that selects the rows of the log from a database, or the sheet of a workbook
    customers_query: str = ""  # likewise, of the table to plan for
    encoding: str = ""  # of CSV files; empty: guessed
    out: str | None = field(default=None, compare=False)

    @property
    def source(self) -> str | QueriedFile:
        """Path of the log, with its query and encoding if there are any."""
        return self._name_source(self.log, self.query)

    @property
    def customers_source(self) -> str | QueriedFile | None:
        """Path of the table to plan for, with its query and encoding if there are any; None without a table."""
        return None if self.customers is None else self._name_source(self.customers, self.customers_query)

    def _name_source(self, path: str, query: str) -> str | QueriedFile:
        return QueriedFile(path, query, self.encoding) if query or self.encoding else path

    def with_log(self, log: str) -> Campaign:
        """Return the campaign with another log file."""
        return replace(self, log=log, query="")

    @property
    def text(self) -> str:
        """Campaign as TOML text with all defaults."""
        levels = {word: getattr(self.levels, word) for word in CAMPAIGN_SECTIONS["levels"] if word != "propensities"}
        if self.levels.observed and not any(self.levels.costs):
            del levels["costs"]
        levels["propensities"] = self.propensities
        if self.levels.names is not None and not self.levels.dose_unit:
            del levels["dose_unit"]
        top = {word: getattr(self, word) for word in ("title", "unit", "response_unit", "response_value")}
        top |= {"log": self.log, "query": self.query or None, "customers": self.customers}
        top |= {"customers_query": self.customers_query or None, "encoding": self.encoding or None}
        columns: Mapping[str, Any] = self.roles
        checks = {word: columns.get(word) for word in CAMPAIGN_SECTIONS["checks"]}
        columns = {role: column for role, column in columns.items() if role not in checks}
        lines = [*_format_settings(top), "", "[columns]", *_format_settings(columns)]
        lines += ["", "[checks]", *_format_settings(checks)] if any(checks.values()) else []
        lines += ["", "[levels]", *_format_settings(levels)]
        lines += ["", "[plan]", *self.planning.format_toml_lines(self.levels)]
        lines += ["", "[model]", *_format_settings({"name": self.model, "seed": self.seed})]
        if self.most_rows != "auto":
            lines += ["", "[data]", *_format_settings({"most_rows": self.most_rows})]
        if self.labels:
            lines += [
                "",
                f"[{LABELS}]",
                *(f"{to_toml(name)} = {to_toml(label)}" for name, label in self.labels.items()),
            ]
        return "\n".join(lines) + "\n"

    @property
    def page_labels(self) -> dict[str, str]:
        """Display labels of columns and levels, by name and by the title of a level."""
        titles = zip(self.levels.titles, self.levels.labels, strict=True)
        return {**self.labels, **{title: self.labels[name] for title, name in titles if name in self.labels}}

    @property
    def columns(self) -> dict[str, str]:
        """Column name by role, without the features."""
        return {role: str(column) for role, column in self.roles.items() if role in ROLES and role != "features"}

    def spending(self, **changes: Unpack[SpendingOverrides]) -> Campaign:
        """Return the campaign with another budget, confidence or exploration."""
        budget, total, confidence = changes.get("budget"), changes.get("total"), changes.get("confidence")
        planning = self.planning
        if changes.get("explore") is not None or changes.get("explore_for") is not None:
            planning = planning.with_exploration(changes.get("explore"), changes.get("explore_for"))
        if confidence is not None:
            refuse("budget", find_confidence_problems(confidence, "the confidence"))
            planning = replace(planning, budget_confidence=confidence)
        if budget is not None and total is not None:
            hint = "give the average per customer, or the total"
            fail("budget", Problem("both --budget and --total were given", hint))
        limits = {word: value for word, value in (("budget", budget), ("total", total)) if value is not None}
        refuse("budget", [p for word, value in limits.items() for p in find_budget_problems(value, f"the {word}")])
        if limits:
            planning = replace(planning, budget=budget, total=total)
        elif planning.budget is None and planning.total is None:
            hint = "add budget = … (average per customer) or total = … under [plan], or give --budget"
            fail("campaign", Problem("no budget is set", hint))
        return replace(self, planning=planning)


def _format_settings(settings: Mapping[str, Any]) -> list[str]:
    return [f"{word} = {to_toml(value)}" for word, value in settings.items() if value is not None]


def read_campaign(path: str | Path, *, optional: Collection[str] = ()) -> Campaign:
    """Read and check a campaign file."""
    refuse("campaign", find_path_problems(path))
    file = Path(path)
    if file.is_dir():
        file = file / "campaign.toml"
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES)
            if opened.read(1):
                raise OSError(errno.EFBIG, f"it is larger than {MAX_FILE_BYTES:,} bytes")
        text = content.decode("utf-8-sig")  # Windows editors put a mark in front
        settings = tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError("campaign", [_describe_file_error(error, file)]) from error
    return parse_campaign(settings, folder=file.parent, text=text, optional=optional)


def _describe_file_error(error: Exception, file: Path) -> Problem:
    """Convert an error in reading a campaign file to a problem with a hint."""
    match error:
        case FileNotFoundError():
            return Problem(f"there is no file {file}", "largesse init LOG writes a first one")
        case OSError():
            return Problem(f"{file} could not be read: {error.strerror}", "give the path of a campaign file")
        case UnicodeDecodeError():
            return Problem(f"{file} is not UTF-8 text", "save it as UTF-8")
        case RecursionError():
            return Problem(f"{file} nests lists or tables too deeply", "a campaign file needs no list within a list")
    # TOML's own error, and a number of more digits than Python reads
    return Problem(f"{file} is not valid TOML: {error}", "text needs quotes, lists need brackets")


def parse_campaign(
    settings: dict[str, Any], *, folder: Path = Path(), text: str = "", optional: Collection[str] = ()
) -> Campaign:
    """Convert the parsed TOML of a campaign file to a campaign, or refuse it with all problems.

    Relative paths start at `folder`. Comments in the file's `text` are the hints for settings that are left blank.
    """
    blanks = _find_blank_settings(settings, text)
    settings = _drop_blank_settings(settings, blanks)
    if _has_observed_costs(settings):
        blanks.pop("levels.costs", None)
    if set(optional).issuperset(blanks):
        blanks = {}
    problems: list[Problem] = list(blanks.values())
    _check_setting_names(settings, problems)
    sections = {name: settings[name] if isinstance(settings.get(name), dict) else {} for name in CAMPAIGN_SECTIONS}
    roles = _read_roles(sections["columns"], sections["checks"], blanks, problems)
    levels = _read_levels(
        sections["levels"] if _has_observed_costs(settings) else _fill_missing_costs(sections["levels"], optional),
        blanks,
        problems,
        observed=_has_observed_costs(settings),
        unit=settings.get("unit", ""),
    )
    propensities = _read_propensities(sections["levels"], roles, problems)
    planning = parse_plan_settings(sections["plan"], levels, problems)
    texts = {key: settings[key] for key in TEXTS if key in settings}
    problems += [
        Problem(f"{key} is not text: {repr_short(value)}", f'write {key} = "…"')
        for key, value in texts.items()
        if not isinstance(value, str)
    ]
    if not settings.get("log", "") and "log" not in blanks:
        problems.append(Problem("no log is named", 'add a line: log = "log.parquet"'))
    if settings.get("customers_query") and not settings.get("customers"):
        problems.append(Problem("customers_query has no customers", 'name the file: customers = "shop.duckdb"'))
    if isinstance(settings.get("encoding"), str):
        problems += find_encoding_problems(settings["encoding"])
    paths = [key for key in ("log", "customers", "out") if isinstance(settings.get(key), str)]
    places = {key: _resolve_path(settings[key], folder) for key in paths}
    problems += [
        p for key, place in places.items() for p in find_path_problems(place, f"{key} =", is_written=key != "out")
    ]
    name, seed = (sections["model"].get(word, default) for word, default in (("name", "auto"), ("seed", 0)))
    if not isinstance(name, str):
        problems.append(Problem(f"model.name is {repr_short(name)}", 'give the name in quotes: name = "auto"'))
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
        problems.append(Problem(f"model.seed is {repr_short(seed)}", "a seed is a whole number from 0 to 2³² − 1"))
    most_rows = sections["data"].get("most_rows", "auto")
    problems += find_row_limit_problems(most_rows, "data.most_rows")
    problems += find_response_value_problems(settings.get("response_value"))
    labels = _read_labels(settings.get(LABELS, {}), problems)
    refuse("campaign", problems)
    assert levels is not None  # refused above otherwise
    worth = settings.get("response_value")
    if worth is None and settings.get("unit") and settings.get("response_unit") == settings["unit"]:
        worth = 1.0
    return Campaign(
        log=places["log"],
        levels=levels,
        roles=roles,
        propensities=propensities,
        customers=places["customers"] if settings.get("customers") else None,
        planning=planning,
        model=name,
        seed=seed,
        most_rows=most_rows,
        title=settings.get("title", "Campaign"),
        unit=settings.get("unit", ""),
        response_unit=settings.get("response_unit", ""),
        query=settings.get("query", ""),
        customers_query=settings.get("customers_query", ""),
        encoding=settings.get("encoding", ""),
        response_value=None if worth is None else float(worth),
        labels=labels,
        out=places.get("out"),
    )


def _check_setting_names(settings: dict[str, Any], problems: list[Problem]) -> None:
    """Add a problem for each unknown or misplaced setting."""
    known = [*TOP, *CAMPAIGN_SECTIONS, LABELS]
    for key, value in settings.items():
        if key not in known:
            home = next((section for section, inner in CAMPAIGN_SECTIONS.items() if key in inner), None)
            hint = f"it belongs under [{home}]" if home else suggest(key, known)
            problems.append(Problem(f"{key!r} is not a setting", hint))
        elif key in CAMPAIGN_SECTIONS and not isinstance(value, dict):
            problems.append(Problem(f"{key} is a section, not a value", f"write [{key}] on a line of its own"))
        elif key in CAMPAIGN_SECTIONS:
            problems += [
                Problem(f"'{key}.{inner}' is not a setting", _suggest_section_or_setting(inner, key))
                for inner in value
                if inner not in CAMPAIGN_SECTIONS[key]
            ]


def _suggest_section_or_setting(word: str, section: str) -> str:
    """Return a hint for an unknown setting: its section, or similar settings."""
    home = "" if word in TOP else next((name for name, words in CAMPAIGN_SECTIONS.items() if word in words), None)
    if home is None:
        return suggest(word, CAMPAIGN_SECTIONS[section])
    return f"it belongs under [{home}]" if home else "it belongs at the top of the file, above all sections"


def _read_roles(
    section: dict[str, Any], checks: dict[str, Any], blanks: Collection[str], problems: list[Problem]
) -> Roles:
    problems += [
        Problem(f"[columns] does not name the {role} column", f'add a line under [columns]: {role} = "…"')
        for role in ("level", "response")
        if role not in section and f"columns.{role}" not in blanks
    ]
    problems += [
        Problem(f"columns.{role} is {repr_short(name)}", "give the column's name in quotes")
        for role, name in section.items()
        if role in ROLES and role != "features" and not isinstance(name, str)
    ]
    lists = {"features": '["age", "city"]', "protected": '["sex"]'}
    answers = {"known_before": '["visits last year"]', "accepted": '["balance"]'}
    for name, words in (("columns", lists), ("checks", answers)):
        for word, example in words.items():
            names = (section if name == "columns" else checks).get(word, [""])
            if not (isinstance(names, list) and names and all(isinstance(column, str) for column in names)):
                hint = f"give a list of names: {word} = {example}"
                problems.append(Problem(f"{name}.{word} is {repr_short(names)}", hint))
    accepted = checks.get("accepted")
    problems += [
        Problem(f"checks.accepted names {topic!r}, which no check is called", suggest(topic, CHECK_TOPICS))
        for topic in (accepted if isinstance(accepted, list) else ())
        if isinstance(topic, str) and topic not in CHECK_TOPICS
    ]
    problems += [Problem(f"columns.{p.what}", p.hint) for p in find_parse_setting_problems(section.get("parse", {}))]
    roles: dict[str, Any] = {role: section[role] for role in CAMPAIGN_SECTIONS["columns"] if role in section}
    roles |= {word: checks[word] for word in CAMPAIGN_SECTIONS["checks"] if word in checks}
    return cast(Roles, roles)


def _read_labels(section: Any, problems: list[Problem]) -> dict[str, str]:
    """Return the display labels of columns and levels."""
    if not isinstance(section, dict):
        problems.append(Problem(f"{LABELS} is a section, not a value", f"write [{LABELS}] on a line of its own"))
        return {}
    wrong = [name for name, label in section.items() if not (isinstance(label, str) and label.strip())]
    problems += [
        Problem(f"{LABELS}.{name} is {repr_short(section[name])}", f'give text: "{name}" = "how pages should write it"')
        for name in wrong
    ]
    return {name: label.strip() for name, label in section.items() if name not in wrong}


def _has_observed_costs(settings: Mapping[str, Any]) -> bool:
    """Test if a column of the log holds observed costs."""
    columns = settings.get("columns")
    return isinstance(columns, Mapping) and columns.get("cost_column") is not None


def _fill_missing_costs(section: dict[str, Any], optional: Collection[str]) -> dict[str, Any]:
    """Fill in costs 0, 1, 2, … if costs are optional and missing."""
    listed = section.get("names") or section.get("doses")
    if "levels.costs" not in optional or section.get("costs") or not isinstance(listed, list):
        return section
    # The costs are not money, and so the doses need not be.
    return {**section, "costs": list(range(len(listed))), "dose_unit": section.get("dose_unit", "")}


def _read_levels(
    section: dict[str, Any], blanks: Collection[str], problems: list[Problem], *, observed: bool, unit: Any
) -> Levels | None:
    if any(name.startswith("levels.") for name in blanks):
        return None
    listed = isinstance(section.get("costs"), list) and bool(section["costs"])
    if not listed and not (observed and "costs" not in section):
        problems.append(Problem("[levels] does not give the costs", "add a line under [levels]: costs = [0, 5, 10]"))
        return None
    on_redemption = section.get("on_redemption", False)
    if not isinstance(on_redemption, bool) and on_redemption != PER_UNIT:
        hint = f'write true or false, without quotes; or "{PER_UNIT}", where every unit of the response is paid for'
        problems.append(Problem(f"levels.on_redemption is {repr_short(on_redemption)}", hint))
        on_redemption = False
    # Doses that are the costs are amounts of money.
    money = "names" not in section and section.get("doses", section.get("costs")) == section.get("costs")
    try:
        return Levels(
            costs=section.get("costs"),
            names=section.get("names"),
            doses=section.get("doses"),
            on_redemption=on_redemption,
            contact_cost=section.get("contact_cost", 0.0),
            observed=observed,
            dose_unit=section.get("dose_unit", unit if money and isinstance(unit, str) else ""),
        )
    except InputError as error:
        problems += [Problem(f"levels: {problem.what}", problem.hint) for problem in error.problems]
        return None


def _read_propensities(section: dict[str, Any], roles: Roles, problems: list[Problem]) -> tuple[float, ...] | None:
    """Return the propensity of each level, or None if the campaign states none."""
    shares = section.get("propensities")
    if shares is None:
        return None
    if not (isinstance(shares, list) and all(isinstance(p, int | float) and not isinstance(p, bool) for p in shares)):
        hint = "give one probability for each level: propensities = [0.2, 0.2, 0.6]"
        problems.append(Problem(f"levels.propensities is {shares!r}", hint))
        return None
    if both := [word for word in ("propensity", "propensity_strata") if word in roles]:
        problems.append(Problem(f"levels.propensities and columns.{both[0]} are both given", "keep one of the two"))
    return tuple(map(float, shares))


def _resolve_path(path: str, folder: Path) -> str:
    return path if is_remote(path) else str((folder / expand_home(path)).absolute())


# -- blank settings ------------------------------------------------------------------------------------------------------


def _find_blank_settings(settings: Mapping[str, Any], text: str = "") -> dict[str, Problem]:
    """Find the settings that are blank in a campaign file, each with its comment as a hint."""
    blanks, comments, section = {}, {}, ""
    for line in text.split("\n"):
        if head := SECTION_LINE.match(line):
            section = head[1] + "."
        elif blank := BLANK_LINE.match(line):
            comments[section + blank[1]] = blank[2]
    for name, hint in BLANKS.items():
        section, _, key = name.rpartition(".")
        values = settings.get(section, {}) if section else settings
        if isinstance(values, Mapping) and values.get(key) in ("", []):
            blanks[name] = Problem(f"{name} is left blank", comments.get(name, hint))
    return blanks


def _drop_blank_settings(settings: Mapping[str, Any], blanks: Mapping[str, Problem]) -> dict[str, Any]:
    """Return the settings of a campaign file without the blank ones."""
    content = {key: dict(value) if isinstance(value, Mapping) else value for key, value in settings.items()}
    for name in blanks:
        section, _, key = name.rpartition(".")
        del (content[section] if section else content)[key]
    return content


# -- from options ------------------------------------------------------------------------------------------------------


def make_campaign_from_options(log: str, columns: dict[str, Any], levels: Mapping[str, Any], **more: Any) -> Campaign:
    """Build a campaign from command-line options."""
    top = {word: levels[word] for word in LEVEL_OPTIONS if word in levels}
    section = {
        word: (split_comma_list if word == "names" else _parse_list_items)(value) if isinstance(value, str) else value
        for word, value in levels.items()
        if word not in LEVEL_OPTIONS
    }
    if "costs" not in section and "cost_column" not in columns:
        if "names" not in section:
            fail("levels", Problem("the levels are not given", "add --costs 0,5,10 or --names none,small,big"))
        section["costs"] = [float(k) for k in range(len(section["names"]))]
    if isinstance(columns.get("features"), str):
        columns = {**columns, "features": split_comma_list(columns["features"])}
    return parse_campaign({"log": log, "title": Path(log).name, "columns": columns, "levels": section, **top, **more})


def split_comma_list(text: str | None) -> list[str]:
    """Split a comma-separated option into words.

    >>> split_comma_list("age, city")
    ['age', 'city']
    """
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _parse_list_items(text: str) -> list[Any]:
    """Split a comma-separated option into numbers and column names."""
    parts: list[Any] = []
    for word in split_comma_list(text):
        try:
            parts.append(float(word))
        except ValueError:
            parts.append(word)
    return parts


def parse_number_list(text: str, name: str) -> tuple[float, ...]:
    """Parse a comma-separated option as numbers.

    >>> parse_number_list("0,20,50", "--most")
    (0.0, 20.0, 50.0)
    """
    numbers = _parse_list_items(text)
    if not numbers or not all(isinstance(number, float) for number in numbers):
        fail("options", Problem(f"{name} is {text!r}", "give numbers, the cheapest level's first: 0,20,50"))
    return tuple(numbers)
