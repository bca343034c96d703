"""The ordered incentive levels, and what makes them valid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.errors import Problem, refuse, some


@dataclass(frozen=True)
class Levels:
    """The ordered incentive levels: what each costs and how the log writes it.

    Parameters
    ----------
    costs
        Cost of each level, cheapest first; or the names of K columns that hold each customer's own costs.
    names
        How the log writes the levels, in order, when they are names (``["none", "small", "big"]``).
    doses
        The amounts behind the levels, when the log writes amounts (``[0, 5, 10, 20]``).
    on_redemption
        The cost is a face value, paid only as far as the customer responds: cost × response.
    contact_cost
        What reaching a customer costs at every level but the first, whether or not they respond.

    With neither names nor doses, the log writes 0..K−1, or else the costs themselves.

    >>> levels = Levels(costs=[0, 5, 10], names=["none", "small", "big"])
    >>> len(levels), levels.labels
    (3, ('none', 'small', 'big'))
    >>> Levels(costs=[0, 5, 3])
    Traceback (most recent call last):
    largesse.errors.InputError: levels: the cost falls from 5 to 3 as the level rises from 1 to 2
       → list the levels from the cheapest to the dearest
    """

    costs: tuple[float, ...] | tuple[str, ...]
    names: tuple[str, ...] | None = None
    doses: tuple[float, ...] | None = None
    on_redemption: bool = False
    contact_cost: float = 0.0

    def __init__(
        self,
        costs: Sequence[float] | Sequence[str] | np.ndarray[Any, Any],
        names: Sequence[str] | None = None,
        doses: Sequence[float] | np.ndarray[Any, Any] | None = None,
        on_redemption: bool = False,
        contact_cost: float = 0.0,
    ) -> None:
        problems: list[Problem] = []
        checked = _check_costs(costs, problems)
        object.__setattr__(self, "costs", checked)
        listed = None if names is None else tuple(str(name) for name in _as_list(names, "names", problems))
        object.__setattr__(self, "names", listed)
        object.__setattr__(self, "doses", None if doses is None else _check_doses(doses, problems))
        object.__setattr__(self, "on_redemption", bool(on_redemption))
        object.__setattr__(self, "contact_cost", _check_contact_cost(contact_cost, problems))
        for word, given in (("names", self.names), ("doses", self.doses)):
            if given and len(given) != len(checked):
                problems.append(
                    Problem(f"{len(checked)} costs but {len(given)} {word}", f"give one of the {word} per level")
                )
        if self.names is not None and len(set(self.names)) != len(self.names):
            problems.append(Problem(f"two levels share a name: {some(self.names)}", "names must differ"))
        refuse("levels", problems)

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def labels(self) -> tuple[str, ...]:
        """What people call the levels: names, else doses, else numbers."""
        if self.names is not None:
            return self.names
        if self.doses is not None:
            return tuple(f"{dose:g}" for dose in self.doses)
        return tuple(str(k) for k in range(len(self)))

    @property
    def cost_columns(self) -> tuple[str, ...] | None:
        """The columns that hold each customer's own costs, when costs are per customer."""
        return tuple(str(cost) for cost in self.costs) if isinstance(self.costs[0], str) else None

    @property
    def common_costs(self) -> np.ndarray[Any, Any] | None:
        """Costs (K,) that hold for every customer, or None when they are per customer."""
        return None if self.cost_columns else np.asarray(self.costs, dtype=np.float64)


def _check_costs(
    costs: Sequence[float] | Sequence[str] | np.ndarray[Any, Any], problems: list[Problem]
) -> tuple[Any, ...]:
    given = _as_list(costs, "costs", problems)
    if not given:
        if not problems:
            problems.append(Problem("there are no costs", "give one cost per level, cheapest first: costs=[0, 5, 10]"))
        return (0.0,)
    if all(isinstance(cost, str) for cost in given):
        if len(set(given)) != len(given):
            problems.append(Problem(f"a cost column is named twice: {some(given)}", "name one column per level"))
        return tuple(given)
    numbers = _as_numbers(given, "cost", problems)
    for k, cost in enumerate(numbers):
        if math.isnan(cost) or math.isinf(cost):
            problems.append(Problem(f"the cost of level {k} is {cost}", "every level needs a finite cost"))
        elif cost < 0:
            problems.append(Problem(f"the cost of level {k} is negative: {cost:g}", "costs are zero or more"))
        if k and cost < numbers[k - 1]:
            problems.append(
                Problem(
                    f"the cost falls from {numbers[k - 1]:g} to {cost:g} as the level rises from {k - 1} to {k}",
                    "list the levels from the cheapest to the dearest",
                )
            )
    return numbers


def _check_contact_cost(cost: Any, problems: list[Problem]) -> float:
    if isinstance(cost, bool) or not isinstance(cost, int | float | np.number) or not 0 <= cost < math.inf:
        problems.append(Problem(f"the contact cost is {cost!r}", "a cost is a number, zero or more"))
        return 0.0
    return float(cost)


def _check_doses(doses: Sequence[float] | np.ndarray[Any, Any], problems: list[Problem]) -> tuple[float, ...]:
    numbers = _as_numbers(_as_list(doses, "doses", problems), "dose", problems)
    if any(not math.isfinite(dose) for dose in numbers):
        problems.append(Problem(f"a dose is missing or infinite: {some(numbers)}", "doses are finite amounts"))
    elif any(b <= a for a, b in pairwise(numbers)):
        problems.append(Problem(f"doses do not rise: {some(numbers)}", "list them from the smallest to the largest"))
    return numbers


def _as_list(given: Any, word: str, problems: list[Problem]) -> list[Any]:
    """Return a list of what was given; a text or a single number is refused."""
    if isinstance(given, str | dict) or not hasattr(given, "__iter__"):
        problems.append(Problem(f"{word} is {given!r}", f"give a list, one of the {word} per level, cheapest first"))
        return []
    return list(given)


def _as_numbers(given: list[Any], what: str, problems: list[Problem]) -> tuple[float, ...]:
    try:
        return tuple(float(value) for value in given)
    except (TypeError, ValueError):
        problems.append(Problem(f"a {what} is not a number: {some(given)}", f"give one number per {what}"))
        return tuple(float(k) for k in range(len(given)))
