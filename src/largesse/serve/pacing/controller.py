"""The price that a budget is paced by: where it starts, and how it is controlled.

A plan for the customers who are foreseen gives prices of the budget over time, and what customers cost on average. A customer
then gets the best of expected response − factor × cost at these prices. The factor moves by mirror descent: after every
customer, up or down by how much they cost beside what is left for each. The latter is what the plan foresees for them, times
what is left beside what the plan foresees for all who are still to come: that integrates all errors of the past. How many
are to come is learnt from those who came, what promises cost from those whose time is over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, final

import numpy as np

from largesse.errors import BudgetError, Problem, as_number, fail, refuse, repr_short
from largesse.exploration import ExplorationRule
from largesse.io import Reader, pack
from largesse.records import Array
from largesse.serve.ledger.money import MICROS
from largesse.serve.ledger.records import Choice, Offers, Standing
from largesse.serve.ledger.terms import DAY, Terms, show_time
from largesse.serve.pacing.customers import Population
from largesse.serve.pacing.forecast import Draws, Forecast, add_up, first_weekday

FLAT_WEEK = (1.0,) * 7


@dataclass(frozen=True)
class Gains:
    """How strongly the price is controlled. The defaults were chosen on random streams: see docs/results/pacing.md."""

    window: float = 0.05  # customers, as a share of those foreseen, over which a deviation of the spend is corrected
    ending: float = 0.25  # and at most over this share of the customers who still come
    proportional: float = 0.5  # of a deviation that is corrected at once
    smooth: float = 0.1  # of the total: over how much spending a deviation within the period is corrected
    volume: float = 0.15  # of the foreseen customers: how many tell what comes lately
    volume_prior: float = 0.03  # of the foreseen customers: how many the forecast counts as
    ratio_prior: float = 0.02  # of the total: how much the model's expected costs count as
    ratio_span: float = 0.3  # of the total: how much of what is settled tells what promises cost
    season_prior: float = 2.0  # weeks that a given season counts as
    # Standard deviations of what open promises cost that are kept back for them, if they hold while the budget lasts.
    margin: float = 0.25


@dataclass(frozen=True)
class PacePlan:
    """What the price is controlled by; kept in the ledger, so that all workers go by the same.

    The period is cut into J parts. Each has a price of the budget at its end. A customer's cost counts at the prices of all
    parts that follow: with the face value while the promise stands, with what is redeemed afterwards.
    """

    factor: float  # of these prices, at the start
    ahead: tuple[float, ...]  # (J + 1,) the sum of the prices from a part on; 0 at the end
    promised: tuple[float, ...]  # (J,) what a customer of each part is promised or given at once, on average
    paid: tuple[float, ...]  # (J,) … and what is paid of it
    priced: tuple[float, ...]  # (J,) … and what that costs at the prices
    customers: float  # foreseen in the whole period
    elasticity: float  # by how many per cent the cost falls when the price rises by one
    season: tuple[float, ...] = FLAT_WEEK  # how busy days of the week are, Monday first
    exploration_rate: float = 0.0  # share of customers who get a level at random
    gains: Gains = Gains()
    exploration: ExplorationRule | None = None  # draws levels instead

    @property
    def price(self) -> float:
        """The price of one more unit of budget at the start."""
        return self.factor * self.ahead[0]

    @property
    def is_sound(self) -> bool:
        """Whether the numbers are finite and none is below zero, but perhaps the elasticity; busy days are above."""
        lists = [value for name in LISTS for value in getattr(self, name)]
        rest = [self.factor, self.customers, self.exploration_rate, *asdict(self.gains).values()]
        known = all(math.isfinite(value) and value >= 0 for value in (*lists, *rest)) and math.isfinite(self.elasticity)
        return known and min(self.season) > 0 and self.customers > 0 and self.exploration_rate <= 1

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types."""
        content: dict[str, Any] = pack(self, PacePlan, "", {})
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> PacePlan:
        """Return the plan that a ledger holds, next to the names of levels; refuse one that is not valid."""
        try:
            own = {field.name: content[field.name] for field in fields(cls)}
            plan: PacePlan = Reader({}).unpack(own, cls, "", {})
            J = len(plan.promised)
            if {len(plan.ahead) - 1, len(plan.paid), len(plan.priced)} != {J} or len(plan.season) != 7:
                raise ValueError
            if not (J and plan.is_sound):
                raise ValueError
        except (TypeError, ValueError, KeyError, OverflowError):
            fail("ledger", Problem("the ledger holds no plan for its price", "begin another ledger"))
        return plan

    def begin(self, terms: Terms) -> Array:
        """Return the state in which the price of a ledger begins, as the compiled steps read it."""
        from largesse.serve.pacing import kernels as k

        state = np.zeros(k.OPEN + 2 * len(self.promised) if terms.kept else k.LASTING)
        state[k.FACTOR] = self.factor
        state[k.WEEK : k.WEEK + 7] = self.season
        return state

    def pack(self, terms: Terms) -> Array:
        """Return the plan as the compiled steps read it."""
        from largesse.serve.pacing import kernels as k

        if not terms.kept and len(self.promised) > 1:
            hint = "plan with the ledger's terms: plan_pace"
            fail("ledger", Problem("the plan is for promises that are kept, and the ledger's are not", hint))
        total, gains = terms.total / MICROS, self.gains
        found = np.zeros(k.PATH)
        found[k.PARTS], found[k.CUSTOMERS] = len(self.promised), max(self.customers, 1.0)
        found[k.DAYS], found[k.VALID] = terms.days, terms.stands if terms.kept else 0.0
        found[k.LASTS], found[k.STANDS], found[k.MARGIN] = not terms.kept, terms.stands, gains.margin
        found[k.FIRST_DAY], found[k.AT_RANDOM] = first_weekday(terms), self.exploration_rate
        found[k.WINDOW] = max(gains.window * self.customers, 20.0)
        found[k.GAIN] = 1.0 / min(max(self.elasticity, 0.3), 5.0)
        found[k.SMOOTH], found[k.PROPORTIONAL], found[k.FIXED] = gains.smooth, gains.proportional, gains.window <= 0
        found[k.ENDING], found[k.VOLUME], found[k.VOLUME_PRIOR] = gains.ending, gains.volume, gains.volume_prior
        found[k.RATIO_PRIOR], found[k.RATIO_SPAN] = gains.ratio_prior * total, max(gains.ratio_span * total, 1e-9)
        found[k.SEASON_PRIOR] = gains.season_prior
        rule = np.empty(0) if self.exploration is None else self.exploration.pack_for_pacing()
        found[k.AIMED] = 0 if self.exploration is None else len(self.exploration.incumbent)
        return np.concatenate([found, self.ahead, self.promised, self.paid, self.priced, rule])


LISTS = ("ahead", "promised", "paid", "priced", "season")


def plan_pace(
    population: Population,
    terms: Terms,
    customers: float,
    *,
    season: tuple[float, ...] | None = None,
    exploration_rate: float = 0.0,
    exploration: ExplorationRule | None = None,
    gains: Gains = Gains(),  # noqa: B008  frozen
) -> PacePlan:
    """Return what a price is controlled by, from customers like those who will come.

    Parameters
    ----------
    population
        Some customers, with what each level is expected to bring and to cost.
    terms
        The ledger's.
    customers
        How many are foreseen in the whole period.
    season
        How busy the seven days of the week are, Monday first; None: alike. What comes is learnt from.
    exploration_rate
        Share of customers who get a level at random: `policy.exploration_rate`.
    exploration
        Rule that draws levels instead: `policy.exploration`.
    """
    _check_parts(population, terms, exploration)
    week = _check_plan(customers, season, exploration_rate)
    how = Draws(exploration_rate, exploration, 0.0 if exploration is None else exploration.value_price)
    forecast = Forecast(population, terms, week, customers, how)
    prices = forecast.solve()
    ahead = add_up(prices)
    factor, least = 1.0, forecast.least_price()
    if ahead[0] < least:  # the budget is ample: the price begins at nothing, and may have to rise
        factor, ahead = 0.0, np.append(np.full(len(prices), least), 0.0)
    promised, paid, priced = forecast.means(ahead, factor)
    around = [forecast.means(ahead, max(factor, 0.1) * by)[2].sum() for by in (0.85, 1.15)]
    steep = math.log(around[0] / around[1]) / math.log(1.15 / 0.85) if min(around) > 0 else 1.0
    factor = forecast.find_factor(ahead, float(priced.sum())) if factor else 0.0
    parts = {"ahead": ahead, "promised": promised, "paid": paid, "priced": priced}
    lists: dict[str, Any] = {name: tuple(part.tolist()) for name, part in parts.items()}
    rest: dict[str, Any] = {
        "season": week,
        "exploration_rate": exploration_rate,
        "gains": gains,
        "exploration": forecast.how.rule,
    }
    return PacePlan(factor=factor, customers=float(customers), elasticity=steep, **lists, **rest)


def _check_parts(population: Any, terms: Any, rule: Any) -> None:
    if not (isinstance(population, Population) and isinstance(terms, Terms)):
        got = f"the population is {repr_short(population)}, and the terms are {repr_short(terms)}"
        fail("pace", Problem(got, "make them with make_population(policy, customers) and make_terms(total, ends)"))
    if rule is None:
        return
    if not isinstance(rule, ExplorationRule) or len(rule.incumbent) != population.responses.shape[1]:
        fail(
            "pace",
            Problem(f"the exploration rule is {repr_short(rule)}", "give that of the policy: policy.exploration"),
        )
    if population.variance is None:
        hint = "make the population with the policy that explores: make_population(policy, customers)"
        fail("pace", Problem("the exploration rule needs the variance of responses, and the population has none", hint))


def _check_plan(customers: Any, season: Any, exploration_rate: Any) -> tuple[float, ...]:
    problems = []
    many = as_number(customers)
    if many is None or not 1 <= many <= 1e12:
        problems.append(Problem(f"the foreseen customers are {repr_short(customers)}", "give a number, 1 or more"))
    share = as_number(exploration_rate)
    if share is None or not 0 <= share <= 1:
        problems.append(
            Problem(f"exploration_rate is {repr_short(exploration_rate)}", "give a share of customers from 0 to 1")
        )
    week = FLAT_WEEK if season is None else tuple(season) if isinstance(season, Sequence) else ()
    numbers = [as_number(value) for value in week]
    if len(week) != 7 or any(value is None or not 0 <= value < math.inf for value in numbers) or not sum(week):
        problems.append(
            Problem(f"the season is {repr_short(season)}", "give seven numbers, Monday first, zero or more")
        )
    refuse("pace", problems)
    mean = sum(week) / 7
    return tuple(max(float(value) / mean, 1e-3) for value in week)


@final
class Pacer:
    """Picks levels for a ledger by its price: the `Chooser` of `Ledger.decide`.

    Parameters
    ----------
    seed
        For customers who get a level at random; None: from the system.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = np.random.default_rng(seed)
        self._packed: tuple[Any, Array] | None = None
        _warm_up()  # what is compiled on first use must not keep a ledger waiting

    def choose(self, standing: Standing, offers: Offers) -> Choice:
        """Return levels whose costs fit into the budget, one customer after the other."""
        from largesse.serve.pacing import kernels as k

        plan = self._pack(standing)
        n = len(offers)
        state = np.array(standing.state, dtype=np.float64)
        places = k.OPEN + 2 * int(plan[k.PARTS]) if standing.terms.kept else k.LASTING
        if len(state) != places or not _is_state(state, plan[k.DAYS]):  # none yet, or none that a price can have
            state = PacePlan.from_dict(standing.plan).begin(standing.terms)
        money = np.array([standing.terms.total, *(getattr(standing, name) for name in MONEY)], dtype=np.int64)
        when = np.empty((n, 2))
        when[:, 0], when[:, 1] = (standing.now - standing.terms.starts) / DAY, self._random.random(n)
        out = np.empty((n, 4))
        varies = np.empty((n, 0)) if offers.variance is None else np.ascontiguousarray(offers.variance)
        parts = (np.ascontiguousarray(offers.responses, dtype=np.float64), offers.at_once, offers.face, offers.expected)
        if not k.decide_batch(*parts, varies, when, plan, state, money, out):
            raise BudgetError("ledger", [_explain_misfit(standing)])
        levels, reasons = out[:, 0].astype(np.int64), out[:, 3].astype(np.int64)
        reserved = standing.reserved
        if not standing.terms.kept and standing.within:
            reserved = math.ceil(k.reserve(k.ratio(plan, state, money), plan, state) * MICROS)
        return Choice(levels, out[:, 1].copy(), out[:, 2].copy(), reasons, tuple(state.tolist()), reserved)

    def _pack(self, standing: Standing) -> Array:
        if self._packed is None or self._packed[0] != (standing.plan, standing.terms):
            packed = PacePlan.from_dict(standing.plan).pack(standing.terms)
            self._packed = ((standing.plan, standing.terms), packed)
        return self._packed[1]


def _explain_misfit(standing: Standing) -> Problem:
    """Say why no level fits."""
    if standing.within:
        got = "the budget is spent: not even the cheapest level fits"
        return Problem(got, "add a level that costs nothing, or raise the total")
    period = f"from {show_time(standing.terms.starts)} until {show_time(standing.terms.ends)}"
    got = f"it is {show_time(standing.now)}, and nothing is spent outside the period {period}"
    return Problem(got, "add a level that costs nothing, or begin a ledger for another period")


def _is_state(state: Array, days: float) -> bool:
    """Whether numbers can be the state of a price: no compiled step may meet others."""
    from largesse.serve.pacing import kernels as k

    within = state[k.LAST] <= days and state[k.TODAY] <= days
    return bool(within and (state >= 0).all() and (state[k.WEEK : k.WEEK + 7] > 0).all())


MONEY = (
    *("spent", "promised", "at_once", "settled_expected", "settled_paid", "open_expected", "late_face"),
    "settled_wait",
)


@cache
def _warm_up() -> None:
    """Decide for nobody, once in a process."""
    from largesse.serve.pacing import kernels as k

    none, whole = np.empty((0, 2)), np.empty((0, 2), dtype=np.int64)
    plan, state, money = np.ones(k.PATH + 5), np.ones(k.LASTING), np.zeros(1 + len(MONEY), dtype=np.int64)
    k.decide_batch(none, whole, whole, whole, none, none, plan, state, money, np.empty((0, 4)))
    k.reserve(k.ratio(plan, state, money), plan, state)
