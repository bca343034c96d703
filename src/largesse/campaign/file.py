"""The campaign file: one small TOML that names columns, levels, costs and budget.

`read_campaign` checks all of it and names everything that is wrong together; `Campaign.text` writes it back with every
default spelt out, so that a run folder says exactly what was run.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from largesse.campaign.plan import KEYS, Planning, planning_from
from largesse.campaign.write import to_toml
from largesse.data import expand_home, is_remote, parse_problems
from largesse.errors import (
    InputError,
    Problem,
    budget_problems,
    confidence_problems,
    fail,
    limit_problems,
    path_problems,
    refuse,
    repr_short,
    suggest,
    worth_problems,
)
from largesse.levels import PER_UNIT, Levels
from largesse.records import ROLES, Roles

TEXTS = ("title", "unit", "response_unit", "log", "customers", "out")
TOP = (*TEXTS, "response_value")
MONEY = ("unit", "response_unit", "response_value")  # options of levels that stand at the top of a campaign file
SECTIONS = {
    "columns": (*ROLES, "parse"),
    "levels": ("costs", "names", "doses", "dose_unit", "on_redemption", "contact_cost", "propensities"),
    "plan": KEYS,
    "model": ("name", "seed"),
    "data": ("most_rows",),
}
SEEDS = 2**32  # scikit-learn takes no more
MAX_BYTES = 2**24  # of a campaign file

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
BUDGETS = ("plan.budget", "plan.total")
BLANK_LINE = re.compile(r'^\s*([\w-]+)\s*=\s*(?:""|\'\'|\[\s*\])\s*#\s*(fill in:.*?)\s*$')


class Spent(TypedDict, total=False):
    """Budget and exploration that replace those of the campaign."""

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
    planning: Planning = field(default_factory=Planning)
    model: str = "auto"
    seed: int = 0
    most_rows: int | str = "auto"  # of a log that is in memory; models learn from as many of a larger one
    title: str = "Campaign"
    unit: str = ""  # of costs
    response_unit: str = ""
    response_value: float | None = None  # what one unit of response is worth, in the unit of costs
    out: str | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The campaign as TOML, every default spelt out; where it is written to is not part of it."""
        kept = {word: getattr(self.levels, word) for word in SECTIONS["levels"] if word != "propensities"}
        if self.levels.observed and not any(self.levels.costs):
            del kept["costs"]
        kept["propensities"] = self.propensities
        if self.levels.names is not None and not self.levels.dose_unit:
            del kept["dose_unit"]
        top = {word: getattr(self, word) for word in ("title", "unit", "response_unit", "response_value")}
        top |= {"log": self.log, "customers": self.customers}
        lines = [*_lines(top), "", "[columns]", *_lines(self.roles), "", "[levels]", *_lines(kept)]
        lines += ["", "[plan]", *self.planning.lines(self.levels)]
        lines += ["", "[model]", *_lines({"name": self.model, "seed": self.seed})]
        if self.most_rows != "auto":
            lines += ["", "[data]", *_lines({"most_rows": self.most_rows})]
        return "\n".join(lines) + "\n"

    @property
    def columns(self) -> dict[str, str]:
        """Role -> column, for the roles of a single column."""
        return {role: str(column) for role, column in self.roles.items() if role in ROLES and role != "features"}

    def spending(self, **given: Unpack[Spent]) -> Campaign:
        """Return the campaign with another budget, confidence or exploration; it must then have a budget."""
        budget, total, confidence = given.get("budget"), given.get("total"), given.get("confidence")
        planning = self.planning
        if given.get("explore") is not None or given.get("explore_for") is not None:
            planning = planning.exploring(given.get("explore"), given.get("explore_for"))
        if confidence is not None:
            refuse("budget", confidence_problems(confidence, "the confidence"))
            planning = replace(planning, budget_confidence=confidence)
        if budget is not None and total is not None:
            hint = "give the average per customer, or the total"
            fail("budget", Problem("both --budget and --total were given", hint))
        limits = {word: value for word, value in (("budget", budget), ("total", total)) if value is not None}
        refuse("budget", [p for word, value in limits.items() for p in budget_problems(value, f"the {word}")])
        if limits:
            planning = replace(planning, budget=budget, total=total)
        elif planning.budget is None and planning.total is None:
            hint = "add budget = … (average per customer) or total = … under [plan], or give --budget"
            fail("campaign", Problem("no budget is set", hint))
        return replace(self, planning=planning)


def _lines(given: Mapping[str, Any]) -> list[str]:
    return [f"{word} = {to_toml(value)}" for word, value in given.items() if value is not None]


def read_campaign(path: str | Path, *, blank_budget: bool = False) -> Campaign:
    """Read a campaign file; paths inside it are relative to it. `blank_budget` accepts a budget that is left blank."""
    refuse("campaign", path_problems(path))
    file = Path(path)
    if file.is_dir():
        file = file / "campaign.toml"
    try:
        text = _read_text(file)
        given = tomllib.loads(text)
    except FileNotFoundError as error:
        hint = "largesse init LOG writes a first one"
        raise InputError("campaign", [Problem(f"there is no file {file}", hint)]) from error
    except UnicodeDecodeError as error:
        raise InputError("campaign", [Problem(f"{file} is not UTF-8 text", "save it as UTF-8")]) from error
    except OSError as error:
        hint = "give the path of a campaign file"
        raise InputError("campaign", [Problem(f"{file} could not be read: {error.strerror}", hint)]) from error
    except RecursionError as error:
        hint = "a campaign file needs no list within a list"
        raise InputError("campaign", [Problem(f"{file} nests lists or tables too deeply", hint)]) from error
    except ValueError as error:  # TOML's own error, and a number of more digits than Python reads
        raise InputError(
            "campaign", [Problem(f"{file} is not valid TOML: {error}", "text needs quotes, lists need brackets")]
        ) from error
    return campaign_from(given, folder=file.parent, text=text, blank_budget=blank_budget)


def _read_text(file: Path) -> str:
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        got = f"{file} is larger than {MAX_BYTES:,} bytes"
        fail("campaign", Problem(got, "a campaign file is small: the log is named in it, not part of it"))
    return content.decode("utf-8-sig")  # Windows editors put a mark in front


def campaign_from(
    given: dict[str, Any], *, folder: Path = Path(), text: str = "", blank_budget: bool = False
) -> Campaign:
    """Return the campaign of the content of a campaign file, or name everything that is wrong with it.

    Relative paths start at `folder`. Comments in the file's `text` are the hints for settings that are left blank.
    """
    blanks = _find_blanks(given, text)
    given = _drop_blanks(given, blanks)
    if _is_observed(given):
        blanks.pop("levels.costs", None)
    if blank_budget and set(BUDGETS).issuperset(blanks):
        blanks = {}
    problems: list[Problem] = list(blanks.values())
    _check_names(given, problems)
    sections = {name: given[name] if isinstance(given.get(name), dict) else {} for name in SECTIONS}
    roles = _roles(sections["columns"], blanks, problems)
    levels = _levels(sections["levels"], blanks, problems, observed=_is_observed(given), unit=given.get("unit", ""))
    shares = _shares(sections["levels"], roles, problems)
    planning = planning_from(sections["plan"], levels, problems)
    texts = {key: given[key] for key in TEXTS if key in given}
    problems += [
        Problem(f"{key} is not text: {repr_short(value)}", f'write {key} = "…"')
        for key, value in texts.items()
        if not isinstance(value, str)
    ]
    if not given.get("log", "") and "log" not in blanks:
        problems.append(Problem("no log is named", 'add a line: log = "log.parquet"'))
    places = {
        key: _placed(given[key], folder) for key in ("log", "customers", "out") if isinstance(given.get(key), str)
    }
    problems += [p for key, place in places.items() for p in path_problems(place, f"{key} =", written=key != "out")]
    name, seed = (sections["model"].get(word, default) for word, default in (("name", "auto"), ("seed", 0)))
    if not isinstance(name, str):
        problems.append(Problem(f"model.name is {repr_short(name)}", 'give the name in quotes: name = "auto"'))
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < SEEDS:
        problems.append(Problem(f"model.seed is {repr_short(seed)}", "a seed is a whole number from 0 to 2³² − 1"))
    most_rows = sections["data"].get("most_rows", "auto")
    problems += limit_problems(most_rows, "data.most_rows")
    problems += worth_problems(given.get("response_value"))
    refuse("campaign", problems)
    assert levels is not None  # refused above otherwise
    return Campaign(
        log=places["log"],
        levels=levels,
        roles=roles,
        propensities=shares,
        customers=places["customers"] if given.get("customers") else None,
        planning=planning,
        model=name,
        seed=seed,
        most_rows=most_rows,
        title=given.get("title", "Campaign"),
        unit=given.get("unit", ""),
        response_unit=given.get("response_unit", ""),
        response_value=_find_worth(given),
        out=places.get("out"),
    )


def _find_worth(given: Mapping[str, Any]) -> float | None:
    """Return the value of one unit of response: as given, or 1 if it is counted in the unit of costs."""
    if given.get("response_value") is not None:
        return float(given["response_value"])
    return 1.0 if given.get("unit") and given.get("response_unit") == given["unit"] else None


def _check_names(given: dict[str, Any], problems: list[Problem]) -> None:
    """Name the settings that are unknown or in the wrong section."""
    known = [*TOP, *SECTIONS]
    for key, value in given.items():
        if key not in known:
            home = next((section for section, inner in SECTIONS.items() if key in inner), None)
            hint = f"it belongs under [{home}]" if home else suggest(key, known)
            problems.append(Problem(f"{key!r} is not a setting", hint))
        elif key in SECTIONS and not isinstance(value, dict):
            problems.append(Problem(f"{key} is a section, not a value", f"write [{key}] on a line of its own"))
        elif key in SECTIONS:
            problems += [
                Problem(f"'{key}.{inner}' is not a setting", suggest(inner, SECTIONS[key]))
                for inner in value
                if inner not in SECTIONS[key]
            ]


def _roles(section: dict[str, Any], blanks: Collection[str], problems: list[Problem]) -> Roles:
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
    features = section.get("features", [""])
    if not (isinstance(features, list) and features and all(isinstance(name, str) for name in features)):
        problems.append(
            Problem(f"columns.features is {repr_short(features)}", 'give a list of names: features = ["age", "city"]')
        )
    problems += [Problem(f"columns.{p.what}", p.hint) for p in parse_problems(section.get("parse", {}))]
    roles: dict[str, Any] = {role: section[role] for role in (*ROLES, "parse") if role in section}
    return cast(Roles, roles)


def _is_observed(given: Mapping[str, Any]) -> bool:
    """Whether a column of the log holds observed costs."""
    columns = given.get("columns")
    return isinstance(columns, Mapping) and columns.get("cost_column") is not None


def _levels(
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
    try:
        return Levels(
            costs=section.get("costs"),
            names=section.get("names"),
            doses=section.get("doses"),
            on_redemption=on_redemption,
            contact_cost=section.get("contact_cost", 0.0),
            observed=observed,
            dose_unit=section.get("dose_unit", _guess_unit(section, unit)),
        )
    except InputError as error:
        problems += [Problem(f"levels: {problem.what}", problem.hint) for problem in error.problems]
        return None


def _guess_unit(section: Mapping[str, Any], unit: Any) -> str:
    """Return the unit of the doses: money, if the doses are the costs."""
    money = "names" not in section and section.get("doses", section.get("costs")) == section.get("costs")
    return unit if isinstance(unit, str) and money else ""


def _shares(section: dict[str, Any], roles: Roles, problems: list[Problem]) -> tuple[float, ...] | None:
    """Return the propensities of the levels, one number for each level, or None."""
    given = section.get("propensities")
    if given is None:
        return None
    numbers = isinstance(given, list) and all(isinstance(p, int | float) and not isinstance(p, bool) for p in given)
    if not numbers:
        hint = "give one probability for each level: propensities = [0.2, 0.2, 0.6]"
        problems.append(Problem(f"levels.propensities is {given!r}", hint))
        return None
    if both := [word for word in ("propensity", "propensity_strata") if word in roles]:
        problems.append(Problem(f"levels.propensities is given beside columns.{both[0]}", "keep one of the two"))
    return tuple(map(float, given))


def _placed(path: str, folder: Path) -> str:
    if is_remote(path):
        return path
    return str((folder / expand_home(path)).absolute())


# -- blank settings ------------------------------------------------------------------------------------------------------


def _find_blanks(given: Mapping[str, Any], text: str = "") -> dict[str, Problem]:
    """Return the blank settings of a campaign file, each with its comment in the file's text as the hint."""
    comments = _read_comments(text)
    found = {}
    for name, ask in BLANKS.items():
        section, _, key = name.rpartition(".")
        inner = given.get(section, {}) if section else given
        if isinstance(inner, Mapping) and inner.get(key) in ("", []):
            found[name] = Problem(f"{name} is left blank", comments.get(name, ask))
    return found


def _drop_blanks(given: Mapping[str, Any], blanks: Mapping[str, Problem]) -> dict[str, Any]:
    """Return the content of a campaign file without its blank settings."""
    kept = {key: dict(value) if isinstance(value, Mapping) else value for key, value in given.items()}
    for name in blanks:
        section, _, key = name.rpartition(".")
        del (kept[section] if section else kept)[key]
    return kept


def _read_comments(text: str) -> dict[str, str]:
    """Return setting -> the comment next to its blank value."""
    section, found = "", {}
    for line in text.split("\n"):
        if head := re.match(r"^\s*\[\s*([\w.-]+)\s*\]", line):
            section = head[1] + "."
        elif match := BLANK_LINE.match(line):
            found[section + match[1]] = match[2]
    return found


# -- from options ------------------------------------------------------------------------------------------------------


def campaign_from_options(log: str, columns: dict[str, Any], levels: Mapping[str, Any], **more: Any) -> Campaign:
    """Return the campaign of command-line options; without costs, the levels cost 0, 1, 2 and so on."""
    read: dict[str, Callable[[str], Any]] = {"costs": _numbers_or_words, "doses": _numbers_or_words, "names": _split}
    read["propensities"] = _numbers_or_words
    levels, more = {**levels}, {**{word: levels[word] for word in MONEY if word in levels}, **more}
    for word in MONEY:
        levels.pop(word, None)
    section = {word: read[word](given) if isinstance(given, str) else given for word, given in levels.items()}
    if "costs" not in section and "cost_column" not in columns:
        if "names" not in section:
            fail("levels", Problem("the levels are not given", "add --costs 0,5,10 or --names none,small,big"))
        section["costs"] = [float(k) for k in range(len(section["names"]))]
    named = columns | ({"features": _split(columns["features"])} if isinstance(columns.get("features"), str) else {})
    return campaign_from({"log": log, "title": Path(log).name, "columns": named, "levels": section, **more})


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers_or_words(text: str) -> list[Any]:
    """Return the parts of a list: numbers as floats, other words (names of columns) as they are."""
    parts: list[Any] = []
    for part in _split(text):
        try:
            parts.append(float(part))
        except ValueError:
            parts.append(part)
    return parts


def read_list(text: str, name: str) -> tuple[float, ...]:
    """Return numbers that an option lists.

    >>> read_list("0,20,50", "--most")
    (0.0, 20.0, 50.0)
    """
    numbers = _numbers_or_words(text)
    if not numbers or not all(isinstance(number, float) for number in numbers):
        fail("options", Problem(f"{name} is {text!r}", "give numbers, the cheapest level's first: 0,20,50"))
    return tuple(numbers)
