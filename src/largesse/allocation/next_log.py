"""The next log: probabilities of levels that make what it is to tell as precise as possible, for a given cost.

A doubly robust estimate of the mean of Σ_k Δ_k r_k over customers has the variance

    (1/n) (Var(Σ_k Δ_k f_k) + mean_i Σ_k Δ_ik² σ_ik² / p_ik),

p the probability with which the log gives a level. Under limits on the mean value and the mean cost the best probabilities are
p_k ∝ Δ_k σ_k / √(α + β · (value given up at k)): Neyman allocation with costs. A part of what exploring may cost goes to every
level alike, so that the log can also judge what nobody thought of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from largesse.allocation.constraints import Constraints
from largesse.allocation.explore import exploring_budget, mix_levels
from largesse.allocation.mix import mix_two_levels
from largesse.allocation.neyman.solve import Spread, spread_probabilities
from largesse.allocation.neyman.weights import NEIGHBOURS, weigh_levels
from largesse.allocation.plan import allocate
from largesse.allocation.rules.rule import Limit, Rule
from largesse.errors import BudgetError, Problem
from largesse.records import Array, Plan

AIMS = ("evaluation", "learning")
ALIKE = 0.1  # the share of what exploring may cost that goes to all levels alike
STEADY = 1e-3  # of the mean variance: where the model is sure, it may be wrong
# Standard deviations that the drawn number of customers stays away from a cap, if there is room.
MARGINS = (3.0, 2.0, 1.0)
BROKEN = 1e-6
MOST_MOVED = 0.5  # of the probabilities, to keep a budget: rounding needs far less


@dataclass(frozen=True, eq=False)
class Aim:
    """What is to be estimated from the next log, and how precisely responses are known."""

    curves: Array  # (n, K)
    costs: Array  # (n, K)
    variance: Array  # (n, K) of a response about its curve
    plan: Plan
    incumbent: Array  # (n, K) probabilities of what the plan is compared with
    allowed: Array  # (n, K)
    floor: float  # variances below it are not believed
    limits: tuple[Limit, ...] = ()  # besides the budget

    @property
    def planned(self) -> Array:
        """The plan's probabilities (n, K): zeros and ones."""
        return np.eye(self.curves.shape[1])[self.plan.levels]

    @cached_property
    def worth(self) -> Array:
        """What a level is worth (n, K) at the prices of the budget and of all limits that the plan meets."""
        found = self.curves - self.plan.price * self.costs
        for limit in self.limits:
            found -= self.plan.shadow.get(limit.key, 0.0) * _as_bound(limit, self).term
        return found

    @cached_property
    def near(self) -> tuple[Plan, ...]:
        """Plans at other budgets, without limits besides these."""
        least = float(self.costs.min(axis=1).mean())
        return tuple(allocate(self.curves, self.costs, max(share * self.plan.budget, least)) for share in NEIGHBOURS)

    def predict_se(self, contrast: Array, probabilities: Array) -> float:
        """Return the standard error that a log drawn with these probabilities gives a contrast (n, K), infinite if none."""
        own = (contrast * self.curves).sum(axis=1)
        needed = np.abs(contrast) > 1e-12
        if (needed & (probabilities <= 0)).any():
            return float("inf")
        noise = np.divide(contrast**2 * self.variance, probabilities, out=np.zeros(contrast.shape), where=needed)
        return float(np.sqrt((own.var() + noise.sum(axis=1).mean()) / len(own)))

    def breaks(self, limit: Limit, levels: Array) -> bool:
        """Whether levels (n,) break a limit."""
        bound = _as_bound(limit, self)
        return float(bound.term[np.arange(len(levels)), levels].mean()) > bound.most + 1e-12 * abs(bound.most)

    def value(self, probabilities: Array) -> float:
        """Return the mean response that the curves expect."""
        return float((probabilities * self.curves).sum(axis=1).mean())

    def spend(self, probabilities: Array) -> float:
        """Return the mean cost."""
        return float((probabilities * self.costs).sum(axis=1).mean())


@dataclass(frozen=True, eq=False)
class Bound:
    """The mean of Σ_k p_k x_k is at most a number."""

    term: Array  # (n, K)
    most: float


@dataclass(frozen=True, eq=False)
class Design:
    """Probabilities of the levels in the next log, and levels at random that give up as much."""

    probabilities: Array  # (n, K)
    random: Array  # (n, K)
    bounds: tuple[Bound, ...]  # on value, cost, and what else is limited
    prices: Array  # (m,) of these


def set_aim(
    curves: Array,
    costs: Array,
    variance: Array,
    budget: float,
    incumbent: Array | None,
    constraints: Constraints | None,
) -> Aim:
    """Plan within the budget and the constraints, and say what the next log is to tell about the plan."""
    shape = n, K = curves.shape
    costs = np.ascontiguousarray(np.broadcast_to(costs, shape), dtype=np.float64)
    curves = np.asarray(curves, dtype=np.float64)
    rules: Sequence[Rule] = () if constraints is None else constraints.rules(n, K)
    allowed = np.ones(shape, dtype=bool)
    for rule in rules:
        part = rule.allowed(n, K)
        allowed &= True if part is None else part
    plan = allocate(curves, costs, budget, constraints=constraints)
    if incumbent is None:
        weight = mix_two_levels(curves.mean(axis=0), costs.mean(axis=0), plan.spend)
        incumbent = np.tile(weight, (n, 1))
    # Those who may not get what the others get there get what the plan gives them.
    incumbent = np.where(allowed, incumbent, 0.0)
    whole = incumbent.sum(axis=1, keepdims=True)
    incumbent = np.where(whole > 0, incumbent / np.where(whole > 0, whole, 1.0), np.eye(K)[plan.levels])
    floor = STEADY * float(variance.mean()) + 1e-300
    limits = tuple(rule for rule in rules if isinstance(rule, Limit))
    return Aim(curves, costs, np.maximum(variance, floor), plan, incumbent, allowed, floor, limits)


def design_log(aim: Aim, rate: float, for_: str = "evaluation") -> Design:
    """Return the probabilities with which the next log should give levels.

    They cost no more than the plan's budget and give up no more expected response than giving a share `rate` of the customers
    a level at random, within the same budget. With limits other than the budget, that comparison ignores them.
    """
    random, loss = _explore_at_random(aim, rate)
    many = aim.allowed.sum(axis=1, keepdims=True)
    least = np.where(aim.allowed, np.where(many == 1, 1.0, ALIKE * rate / many), 0.0)
    weight = np.ones(aim.curves.shape)
    if for_ != "learning":
        eye = np.eye(aim.curves.shape[1])
        weight = weigh_levels(aim.planned, aim.incumbent, [eye[plan.levels] for plan in aim.near])
    spread = np.sqrt(weight * aim.variance) * aim.allowed
    bounds = [Bound(-aim.curves, loss - aim.plan.value), Bound(aim.costs, min(aim.plan.budget, float(aim.costs.max())))]
    bounds += [_as_bound(limit, aim) for limit in aim.limits]
    start = np.zeros(len(bounds))
    start[:2] = _guess_prices(aim, spread, loss)
    found = find_spread(spread, bounds, least, start)
    if not found.broken <= BROKEN:
        _refuse()
    for margin in MARGINS if aim.limits else ():
        tight = _tighten(aim, bounds, found.probabilities, margin)
        closer = find_spread(spread, tight, least, start)
        if closer.broken <= BROKEN:
            return Design(_keep_money(closer.probabilities, aim), random, tuple(tight), closer.prices)
    return Design(_keep_money(found.probabilities, aim), random, tuple(bounds), found.prices)


def _explore_at_random(aim: Aim, rate: float) -> tuple[Array, float]:
    """Return the probabilities (n, K) of exploring at random, and the expected response that it gives up."""
    if aim.limits or not aim.allowed.all():
        even = aim.allowed / aim.allowed.sum(axis=1, keepdims=True)
        mixed = (1 - rate) * aim.planned + rate * even
        return mixed, max(float(((aim.planned - mixed) * aim.worth).sum(axis=1).mean()), 0.0)
    rest = exploring_budget(aim.costs, aim.plan.budget, rate)
    levels = allocate(aim.curves, aim.costs, rest).levels
    mixed = mix_levels(np.eye(aim.curves.shape[1])[levels], rate)
    return mixed, max(aim.plan.value - aim.value(mixed), 0.0)


def _guess_prices(aim: Aim, spread: Array, loss: float) -> tuple[float, float]:
    """Return the prices of value and of cost that would do where little is explored."""
    lost = np.maximum((aim.planned * aim.worth).sum(axis=1, keepdims=True) - aim.worth, 0.0)
    if loss <= 0:
        return 0.0, 0.0
    price = (float((spread * np.sqrt(lost)).sum(axis=1).mean()) / loss) ** 2
    return price, price * aim.plan.price


def _as_bound(limit: Limit, aim: Aim) -> Bound:
    """Return a limit as a bound on the mean."""
    n, K = aim.curves.shape
    who = np.ones(n, dtype=bool)
    if limit.segments is not None:
        who = limit.segments.codes == limit.segments.places[limit.segment]
    term = np.where(who[:, None] & limit.covers(K), aim.costs if limit.money else 1.0, 0.0)
    sign = -1.0 if limit.at_least else 1.0
    return Bound(sign * term, sign * limit.limit(n) / n)


def _tighten(aim: Aim, bounds: Sequence[Bound], found: Array, margin: float) -> list[Bound]:
    """Return bounds on numbers of customers that the number that is drawn will keep, too, as that varies.

    What the plan would bring less under them is not counted as given up.
    """
    value, cost, *others = bounds
    tight, less = [], 0.0
    for limit, bound in zip(aim.limits, others, strict=True):
        own = (found * np.abs(bound.term)).sum(axis=1)
        by = 0.0 if limit.money else margin * float(np.sqrt((own * (1 - own)).sum())) / len(own)
        tight.append(Bound(bound.term, bound.most - by))
        less += aim.plan.shadow.get(limit.key, 0.0) * by
    return [Bound(value.term, value.most + less), cost, *tight]


def find_spread(spread: Array, bounds: Sequence[Bound], least: Array, start: Array) -> Spread:
    """Return the probabilities (n, K) that make Σ spread²/p least within the bounds, and the bounds' prices."""
    terms, most = np.stack([bound.term for bound in bounds]), np.array([bound.most for bound in bounds])
    return spread_probabilities(np.ascontiguousarray(spread), terms, most, np.ascontiguousarray(least), start)


def _keep_money(found: Array, aim: Aim) -> Array:
    """Return probabilities that cost no more than the budget, and no segment more than its own.

    The solver stops within its accuracy, on either side of a limit. What is above it moves to the cheapest level.
    """
    cheapest = np.where(aim.allowed, aim.costs, np.inf).argmin(axis=1)
    bounds = [Bound(aim.costs, aim.plan.budget)]
    bounds += [_as_bound(limit, aim) for limit in aim.limits if limit.money and not limit.at_least]
    for bound in bounds:
        found = _lower(found, bound, np.eye(found.shape[1])[cheapest])
    return found


def _lower(found: Array, bound: Bound, cheapest: Array) -> Array:
    """Return probabilities (n, K) whose sum is within a bound, in whichever order floats are added up.

    Where levels cost the same, nothing can be lowered, and the sum is the bound up to rounding.
    """
    rounding = (found.size + 8) * np.finfo(np.float64).eps  # two sums of as many floats differ by no more
    sums = [float((part * bound.term).sum(axis=1).mean()) for part in (found, cheapest)]
    room = sums[0] - sums[1]
    if sums[0] <= bound.most * (1 - rounding) or room <= rounding * sums[0]:
        return found
    share = (sums[0] - bound.most * (1 - 2 * rounding)) / room
    if share > MOST_MOVED:
        _refuse()
    concerned = (bound.term != 0).any(axis=1, keepdims=True)
    return np.where(concerned, found + share * (cheapest - found), found)


def _refuse() -> NoReturn:
    hint = "explore with a smaller rate, raise the budget, or drop a cap or a least share"
    raise BudgetError("explore", [Problem("exploring does not fit within the budget and the constraints", hint)])
