"""What levels cost at once and on redemption, for a ledger: in whole millionths, never below what may really be paid."""

from __future__ import annotations

import numpy as np

from largesse.errors import Problem, fail, refuse
from largesse.pacing import Offers, count_micros
from largesse.policy import Policy
from largesse.records import Array


def bound_problems(policy: Policy) -> list[Problem]:
    """Return why a ledger cannot promise to keep its budget with these levels."""
    hint = "list what levels cost at most under [levels] costs; or serve without a ledger"
    if policy.levels.observed:
        return [Problem("costs are observed: nothing says what a level costs at most", hint)]
    if policy.levels.on_redemption and not policy.model.binary_:
        return [Problem("costs are paid in proportion to an amount that nothing bounds", hint)]
    return []


def make_offers(policy: Policy, customers: tuple[str, ...], responses: Array, own: Array | None = None) -> Offers:
    """Return what a ledger may give customers with expected responses (n, K), and their own costs (n, K), if they have any."""
    refuse("ledger", bound_problems(policy))
    levels, shape = policy.levels, responses.shape
    face = levels.common_costs if own is None else own
    if face is None:
        hint = "serve without a ledger, or list costs that are the same for everybody"
        fail("ledger", Problem("costs are per customer, but none are given", hint))
    whole = np.ascontiguousarray(np.broadcast_to(count_micros(face), shape))
    contact = np.zeros(shape, dtype=np.int64)
    contact[:, 1:] = count_micros(np.array([levels.contact_cost]))[0]
    nothing = np.zeros(shape, dtype=np.int64)
    if not levels.on_redemption:
        return Offers(customers, responses, whole + contact, nothing, nothing)
    share = np.clip(responses * policy.scale, 0.0, 1.0)
    return Offers(customers, responses, contact, whole, np.minimum(np.rint(whole * share).astype(np.int64), whole))
