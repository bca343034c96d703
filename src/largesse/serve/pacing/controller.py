"""Budget pacing controller: plan of the shadow price over a period, and decisions at the controlled price.

A plan for the forecast customers gives prices of the budget over time, and the average cost of customers. A customer then
gets the best of expected response − factor × cost at these prices. The factor moves by mirror descent: after every customer,
up or down by their cost relative to the remaining budget per customer. That budget is the plan's cost of a customer, times
the remaining budget relative to the plan's cost of all customers to come, which integrates all errors of the past. The number
of customers to come is learnt from those who came, the cost of promises from those whose time is over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, final

import numpy as np

from largesse.errors import BudgetError, Problem, fail, number_or_none, refuse, repr_short
from largesse.exploration import ExplorationRule
from largesse.io import RecordReader, pack_value
from largesse.records import Array
from largesse.serve.ledger.amounts_and_times import DAY_MICROS, MICROS, format_time
from largesse.serve.ledger.ledger_records import ChosenLevels, LedgerStanding, LedgerTerms, Offers
from largesse.serve.pacing.population import Population
from largesse.serve.pacing.price_forecast import PriceForecast, find_first_weekday, sum_remaining_prices

FLAT_WEEK = (1.0,) * 7
LEDGER_AMOUNTS = (  # of a ledger, after the total, as `pacing_kernels` counts it
    *("spent", "promised", "at_once", "settled_expected", "settled_paid", "open_expected", "late_face"),
    "settled_wait",
)


@dataclass(frozen=True)
class ControllerGains:
    """Gains of the shadow price controller: strength and speed of its corrections of deviations from the plan.

    The defaults were chosen on random streams: see docs/results/pace_streams.md.
    """

    window: float = 0.05  # customers, as a share of the forecast, over which a deviation of the spend is corrected
    ending: float = 0.25  # and at most over this share of the customers to come
    proportional: float = 0.5  # of a deviation that is corrected at once
    smooth: float = 0.1  # of the total: over how much spending a deviation within the period is corrected
    volume: float = 0.15  # of the forecast customers: the window of the recent traffic
    volume_prior: float = 0.03  # of the forecast customers: the weight of the forecast
    ratio_prior: float = 0.02  # of the total: the weight of the model's expected costs
    ratio_span: float = 0.3  # of the total: the window of settled promises that their cost is learnt from
    season_prior: float = 2.0  # weeks: the weight of a given season
    margin: float = (
        0.25  # standard deviations of the cost of open promises that are reserved, if they hold while it lasts
    )


@dataclass(frozen=True)
class PacingPlan:
    """Plan of a budget's shadow price over a period, with the controller's settings; stored in the ledger.

    The period is cut into J parts. Each has a price of the budget at its end. A customer's cost counts at the prices of all
    parts that follow: with the face value while the promise stands, with the redeemed amount afterwards.
    """

    factor: float  # of these prices, at the start
    ahead: tuple[float, ...]  # (J + 1,) the sum of the prices from a part on; 0 at the end
    promised: tuple[float, ...]  # (J,) average amount that a customer of each part is promised or given at once …
    paid: tuple[float, ...]  # (J,) … and the part of it that is paid
    priced: tuple[float, ...]  # (J,) … and its cost at the prices
    customers: float  # forecast for the whole period
    elasticity: float  # by how many per cent the cost falls when the price rises by one
    season: tuple[float, ...] = FLAT_WEEK  # weights of the days of the week, Monday first
    exploration_rate: float = 0.0  # share of customers who get a level at random
    gains: ControllerGains = ControllerGains()
    exploration: ExplorationRule | None = None  # draws levels instead

    @property
    def price(self) -> float:
        """Shadow price at the start of the period: value of one more unit of budget."""
        return self.factor * self.ahead[0]

    @property
    def is_valid_plan(self) -> bool:
        """True if the plan's lists match in length and all numbers are in range."""
        lists = (self.ahead[:-1], self.promised, self.paid, self.priced)
        numbers = [self.factor, self.customers, self.exploration_rate, *asdict(self.gains).values(), *self.ahead[-1:]]
        numbers += [value for values in (*lists, self.season) for value in values]
        return (
            len(self.season) == 7
            and len({len(values) for values in lists}) == 1
            and bool(self.promised)
            and all(math.isfinite(value) and value >= 0 for value in numbers)
            and math.isfinite(self.elasticity)
            and min(self.season) > 0
            and self.customers > 0
            and self.exploration_rate <= 1
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types."""
        content: dict[str, Any] = pack_value(self, PacingPlan, "", {})
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> PacingPlan:
        """Read a plan from JSON types; refuse an invalid plan, and ignore additional keys."""
        try:
            plan: PacingPlan = RecordReader({}).unpack(
                {field.name: content[field.name] for field in fields(cls)}, cls, "", {}
            )
            if not plan.is_valid_plan:
                raise ValueError
        except (TypeError, ValueError, KeyError, OverflowError):
            fail("ledger", Problem("the ledger holds no plan for its price", "begin another ledger"))
        return plan

    def make_first_state(self, terms: LedgerTerms) -> Array:
        """Return the price controller's state at the start of the period, as an array for compiled kernels."""
        from largesse.serve.pacing import pacing_kernels as k

        state = np.zeros(k.OPEN + 2 * len(self.promised) if terms.keeps_promises else k.LASTING_PLACES)
        state[k.FACTOR] = self.factor
        state[k.WEEK : k.WEEK + 7] = self.season
        return state

    def pack_for_kernels(self, terms: LedgerTerms) -> Array:
        """Return the plan as an array for compiled kernels."""
        from largesse.serve.pacing import pacing_kernels as k

        if not terms.keeps_promises and len(self.promised) > 1:
            hint = "plan with the ledger's terms: plan_pace"
            fail("ledger", Problem("the plan is for promises that are kept, and the ledger's are not", hint))
        total, gains = terms.total / MICROS, self.gains
        plan = np.zeros(k.PATH)
        plan[k.PARTS], plan[k.CUSTOMERS] = len(self.promised), max(self.customers, 1.0)
        plan[k.DAYS], plan[k.VALID] = terms.days, terms.promise_days if terms.keeps_promises else 0.0
        plan[k.LASTS], plan[k.PROMISE_DAYS], plan[k.MARGIN] = not terms.keeps_promises, terms.promise_days, gains.margin
        plan[k.FIRST_DAY], plan[k.AT_RANDOM] = find_first_weekday(terms), self.exploration_rate
        plan[k.WINDOW] = max(gains.window * self.customers, 20.0)
        plan[k.GAIN] = 1.0 / min(max(self.elasticity, 0.3), 5.0)
        plan[k.SMOOTH], plan[k.PROPORTIONAL], plan[k.FIXED] = gains.smooth, gains.proportional, gains.window <= 0
        plan[k.ENDING], plan[k.VOLUME], plan[k.VOLUME_PRIOR] = gains.ending, gains.volume, gains.volume_prior
        plan[k.RATIO_PRIOR], plan[k.RATIO_SPAN] = gains.ratio_prior * total, max(gains.ratio_span * total, 1e-9)
        plan[k.SEASON_PRIOR] = gains.season_prior
        rule = np.empty(0) if self.exploration is None else self.exploration.pack_for_pacing()
        plan[k.RULE_LEVELS] = 0 if self.exploration is None else len(self.exploration.incumbent)
        return np.concatenate([plan, self.ahead, self.promised, self.paid, self.priced, rule])


def plan_pace(
    population: Population,
    terms: LedgerTerms,
    customers: float,
    *,
    season: tuple[float, ...] | None = None,
    exploration_rate: float = 0.0,
    exploration: ExplorationRule | None = None,
    gains: ControllerGains = ControllerGains(),  # noqa: B008  frozen
) -> PacingPlan:
    """Plan the shadow price of a budget over a period, from a sample of similar customers.

    Parameters
    ----------
    population
        Some customers, with the expected response and cost of each level.
    terms
        The ledger's.
    customers
        How many are expected in the whole period.
    season
        Weights of the seven days of the week, Monday first; None: equal. They are updated by the customers who come.
    exploration_rate
        Share of customers who get a level at random: `policy.exploration_rate`.
    exploration
        Rule that draws levels instead: `policy.exploration`.
    gains
        The controller's.
    """
    week = _check_plan_arguments(population, terms, customers, season, exploration_rate, exploration)
    forecast = PriceForecast(population, terms, week, customers, exploration_rate, exploration)
    prices = forecast.solve_prices()
    ahead = sum_remaining_prices(prices)
    factor, min_price = 1.0, forecast.find_min_price()
    if ahead[0] < min_price:  # the budget is ample: the price begins at zero, and may have to rise
        factor, ahead = 0.0, np.append(np.full(len(prices), min_price), 0.0)
    promised, paid, priced = forecast.average_costs_by_period_part(ahead, factor)
    low, high = (forecast.average_costs_by_period_part(ahead, max(factor, 0.1) * by)[2].sum() for by in (0.85, 1.15))
    elasticity = math.log(low / high) / math.log(1.15 / 0.85) if min(low, high) > 0 else 1.0
    return PacingPlan(
        factor=forecast.find_price_factor(ahead, float(priced.sum())) if factor else 0.0,
        ahead=tuple(ahead.tolist()),
        promised=tuple(promised.tolist()),
        paid=tuple(paid.tolist()),
        priced=tuple(priced.tolist()),
        customers=float(customers),
        elasticity=elasticity,
        season=week,
        exploration_rate=exploration_rate,
        gains=gains,
        exploration=forecast.rule,
    )


def _check_plan_arguments(
    population: Any, terms: Any, customers: Any, season: Any, exploration_rate: Any, rule: Any
) -> tuple[float, ...]:
    """Validate the arguments of `plan_pace`; return the weekday weights with a mean of 1."""
    if not (isinstance(population, Population) and isinstance(terms, LedgerTerms)):
        problem = f"the population is {repr_short(population)}, and the terms are {repr_short(terms)}"
        fail("pace", Problem(problem, "make them with make_population(policy, customers) and make_terms(total, ends)"))
    problems = []
    if rule is not None and (not isinstance(rule, ExplorationRule) or len(rule.incumbent) != population.face.shape[1]):
        problems.append(Problem(f"the exploration rule is {repr_short(rule)}", "give the policy's: policy.exploration"))
    elif rule is not None and population.variance is None:
        hint = "make the population with the policy that explores: make_population(policy, customers)"
        problem = "the exploration rule needs the variance of responses, and the population has none"
        problems.append(Problem(problem, hint))
    number = number_or_none(customers)
    if number is None or not 1 <= number <= 1e12:
        problems.append(Problem(f"the expected customers are {repr_short(customers)}", "give a number, 1 or more"))
    rate = number_or_none(exploration_rate)
    if rate is None or not 0 <= rate <= 1:
        hint = "give a share of customers from 0 to 1"
        problems.append(Problem(f"exploration_rate is {repr_short(exploration_rate)}", hint))
    week = FLAT_WEEK if season is None else tuple(season) if isinstance(season, Sequence) else ()
    weights = [number_or_none(value) for value in week]
    if len(week) != 7 or any(value is None or not 0 <= value < math.inf for value in weights) or not sum(week):
        hint = "give seven numbers, Monday first, zero or more"
        problems.append(Problem(f"the season is {repr_short(season)}", hint))
    refuse("pace", problems)
    mean = sum(week) / 7
    return tuple(max(float(value) / mean, 1e-3) for value in week)


@final
class Pacer:
    """`LevelChooser` that chooses levels at the controlled shadow price of a ledger's budget.

    Parameters
    ----------
    seed
        For customers who get a level at random; None: from the system.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = np.random.default_rng(seed)
        self._packed: tuple[Any, Array] | None = None
        _compile_kernels()  # a ledger must not wait for the compiler

    def choose(self, standing: LedgerStanding, offers: Offers) -> ChosenLevels:
        """Choose levels for a request's customers, one after the other, whose costs fit into the budget."""
        from largesse.serve.pacing import pacing_kernels as k

        plan, terms, n = self._pack_plan(standing), standing.terms, len(offers)
        state = np.array(standing.state, dtype=np.float64)
        places = k.OPEN + 2 * int(plan[k.PARTS]) if terms.keeps_promises else k.LASTING_PLACES
        if len(state) != places or not k.is_valid_state(state, plan):  # none yet, or an impossible one
            state = PacingPlan.from_dict(standing.plan).make_first_state(terms)
        money = np.array([terms.total, *(getattr(standing, name) for name in LEDGER_AMOUNTS)], dtype=np.int64)
        when = np.empty((n, 2))
        when[:, 0], when[:, 1] = (standing.now - terms.starts) / DAY_MICROS, self._random.random(n)
        out = np.empty((n, 4))
        variance = np.empty((n, 0)) if offers.variance is None else np.ascontiguousarray(offers.variance)
        responses = np.ascontiguousarray(offers.responses, dtype=np.float64)
        costs = (offers.at_once, offers.face, offers.expected)
        if not k.decide_batch(responses, *costs, variance, when, plan, state, money, out):
            hint = "add a level that costs nothing, or raise the total"
            problem = "the budget is spent: not even the cheapest level fits"
            if not standing.in_period:
                hint = "add a level that costs nothing, or begin a ledger for another period"
                period = f"from {format_time(terms.starts)} until {format_time(terms.ends)}"
                problem = f"it is {format_time(standing.now)}, and nothing is spent outside the period {period}"
            raise BudgetError("ledger", [Problem(problem, hint)])
        reserved = standing.reserved
        if not terms.keeps_promises and standing.in_period:
            reserved = math.ceil(
                k.compute_reserved_amount(k.measure_cost_ratio(plan, state, money), plan, state) * MICROS
            )
        levels, reasons = out[:, 0].astype(np.int64), out[:, 3].astype(np.int64)
        return ChosenLevels(levels, out[:, 1], out[:, 2], reasons, tuple(state.tolist()), reserved)

    def _pack_plan(self, standing: LedgerStanding) -> Array:
        if self._packed is None or self._packed[0] != (standing.plan, standing.terms):
            plan = PacingPlan.from_dict(standing.plan).pack_for_kernels(standing.terms)
            self._packed = ((standing.plan, standing.terms), plan)
        return self._packed[1]


@cache
def _compile_kernels() -> None:
    """Compile the kernels, once per process, by a decision for zero customers."""
    from largesse.serve.pacing import pacing_kernels as k

    floats, integers = np.empty((0, 2)), np.empty((0, 2), dtype=np.int64)
    plan, state, money = (
        np.ones(k.PATH + 5),
        np.ones(k.LASTING_PLACES),
        np.zeros(1 + len(LEDGER_AMOUNTS), dtype=np.int64),
    )
    k.is_valid_state(state, plan)
    k.decide_batch(floats, integers, integers, integers, floats, floats, plan, state, money, np.empty((0, 4)))
    k.compute_reserved_amount(k.measure_cost_ratio(plan, state, money), plan, state)
