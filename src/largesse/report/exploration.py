"""What a plan that explores for a purpose says of itself: what it gives up, and how precise it makes the next log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from largesse.report.formats import Units, finite, write_count

Number = float | int | None
REACH = 1.96  # standard errors from an estimate to an end of its 95 % interval


class ExplorationWay(TypedDict):
    """How precise one way to draw the next log makes its evaluation."""

    name: str
    given_up: Number
    plan_se: Number
    gain_se: Number


ExplorationNumbers = TypedDict(
    "ExplorationNumbers",
    {
        "for": str,
        "rate": Number,
        "given_up": Number,
        "money": Number,
        "ways": list[ExplorationWay],
    },
)


def write_explored(found: Mapping[str, Any] | None, customers: int, units: Units) -> str:
    """Say what a plan that explores for a purpose gives up, and how precise it makes the next log; nothing if it does not."""
    if found is None:
        return ""
    this, random = found["ways"][:2]
    lost = f"It gives up {units.gain_style({'estimate': found['given_up']}).text(found['given_up'])} per customer"
    money = finite(found["money"])
    lost += f", worth {units.cost(money)} of budget each" if money is not None else ""
    own, other = finite(this["gain_se"]), finite(random["gain_se"])
    if not own or not other:
        return f"{lost}."
    style = units.gain_style({"estimate": REACH * other})
    return (
        f"{lost}. From {write_count(customers)} customers the next log is expected to tell the plan's gain to within ± "
        f"{style.text(REACH * own)}; with levels at random that give up as much it would be ± {style.text(REACH * other)}."
    )
