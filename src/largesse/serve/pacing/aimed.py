"""Exploring for a purpose while the price moves: the policy's rule, as a ledger keeps it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.allocation import AIMS, AimedMixture, pack_shared
from largesse.records import Array

MOST = 1e100  # of any number: squares stay finite
WORDS = ("value_price", "least", "floor")


@dataclass(frozen=True)
class PacedAim:
    """How levels are drawn around the price of the moment: as by the policy's rule, whatever the price.

    What a level gives up is what it is worth less than the best one, at the price of the moment. The plans at other budgets that
    the log is asked about have prices beside it in the same proportion as beside the policy's.
    """

    for_: str  # "evaluation" or "learning"
    value_price: float  # of expected response that is given up
    near: tuple[float, ...]  # (2,) other prices, as multiples of the price
    incumbent: tuple[float, ...]  # (K,) probabilities of the mix that the plan is compared with
    least: float  # probability of any level
    floor: float  # variances below it are not believed

    @property
    def is_sound(self) -> bool:
        """Whether probabilities follow from the numbers."""
        numbers = (self.value_price, *self.near, self.floor)
        return (
            self.for_ in AIMS
            and len(self.near) == 2
            and all(0 <= value <= MOST for value in numbers)
            and self.floor > 0
            and all(0 <= share <= 1 for share in self.incumbent)
            and 0 <= self.least * len(self.incumbent) <= 1
        )

    def pack(self) -> Array:
        """Return the rule as the compiled steps read it."""
        shared = pack_shared(self.for_, self.least, self.floor, self.incumbent)
        return np.concatenate([[self.value_price, *self.near], shared])


def pace_aim(rule: AimedMixture) -> PacedAim:
    """Return the rule of a policy for a price that moves; where the policy's price is nothing, its neighbours are alike."""
    price = rule.plan.price
    near = tuple(one.price / price if price > 0 else 1.0 for one in rule.near)
    return PacedAim(rule.for_, rule.value_price, near, rule.incumbent, rule.least, rule.floor)


def read_aim(content: dict[str, Any]) -> PacedAim | None:
    """Return how the plan that a ledger holds explores; ValueError or the like where that cannot be."""
    given = content.get("aimed")
    if given is None:  # or the plan is of an earlier version
        return None
    lists: Any = {word: tuple(map(float, given[word])) for word in ("near", "incumbent")}
    numbers: Any = {word: float(given[word]) for word in WORDS}
    found = PacedAim(for_=given["for_"], **lists, **numbers)
    if not found.is_sound or not math.isfinite(sum(found.incumbent)):
        raise ValueError
    return found
