"""Decisions and money of a service in plain Python: the policy's own answers, and sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class ServiceModel:
    """All that a service has answered, and the money that its answers add up to."""

    policy: Any
    features: tuple[str, ...]
    share: float  # of customers who get a level at random
    total: int | None  # millionths; None: without a ledger
    kept: bool  # whether face values are kept back
    answers: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)  # by request: asked, said
    promises: dict[tuple[str, str], tuple[int, int | None]] = field(default_factory=dict)  # face, paid
    spent: int = 0

    @property
    def promised(self) -> int:
        return sum(face for face, paid in self.promises.values() if paid is None)


def settle(model: ServiceModel, asked: Any, said: dict[str, Any]) -> None:
    """Check a redemption that was accepted, and count it."""
    key = (str(asked["request_id"]), str(asked["customer"]))
    assert model.total is not None
    assert key in model.promises, f"{asked} was redeemed, but nothing was promised"
    face, before = model.promises[key]
    paid, amount = round(said["paid"] * 1e6), asked.get("amount")
    assert not isinstance(amount, bool)
    assert amount is None or isinstance(amount, int | float) or str(amount).strip().replace(".", "", 1).isascii()
    assert paid == (face if amount is None else to_micros(amount)), f"{asked} pays {paid}"
    assert 0 <= paid <= face, f"{asked} pays {paid} of {face}"
    assert face > 0
    assert (before is not None) == said["repeated"], f"{asked} is redeemed twice: {before}, {said}"
    assert before in (None, paid), f"{asked} is redeemed twice: {before}, {said}"
    if before is None:
        model.promises[key] = (face, paid)
        model.spent += paid


def to_micros(amount: Any) -> int:
    """Return an amount in millionths: finer parts are rounded up, but those of a float that are below a billionth are noise."""
    exact = Decimal(str(amount))
    return math.ceil((round(exact, 9) if isinstance(amount, float | np.floating) else exact) * 10**6)


def compare_standing(model: ServiceModel, said: dict[str, Any]) -> None:
    """Compare a standing with what was answered."""
    assert model.total is not None
    wanted = {"total": model.total, "spent": model.spent, "promised": model.promised}
    wanted["room"] = model.total - model.spent - model.promised
    if not model.kept and model.promised:  # what is kept back is an estimate, within these
        assert 0 <= said["room"] <= said["total"] - said["spent"] + 1e-9 * said["total"], str(said)
        wanted["room"] = round(said["room"] * 1e6)
    for word, value in wanted.items():
        tolerance = 1e-9 * max(1.0, abs(said[word]))
        assert abs(said[word] - value / 1e6) <= tolerance, (
            f"{word} is {said[word]}, but answers add up to {value / 1e6}"
        )
    assert wanted["room"] >= 0, str(said)


def as_float(value: Any) -> Any:
    """Return a number as a table holds it: whole ones beyond 64 bits are floats."""
    return float(value) if type(value) is int and abs(value) >= 2**63 else value


def check_decisions(model: ServiceModel, rows: list[dict[str, Any]], said: dict[str, Any]) -> None:
    """Compare decisions with the policy's expectations of the same rows as a table; count what they cost."""
    import pyarrow as pa

    policy, made = model.policy, said["decisions"]
    columns = {name: pa.array([as_float(row[name]) for row in rows]) for name in model.features}
    if pa.types.is_string(columns["since"].type):  # JSON has no dates: a service reads them as a CSV file has them
        columns["since"] = columns["since"].cast(pa.timestamp("us"))
    table = pa.table(columns)
    expected = policy.expect(table)
    for at, one in enumerate(made):
        level = one["level_number"]
        assert policy.levels.labels[level] == one["level"]
        assert 0 < one["propensity"] <= 1 + 1e-12, f"customer {at}: {one}"
        near = (expected.responses[at, level], expected.costs[at, level])
        np.testing.assert_allclose((one["expected_response"], one["expected_cost"]), near, rtol=1e-9, atol=2e-6)
    if model.total is None:
        likely = policy.probabilities(table)
        told = np.array([likely[at, one["level_number"]] for at, one in enumerate(made)])
        np.testing.assert_allclose(told, [one["propensity"] for one in made], rtol=1e-9, atol=1e-12)
    else:
        count(model, said, expected)


def count(model: ServiceModel, said: dict[str, Any], expected: Any) -> None:
    """Add decisions to the model's money: none may exceed the room; the level is the best one at the price that fits."""
    levels = model.policy.levels
    assert model.total is not None
    micros = np.ceil(np.round(expected.costs * 1e6, 3)).astype(np.int64)
    faces = np.zeros_like(micros)
    if not levels.certain:
        contact = np.array([0, *[round(levels.contact_cost * 1e6)] * (len(levels) - 1)])
        micros = np.broadcast_to(contact, micros.shape)
        faces = np.broadcast_to(np.round(np.array(levels.costs) * 1e6).astype(np.int64), micros.shape)
    for at, one in enumerate(said["decisions"]):
        held = model.promised if model.kept else 0
        level, room = one["level_number"], model.total - model.spent - held
        dear = micros[at] + (faces[at] if model.kept else 0)
        assert dear[level] <= room, f"over budget: {one} costs {dear[level]} with {room} left"
        if levels.certain:
            worth = expected.responses[at] - one["price"] * micros[at] / 1e6
            check_best(one, worth, dear <= room, model.share)
        model.spent += int(micros[at, level])
        model.promises[said["request_id"], str(one["customer"])] = (int(faces[at, level]), None)


def check_best(one: dict[str, Any], worth: Array, fits: Array, share: float) -> None:
    """Check a level at its price; levels that are worth the same may change places."""
    level, K = one["level_number"], len(worth)
    edge = 1e-9 * max(1.0, float(np.abs(worth).max()))
    best = {k for k in range(K) if worth[k] >= worth.max() - edge}
    instead = {k for k in range(K) if fits[k] and worth[k] >= worth[fits].max() - edge}
    assert one["price"] >= 0
    assert one["reason"] in ("price", "budget")
    if len(best) > 1 or len(instead) > 1:
        return
    ways = [k if fits[k] else next(iter(instead)) for k in range(K)]
    likely = sum(share / K + (1 - share if k in best else 0.0) for k in range(K) if ways[k] == level)
    assert abs(likely - one["propensity"]) < 1e-9, f"{one}: worth {worth}, fits {fits}, propensity {likely}"
