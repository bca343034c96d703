"""What tests of ledgers share: offers, and a chooser that takes the dearest level that fits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from largesse.serve import ChosenLevels, LedgerStanding, LedgerTerms, Offers, Reason, make_terms, open_ledger

START = 1_800_000_000_000_000  # microseconds since 1970
DAY = 86_400_000_000


def fixed_terms(
    total: Any = 100,
    *,
    days: float = 30,
    valid_days: float | None = 7,
    late: str = "refuse",
    promises: str = "kept",
) -> LedgerTerms:
    terms = make_terms(total, "2999-12-31", starts="2027-01-01", valid_days=valid_days, late=late, promises=promises)
    return replace(terms, starts=START, ends=START + int(days * DAY))


def make_offers(
    customers: Sequence[str], face: Sequence[float] = (0, 5, 10), at_once: Sequence[float] = (0, 0, 0)
) -> Offers:
    """Every customer may get every level; half of what is promised is expected to be redeemed."""
    shape = (len(customers), len(face))
    promised, paid = (
        np.broadcast_to((np.array(part) * 1e6).astype(np.int64), shape).copy() for part in (face, at_once)
    )
    responses = np.broadcast_to(np.linspace(0.1, 0.5, len(face)), shape).copy()
    return Offers(tuple(customers), responses, paid, promised, promised // 2)


class Dearest:
    """Gives each customer the dearest level that fits; counts how often it was asked in its state.

    A promise counts with its face value, or with what it is expected to cost if it holds while the budget lasts.
    """

    def choose(self, standing: LedgerStanding, offers: Offers) -> ChosenLevels:
        room, levels, reasons = standing.room if standing.in_period else 0, [], []
        kept, reserved = standing.terms.keeps_promises, standing.held
        costs = offers.at_once + (offers.face if kept else offers.expected)
        for row in costs:
            fits = [k for k, cost in enumerate(row) if cost <= room]
            levels.append(fits[-1])
            room -= int(row[fits[-1]])
            reasons.append(Reason.PRICE if fits[-1] == len(row) - 1 else Reason.BUDGET)
        n = len(levels)
        reserved += int(offers.expected[np.arange(n), levels].sum())
        asked = (standing.state[0] if standing.state else 0.0) + 1
        return ChosenLevels(
            np.array(levels), np.ones(n), np.full(n, 0.25), np.array(reasons), (asked,), 0 if kept else reserved
        )


def respond(address: str, seed: int = 0) -> pa.Table:
    """Return responses to a ledger's decisions, drawn as the model expects them."""
    with open_ledger(address) as ledger:
        rows = list(ledger.decisions())
    came = np.random.default_rng(seed).random(len(rows)) < [row[4] for row in rows]
    return pa.table({"request": [row[0] for row in rows], "id": [row[1] for row in rows], "bought": came.astype(int)})
