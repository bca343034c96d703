"""The campaign file: one small TOML that names columns, levels, costs and budget.

`read_campaign` checks all of it and names everything that is wrong together; `Campaign.text` writes it back with every
default spelt out, so that a run folder says exactly what was run.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from largesse.data import expand_home
from largesse.errors import InputError, Problem, budget_problems, fail, nearest, refuse
from largesse.levels import Levels
from largesse.records import ROLES, Roles
from largesse.runs.planning import KEYS, Planning, planning_from

TOP = ("title", "unit", "log", "customers", "out")
SECTIONS = {
    "columns": tuple(ROLES),
    "levels": ("costs", "names", "doses", "on_redemption", "contact_cost"),
    "plan": ("budget", "total", *KEYS),
    "model": ("name", "seed"),
}
SEEDS = 2**32  # scikit-learn takes no more


@dataclass(frozen=True)
class Campaign:
    """What to read, how to read it, what may be spent and how to learn."""

    log: str
    levels: Levels
    columns: dict[str, str]  # role → column, for the roles that are given
    features: tuple[str, ...] | None = None
    customers: str | None = None
    budget: float | None = None  # average per customer
    total: float | None = None  # or for all of them together
    planning: Planning = field(default_factory=Planning)
    model: str = "auto"
    seed: int = 0
    title: str = "Campaign"
    unit: str = ""
    out: str | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The campaign as TOML, every default spelt out; where it is written to is not part of it."""
        lines = [f"title = {toml(self.title)}", f"unit = {toml(self.unit)}", f"log = {toml(self.log)}"]
        if self.customers is not None:
            lines.append(f"customers = {toml(self.customers)}")
        lines += ["", "[columns]", *(f"{role} = {toml(column)}" for role, column in self.columns.items())]
        if self.features is not None:
            lines.append(f"features = {toml(self.features)}")
        lines += ["", "[levels]", f"costs = {toml(self.levels.costs)}"]
        lines += [
            f"{word} = {toml(given)}"
            for word in ("names", "doses")
            if (given := getattr(self.levels, word)) is not None
        ]
        lines += [
            f"on_redemption = {toml(self.levels.on_redemption)}",
            f"contact_cost = {toml(self.levels.contact_cost)}",
            "",
            "[plan]",
        ]
        lines += [
            f"{word} = {toml(given)}" for word in ("budget", "total") if (given := getattr(self, word)) is not None
        ]
        lines += self.planning.lines(self.levels)
        lines += ["", "[model]", f"name = {toml(self.model)}", f"seed = {self.seed}"]
        return "\n".join(lines) + "\n"

    @property
    def roles(self) -> Roles:
        """What `read_log` asks: which column has which role."""
        roles: dict[str, Any] = {**self.columns, "features": self.features}
        return cast(Roles, roles)

    def spending(self, *, budget: float | None = None, total: float | None = None) -> Campaign:
        """Return the campaign with this budget or total, or with its own if neither is given; it must have one."""
        given = {"budget": budget, "total": total}
        if budget is not None and total is not None:
            fail(
                "budget", Problem("both --budget and --total were given", "give the average per customer, or the total")
            )
        refuse(
            "budget",
            [p for word, value in given.items() if value is not None for p in budget_problems(value, f"the {word}")],
        )
        if budget is not None or total is not None:
            return replace(self, budget=budget, total=total)
        if self.budget is None and self.total is None:
            hint = "add budget = … (average per customer) or total = … under [plan], or give --budget"
            fail("campaign", Problem("no budget is set", hint))
        return self

    def average(self, customers: int) -> float:
        """Return the budget per customer, if there are this many customers."""
        return self.budget if self.budget is not None else float(self.total or 0.0) / customers


def read_campaign(path: str | Path) -> Campaign:
    """Read a campaign file; paths inside it are relative to it."""
    file = Path(path)
    if file.is_dir():
        file = file / "campaign.toml"
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8-sig"))  # Windows editors put a mark in front
    except FileNotFoundError as error:
        hint = "largesse init LOG writes a first one"
        raise InputError("campaign", [Problem(f"there is no file {file}", hint)]) from error
    except UnicodeDecodeError as error:
        raise InputError("campaign", [Problem(f"{file} is not UTF-8 text", "save it as UTF-8")]) from error
    except OSError as error:
        hint = "give the path of a campaign file"
        raise InputError("campaign", [Problem(f"{file} could not be read: {error.strerror}", hint)]) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            "campaign", [Problem(f"{file} is not valid TOML: {error}", "text needs quotes, lists need brackets")]
        ) from error
    return campaign_from(given, folder=file.parent)


def campaign_from(given: dict[str, Any], *, folder: Path = Path()) -> Campaign:
    """Check what a campaign file holds and return the campaign; `folder` is where its paths start."""
    problems: list[Problem] = []
    _unknown(given, problems)
    columns, features = _columns(given.get("columns", {}), problems)
    levels = _levels(given.get("levels", {}), problems)
    budget, total = _budget(given.get("plan", {}), problems)
    plan = given.get("plan", {})
    planning = planning_from(plan if isinstance(plan, dict) else {}, levels, problems)
    model = given.get("model", {}) if isinstance(given.get("model", {}), dict) else {}
    texts = {key: given[key] for key in TOP if key in given}
    problems += [
        Problem(f"{key} is not text: {value!r}", f'write {key} = "…"')
        for key, value in texts.items()
        if not isinstance(value, str)
    ]
    if not given.get("log", ""):
        problems.append(Problem("no log is named", 'add a line: log = "log.parquet"'))
    seed = model.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < SEEDS:
        problems.append(Problem(f"model.seed is {seed!r}", "a seed is a whole number from 0 to 2³² − 1"))
    refuse("campaign", problems)
    assert levels is not None  # refused above otherwise
    return Campaign(
        log=_placed(given["log"], folder),
        levels=levels,
        columns=columns,
        features=features,
        customers=_placed(given["customers"], folder) if given.get("customers") else None,
        budget=budget,
        total=total,
        planning=planning,
        model=str(model.get("name", "auto")),
        seed=seed,
        title=given.get("title", "Campaign"),
        unit=given.get("unit", ""),
        out=_placed(given["out"], folder) if "out" in given else None,
    )


def _unknown(given: dict[str, Any], problems: list[Problem]) -> None:
    known = [*TOP, *SECTIONS]
    for key, value in given.items():
        if key not in known:
            home = next((section for section, inner in SECTIONS.items() if key in inner), None)
            hint = f"it belongs under [{home}]" if home else nearest(key, known)
            problems.append(Problem(f"{key!r} is not a setting", hint))
        elif key in SECTIONS and not isinstance(value, dict):
            problems.append(Problem(f"{key} is a section, not a value", f"write [{key}] on a line of its own"))
        elif key in SECTIONS:
            problems += [
                Problem(f"'{key}.{inner}' is not a setting", nearest(inner, SECTIONS[key]))
                for inner in value
                if inner not in SECTIONS[key]
            ]


def _columns(given: Any, problems: list[Problem]) -> tuple[dict[str, str], tuple[str, ...] | None]:
    section = given if isinstance(given, dict) else {}
    problems += [
        Problem(f"[columns] does not name the {role} column", f'add a line under [columns]: {role} = "…"')
        for role in ("level", "response")
        if role not in section
    ]
    columns = {role: section[role] for role in ROLES if role in section and role != "features"}
    problems += [
        Problem(f"columns.{role} is {name!r}", "give the column's name in quotes")
        for role, name in columns.items()
        if not isinstance(name, str)
    ]
    features = section.get("features")
    if features is not None and not (
        isinstance(features, list) and features and all(isinstance(name, str) for name in features)
    ):
        problems.append(
            Problem(f"columns.features is {features!r}", 'give a list of names: features = ["age", "city"]')
        )
    return columns, tuple(features) if isinstance(features, list) else None


def _levels(given: Any, problems: list[Problem]) -> Levels | None:
    section = given if isinstance(given, dict) else {}
    if not isinstance(section.get("costs"), list) or not section["costs"]:
        problems.append(Problem("[levels] does not give the costs", "add a line under [levels]: costs = [0, 5, 10]"))
        return None
    on_redemption = section.get("on_redemption", False)
    if not isinstance(on_redemption, bool):
        problems.append(Problem(f"levels.on_redemption is {on_redemption!r}", "write true or false, without quotes"))
    try:
        return Levels(
            costs=section["costs"],
            names=section.get("names"),
            doses=section.get("doses"),
            on_redemption=bool(on_redemption),
            contact_cost=section.get("contact_cost", 0.0),
        )
    except InputError as error:
        problems += [Problem(f"levels: {problem.what}", problem.hint) for problem in error.problems]
        return None


def _budget(given: Any, problems: list[Problem]) -> tuple[float | None, float | None]:
    section = given if isinstance(given, dict) else {}
    if "budget" in section and "total" in section:
        problems.append(Problem("[plan] gives both budget and total", "give the average per customer, or the total"))
    wrong = [
        p for word in ("budget", "total") if word in section for p in budget_problems(section[word], f"plan.{word}")
    ]
    problems += wrong
    return (None, None) if wrong else (section.get("budget"), section.get("total"))


def _placed(path: str, folder: Path) -> str:
    return str((folder / expand_home(path)).absolute())


def toml(value: Any) -> str:
    """Write a text, a number, a truth value or a list of them as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return repr(value)
