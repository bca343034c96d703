"""The part of a campaign file that says how to plan: the budget, other constraints, proof, exploration."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from largesse.errors import Problem, budget_problems, nearest
from largesse.levels import Levels
from largesse.runs.toml import to_toml

TABLES = {"caps": "customers", "shares": "a share from 0 to 1", "segment_budgets": "a total"}
KEYS = ("budget", "total", "exact", "explore", "least_return", "segment", "eligible", *TABLES)


@dataclass(frozen=True)
class Planning:
    """How to plan: the budget, other constraints, proof and exploration. Levels are given by number, columns by name."""

    budget: float | None = None  # average per customer
    total: float | None = None  # or for all of them together
    exact: bool = False
    explore: float = 0.0
    least_return: float = 0.0
    segment: str | None = None  # column
    eligible: tuple[str, ...] | None = None  # one column per level, true where a customer may get it
    caps: dict[int, float] = field(default_factory=dict)
    shares: dict[int, float] = field(default_factory=dict)
    segment_budgets: dict[str, float] = field(default_factory=dict)

    @property
    def constrained(self) -> bool:
        """Whether the plan has any constraint besides the budget."""
        return bool(self.least_return or self.eligible or self.caps or self.shares or self.segment_budgets)

    def average(self, customers: int) -> float:
        """Return the budget per customer, if there are this many customers."""
        return self.budget if self.budget is not None else float(self.total or 0.0) / customers

    def lines(self, levels: Levels) -> list[str]:
        """Return the lines of TOML under [plan], tables last."""
        plain = {key: getattr(self, key) for key in KEYS if key not in TABLES}
        lines = [f"{key} = {to_toml(value)}" for key, value in plain.items() if value is not None]
        for word in TABLES:
            table = getattr(self, word)
            if table:
                names = {key: key if word == "segment_budgets" else levels.labels[key] for key in table}
                lines += ["", f"[plan.{word}]"]
                lines += [f"{to_toml(names[key])} = {to_toml(value)}" for key, value in table.items()]
        return lines


def planning_from(section: dict[str, Any], levels: Levels | None, problems: list[Problem]) -> Planning:
    """Check the keys under [plan]; add what is wrong to `problems`."""
    budget, total = _budget(section, problems)
    exact = section.get("exact", False)
    if not isinstance(exact, bool):
        problems.append(Problem(f"plan.exact is {exact!r}", "write true or false, without quotes"))
    explore = _number(section, "explore", 1.0, "a share of customers, from 0 to 1", problems)
    least = _number(section, "least_return", math.inf, "response per unit of cost, zero or more", problems)
    segment, eligible = section.get("segment"), section.get("eligible")
    if segment is not None and not isinstance(segment, str):
        problems.append(Problem(f"plan.segment is {segment!r}", "give the column's name in quotes"))
    count = len(levels) if levels is not None else None
    if eligible is not None and not (
        isinstance(eligible, list)
        and all(isinstance(name, str) for name in eligible)
        and len(eligible) in (count, None)
    ):
        problems.append(Problem(f"plan.eligible is {eligible!r}", "name one column per level, in their order"))
    tables = {word: _table(section, word, problems) for word in TABLES}
    if tables["segment_budgets"] and segment is None:
        hint = 'add a line under [plan]: segment = "…", the column that names each customer\'s segment'
        problems.append(Problem("plan.segment_budgets without plan.segment", hint))
    planning = Planning(
        budget=budget,
        total=total,
        exact=bool(exact),
        explore=explore,
        least_return=least,
        segment=segment if isinstance(segment, str) else None,
        eligible=tuple(eligible) if isinstance(eligible, list) else None,
        caps=_by_number(tables["caps"], "caps", levels, problems),
        shares=_by_number(tables["shares"], "shares", levels, problems),
        segment_budgets=tables["segment_budgets"],
    )
    if planning.explore and (planning.constrained or planning.exact):
        hint = "levels drawn at random break constraints: remove explore, or the constraints"
        problems.append(Problem("plan.explore works with a budget only", hint))
    return planning


def _budget(section: dict[str, Any], problems: list[Problem]) -> tuple[float | None, float | None]:
    """Return budget and total, of which one may be given."""
    given = {word: section[word] for word in ("budget", "total") if word in section}
    if len(given) == 2:
        problems.append(Problem("[plan] gives both budget and total", "give the average per customer, or the total"))
    wrong = [problem for word, value in given.items() for problem in budget_problems(value, f"plan.{word}")]
    problems += wrong
    return (None, None) if wrong else (given.get("budget"), given.get("total"))


def _number(section: dict[str, Any], key: str, most: float, rule: str, problems: list[Problem]) -> float:
    value = section.get(key, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most or math.isinf(value):
        problems.append(Problem(f"plan.{key} is {value!r}", rule))
        return 0.0
    return float(value)


def _table(section: dict[str, Any], word: str, problems: list[Problem]) -> dict[str, float]:
    given = section.get(word, {})
    most = 1.0 if word == "shares" else math.inf
    if not isinstance(given, dict):
        problems.append(
            Problem(f"plan.{word} is {given!r}", f"write [plan.{word}] and one line for each: name = number")
        )
        return {}
    wrong = [
        name
        for name, value in given.items()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most
    ]
    problems += [Problem(f"plan.{word}.{name} is {given[name]!r}", f"give {TABLES[word]}, a number") for name in wrong]
    return {name: value for name, value in given.items() if name not in wrong}


def _by_number(table: dict[str, float], word: str, levels: Levels | None, problems: list[Problem]) -> dict[int, float]:
    if levels is None:
        return {}
    found: dict[int, float] = {}
    for name, value in table.items():
        meant = {k for names in _spellings(levels) for k, known in enumerate(names) if known == name}
        if len(meant) == 1:
            found[meant.pop()] = value
        elif meant:
            hint = "give the levels names under [levels], and use those"
            problems.append(Problem(f"plan.{word}.{name} is ambiguous: a level's number or its cost", hint))
        else:
            problems.append(Problem(f"plan.{word} names the level {name!r}", nearest(name, levels.labels)))
    return found


def _spellings(levels: Levels) -> list[tuple[str, ...]]:
    """Return the accepted spellings of the levels: their names or doses; without those, numbers or costs, as in a log."""
    costs = levels.common_costs
    if levels.names is not None or levels.doses is not None or costs is None:
        return [levels.labels]
    return [levels.labels, tuple(f"{cost:g}" for cost in costs)]
