"""Settings of a plan, from section [plan] of a campaign file: budget, constraints, exploration.

Rules name levels as the log writes them. `find_eligible_levels` turns the rules for single customers into the table of levels that
each customer may get.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import BUDGET_CONFIDENCE, CONSTRAINT_SETTINGS, ConstraintSetting
from largesse.errors import (
    Problem,
    find_budget_problems,
    find_confidence_problems,
    join_some,
    number_or_none,
    refuse,
    repr_short,
    suggest,
)
from largesse.exploration import AT_RANDOM, DEFAULT_RATE, GOALS
from largesse.io import to_toml
from largesse.levels import Levels
from largesse.records import Array, Customers

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = [setting for per in ("level", "segment") for setting in CONSTRAINT_SETTINGS if setting.per == per]
NUMBERS = [setting for setting in CONSTRAINT_SETTINGS if setting.per == "plan"]
CUSTOMER_COLUMN_KEYS = [setting.word for setting in CONSTRAINT_SETTINGS if setting.per == "customer"]
SCALARS = ("budget", "total", "budget_confidence", "exact", "explore", "explore_for", "unsupported")
BAR, ALLOW = "bar", "allow"  # levels that a kind of customers never got
KEYS = (
    *SCALARS,
    "segment",
    *(setting.word for setting in (*NUMBERS, *TABLES)),
    *CUSTOMER_COLUMN_KEYS,
    "barred",
    "fixed",
)
MAX_PROBLEMS = 20  # about fixed customers, in one message

Barred = dict[str, dict[str, tuple[int, ...]]]  # column → value → levels


@dataclass(frozen=True)
class PlanSettings:
    """Budget, constraints and exploration of a plan."""

    budget: float | None = None  # average per customer
    total: float | None = None  # or for all of them together
    exact: bool = False
    explore: float = 0.0  # share of customers
    segment: str | None = None  # column
    constraints: dict[str, Any] = field(default_factory=dict)  # argument of `Constraints` → its value, without defaults
    explore_for: str = AT_RANDOM  # goal of exploration: "evaluation" or "learning"
    budget_confidence: float = (
        BUDGET_CONFIDENCE  # probability that the true cost is within the budget, where costs are uncertain
    )
    barred: Barred = field(default_factory=dict)  # levels that customers with this value may not get
    fixed: dict[str, int] = field(default_factory=dict)  # customer → the level they get
    unsupported: str = BAR  # or "allow": levels for the kinds of customers who never got them

    @property
    def bars_unsupported_levels(self) -> bool:
        """True if customers never get a level that similar logged customers never got."""
        return self.unsupported == BAR

    @property
    def constrained(self) -> bool:
        """True if the plan has constraints other than the budget."""
        return bool(self.constraints or self.barred or self.fixed)

    @property
    def explores_for_goal(self) -> bool:
        """True if the plan explores for a goal (evaluation or learning), not at random."""
        return self.explore > 0 and self.explore_for != AT_RANDOM

    def with_exploration(self, rate: float | None, goal: str | None) -> PlanSettings:
        """Return the plan settings with another exploration rate or goal."""
        section: dict[str, Any] = {"explore_for": self.explore_for if goal is None else goal}
        if rate is not None or self.explore:
            section["explore"] = self.explore if rate is None else rate
        problems: list[Problem] = []
        explore, explore_for = _read_exploration(section, problems)
        planning = replace(self, explore=explore, explore_for=explore_for)
        refuse("plan", problems + _find_exploration_conflicts(planning))
        return planning

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Names of the customer columns, one per level, of each constraint stated per customer (eligibility)."""
        return {word: self.constraints[word] for word in CUSTOMER_COLUMN_KEYS if word in self.constraints}

    @property
    def rule_columns(self) -> tuple[str, ...]:
        """Names of all customer columns that the constraints use, without duplicates."""
        segment = [self.segment] if self.segment else []
        by_level = [name for names in self.columns.values() for name in names]
        return tuple(dict.fromkeys([*segment, *by_level, *self.barred]))

    def average_budget(self, customers: int) -> float:
        """Return the average budget per customer for a number of customers."""
        return self.budget if self.budget is not None else float(self.total or 0.0) / customers

    def format_toml_lines(self, levels: Levels) -> list[str]:
        """Return the plan settings as lines of TOML."""
        labels = [to_toml(label) for label in levels.labels]
        plain: dict[str, Any] = {key: getattr(self, key) for key in SCALARS}
        plain |= {setting.word: self.constraints.get(setting.word, 0.0) for setting in NUMBERS}
        plain |= {"segment": self.segment, **self.columns}
        lines = [f"{key} = {to_toml(value)}" for key, value in plain.items() if value is not None]
        for setting in TABLES:
            if table := self.constraints.get(setting.word):
                lines += ["", f"[plan.{setting.word}]"]
                by_level = setting.per == "level"
                lines += [f"{labels[key] if by_level else to_toml(key)} = {to_toml(table[key])}" for key in table]
        for column, values in self.barred.items():
            lines += ["", f"[plan.barred.{to_toml(column)}]"]
            lines += [f"{to_toml(value)} = [{', '.join(labels[k] for k in ks)}]" for value, ks in values.items()]
        if self.fixed:
            lines += ["", "[plan.fixed]", *(f"{to_toml(customer)} = {labels[k]}" for customer, k in self.fixed.items())]
        return lines


# -- reading ----------------------------------------------------------------------------------------------------------


def parse_plan_settings(section: dict[str, Any], levels: Levels | None, problems: list[Problem]) -> PlanSettings:
    """Parse section [plan] of a campaign file, and collect its problems."""
    limits = {word: section[word] for word in ("budget", "total") if word in section}
    if len(limits) == 2:
        problems.append(Problem("[plan] gives both budget and total", "give the average per customer, or the total"))
    wrong_limits = [
        problem for word, value in limits.items() for problem in find_budget_problems(value, f"plan.{word}")
    ]
    problems += wrong_limits
    exact = section.get("exact", False)
    if not isinstance(exact, bool):
        problems.append(Problem(f"plan.exact is {repr_short(exact)}", "write true or false, without quotes"))
    explore, explore_for = _read_exploration(section, problems)
    segment = section.get("segment")
    constraints: dict[str, Any] = {}
    for setting in NUMBERS:
        constraints[setting.word] = _read_number_setting(section, setting.word, setting.most, setting.meaning, problems)
    if segment is not None and not isinstance(segment, str):
        problems.append(Problem(f"plan.segment is {repr_short(segment)}", "give the column's name in quotes"))
    for word in CUSTOMER_COLUMN_KEYS:
        constraints[word] = names = section.get(word)
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if names is not None and (not known or (levels is not None and len(names) != len(levels))):
            problems.append(Problem(f"plan.{word} is {repr_short(names)}", "name one column per level, in their order"))
        elif names is not None:
            constraints[word] = tuple(names)
    for setting in TABLES:
        table: dict[Any, float] = _read_constraint_table(section, setting, problems)
        if setting.per == "level":
            table = _convert_level_names(table, setting.word, levels, problems)
        elif table and segment is None:
            hint = 'add a line under [plan]: segment = "…", the column that names each customer\'s segment'
            problems.append(Problem(f"plan.{setting.word} without plan.segment", hint))
        constraints[setting.word] = table
    confidence = section.get("budget_confidence", BUDGET_CONFIDENCE)
    problems += (wrong_confidence := find_confidence_problems(confidence, "plan.budget_confidence"))
    unsupported = section.get("unsupported", BAR)
    if unsupported not in (BAR, ALLOW):
        problems.append(
            Problem(f"plan.unsupported is {repr_short(unsupported)}", suggest(str(unsupported), (BAR, ALLOW)))
        )
    planning = PlanSettings(
        budget=None if wrong_limits else limits.get("budget"),
        total=None if wrong_limits else limits.get("total"),
        exact=exact is True,
        explore=explore,
        segment=segment if isinstance(segment, str) else None,
        constraints={word: value for word, value in constraints.items() if value},
        explore_for=explore_for,
        budget_confidence=BUDGET_CONFIDENCE if wrong_confidence else confidence,
        barred=_read_barred_levels(section, levels, problems),
        fixed=_read_fixed_levels(section, levels, problems),
        unsupported=BAR if unsupported not in (BAR, ALLOW) else unsupported,
    )
    problems += _find_exploration_conflicts(planning)
    return planning


def _find_exploration_conflicts(planning: PlanSettings) -> list[Problem]:
    """Return a problem if constraints of the plan exclude exploration."""
    if not planning.explore:
        return []
    eligible = [*planning.columns, *(name for name in ("barred", "fixed") if getattr(planning, name))]
    limits = [word for word in planning.constraints if word not in planning.columns]
    limits += ["exact"] if planning.exact else []
    if not planning.explores_for_goal and eligible:
        got = f"plan.explore gives any level at random, also against {join_some([*eligible, *limits])}"
        hint = 'remove explore or them, or add explore_for = "evaluation", which draws eligible levels only'
        return [Problem(got, hint)]
    if limits:
        return [Problem(f"plan.explore and {join_some(limits)} exclude each other", "remove one of them")]
    return []


def _read_exploration(section: dict[str, Any], problems: list[Problem]) -> tuple[float, str]:
    """Read the exploration rate and the goal."""
    goal, known = section.get("explore_for", AT_RANDOM), (AT_RANDOM, *GOALS)
    if goal not in known:
        problems.append(Problem(f"plan.explore_for is {repr_short(goal)}", suggest(str(goal), known)))
        goal = AT_RANDOM
    if goal != AT_RANDOM and "explore" not in section:
        return DEFAULT_RATE, goal
    return _read_number_setting(section, "explore", 1.0, "a share of customers, from 0 to 1", problems), goal


def _read_number_setting(section: dict[str, Any], key: str, most: float, rule: str, problems: list[Problem]) -> float:
    value = number_or_none(section.get(key, 0.0))
    if value is None or not 0 <= value <= most or math.isinf(value):
        problems.append(Problem(f"plan.{key} is {repr_short(section[key])}", rule))
        return 0.0
    return value


def _read_constraint_table(
    section: dict[str, Any], setting: ConstraintSetting, problems: list[Problem]
) -> dict[str, float]:
    word, table = setting.word, section.get(setting.word, {})
    if not isinstance(table, dict):
        hint = f"write [plan.{word}] and one line for each: name = number"
        problems.append(Problem(f"plan.{word} is {repr_short(table)}", hint))
        return {}
    numbers = {name: number_or_none(value) for name, value in table.items()}
    wrong = [name for name, value in numbers.items() if value is None or not 0 <= value <= setting.most]
    hint = f"give {setting.meaning}, a number"
    problems += [Problem(f"plan.{word}.{name} is {repr_short(table[name])}", hint) for name in wrong]
    return {name: value for name, value in table.items() if name not in wrong}


def _convert_level_names(
    table: dict[str, Any], word: str, levels: Levels | None, problems: list[Problem]
) -> dict[int, Any]:
    """Replace the level names of a table by level numbers.

    Levels without names and doses are written as in a log: by their numbers or by their costs.
    """
    if levels is None:
        return {}
    spellings, costs = [levels.labels], levels.common_costs
    if levels.names is None and levels.doses is None and costs is not None:
        spellings.append(tuple(f"{cost:g}" for cost in costs))
    numbered: dict[int, Any] = {}
    for name, value in table.items():
        matches = {k for names in spellings for k, spelling in enumerate(names) if spelling == name}
        if len(matches) == 1:
            numbered[matches.pop()] = value
        elif matches:
            hint = "give the levels names under [levels], and use those"
            problems.append(Problem(f"plan.{word}.{name} is ambiguous: a level's number or its cost", hint))
        else:
            problems.append(Problem(f"plan.{word} names the level {name!r}", suggest(name, levels.labels)))
    return numbered


def _read_fixed_levels(section: Mapping[str, Any], levels: Levels | None, problems: list[Problem]) -> dict[str, int]:
    """Read section [plan.fixed]: the level of single customers."""
    table = section.get("fixed", {})
    if not (isinstance(table, dict) and _are_level_names(table.values())):
        hint = 'write [plan.fixed] and for each customer: id = "level"'
        problems.append(Problem(f"plan.fixed is {repr_short(table)}", hint))
        return {}
    names = dict.fromkeys(map(str, table.values()))
    numbers = {name: level for name in names for level in _convert_level_names({name: 0}, "fixed", levels, problems)}
    return {customer: numbers[str(name)] for customer, name in table.items() if str(name) in numbers}


def _read_barred_levels(section: Mapping[str, Any], levels: Levels | None, problems: list[Problem]) -> Barred:
    """Read section [plan.barred]: the levels that customers with some column value may not get."""
    tables = section.get("barred", {})
    columns = list(tables.values()) if isinstance(tables, dict) else [None]
    lists = [names for values in columns for names in (values.values() if isinstance(values, dict) else [None])]
    if not all(isinstance(names, list) and _are_level_names(names) for names in lists):
        hint = 'write [plan.barred.COLUMN] and for each value the levels: value = ["20"]'
        problems.append(Problem(f"plan.barred is {repr_short(tables)}", hint))
        return {}
    return {
        column: {
            value: tuple(_convert_level_names(dict.fromkeys(map(str, names)), "barred", levels, problems))
            for value, names in values.items()
        }
        for column, values in tables.items()
    }


def _are_level_names(values: Any) -> bool:
    return all(isinstance(name, str | int) for name in values)


# -- eligible levels --------------------------------------------------------------------------------------------------


def find_eligible_levels(
    customers: Customers, levels: Levels, planning: PlanSettings, *, others: bool = False
) -> Array | None:
    """Return the mask (n, K) of the levels that each customer may get; None if all levels are allowed.

    With `others`, these need not be the customers that the rules were written for: names that none of them has are no problem.
    """
    columns = [name for names in planning.columns.values() for name in names]
    if not (columns or planning.barred or planning.fixed):
        return None
    table, problems = customers.features, []
    eligible = np.ones((len(customers), len(levels)), dtype=bool)
    for level, name in enumerate(columns):
        eligible[:, level] = [bool(value) for value in table.column(name).to_pylist()]
    for column, values in planning.barred.items():
        words = np.array(_convert_to_texts(table.column(column)), dtype=object)
        for value, barred in values.items():
            rows = words == value
            if not rows.any() and not others:
                hint = suggest(value, dict.fromkeys(words.tolist()))
                problems.append(Problem(f"plan.barred.{column} names {value!r}, which no customer has", hint))
            eligible[np.ix_(rows, barred)] = False
    # A plan shows customers without ids by the numbers of their rows.
    ids = (
        [str(row) for row in range(len(customers))]
        if customers.customer is None
        else _convert_to_texts(customers.customer)
    )
    known = set(ids) if others and planning.fixed else set()
    fixed = {name: level for name, level in planning.fixed.items() if name in known} if others else planning.fixed
    problems += _apply_fixed_levels(ids, levels, fixed, eligible)
    without = np.flatnonzero(~eligible.any(axis=1))
    if len(without):
        got = f"{len(without):,} customers may get no level at all, such as {join_some([ids[k] for k in without[:3]])}"
        problems.append(Problem(got, "let them get one, at least the cheapest"))
    refuse("plan", problems)
    return eligible


def _apply_fixed_levels(ids: Sequence[str], levels: Levels, fixed: Mapping[str, int], eligible: Array) -> list[Problem]:
    """Restrict single customers to their fixed level, and return conflicts with other rules."""
    rows = {word: row for row, word in enumerate(ids) if word in fixed} if fixed else {}
    problems = []
    if missing := [customer for customer in fixed if customer not in rows]:
        got = f"plan.fixed names customers who are not planned for: {join_some(missing)}"
        problems.append(Problem(got, "use the ids that the plan shows in its column customer"))
    for customer, row in rows.items():
        level = fixed[customer]
        if not eligible[row, level]:
            got = f"the customer {customer} is fixed to {levels.labels[level]!r}, which other rules forbid"
            problems.append(Problem(got, "change one of the two"))
        eligible[row] = np.arange(len(levels)) == level
    return problems[:MAX_PROBLEMS]


def _convert_to_texts(column: pa.ChunkedArray | pa.Array) -> list[str]:
    return [str(value) for value in column.to_pylist()]
