"""What a section of the report is: numbers it takes from the steps of a run, and how it shows them.

A run has three steps, and each leaves one file of numbers: what was learnt (fit), who gets what (plan) and what that will
bring (study). A section may take numbers from each of them (`fit`, `plan`, `study`: records in, JSON types out), and from the
joined numbers of all (`joint`). They are kept under its name. `view` turns them into what `section.html` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from largesse.allocation import Stop
from largesse.records import Choice, Log, Study
from largesse.report.formats import Units
from largesse.report.tally import PlanTally, Shown

Numbers: TypeAlias = Mapping[str, Any]
Part: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class FitStep:
    """What was learnt: the model's name, what it tried, and the log."""

    model: str
    choices: Sequence[Choice]
    log: Log


class PlanFacts(Protocol):
    """What the report says of a plan itself: that of `allocate`, or one whose levels are nowhere together."""

    @property
    def value(self) -> float:
        """Average response."""

    @property
    def spend(self) -> float:
        """Average cost."""

    @property
    def price(self) -> float:
        """Response gained per further unit of budget."""

    @property
    def budget(self) -> float:
        """Average per customer."""

    @property
    def gap(self) -> float:
        """How much better the best plan could be at most."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class PlanStep:
    """A plan, and who gets what in it."""

    plan: PlanFacts
    labels: Sequence[str]  # of the levels
    shown: Sequence[Shown]  # the features that explain most of it
    tally: PlanTally
    confidence: float | None = None  # probability that the plan keeps its budget; None: it is certain to
    shadow: Mapping[str, float] = field(default_factory=dict)  # constraint → what one more unit of it would bring
    stops: Sequence[Stop] = ()  # plans at other budgets, counted by the tally
    excuse: str = ""  # why there are none
    exploration: Mapping[str, Any] | None = None  # of a plan that explores for a purpose


@dataclass(frozen=True)
class Section:
    """One section of the report, in a folder of its name with a `section.html`; without a view it is left out."""

    name: str
    view: Callable[[Numbers, Units], Part | None]
    title: str  # as the list of contents has it
    fit: Callable[[FitStep], Part] | None = None
    plan: Callable[[PlanStep], Part] | None = None
    study: Callable[[Log, Study], Part] | None = None
    joint: Callable[[Numbers], Part] | None = None
