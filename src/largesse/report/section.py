"""What a section of the report is: numbers it takes from the steps of a run, and how it shows them.

A run has three steps, and each leaves one file of numbers: what was learnt (fit), who gets what (plan) and what that will
bring (study). A section may take numbers from each of them (`fit`, `plan`, `study`: records in, JSON types out), and from the
joined numbers of all (`joint`). They are kept under its name. `view` turns them into what `section.html` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from largesse.records import Array, Choice, Log, Plan, Study
from largesse.report.formats import Units

if TYPE_CHECKING:
    import pyarrow as pa

Numbers: TypeAlias = Mapping[str, Any]
Part: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class FitStep:
    """What was learnt: the model's name, what it tried, and the log."""

    model: str
    choices: Sequence[Choice]
    log: Log


@dataclass(frozen=True, eq=False)
class PlanStep:
    """A plan, the features of its customers, and what the model expects of every level."""

    plan: Plan
    features: pa.Table
    curves: Array  # (n, K) expected responses
    costs: Array  # (n, K) expected costs
    labels: Sequence[str]  # of the levels
    confidence: float | None = None  # probability that the plan keeps its budget; None: it is certain to


@dataclass(frozen=True)
class Section:
    """One section of the report, in a folder of its name with a `section.html`; without a view it is left out."""

    name: str
    view: Callable[[Numbers, Units], Part | None]
    fit: Callable[[FitStep], Part] | None = None
    plan: Callable[[PlanStep], Part] | None = None
    study: Callable[[Log, Study], Part] | None = None
    joint: Callable[[Numbers], Part] | None = None
