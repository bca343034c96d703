"""Customers as a price sees them: what each level is expected to bring, and what it costs now and on redemption."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array
from largesse.serve.ledger.money import MICROS, count_micros


@dataclass(frozen=True, eq=False)
class Population:
    """Customers like those who will come: expected responses (m, K), and costs (m, K) in millionths of a unit."""

    responses: Array  # float64
    at_once: Array  # int64
    face: Array  # int64, paid on redemption
    expected: Array  # int64, of the face
    variance: Array | None = None  # float64 (m, K) of a response, where levels are drawn for a purpose

    def __len__(self) -> int:
        return len(self.responses)

    @property
    def on_redemption(self) -> bool:
        """Whether anything is paid later."""
        return bool((self.face > 0).any())

    @property
    def early(self) -> Array:
        """Expected costs (m, K) in units, where what is not redeemed is released within the period."""
        return (self.at_once + self.expected) / MICROS

    @property
    def late(self) -> Array:
        """Costs (m, K) in units of promises that outlast the period: they count in full."""
        return (self.at_once + self.face) / MICROS

    def take(self, rows: Array) -> Population:
        """Return some of the customers, each perhaps several times."""
        varies = None if self.variance is None else self.variance[rows]
        return Population(self.responses[rows], self.at_once[rows], self.face[rows], self.expected[rows], varies)

    @property
    def parts(self) -> tuple[Array, ...]:
        """The arrays (m, K) as compiled steps read them; without a variance, the last has no columns."""
        varies = np.empty((len(self), 0)) if self.variance is None else self.variance
        return self.responses, self.at_once, self.face, self.expected, varies


def known_costs(responses: Array, costs: Array) -> Population:
    """Return customers whose costs (K,) or (m, K) are paid when a level is given."""
    at_once = np.ascontiguousarray(np.broadcast_to(count_micros(costs), responses.shape))
    nothing = np.zeros(responses.shape, dtype=np.int64)
    return Population(np.asarray(responses, dtype=np.float64), at_once, nothing, nothing)


def redeemed_costs(responses: Array, face: Array, redeemed: Array, contact: float = 0.0) -> Population:
    """Return customers whose costs are paid on redemption: `redeemed` (m, K) is the expected share of the face."""
    faces = np.ascontiguousarray(np.broadcast_to(count_micros(face), responses.shape))
    share = np.clip(redeemed, 0.0, 1.0)
    at_once = np.zeros(responses.shape, dtype=np.int64)
    at_once[:, 1:] = count_micros(np.array([contact]))[0]
    expected = np.minimum(np.rint(faces * share).astype(np.int64), faces)
    return Population(np.asarray(responses, dtype=np.float64), at_once, faces, expected)
