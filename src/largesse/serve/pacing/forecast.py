"""Customers as a plan over time foresees them: the prices at which they keep to the budget, and what they cost on average."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from largesse.exploration import ExplorationRule
from largesse.records import Array
from largesse.serve.ledger.money import MICROS
from largesse.serve.ledger.terms import DAY, Terms
from largesse.serve.pacing.customers import Population
from largesse.serve.pacing.dual import place, solve_dual

FORESEEN = 20_000  # customers that a plan is made for, each perhaps several times
SPLIT = 0.15  # of a response: how much ties are split by
PER_PROMISE, LEAST_PARTS, MOST_PARTS = 4, 12, 72  # parts of the period
STEPS = 2  # in which prices allow for what is drawn for a purpose
DEAREST, HALVINGS = 1e6, 14  # how much dearer it may get to give something up for a purpose, and how that is found


@dataclass(frozen=True)
class Draws:
    """Draws of levels: at random for a share of customers, or by a rule."""

    rate: float = 0.0  # of exploration at random
    rule: ExplorationRule | None = None
    value_price: float = 0.0  # of the policy's rule; that of `rule` may be higher


def first_weekday(terms: Terms) -> int:
    """Return the weekday on which a period begins: Monday is 0."""
    return (terms.starts // DAY + 3) % 7  # the first of January 1970 was a Thursday


class Forecast:
    """Customers as they are foreseen to come: those who are known, spread over the period by the season."""

    def __init__(self, population: Population, terms: Terms, week: tuple[float, ...], many: float, how: Draws) -> None:
        self.parts = _count_parts(terms) if population.on_redemption and terms.kept else 1
        valid = terms.stands if terms.kept else 0.0  # nothing is reserved: a promise costs what it is expected to
        rng = np.random.default_rng(0)
        rows = rng.permutation(max(len(population), FORESEEN)) % len(population)
        # Where many customers tie, a price gives all of them the dearer level or none; a little noise splits them.
        drawn = population.take(rows)
        noise = np.exp(SPLIT * rng.standard_normal((len(rows), 1)))
        self._people, self.how = replace(drawn, responses=drawn.responses * noise), how
        self._plain = drawn.responses
        self._when = place(_place(len(rows), terms, week), valid, terms.days, self.parts)
        self._total = terms.total / MICROS * len(rows) / many
        shape = self._people.face.shape
        self._share = np.divide(
            self._people.expected, self._people.face, out=np.zeros(shape), where=self._people.face > 0
        )

    def solve(self) -> Array:
        """Return the prices (J,) at which these customers keep to the budget."""
        late = (self._when[:, 1] == self.parts)[:, None]
        costs, random = np.where(late, self._people.late, self._people.early), self.how.rate
        drawn = random * float(costs.mean(axis=1).sum())
        total = max(self._total - drawn, 1e-6 * self._total) / max(1.0 - random, 1e-6)
        found = solve_dual(self._people, self._share, self._when, self.parts, total)
        rows = np.arange(len(costs))
        for _ in range(STEPS if self.how.rule is not None else 0):
            self._restrain(add_up(found.prices))
            given = self._spread(add_up(found.prices), 1.0, self._people.responses)
            # What drawing costs beyond the best levels is part of the budget.
            more = float((given * costs).sum() - costs[rows, found.levels].sum())
            total = max(self._total - more, 1e-6 * self._total)
            found = solve_dual(self._people, self._share, self._when, self.parts, total)
        return found.prices

    def least_price(self) -> float:
        """Return a price that is small beside what levels are worth."""
        people = self._people
        gain = float((people.responses.max(axis=1) - people.responses[:, 0]).mean())
        return max(0.01 * gain / max(float(people.early.max(axis=1).mean()), 1e-9), 1e-300)

    def find_factor(self, ahead: Array, cost: float) -> float:
        """Return the factor of prices at which customers, as they are, cost as much as the plan says."""
        low, high = 0.0, 4.0
        for _ in range(30):
            middle = (low + high) / 2
            within = float(self.means(ahead, middle, plain=True)[2].sum()) <= cost
            low, high = (low, middle) if within else (middle, high)
        return high

    def means(self, ahead: Array, factor: float, *, plain: bool = False) -> tuple[Array, Array, Array]:
        """Return what customers of each part are promised, what is paid of it, and what that costs at prices, (J,) each."""
        when, responses = self._when, self._plain if plain else self._people.responses
        late, early = self._expect(ahead, factor, responses)
        after = ahead[when[:, 1]]
        priced = (ahead[when[:, 0]] - after) * late + after * early
        count = np.maximum(np.bincount(when[:, 0], minlength=self.parts), 1)
        promised, paid, cost = (np.bincount(when[:, 0], part, self.parts) / count for part in (late, early, priced))
        return promised, paid, cost

    def _expect(self, ahead: Array, factor: float, responses: Array) -> tuple[Array, Array]:
        """Return what each customer is promised and what is paid of it, (n,) each, on average over what is drawn."""
        from largesse.serve.pacing.kernels import lagrangian

        people, rows, random = self._people, np.arange(len(responses)), self.how.rate
        if self.how.rule is not None:
            given = self._spread(ahead, factor, responses)
            return (given * people.late).sum(axis=1), (given * people.early).sum(axis=1)
        levels, used = np.zeros(len(rows), dtype=np.int64), np.zeros(self.parts + 1)
        prices = ahead * factor
        lagrangian(responses, people.at_once, people.face, self._share, self._when, prices, used, levels)
        late, early = (
            (1 - random) * part[rows, levels] + random * part.mean(axis=1) for part in (people.late, people.early)
        )
        return late, early

    def _restrain(self, ahead: Array) -> None:
        """Let drawing give up no more expected response per customer at these prices than at the policy's own.

        Promises that are kept make budget dear: without this, exploring would give up a large part of a small gain.
        """
        aim = self.how.rule
        assert aim is not None
        own = np.column_stack([np.zeros(len(self._when)), np.full(len(self._when), aim.plan.price)])
        now, low, high = self._price(ahead), 0.0, math.log(DEAREST)
        most = self._lose(own, replace(aim, value_price=self.how.value_price))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            tried = replace(aim, value_price=self.how.value_price * math.exp(middle))
            low, high = (low, middle) if self._lose(now, tried) <= most else (middle, high)
        self.how = replace(self.how, rule=replace(aim, value_price=self.how.value_price * math.exp(high)))

    def _lose(self, prices: Array, aim: ExplorationRule) -> float:
        """Return what drawing gives up per customer at prices (n, 2), in expected response."""
        people = self._people
        worth = people.responses - prices[:, :1] * people.late - prices[:, 1:] * people.early
        given = self._draw(prices, 1.0, people.responses, aim)
        return float((worth.max(axis=1) - (given * worth).sum(axis=1)).mean())

    def _price(self, ahead: Array) -> Array:
        """Return at which prices (n, 2) costs count: those of promises that outlast the period, and expected ones."""
        after = ahead[self._when[:, 1]]
        return np.column_stack([ahead[self._when[:, 0]] - after, after])

    def _spread(self, ahead: Array, factor: float, responses: Array) -> Array:
        """Return the probabilities (n, K) with which customers get levels, drawn for a purpose at a factor of prices."""
        assert self.how.rule is not None
        return self._draw(self._price(ahead), factor, responses, self.how.rule)

    def _draw(self, prices: Array, factor: float, responses: Array, aim: ExplorationRule) -> Array:
        from largesse.serve.pacing.kernels import spread_people

        people, out = self._people, np.empty(responses.shape)
        assert people.variance is not None
        spread_people(
            float(factor), responses, people.late, people.early, prices, people.variance, aim.pack_for_pacing(), out
        )
        return out


def _place(many: int, terms: Terms, week: tuple[float, ...]) -> Array:
    """Return times (many,) in days since the start, rising, as the season has them."""
    edges = np.minimum(np.arange(math.ceil(terms.days) + 1), terms.days)
    busy = np.diff(edges) * np.array(week)[(np.arange(len(edges) - 1) + first_weekday(terms)) % 7]
    whole = np.concatenate([[0.0], np.cumsum(busy)])
    return np.interp((np.arange(many) + 0.5) / many * whole[-1], whole, edges)


def _count_parts(terms: Terms) -> int:
    """Return into how many parts a period is cut: a promise stands for a few of them."""
    return int(min(max(math.ceil(PER_PROMISE * terms.days / terms.stands), LEAST_PARTS), MOST_PARTS))


def add_up(prices: Array) -> Array:
    """Return the sum of the prices (J + 1,) from each part on; 0 at the end."""
    return np.append(np.cumsum(prices[::-1])[::-1], 0.0)
