"""The section [plan] of a campaign file: budget, other constraints, proof, exploration."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from largesse.allocation import CONSTRAINT_SETTINGS, EVEN, Setting
from largesse.campaign.rules import number_levels, read_barred, read_fixed, write_personal
from largesse.campaign.write import to_toml
from largesse.errors import (
    Problem,
    as_number,
    budget_problems,
    confidence_problems,
    join_some,
    refuse,
    repr_short,
    suggest,
)
from largesse.exploration import AT_RANDOM, DEFAULT_RATE, GOALS
from largesse.levels import Levels

TABLES = [setting for per in ("level", "segment") for setting in CONSTRAINT_SETTINGS if setting.per == per]
NUMBERS = [setting for setting in CONSTRAINT_SETTINGS if setting.per == "plan"]
COLUMNS = [setting for setting in CONSTRAINT_SETTINGS if setting.per == "customer"]
PLAIN = ("budget", "total", "budget_confidence", "exact", "explore", "explore_for")
KEYS = (*PLAIN, "segment", *(setting.word for setting in (*NUMBERS, *COLUMNS, *TABLES)), "barred", "fixed")


@dataclass(frozen=True)
class Planning:
    """Budget, other constraints, proof and exploration of a plan. Levels are given by number, columns by name."""

    budget: float | None = None  # average per customer
    total: float | None = None  # or for all of them together
    exact: bool = False
    explore: float = 0.0
    segment: str | None = None  # column
    constraints: dict[str, Any] = field(default_factory=dict)  # word of `Constraints` → what it is given, if anything
    explore_for: str = AT_RANDOM  # what the next log is to tell: "evaluation" or "learning", drawn around the plan
    budget_confidence: float = EVEN  # probability that the true cost is within the budget, where costs are not certain
    barred: dict[str, dict[str, tuple[int, ...]]] = field(
        default_factory=dict
    )  # column → value → levels they may not get
    fixed: dict[str, int] = field(default_factory=dict)  # customer → the level they get

    @property
    def constrained(self) -> bool:
        """Whether the plan has any constraint besides the budget."""
        return bool(self.constraints or self.barred or self.fixed)

    @property
    def aimed(self) -> bool:
        """Whether the plan explores for a goal, and not at random."""
        return self.explore > 0 and self.explore_for != AT_RANDOM

    def exploring(self, rate: float | None, purpose: str | None) -> Planning:
        """Return the same with another exploration rate or goal."""
        section = {"explore_for": self.explore_for if purpose is None else purpose}
        known = rate if rate is not None else self.explore or None
        problems: list[Problem] = []
        found, aim = _exploring(section if known is None else section | {"explore": known}, problems)
        planning = replace(self, explore=found, explore_for=aim)
        refuse("plan", problems + _clashing(planning))
        return planning

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Word -> the columns that hold a constraint, one per level."""
        words = [setting.word for setting in COLUMNS]
        return {word: columns for word, columns in self.constraints.items() if word in words}

    def average(self, customers: int) -> float:
        """Return the average budget for a number of customers."""
        return self.budget if self.budget is not None else float(self.total or 0.0) / customers

    def lines(self, levels: Levels) -> list[str]:
        """Return the lines of TOML under [plan], tables last."""
        plain: dict[str, Any] = {key: getattr(self, key) for key in PLAIN}
        plain |= {setting.word: self.constraints.get(setting.word, 0.0) for setting in NUMBERS}
        plain |= {"segment": self.segment, **self.columns}
        lines = [f"{key} = {to_toml(value)}" for key, value in plain.items() if value is not None]
        for setting in TABLES:
            table = self.constraints.get(setting.word, {})
            lines += ["", f"[plan.{setting.word}]"] if table else []
            for key, value in table.items():
                name = levels.labels[key] if setting.per == "level" else key
                lines.append(f"{to_toml(name)} = {to_toml(value)}")
        return lines + write_personal(self.barred, self.fixed, levels)


def planning_from(section: dict[str, Any], levels: Levels | None, problems: list[Problem]) -> Planning:
    """Read the keys under [plan]; add what is wrong to `problems`."""
    budget, total = _budget(section, problems)
    exact = section.get("exact", False)
    if not isinstance(exact, bool):
        problems.append(Problem(f"plan.exact is {repr_short(exact)}", "write true or false, without quotes"))
    explore, purpose = _exploring(section, problems)
    constraints: dict[str, Any] = {}
    for setting in NUMBERS:
        constraints[setting.word] = _number(section, setting.word, setting.most, setting.meaning, problems)
    segment = section.get("segment")
    if segment is not None and not isinstance(segment, str):
        problems.append(Problem(f"plan.segment is {repr_short(segment)}", "give the column's name in quotes"))
    for setting in COLUMNS:
        constraints[setting.word] = _columns(section, setting.word, levels, problems)
    for setting in TABLES:
        table = _table(section, setting, problems)
        if table and setting.per == "segment" and segment is None:
            hint = 'add a line under [plan]: segment = "…", the column that names each customer\'s segment'
            problems.append(Problem(f"plan.{setting.word} without plan.segment", hint))
        by_level = setting.per == "level"
        constraints[setting.word] = number_levels(table, setting.word, levels, problems) if by_level else table
    given = {word: value for word, value in constraints.items() if value}
    sure = section.get("budget_confidence", EVEN)
    problems += (doubt := confidence_problems(sure, "plan.budget_confidence"))
    column = segment if isinstance(segment, str) else None
    own = read_barred(section, levels, problems), read_fixed(section, levels, problems)
    planning = Planning(budget, total, exact is True, explore, column, given, purpose, EVEN if doubt else sure, *own)
    problems += _clashing(planning)
    return planning


def _clashing(planning: Planning) -> list[Problem]:
    """Return the keys that exclude exploration: levels that are drawn cannot keep limits, and have no proof."""
    if not planning.explore:
        return []
    eligible = [*planning.columns, *(name for name in ("barred", "fixed") if getattr(planning, name))]
    limits = [
        *(word for word in planning.constraints if word not in planning.columns),
        *(["exact"] if planning.exact else []),
    ]
    if not planning.aimed and eligible:
        hint = 'remove explore or them, or add explore_for = "evaluation", which draws eligible levels only'
        return [
            Problem(f"plan.explore gives any level at random, also against {join_some([*eligible, *limits])}", hint)
        ]
    if limits:
        return [Problem(f"plan.explore and {join_some(limits)} exclude each other", "remove one of them")]
    return []


def _exploring(section: dict[str, Any], problems: list[Problem]) -> tuple[float, str]:
    """Return the exploration rate and goal."""
    purpose = section.get("explore_for", AT_RANDOM)
    known = (AT_RANDOM, *GOALS)
    if purpose not in known:
        problems.append(Problem(f"plan.explore_for is {repr_short(purpose)}", suggest(str(purpose), known)))
        purpose = AT_RANDOM
    if purpose != AT_RANDOM and "explore" not in section:
        return DEFAULT_RATE, purpose
    return _number(section, "explore", 1.0, "a share of customers, from 0 to 1", problems), purpose


def _budget(section: dict[str, Any], problems: list[Problem]) -> tuple[float | None, float | None]:
    """Return budget and total, of which one may be given."""
    given = {word: section[word] for word in ("budget", "total") if word in section}
    if len(given) == 2:
        problems.append(Problem("[plan] gives both budget and total", "give the average per customer, or the total"))
    wrong = [problem for word, value in given.items() for problem in budget_problems(value, f"plan.{word}")]
    problems += wrong
    return (None, None) if wrong else (given.get("budget"), given.get("total"))


def _number(section: dict[str, Any], key: str, most: float, rule: str, problems: list[Problem]) -> float:
    given = section.get(key, 0.0)
    value = as_number(given)
    if value is None or not 0 <= value <= most or math.isinf(value):
        problems.append(Problem(f"plan.{key} is {repr_short(given)}", rule))
        return 0.0
    return value


def _columns(
    section: dict[str, Any], word: str, levels: Levels | None, problems: list[Problem]
) -> tuple[str, ...] | None:
    given = section.get(word)
    count = len(levels) if levels is not None else None
    if given is None:
        return None
    if (
        isinstance(given, list)
        and all(isinstance(name, str) for name in given)
        and (count is None or len(given) == count)
    ):
        return tuple(given)
    problems.append(Problem(f"plan.{word} is {repr_short(given)}", "name one column per level, in their order"))
    return None


def _table(section: dict[str, Any], setting: Setting, problems: list[Problem]) -> dict[str, float]:
    word, given = setting.word, section.get(setting.word, {})
    if not isinstance(given, dict):
        problems.append(
            Problem(f"plan.{word} is {repr_short(given)}", f"write [plan.{word}] and one line for each: name = number")
        )
        return {}
    numbers = {name: as_number(value) for name, value in given.items()}
    wrong = [name for name, value in numbers.items() if value is None or not 0 <= value <= setting.most]
    problems += [
        Problem(f"plan.{word}.{name} is {repr_short(given[name])}", f"give {setting.meaning}, a number")
        for name in wrong
    ]
    return {name: value for name, value in given.items() if name not in wrong}
