"""Incentive levels: ordered, with costs, names and doses, and their validation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.errors import Problem, join_some, number_or_none, refuse, repr_short

PER_UNIT = "per unit"  # cost on redemption, paid for each unit of the response
LEADING_SYMBOLS = frozenset("€$£¥₹₩₽₺₴₪฿₫₦")  # these precede the number, other units follow it


@dataclass(frozen=True)
class Levels:
    """Ordered incentive levels with their costs, and their names or doses in the log.

    Parameters
    ----------
    costs
        Cost of each level, cheapest first; or the names of K columns that hold each customer's own costs. Not needed where
        costs are observed: then names or doses list the levels. A dict has the names, too: ``{"none": 0, "small": 5}``.
    names
        How the log writes the levels, in order, when they are names (``["none", "small", "big"]``).
    doses
        The amounts behind the levels, when the log writes amounts (``[0, 5, 10, 20]``).
    on_redemption
        The cost is a face value, paid only to customers who respond: a row costs cost × response. ``"per unit"`` is the
        same, and says that it is meant so where the response is an amount or a count: `doctor` warns otherwise.
    contact_cost
        Cost of reaching a customer, at every level except the first, whether or not they respond.
    observed
        Costs depend on the behaviour of customers: no list gives them, and a column of the log holds the cost of each row.
    dose_unit
        Unit of doses, for people: ``"€"``, ``"%"``.

    Notes
    -----
    Without names and doses, the log writes 0..K−1 or the costs themselves.

    Examples
    --------
    >>> levels = Levels(costs=[0, 5, 10], names=["none", "small", "big"])
    >>> len(levels), levels.labels
    (3, ('none', 'small', 'big'))
    >>> Levels({"none": 0, "small": 5, "big": 10}) == levels
    True
    >>> Levels(costs=[0, 5, 3])
    Traceback (most recent call last):
    largesse.errors.InputError: levels: the cost falls from 5 to 3 as the level rises from 1 to 2
       → list the levels from the cheapest to the dearest
    """

    costs: tuple[float, ...] | tuple[str, ...]
    names: tuple[str, ...] | None = None
    doses: tuple[float, ...] | None = None
    on_redemption: bool | str = False
    contact_cost: float = 0.0
    observed: bool = False
    dose_unit: str = ""

    def __init__(
        self,
        costs: Mapping[str, float] | Sequence[float] | Sequence[str] | np.ndarray[Any, Any] | None = None,
        names: Sequence[str] | None = None,
        doses: Sequence[float] | np.ndarray[Any, Any] | None = None,
        on_redemption: bool | str = False,
        contact_cost: float = 0.0,
        observed: bool = False,
        dose_unit: str = "",
    ) -> None:
        problems: list[Problem] = []
        flag: Any = observed
        unit: Any = dose_unit
        if isinstance(costs, Mapping):
            if names is not None:
                problems.append(Problem("names are given twice: in costs and in names", "keep one of the two"))
            names, costs = list(costs), list(costs.values())
        if not isinstance(flag, bool | np.bool_):
            problems.append(Problem(f"observed is {repr_short(flag)}", "give True or False"))
            flag = False
        if costs is None and flag:
            listed = _convert_to_list(names if names is not None else doses if doses is not None else [], "names", [])
            costs = [0.0] * len(listed or []) or None
            if names is None and doses is None:
                hint = "costs are observed: list the levels by names or doses, the cheapest first"
                problems.append(Problem("the levels are not listed", hint))
        if not isinstance(on_redemption, bool | np.bool_) and on_redemption != PER_UNIT:
            hint = f'give True, False or "{PER_UNIT}"'
            problems.append(Problem(f"on_redemption is {repr_short(on_redemption)}", hint))
            on_redemption = False
        if not isinstance(unit, str):
            problems.append(Problem(f"dose_unit is {repr_short(unit)}", 'give the unit in quotes: "€", "%"'))
            unit = ""
        checked_costs = _check_costs(costs, problems)
        checked = {
            "observed": bool(flag),
            "costs": checked_costs,
            "names": None if names is None else _check_names(names, problems),
            "doses": None if doses is None else _check_doses(doses, problems),
            "on_redemption": on_redemption if isinstance(on_redemption, str) else bool(on_redemption),
            "contact_cost": _check_contact_cost(contact_cost, checked_costs, problems),
            "dose_unit": unit,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        problems += self._find_contradictions()
        refuse("levels", problems)

    def _find_contradictions(self) -> list[Problem]:
        """Return a problem for each contradiction between the settings of the levels."""
        problems: list[Problem] = []
        others: dict[str, Any] = {}
        if self.observed:
            others["paid on redemption"] = self.on_redemption
            others["of contact"] = self.contact_cost
            others["in columns for each level"] = self.cost_columns
        hint = "a column of observed costs holds all that a row cost: keep one of the two"
        problems += [
            Problem(f"costs are observed, and there are costs {w}", hint) for w, cost in others.items() if cost
        ]
        for word, values in (("names", self.names), ("doses", self.doses)):
            if values is not None and len(values) != len(self):
                problems.append(
                    Problem(f"{len(self)} costs but {len(values)} {word}", f"give one of the {word} per level")
                )
        if self.names is not None and len(set(self.names)) != len(self.names):
            problems.append(Problem(f"two levels share a name: {join_some(self.names)}", "names must differ"))
        return problems

    def __len__(self) -> int:
        return len(self.costs)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the levels in tables.

        They are names, else doses, else numbers.
        """
        if self.names is not None:
            return self.names
        if self.doses is not None:
            return tuple(f"{dose:g}" for dose in self.doses)
        return tuple(str(k) for k in range(len(self)))

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of the levels in reports.

        They are names, else doses with their unit, else "level 0", "level 1" and so on.

        >>> Levels([0, 5], doses=[0, 5], dose_unit="€").titles, Levels([0, 5]).titles
        (('€0', '€5'), ('level 0', 'level 1'))
        """
        if self.names is not None:
            return self.names
        if self.doses is None:
            return tuple(f"level {k}" for k in range(len(self)))
        before, after = (
            (self.dose_unit, "") if self.dose_unit in LEADING_SYMBOLS else ("", f" {self.dose_unit}".rstrip())
        )
        return tuple(f"{before}{label}{after}" for label in self.labels)

    @cached_property
    def cost_columns(self) -> tuple[str, ...] | None:
        """Columns with each customer's cost of each level; None if costs are the same for all customers."""
        return tuple(str(cost) for cost in self.costs) if isinstance(self.costs[0], str) else None

    @property
    def certain(self) -> bool:
        """True if a level's cost is known before the customer's response."""
        return not (self.on_redemption or self.observed)

    @cached_property
    def common_costs(self) -> np.ndarray[Any, Any] | None:
        """Costs (K,) of the levels if they are the same for all customers; otherwise None."""
        if self.cost_columns or self.observed:
            return None
        costs = np.asarray(self.costs, dtype=np.float64)
        costs.flags.writeable = False  # all callers share it
        return costs


def _check_costs(
    costs: Sequence[float] | Sequence[str] | np.ndarray[Any, Any] | None, problems: list[Problem]
) -> tuple[Any, ...]:
    items = [] if costs is None else _convert_to_list(costs, "costs", problems)
    if not items:
        if not problems:
            problems.append(Problem("there are no costs", "give one cost per level, cheapest first: costs=[0, 5, 10]"))
        return (0.0,)
    if all(isinstance(cost, str) for cost in items):
        if len(set(items)) != len(items):
            problems.append(Problem(f"a cost column is named twice: {join_some(items)}", "name one column per level"))
        return tuple(items)
    numbers = _convert_to_floats(items, "cost", problems)
    for k, cost in enumerate(numbers):
        if math.isnan(cost) or math.isinf(cost):
            problems.append(Problem(f"the cost of level {k} is {cost}", "every level needs a finite cost"))
        elif cost < 0:
            problems.append(Problem(f"the cost of level {k} is negative: {cost:g}", "costs are zero or more"))
        if k and cost < numbers[k - 1]:
            got = f"the cost falls from {numbers[k - 1]:g} to {cost:g} as the level rises from {k - 1} to {k}"
            problems.append(Problem(got, "list the levels from the cheapest to the dearest"))
    return numbers


def _check_contact_cost(value: Any, costs: tuple[Any, ...], problems: list[Problem]) -> float:
    cost = number_or_none(value)
    if cost is None or not 0 <= cost < math.inf:
        problems.append(Problem(f"the contact cost is {repr_short(value)}", "a cost is a number, zero or more"))
        return 0.0
    if not isinstance(costs[-1], str) and math.isfinite(costs[-1]) and math.isinf(costs[-1] + cost):
        problems.append(Problem(f"the dearest level and its contact cost {cost:g} are too large to add", "check both"))
    return cost


def _check_names(names: Any, problems: list[Problem]) -> tuple[str, ...] | None:
    items = _convert_to_list(names, "names", problems)
    if items is None:
        return None
    wrong = [
        repr_short(name)
        for name in items
        if isinstance(name, bool) or not isinstance(name, str | int | float | np.generic)
    ]
    if wrong:
        problems.append(
            Problem(f"a name is not text: {join_some(wrong)}", "write the names as the log writes the levels")
        )
    return tuple(str(name) for name in items) if not wrong else tuple(str(k) for k in range(len(items)))


def _check_doses(doses: Sequence[float] | np.ndarray[Any, Any], problems: list[Problem]) -> tuple[float, ...] | None:
    items = _convert_to_list(doses, "doses", problems)
    if items is None:
        return None
    numbers = _convert_to_floats(items, "dose", problems)
    if any(not math.isfinite(dose) for dose in numbers):
        problems.append(Problem(f"a dose is missing or infinite: {join_some(numbers)}", "doses are finite amounts"))
    elif any(b <= a for a, b in pairwise(numbers)):
        problems.append(
            Problem(f"doses do not rise: {join_some(numbers)}", "list them from the smallest to the largest")
        )
    return numbers


def _convert_to_list(argument: Any, word: str, problems: list[Problem]) -> list[Any] | None:
    """Convert an argument to a list; add a problem if it is a text or a single number."""
    try:
        if isinstance(argument, str | bytes | dict):
            raise TypeError
        return list(argument)
    except TypeError:
        hint = f"give a list, one of the {word} per level, cheapest first"
        problems.append(Problem(f"{word} is {repr_short(argument)}", hint))
        return None


def _convert_to_floats(items: list[Any], what: str, problems: list[Problem]) -> tuple[float, ...]:
    try:
        if any(isinstance(value, str | bytes | bool) for value in items):
            raise TypeError
        return tuple(float(value) for value in items)
    except (TypeError, ValueError):
        text = join_some([value if isinstance(value, str) else repr_short(value) for value in items])
        problems.append(Problem(f"a {what} is not a number: {text}", f"give one number per {what}"))
    except OverflowError:
        text = join_some([repr_short(value, most=20) for value in items])
        problems.append(Problem(f"a {what} is too large: {text}", f"give each {what} in a larger unit"))
    return tuple(float(k) for k in range(len(items)))
