"""Exploring for a purpose, as a rule: the probabilities of a plan's levels, for customers who are not in it.

Under a budget alone, the probabilities that make the next log tell most depend on each customer by themselves:

    p_k = max(least, s_k / √(a + h_k)),   h_k = −β f_k + λ c_k,   s_k² = weight_k · variance_k,   a such that Σ_k p_k = 1.

β and λ are the prices of value and of cost that the design of the plan's next log found. The weight says which levels the log
is asked about: that of the plan at its price, those of plans at other prices, and those of the mix that it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation.explore import Mixture, find_mixture
from largesse.allocation.next_log import AIMS, ALIKE, Aim, Design, find_spread
from largesse.allocation.neyman.weights import weigh_levels
from largesse.errors import as_number
from largesse.records import Array, Plan

MOST = 1e100  # of a price or a variance: sums and squares stay finite
LEAST = 1e-300  # of a variance


@dataclass(frozen=True)
class AimedMixture:
    """The rule by which levels are drawn around a plan, so that the log tells most about it for what that costs."""

    for_: str  # "evaluation" or "learning"
    rate: float  # it gives up as much as levels at random for this share of customers
    plan: Mixture  # that is explored around
    near: tuple[Mixture, ...]  # plans at other budgets, which the log is asked about, too
    incumbent: tuple[float, ...]  # (K,) probabilities of the mix that the plan is compared with
    value_price: float  # β
    cost_price: float  # λ
    floor: float  # variances below it are not believed

    @property
    def least(self) -> float:
        """The least probability of any level."""
        return ALIKE * self.rate / len(self.incumbent)

    @property
    def is_sound(self) -> bool:
        """Whether all numbers are such that probabilities follow from them."""
        prices = (self.value_price, self.cost_price, *(one.price for one in (self.plan, *self.near)))
        shares = (self.rate, *self.incumbent, *(one.share for one in (self.plan, *self.near)))
        return (
            self.for_ in AIMS
            and len(self.near) == 2
            and all(0 <= price <= MOST for price in prices)
            and all(0 <= share <= 1 for share in shares)
            and LEAST <= self.floor <= MOST
            and math.isclose(sum(self.incumbent), 1.0, rel_tol=1e-6)
            and not any(one.explore for one in (self.plan, *self.near))
        )

    def probabilities(self, curves: Array, costs: Array, variance: Array) -> Array:
        """Return the probability (n, K) of each level, for curves (n, K), costs (K,) or (n, K) and variances (n, K)."""
        from largesse.allocation.neyman.kernels import spread_rows

        spread = self.spread(curves, costs, variance)
        terms = np.empty((2, *spread.shape))
        terms[0], terms[1] = -curves, costs
        prices, least = np.array([self.value_price, self.cost_price]), np.full(spread.shape, self.least)
        out = np.empty(spread.shape)
        spread_rows(spread, terms, prices, least, out)
        return out

    def spread(self, curves: Array, costs: Array, variance: Array) -> Array:
        """Return s (n, K): standard deviations, times the root of what each level counts."""
        known = np.maximum(np.ascontiguousarray(variance, dtype=np.float64), self.floor)
        if self.for_ == "learning":
            return np.sqrt(known)
        planned, *near = (one.probabilities(curves, costs) for one in (self.plan, *self.near))
        return np.ascontiguousarray(np.sqrt(weigh_levels(planned, np.array(self.incumbent), near) * known))

    def as_dict(self) -> dict[str, Any]:
        """Return the rule as JSON writes it."""
        plans = {"plan": _write(self.plan), "near": [_write(one) for one in self.near]}
        words = ("for_", "rate", "incumbent", "value_price", "cost_price", "floor")
        return {word.rstrip("_"): getattr(self, word) for word in words} | plans

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> AimedMixture:
        """Return the rule that JSON wrote; ValueError if it is none."""
        numbers = {word: _number(content[word]) for word in ("rate", "value_price", "cost_price", "floor")}
        found = cls(
            for_=str(content["for"]),
            plan=_read(content["plan"]),
            near=tuple(_read(one) for one in content["near"]),
            incumbent=tuple(_number(one) for one in content["incumbent"]),
            **numbers,
        )
        if not found.is_sound:
            raise ValueError("the rule of exploring holds numbers that are none of a rule")
        return found


def find_aimed(aim: Aim, design: Design, rate: float, for_: str) -> AimedMixture | None:
    """Return the rule that gives customers like the plan's the probabilities of a design.

    None where there is none: limits besides the budget are about all customers together, and a plan that is compared with
    something else for each customer cannot say what others are compared with.
    """
    mix = aim.incumbent[0]
    if aim.limits or not aim.allowed.all() or not (aim.incumbent == mix).all():
        return None
    rule = AimedMixture(
        for_=for_,
        rate=float(rate),
        plan=_mix(aim, aim.plan),
        near=tuple(_mix(aim, plan) for plan in aim.near),
        incumbent=tuple(mix.tolist()),
        value_price=0.0,
        cost_price=0.0,
        floor=aim.floor,
    )
    # Ties are split for each customer of the plan, but on average in the rule: its prices may be a little different.
    spread = rule.spread(aim.curves, aim.costs, aim.variance)
    found = find_spread(spread, design.bounds, np.full(spread.shape, rule.least), design.prices)
    value_price, cost_price = found.prices.tolist()
    return replace(rule, value_price=value_price, cost_price=cost_price)


def _mix(aim: Aim, plan: Plan) -> Mixture:
    """Return the rule that a plan stands for: its price, and how it splits ties."""
    return find_mixture(aim.curves, aim.costs, plan.price, plan.spend)


def pack_shared(for_: str, least: float, floor: float, incumbent: tuple[float, ...]) -> Array:
    """Return what all customers share, as the step of `load_spread` reads it."""
    return np.array([for_ == "learning", least, floor, *incumbent], dtype=np.float64)


def load_spread() -> Callable[..., None]:
    """Return the compiled step that writes one customer's probabilities; it brings numba with it."""
    from largesse.allocation.neyman.kernels import spread_row

    return spread_row


def _write(mixture: Mixture) -> list[float]:
    return [mixture.price, mixture.share]


def _read(content: Any) -> Mixture:
    price, share = content
    return Mixture(_number(price), _number(share))


def _number(given: Any) -> float:
    number = as_number(given)
    if number is None or not math.isfinite(number):
        raise ValueError(f"the rule of exploring holds {given!r}")
    return number
