"""Customer populations for pacing: expected responses, costs and redemptions of every level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from largesse.errors import Problem, fail, number_or_none, repr_short
from largesse.policy import Policy
from largesse.records import Array
from largesse.serve.ledger.amounts_and_times import MICROS, convert_to_micros
from largesse.serve.ledger.ledger_records import Offers


@dataclass(frozen=True, eq=False)
class Population:
    """Sample of customers: expected responses (m, K), and costs (m, K) of the levels in millionths."""

    responses: Array  # float64
    at_once: Array  # int64
    face: Array  # int64, paid on redemption
    expected: Array  # int64, of the face
    variance: Array | None = None  # float64 (m, K) of a response, where levels are drawn by a rule

    def __len__(self) -> int:
        return len(self.responses)

    @property
    def on_redemption(self) -> bool:
        """True if any cost is paid on redemption of a promise."""
        return bool((self.face > 0).any())

    @property
    def expected_costs(self) -> Array:
        """Expected costs (m, K) of the levels in units of money."""
        return (self.at_once + self.expected) / MICROS

    @property
    def full_costs(self) -> Array:
        """Costs (m, K) of the levels in units of money, with promises at their face values."""
        return (self.at_once + self.face) / MICROS

    @property
    def redeemed_share(self) -> Array:
        """Expected share (m, K) of face values that customers redeem; 0 for levels without a promise."""
        return np.divide(self.expected, self.face, out=np.zeros(self.face.shape), where=self.face > 0)

    @property
    def kernel_arrays(self) -> tuple[Array, ...]:
        """Responses, costs and variances (m, K) as arrays for compiled kernels.

        Without a variance, the last array has no columns.
        """
        variance = np.empty((len(self), 0)) if self.variance is None else self.variance
        return self.responses, self.at_once, self.face, self.expected, variance

    def take(self, rows: Array) -> Population:
        """Return the customers at given row indices, which may repeat."""
        variance = None if self.variance is None else self.variance[rows]
        return Population(self.responses[rows], self.at_once[rows], self.face[rows], self.expected[rows], variance)


def make_prepaid_population(responses: Array, costs: Array) -> Population:
    """Make a population whose costs (K,) or (m, K) are paid when a level is given."""
    at_once = np.ascontiguousarray(np.broadcast_to(convert_to_micros(costs), responses.shape))
    nothing = np.zeros(responses.shape, dtype=np.int64)
    return Population(np.asarray(responses, dtype=np.float64), at_once, nothing, nothing)


def make_redeemed_population(responses: Array, face: Array, redeemed: Array) -> Population:
    """Make a population whose costs are paid on redemption, with the redeemed shares (m, K)."""
    faces = np.ascontiguousarray(np.broadcast_to(convert_to_micros(face), responses.shape))
    expected = np.minimum(np.rint(faces * np.clip(redeemed, 0.0, 1.0)).astype(np.int64), faces)
    return Population(np.asarray(responses, dtype=np.float64), np.zeros_like(faces), faces, expected)


def make_offers(
    policy: Policy, customers: Any, ids: Sequence[str], *, max_costs: Sequence[float] | None = None
) -> Offers:
    """Make the offers of a policy's levels to customers, as input for `Ledger.decide`.

    Parameters
    ----------
    policy, customers
        The policy, and customers as `policy.decide` takes them.
    ids
        The customers' ids in the ledger, (n,).
    max_costs
        The maximum cost of each level, (K,): required if costs are observed, or are paid on redemption for each unit of an
        amount.
    """
    if not isinstance(ids, Sequence) or isinstance(ids, str | bytes):  # type: ignore[redundant-expr]
        fail("request", Problem(f"the ids are {repr_short(ids)}", "give a list with the name of each customer"))
    population = make_population(policy, customers, max_costs=max_costs)
    return Offers(
        tuple(ids), population.responses, population.at_once, population.face, population.expected, population.variance
    )


def make_population(policy: Policy, customers: Any, *, max_costs: Sequence[float] | None = None) -> Population:
    """Make a population from customers, with a policy's expected responses and costs."""
    if not isinstance(policy, Policy):
        fail("ledger", Problem(f"the policy is {repr_short(policy)}", "load one: Policy.load(path)"))
    expected, levels = policy.expect(customers), policy.levels
    variance = None if policy.exploration is None else policy.exploration.variance.at(expected.responses)
    n, K = expected.responses.shape
    if levels.certain:
        at_once = _convert_costs(expected.costs)
        nothing = np.zeros_like(at_once)
        return Population(expected.responses, at_once, nothing, nothing, variance)
    at_once = np.zeros((n, K), dtype=np.int64)
    if levels.contact_cost:
        at_once[:, 1:] = convert_to_micros(np.array([levels.contact_cost]))[0]
    if max_costs is not None:
        numbers = [number_or_none(value) for value in max_costs] if isinstance(max_costs, Sequence | np.ndarray) else []  # type: ignore[redundant-expr]
        if len(numbers) != len(levels) or any(value is None or value < 0 for value in numbers):
            hint = f"give one number for each of the {len(levels)} levels, zero or more, the cheapest first"
            fail("ledger", Problem(f"the maximum costs of the levels are {repr_short(max_costs)}", hint))
        face = _convert_costs(np.broadcast_to(np.array(numbers, dtype=np.float64), (n, K)))
    elif levels.on_redemption and getattr(policy.model, "binary_", False) and expected.listed is not None:
        face = _convert_costs(expected.listed)
    else:
        kind = "are observed" if levels.observed else "are paid for each unit of an amount"
        problem = f"costs {kind}: the maximum cost of a level is unknown"
        fail(
            "ledger", Problem(problem, f"give it for each of the {len(levels)} levels, cheapest first: --most 0,20,50")
        )
    later = np.rint((expected.costs - at_once / MICROS) * MICROS)
    return Population(
        expected.responses, at_once, face, np.minimum(np.maximum(later, 0), face).astype(np.int64), variance
    )


def _convert_costs(costs: Array) -> Array:
    """Convert costs (n, K) to millionths; costs that all customers share are converted once."""
    if len(costs) == 1 or (len(costs) and costs.strides[0] == 0):
        return np.repeat(_convert_cost_row(tuple(costs[0].tolist())), len(costs), axis=0)
    return convert_to_micros(costs)


@lru_cache(maxsize=16)
def _convert_cost_row(costs: tuple[float, ...]) -> Array:
    """Convert one row of costs to millionths (1, K); the result is cached."""
    return convert_to_micros(np.array([costs]))
