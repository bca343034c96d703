"""What a service should decide and spend, in plain Python: the policy's own answers, and sums of money."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from harness import FINE, Outcome
from loops import AT_RANDOM, OWN_COSTS, policy_of

FEATURES = ("age", "city", "since")


@dataclass
class Model:
    """What the service has said, in plain Python."""

    kind: str
    total: int | None  # millionths; None: without a ledger
    kept: bool = True  # whether face values are kept back
    service: Any = None
    answers: dict[str, tuple[Any, dict[str, Any]]] = field(
        default_factory=dict
    )  # request id → what was asked, what was said
    promises: dict[tuple[str, str], tuple[int, int | None]] = field(default_factory=dict)  # face, paid
    spent: int = 0

    @property
    def promised(self) -> int:
        return sum(face for face, paid in self.promises.values() if paid is None)


def settle(model: Model, asked: Any, said: dict[str, Any]) -> Outcome:
    """Check a redemption that was accepted, and count it."""
    key = (str(asked["request_id"]), str(asked["customer"]))
    if model.total is None or key not in model.promises:
        return Outcome("wrong", f"{asked} was redeemed, but nothing was promised")
    face, before = model.promises[key]
    paid = round(said["paid"] * 1e6)
    amount = asked.get("amount")
    wanted = face if amount is None else to_micros(amount)
    plain = amount is None or isinstance(amount, int | float) or str(amount).strip().replace(".", "", 1).isascii()
    if isinstance(amount, bool) or not plain or not 0 <= paid <= face or paid != wanted or face == 0:
        return Outcome("wrong", f"{asked} pays {paid} of {face}")
    if (before is not None) != said["repeated"] or before not in (None, paid):
        return Outcome("wrong", f"{asked} is redeemed twice: {before}, {said}")
    if before is None:
        model.promises[key] = (face, paid)
        model.spent += paid
    return FINE


def to_micros(amount: Any) -> int:
    """Return an amount in millionths: finer parts are rounded up, but those of a float that are below a billionth are noise."""
    exact = Decimal(str(amount))
    return math.ceil((round(exact, 9) if isinstance(amount, float | np.floating) else exact) * 10**6)


def compare(model: Model, said: dict[str, Any]) -> Outcome:
    """Compare a standing with what was answered."""
    assert model.total is not None
    wanted = {"total": model.total, "spent": model.spent, "promised": model.promised}
    wanted["room"] = model.total - model.spent - model.promised
    if not model.kept and model.promised:  # what is kept back is an estimate, within these
        if not 0 <= said["room"] <= said["total"] - said["spent"] + 1e-9 * said["total"]:
            return Outcome("over budget", str(said))
        wanted["room"] = round(said["room"] * 1e6)
    for word, value in wanted.items():
        if abs(said[word] - value / 1e6) > 1e-9 * max(1.0, abs(said[word])):
            return Outcome("wrong", f"{word} is {said[word]}, but answers add up to {value / 1e6}")
    return FINE if wanted["room"] >= 0 else Outcome("over budget", str(said))


def as_float(value: Any) -> Any:
    """Return a number as a table holds it: whole ones beyond 64 bits are floats."""
    return float(value) if type(value) is int and abs(value) >= 2**63 else value


def check_policy(model: Model, rows: list[dict[str, Any]], said: dict[str, Any]) -> Outcome | None:
    """Compare decisions with what the policy expects of the same rows as a table; count what they cost."""
    import pyarrow as pa

    policy, made = policy_of(model.kind), said["decisions"]
    names = (*FEATURES, *(OWN_COSTS if model.kind == "own costs" else ()))
    columns = {name: pa.array([as_float(row[name]) for row in rows]) for name in names}
    if pa.types.is_string(columns["since"].type):  # JSON has no dates: a service reads them as a CSV file has them
        columns["since"] = columns["since"].cast(pa.timestamp("us"))
    table = pa.table(columns)
    expected = policy.expect(table)
    for at, one in enumerate(made):
        level = one["level_number"]
        if policy.levels.labels[level] != one["level"] or not 0 < one["propensity"] <= 1 + 1e-12:
            return Outcome("wrong", f"customer {at}: {one}")
        near = (expected.responses[at, level], expected.costs[at, level])
        if not np.allclose((one["expected_response"], one["expected_cost"]), near, rtol=1e-9, atol=2e-6):
            return Outcome("wrong", f"customer {at} of {str(rows)[:300]}: {one} instead of {near}")
    if model.total is None:
        likely = policy.probabilities(table)
        got = np.array([likely[at, one["level_number"]] for at, one in enumerate(made)])
        if not np.allclose(got, [one["propensity"] for one in made], rtol=1e-9, atol=1e-12):
            return Outcome("wrong", f"propensities {[one['propensity'] for one in made]} instead of {got}")
        return None
    return count(model, said, expected)


def count(model: Model, said: dict[str, Any], expected: Any) -> Outcome | None:
    """Add decisions to the model's money: none may exceed the room; the level is the best one at the price that fits."""
    policy, share = policy_of(model.kind), AT_RANDOM.get(model.kind, 0.0)
    assert model.total is not None
    micros = np.ceil(np.round(expected.costs * 1e6, 3)).astype(np.int64)
    faces = np.zeros_like(micros)
    if not policy.levels.certain:
        contact = np.array([0, *[round(policy.levels.contact_cost * 1e6)] * (len(policy.levels) - 1)])
        micros, faces = (
            np.broadcast_to(contact, micros.shape),
            np.broadcast_to(np.array([0, 5, 10]) * 10**6, micros.shape),
        )
    for at, one in enumerate(said["decisions"]):
        held = model.promised if model.kept else 0
        level, room = one["level_number"], model.total - model.spent - held
        dear = micros[at] + (faces[at] if model.kept else 0)
        if dear[level] > room:
            return Outcome("over budget", f"{one} costs {dear[level]} with {room} left")
        if policy.levels.certain:
            worth = expected.responses[at] - one["price"] * micros[at] / 1e6
            wrong = check_best(one, worth, dear <= room, share)
            if wrong:
                return Outcome("wrong", f"{wrong}: {one}, worth {worth}, costs {dear}, room {room}")
        model.spent += int(micros[at, level])
        model.promises[said["request_id"], str(one["customer"])] = (int(faces[at, level]), None)
    return None


def check_best(one: dict[str, Any], worth: Any, fits: Any, share: float) -> str:
    """Return what is wrong with a level at its price, if anything; levels that are worth the same may change places."""
    level, K = one["level_number"], len(worth)
    edge = 1e-9 * max(1.0, float(np.abs(worth).max()))
    best = {k for k in range(K) if worth[k] >= worth.max() - edge}
    instead = {k for k in range(K) if fits[k] and worth[k] >= worth[fits].max() - edge}
    if one["price"] < 0 or one["reason"] not in ("price", "budget"):
        return "an odd price or reason"
    if len(best) > 1 or len(instead) > 1:
        return ""
    ways = [k if fits[k] else next(iter(instead)) for k in range(K)]
    likely = sum(share / K + (1 - share if k in best else 0.0) for k in range(K) if ways[k] == level)
    return "" if abs(likely - one["propensity"]) < 1e-9 else f"a propensity of {one['propensity']} instead of {likely}"
