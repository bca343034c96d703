"""What the files of numbers hold of customers: why they get their levels, and what changes for them. See `shapes`."""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict

Number: TypeAlias = float | None


class Estimate(TypedDict):
    """An estimate with its 95 % interval and standard error."""

    estimate: Number
    low: Number
    high: Number
    se: Number


class Example(TypedDict):
    """A typical customer of a level."""

    level: str
    share: Number
    price: Number
    curve: list[Number]
    costs: list[Number]
    dearer: str | None
    below: Number
    cheaper: str | None
    above: Number


class Move(TypedDict):
    """How many customers another price would move."""

    change: Number
    share: Number


class Mover(TypedDict):
    """A feature that moves decisions, and what is lost without it."""

    feature: str
    moved: Number
    loss: Estimate


class Why(TypedDict):
    """Why customers get their levels."""

    examples: list[Example]
    moves: list[Move]
    movers: NotRequired[list[Mover]]


class Both(TypedDict):
    """Value and spend."""

    value: Estimate
    spend: Estimate


class LevelChange(Both):
    """What those whom the plan gives one level bring and cost more than before."""

    name: str
    share: Number


class LevelMove(TypedDict):
    """Customers who had one level and would get another; levels are numbered."""

    before: int
    after: int
    rows: int
    share: Number
    value: Number
    spend: Number


class Changes(TypedDict):
    """From what was done to this plan."""

    before: Both
    after: Both
    levels: list[LevelChange]
    moves: list[LevelMove]


class GroupPoint(TypedDict):
    """The mean response of a group at one level."""

    model: Number
    value: Estimate
    rows: int
    effective: Number
    few: bool


class GroupCurve(TypedDict):
    """The mean response of a group at all levels."""

    label: str
    rows: int
    levels: list[GroupPoint]


class FeatureCurves(TypedDict):
    """The curves of a feature's groups."""

    feature: str
    groups: list[GroupCurve]
