"""A policy that explores for a purpose: the rule that draws levels for customers not seen yet, and how it is kept in a file."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from largesse.allocation import AimedMixture
from largesse.errors import as_number
from largesse.evaluation import Noise
from largesse.records import Array


@dataclass(frozen=True)
class Aimed:
    """How levels are drawn around a price so that the next log tells most for what that costs: found by `Policy.calibrate`."""

    rule: AimedMixture
    noise: Noise  # how much responses vary

    def probabilities(self, curves: Array, costs: Array) -> Array:
        """Return the probability (n, K) of each level, for curves (n, K) and costs (K,) or (n, K)."""
        return self.rule.probabilities(curves, costs, self.noise.of(curves))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON writes it."""
        return {"rule": self.rule.as_dict(), "noise": asdict(self.noise)}


def read_aimed(content: Any) -> Aimed | None:
    """Return how the policy of a file explores; ValueError if it cannot be."""
    if content is None:
        return None
    noise = {word: tuple(map(_read_finite, content["noise"][word])) for word in ("expected", "variance")}
    found = Aimed(AimedMixture.from_dict(content["rule"]), Noise(**noise))
    rising = np.diff(found.noise.expected) >= 0
    if (
        len(found.noise.expected) != len(found.noise.variance)
        or not rising.all()
        or min(noise["variance"], default=0) < 0
    ):
        raise ValueError("the variance of responses is none")
    return found


def _read_finite(given: Any) -> float:
    number = as_number(given)
    if number is None or not math.isfinite(number):
        raise ValueError(f"the variance of responses holds {given!r}")
    return number
