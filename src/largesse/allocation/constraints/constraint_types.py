"""Classes of constraints besides the budget, one per kind, and the record of all constraints of a plan.

A plan gives customer i the level y_i. A `Constraint` may forbid choices (`allowed`) or ask for a minimum return (`floor`). A
`Limit` is a linear rule,

    Σ_i u_i(y_i) · 1[segment of i and level y_i are covered]  ≤ limit, or ≥ limit,

where u_i(y) is 1 (it counts customers) or the cost c_i(y) (it adds up money). Multipliers, repair, the mixed-integer
programme and the explanation of impossible rules work on this form alone, so a further kind is one further class:

    @dataclass(frozen=True, eq=False)
    class LevelBudget(Limit):
        level: int
        money_limit: float
        money = True

        def covers(self, levels):
            return np.arange(levels) == self.level

        ...

    allocate(curves, costs, 1.7, constraints=Constraints(further=[LevelBudget(2, 500.0)]))
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from largesse.errors import Problem, number_or_none, refuse, repr_short, suggest
from largesse.records import Array

MAX_RETURN = 1e100  # response per unit of cost; no campaign asks for more, and products with costs stay finite
MAX_LEVEL_SETS = 4096  # of capped levels that are looked at together


@dataclass(frozen=True, eq=False)
class Segments:
    """Segment of each customer (n,), as numbers, words or other names."""

    values: Any

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of segments, (n,) if it is valid."""
        return np.shape(self.values)

    @property
    def names(self) -> tuple[Any, ...]:
        """Distinct segment names, sorted."""
        return self._names_and_codes[0]

    @property
    def codes(self) -> Array:
        """Number (n,) of each customer's segment in the sorted list of segment names."""
        return self._names_and_codes[1]

    @cached_property
    def number_by_segment(self) -> dict[Any, int]:
        """Number of each segment, by the segment's name."""
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _names_and_codes(self) -> tuple[tuple[Any, ...], Array]:
        values = np.asarray(self.values)
        if np.issubdtype(values.dtype, np.integer) and len(values) and values.min() >= 0 and values.max() < len(values):
            seen = np.bincount(values) > 0  # small whole numbers need no sort
            return tuple(np.flatnonzero(seen).tolist()), (np.cumsum(seen) - 1)[values].astype(np.int64)
        if values.dtype == object:  # names of several types have no order of their own
            names = sorted(set(values.tolist()), key=lambda name: (type(name).__name__, str(name)))
            place = {name: at for at, name in enumerate(names)}
            return tuple(place), np.array([place[name] for name in values.tolist()], dtype=np.int64)
        distinct, codes = np.unique(values, return_inverse=True)
        return tuple(distinct.tolist()), codes.astype(np.int64)


@dataclass(frozen=True)
class ConstraintSetting:
    """Description of one kind of constraint: its name in campaign files, its form and its meaning."""

    word: str
    per: str  # "level" or "segment": a table of numbers; "customer": one column per level; "plan": one number
    meaning: str  # of a number
    most: float = math.inf  # that a number may be


class Constraint(ABC):
    """Base class of constraints besides the budget."""

    @abstractmethod
    def check(self, n: int, levels: int, /) -> list[Problem]:
        """Return the problems of an invalid constraint, given the numbers of customers and levels."""

    def allowed(self, _n: int, _levels: int, /) -> Array | None:
        """Return a mask (n, K) of the allowed levels, or None if the constraint forbids none."""
        return None

    @property
    def floor(self) -> float:
        """Minimum response per unit of cost."""
        return 0.0


class Limit(Constraint):
    """Base class of limits on the number or the cost of the customers in some segments at some levels."""

    money: ClassVar[bool] = False  # the sum is of costs, not of customers
    at_least: ClassVar[bool] = False
    segments: Segments | None = None  # the segments it tells apart; None when it is about all customers
    segment: Any = None  # the name of the one it is about

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the limit in messages, such as "the cap of level 2"."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Key of the limit's shadow price in `plan.shadow`."""

    @abstractmethod
    def limit(self, n: int, /) -> float:
        """Return the limit for n customers, as a number of customers or an amount of money."""

    def covers(self, levels: int, /) -> Array:
        """Return a mask (K,) of the levels to which the limit applies."""
        return np.ones(levels, dtype=bool)

    # ------------------------------------------------------------------------------------------------- words

    def amount(self, value: float) -> str:
        """Format an amount of money or customers for messages, rounded towards a feasible limit."""
        return format_rounded(value, down=self.at_least) if self.money else f"{value:,.0f}"

    def write_feasible_limit_advice(self, limit: float, _n: int, /) -> str:
        """Write the advice to change the limit to a feasible value."""
        return f"{'lower' if self.at_least else 'raise'} {self.name} to {self.amount(limit)}"

    def make_unreachable_problem(self, nearest: float, n: int, /) -> Problem:
        """Return the problem of a limit that no plan can satisfy, with the nearest feasible value."""
        side = "at most" if self.at_least else "at least"
        got = f"{self.name} is {self.amount(self.limit(n))}, but every plan comes to {side} {self.amount(nearest)}"
        return Problem(got, f"{'lower' if self.at_least else 'raise'} it to {self.amount(nearest)}")

    def make_violation_problem(self, by: float, _n: int, /) -> Problem:
        """Return the problem of a limit that the best plan found violates by an amount."""
        what = f"no plan was found that keeps {self.name}"
        return Problem(what, f"{'lower' if self.at_least else 'raise'} it by {by:g}")

    @classmethod
    def find_clash_problems(cls, _rules: Sequence[Any], _shape: tuple[int, int], _allowed: Array, /) -> list[Problem]:
        """Return the problems of limits of this class that contradict each other.

        `shape` is (n, K); `allowed` is (n, K), or (0, K) when everybody may get everything.
        """
        return []


def format_rounded(value: float, down: bool = False) -> str:
    """Format a number with six digits, rounded up or down."""
    written = Decimal(repr(float(value)))
    digits = Context(prec=6, rounding=ROUND_FLOOR if down else ROUND_CEILING)
    return f"{float(digits.create_decimal(written)):.10g}"


# -- the kinds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints of a plan besides its budget.

    Parameters
    ----------
    eligible
        (n, K) whether a customer may get a level; everybody may get everything when it is not given.
    caps
        Level → the most customers who may get it. Levels are numbers; names where the `Levels` are known.
    shares
        Level → the smallest share of customers who must get it.
    segment
        (n,) the segment of each customer, whatever names it.
    segment_budgets
        Segment → the total it may cost; segments that are not named are held by the overall budget alone.
    segment_minimums
        Segment → the least total that is spent on it.
    least_return
        Nothing is spent that brings less response per unit of cost than this.
    further
        Rules of other kinds: objects of classes of your own that derive from `largesse.allocation.Limit` or `Constraint`.

    Examples
    --------
    >>> Constraints(caps={2: 10_000}, least_return=0.1).caps
    {2: 10000}
    """

    eligible: Array | None = None
    caps: Mapping[int, float] = field(default_factory=dict)
    shares: Mapping[int, float] = field(default_factory=dict)
    segment: Any = None
    segment_budgets: Mapping[Any, float] = field(default_factory=dict)
    segment_minimums: Mapping[Any, float] = field(default_factory=dict)
    least_return: float = 0.0
    further: Sequence[Constraint] = ()

    def rules(self, n: int, levels: int) -> tuple[Constraint, ...]:
        """Return the constraints as a list of checked objects, or raise an error with all problems."""
        refuse("constraints", self._find_type_problems())
        rules = tuple(rule for kind in RULE_CLASSES for rule in kind.from_constraints(self)) + tuple(self.further)
        problems = [problem for rule in rules for problem in rule.check(n, levels)]
        if self.segment is None and (self.segment_budgets or self.segment_minimums):
            word = "segment_budgets" if self.segment_budgets else "segment_minimums"
            problems.append(Problem(f"{word} without segment", "say which segment each customer is in"))
        if self.segment is not None and np.shape(self.segment) != (n,):
            problems.append(
                Problem(f"segment has shape {np.shape(self.segment)}", f"name one segment per customer: ({n},)")
            )
        refuse("constraints", list(dict.fromkeys(problems)))
        return rules

    def number_levels(self, labels: Sequence[str]) -> Constraints:
        """Replace level names by level numbers in the constraints."""
        numbers = {label: number for number, label in enumerate(labels)}
        tables: dict[str, Any] = {}
        problems = []
        for word in ("caps", "shares"):
            table = getattr(self, word)
            unknown = [level for level in table if isinstance(level, str) and level not in numbers]
            problems += [Problem(f"{word} names the level {level!r}", suggest(level, labels)) for level in unknown]
            tables[word] = {
                numbers.get(level, level) if isinstance(level, str) else level: n for level, n in table.items()
            }
        refuse("constraints", problems)
        return replace(self, **tables)

    def take(self, rows: Array, customers: int) -> Constraints:
        """Return the constraints for a sample of customers, with caps and budgets scaled to the sample's size.

        Caps and budgets of segments shrink with the number of rows. A segment that none of the rows is in has no budget.
        """
        if self.further:
            hint = "a rule of your own does not say what it means for a part of the customers: leave it out"
            refuse("constraints", [Problem("further rules cannot be judged", hint)])
        share = len(rows) / customers
        segment = None if self.segment is None else np.asarray(self.segment)[rows]
        present = set() if segment is None else set(np.unique(segment).tolist())
        return replace(
            self,
            eligible=None if self.eligible is None else np.asarray(self.eligible)[rows],
            caps={level: share * most for level, most in self.caps.items()},
            segment=segment,
            segment_budgets={name: share * total for name, total in self.segment_budgets.items() if name in present},
            segment_minimums={name: share * total for name, total in self.segment_minimums.items() if name in present},
        )

    def _find_type_problems(self) -> list[Problem]:
        """Return the problems of settings with a wrong type."""
        tables = {name: getattr(self, name) for name in ("caps", "shares", "segment_budgets", "segment_minimums")}
        problems = [
            Problem(f"{name} is {repr_short(table)}", "give a table, such as {2: 100}")
            for name, table in tables.items()
            if not isinstance(table, Mapping)
        ]
        problems += [*_find_entry_problems("segment", self.segment), *_find_entry_problems("eligible", self.eligible)]
        if not isinstance(self.further, Sequence) or not all(isinstance(rule, Constraint) for rule in self.further):  # type: ignore[redundant-expr]
            got = f"further is {repr_short(self.further)}"
            problems.append(Problem(got, "list objects of classes that derive from largesse.allocation.Limit or Rule"))
        return problems


def _find_entry_problems(name: str, values: Any) -> list[Problem]:
    """Return the problems of per-customer values with missing entries or unequal lengths."""
    if values is None:
        return []
    try:
        array = np.asarray(values)
        if array.dtype == object:
            missing = sum(1 for entry in set(array.ravel().tolist()) if entry is None or entry != entry)
        else:
            missing = int((array != array).sum()) if array.dtype.kind in "fcmM" else 0  # NaN and NaT are not themselves
    except (TypeError, ValueError, OverflowError):
        return [Problem(f"{name} is not a table of plain values", "give one entry per customer, all of one length")]
    if np.ma.is_masked(values) or missing:
        return [Problem(f"{name} holds missing entries", "give every customer one; a name of their own will do")]
    return []


@dataclass(frozen=True)
class Budget(Limit):
    """Limit on the total cost of all customers."""

    total: float
    money = True
    name = "the budget"
    key = "budget"

    def check(self, _n: int, _levels: int, /) -> list[Problem]:
        """Return an empty list, because `compute_total_budget` checks the budget."""
        return []

    def limit(self, _n: int, /) -> float:
        """Return the total budget."""
        return self.total

    def write_feasible_limit_advice(self, limit: float, n: int, /) -> str:
        """Write the advice to raise the budget to a feasible total and average per customer."""
        return f"raise the budget to {self._format_total_and_mean(limit, n)}"

    def make_unreachable_problem(self, nearest: float, n: int, /) -> Problem:
        """Return the problem of a budget below the cost of the cheapest levels."""
        got = f"the budget is {self.total:g} in total, but the cheapest levels cost {nearest:g}"
        return Problem(got, f"raise it to {self._format_total_and_mean(nearest, n)}")

    def too_small(self, needed: float, n: int) -> Problem:
        """Return the problem of a budget below the lowest cost that the other constraints allow."""
        got = f"the budget is {self.total:g} in total, but under the other rules every plan costs {needed:g} or more"
        return Problem(got, f"raise it to {self._format_total_and_mean(needed, n)}")

    def make_violation_problem(self, by: float, _n: int, /) -> Problem:
        """Return the problem of a budget that the best plan found exceeds by an amount."""
        return Problem(f"no plan was found within {self.name}", f"raise it by {by:g}")

    def _format_total_and_mean(self, total: float, n: int) -> str:
        return f"{format_rounded(total)} ({format_rounded(total / n)} per customer)"


@dataclass(frozen=True, eq=False)
class SegmentBudget(Limit):
    """Limit on the total cost of the customers of one segment."""

    total: float
    segments: Segments
    segment: Any
    money = True
    setting: ClassVar[ConstraintSetting] = ConstraintSetting("segment_budgets", "segment", "a total")

    @classmethod
    def from_constraints(cls, constraints: Constraints) -> list[SegmentBudget]:
        """List the segment budgets among the constraints of a plan."""
        if constraints.segment is None or not constraints.segment_budgets:
            return []
        segments = Segments(constraints.segment)
        return [cls(total, segments, name) for name, total in constraints.segment_budgets.items()]

    @property
    def name(self) -> str:
        """Name of the segment budget in messages."""
        return f"the budget of segment {self.segment!r}"

    @property
    def key(self) -> str:
        """Key of the segment budget's shadow price in `plan.shadow`."""
        return f"segment {self.segment}"

    def check(self, n: int, _levels: int, /) -> list[Problem]:
        """Return the problems of a segment without customers, or of an invalid budget."""
        return _find_segment_problems(self, n)

    def limit(self, _n: int, /) -> float:
        """Return the maximum total cost of the segment's customers."""
        return float(self.total)

    def make_unreachable_problem(self, nearest: float, _n: int, /) -> Problem:
        """Return the problem of a budget below the cost of the segment's cheapest levels."""
        got = f"{self.name} is {self.total:g}, but its cheapest levels cost {nearest:g}"
        return Problem(got, f"raise it to {self.amount(nearest)}")

    def make_violation_problem(self, by: float, _n: int, /) -> Problem:
        """Return the problem of a segment budget that the best plan found exceeds by an amount."""
        return Problem(f"no plan was found within {self.name}", f"raise it by {by:g}")


@dataclass(frozen=True, eq=False)
class SegmentMinimum(Limit):
    """Lower limit on the total cost of the customers of one segment."""

    total: float
    segments: Segments
    segment: Any
    money = True
    at_least = True
    setting: ClassVar[ConstraintSetting] = ConstraintSetting("segment_minimums", "segment", "a total")

    @classmethod
    def from_constraints(cls, constraints: Constraints) -> list[SegmentMinimum]:
        """List the segment minimums among the constraints of a plan."""
        if constraints.segment is None or not constraints.segment_minimums:
            return []
        segments = Segments(constraints.segment)
        return [cls(total, segments, name) for name, total in constraints.segment_minimums.items()]

    @property
    def name(self) -> str:
        """Name of the segment minimum in messages."""
        return f"the minimum of segment {self.segment!r}"

    @property
    def key(self) -> str:
        """Key of the segment minimum's shadow price in `plan.shadow`."""
        return f"minimum of segment {self.segment}"

    def check(self, n: int, _levels: int, /) -> list[Problem]:
        """Return the problems of a segment without customers, or of an invalid minimum."""
        return _find_segment_problems(self, n)

    def limit(self, _n: int, /) -> float:
        """Return the minimum total cost of the segment's customers."""
        return float(self.total)


def _find_segment_problems(limit: SegmentBudget | SegmentMinimum, n: int) -> list[Problem]:
    """Return the problems of a total for a segment without customers, or of an invalid total."""
    if limit.segments.shape != (n,):
        return []  # is named once, for all segments
    if limit.segment not in limit.segments.number_by_segment:
        hint = suggest(str(limit.segment), [str(known) for known in limit.segments.names])
        return [Problem(f"{limit.setting.word} names {limit.segment!r}, which no customer is in", hint)]
    total = number_or_none(limit.total)
    if total is None or not total >= 0:
        return [Problem(f"{limit.name} is {repr_short(limit.total)}", "give a total of zero or more")]
    return []


@dataclass(frozen=True)
class LevelCap(Limit):
    """Limit on the number of customers who get a level."""

    level: int
    most: float
    setting: ClassVar[ConstraintSetting] = ConstraintSetting("caps", "level", "customers")

    @classmethod
    def from_constraints(cls, constraints: Constraints) -> list[LevelCap]:
        """List the level caps among the constraints of a plan."""
        return [cls(level, most) for level, most in constraints.caps.items()]

    @property
    def name(self) -> str:
        """Name of the level cap in messages."""
        return f"the cap of level {self.level}"

    @property
    def key(self) -> str:
        """Key of the level cap's shadow price in `plan.shadow`."""
        return f"cap of level {self.level}"

    def check(self, _n: int, levels: int, /) -> list[Problem]:
        """Return the problems of an unknown level, or of an invalid number of customers."""
        if wrong := _find_level_problems(self.setting.word, self.level, levels):
            return wrong
        most = number_or_none(self.most)
        if most is None or not 0 <= most < math.inf:
            return [Problem(f"caps[{self.level}] is {repr_short(self.most)}", "a cap is a number of customers")]
        return []

    def covers(self, levels: int, /) -> Array:
        """Return a mask (K,) that is true at the capped level."""
        return np.arange(levels) == self.level

    def limit(self, _n: int, /) -> float:
        """Return the maximum number of customers at the level."""
        return float(math.floor(self.most))

    def make_violation_problem(self, by: float, _n: int, /) -> Problem:
        """Return the problem of a level cap that the best plan found exceeds by a number of customers."""
        return Problem(f"no plan was found within {self.name}", f"raise it by {by:,.0f}")

    @classmethod
    def find_clash_problems(cls, rules: Sequence[LevelCap], shape: tuple[int, int], allowed: Array, /) -> list[Problem]:
        """Return the problem of level caps that admit fewer customers than there are (Hall's condition)."""
        n, K = shape
        most = {rule.level: rule.limit(n) for rule in rules}
        if not len(allowed):
            over = n - sum(most.values())
            return [_make_cap_problem(most, n)] if len(most) == K and over > 0 else []
        sizes = range(1, len(most) + 1) if len(most) <= 12 else ()
        sets = [subset for size in sizes for subset in combinations(sorted(most), size)]
        for subset in sets[:MAX_LEVEL_SETS]:
            outside = np.setdiff1d(np.arange(K), subset)
            only = int((~allowed[:, outside].any(axis=1)).sum())
            if only > sum(most[k] for k in subset):
                return [_make_cap_problem({k: most[k] for k in subset}, only)]
        return []


def _make_cap_problem(most: Mapping[int, float], customers: int) -> Problem:
    names = " and ".join(f"level {k}" for k in sorted(most))
    held = sum(most.values())
    got = f"{customers:,} customers may get nothing but {names}, capped at {held:,.0f}"
    return Problem(got, f"raise the caps by {customers - held:,.0f} together")


@dataclass(frozen=True)
class LevelShare(Limit):
    """Lower limit on the share of customers who get a level."""

    level: int
    share: float
    at_least = True
    setting: ClassVar[ConstraintSetting] = ConstraintSetting("shares", "level", "a share from 0 to 1", most=1.0)

    @classmethod
    def from_constraints(cls, constraints: Constraints) -> list[LevelShare]:
        """List the minimum shares of levels among the constraints of a plan."""
        return [cls(level, share) for level, share in constraints.shares.items()]

    @property
    def name(self) -> str:
        """Name of the minimum share in messages."""
        return f"the share of level {self.level}"

    @property
    def key(self) -> str:
        """Key of the minimum share's shadow price in `plan.shadow`."""
        return f"share of level {self.level}"

    def check(self, _n: int, levels: int, /) -> list[Problem]:
        """Return the problems of an unknown level, or of a share outside 0 to 1."""
        if wrong := _find_level_problems(self.setting.word, self.level, levels):
            return wrong
        share = number_or_none(self.share)
        if share is None or not 0 <= share <= 1:
            return [Problem(f"shares[{self.level}] is {repr_short(self.share)}", "a share lies between 0 and 1")]
        return []

    def covers(self, levels: int, /) -> Array:
        """Return a mask (K,) that is true at the level with the minimum share."""
        return np.arange(levels) == self.level

    def limit(self, n: int, /) -> float:
        """Return the minimum number of customers at the level."""
        return float(math.ceil(self.share * n - 1e-9))

    def write_feasible_limit_advice(self, limit: float, n: int, /) -> str:
        """Write the advice to lower the share to a feasible value."""
        return f"lower {self.name} to {format_rounded(limit / n, down=True)}"

    def make_unreachable_problem(self, nearest: float, n: int, /) -> Problem:
        """Return the problem of a minimum share for which too few customers may get the level."""
        got = f"{self.limit(n):,.0f} customers must get level {self.level}, but only {nearest:,.0f} may"
        return Problem(got, f"lower its share to {format_rounded(nearest / n, down=True)}")

    def make_violation_problem(self, by: float, n: int, /) -> Problem:
        """Return the problem of a minimum share that the best plan found does not reach."""
        got = f"no plan was found that gives level {self.level} to {self.limit(n):,.0f} customers"
        return Problem(got, f"lower its share to {(self.limit(n) - by) / n:.4g}")

    @classmethod
    def find_clash_problems(
        cls, rules: Sequence[LevelShare], shape: tuple[int, int], _allowed: Array, /
    ) -> list[Problem]:
        """Return the problem of minimum shares whose sum exceeds 1."""
        n, _ = shape
        must = int(sum(rule.limit(n) for rule in rules))
        if must <= n:
            return []
        return [Problem(f"the shares add up to {must / n:.4g}", f"lower them by {(must - n) / n:.4g} together")]


@dataclass(frozen=True, eq=False)
class Eligibility(Constraint):
    """Constraint that customers get only levels for which they are eligible, by a table (n, K)."""

    table: Array
    setting: ClassVar[ConstraintSetting] = ConstraintSetting("eligible", "customer", "true or false")

    @classmethod
    def from_constraints(cls, constraints: Constraints) -> list[Eligibility]:
        """List the eligibility table among the constraints of a plan, if there is one."""
        return [] if constraints.eligible is None else [cls(np.asarray(constraints.eligible))]

    def check(self, n: int, levels: int, /) -> list[Problem]:
        """Return the problems of an eligibility table with a wrong shape or entries that are not boolean."""
        if self.table.shape != (n, levels):
            hint = f"give one row per customer: ({n}, {levels})"
            return [Problem(f"eligible has shape {self.table.shape}", hint)]
        if self.table.dtype.kind != "b" and not np.isin(self.table, (0, 1)).all():
            return [Problem("eligible holds entries that are neither true nor false", "give True or False, or 1 and 0")]
        return []

    def allowed(self, _n: int, _levels: int, /) -> Array:
        """Return the eligibility table as a boolean mask (n, K)."""
        return self.table.astype(bool)


@dataclass(frozen=True)
class MinimumReturn(Constraint):
    """Constraint that each unit of cost brings at least a minimum response."""

    least: float
    setting: ClassVar[ConstraintSetting] = ConstraintSetting(
        "least_return", "plan", "response per unit of cost, zero or more"
    )

    @classmethod
    def from_constraints(cls, constraints: Constraints) -> list[MinimumReturn]:
        """List the minimum return among the constraints of a plan, if there is one."""
        return [] if number_or_none(constraints.least_return) == 0 else [cls(constraints.least_return)]

    def check(self, _n: int, _levels: int, /) -> list[Problem]:
        """Return the problem of a negative or otherwise invalid minimum return."""
        least = number_or_none(self.least)
        if least is None or not 0 <= least <= MAX_RETURN:
            return [
                Problem(f"least_return is {repr_short(self.least)}", "give response per unit of cost, zero or more")
            ]
        return []

    @property
    def floor(self) -> float:
        """Minimum response per unit of cost."""
        return float(self.least)


def _find_level_problems(word: str, level: Any, levels: int) -> list[Problem]:
    if isinstance(level, int | np.integer) and not isinstance(level, bool) and 0 <= level < levels:
        return []
    return [Problem(f"{word} names level {repr_short(level)}", f"levels are numbered 0 to {levels - 1}")]


RULE_CLASSES: tuple[Any, ...] = (
    Eligibility,
    SegmentBudget,
    SegmentMinimum,
    LevelCap,
    LevelShare,
    MinimumReturn,
)  # all but the budget itself
CONSTRAINT_SETTINGS: tuple[ConstraintSetting, ...] = tuple(kind.setting for kind in RULE_CLASSES)
