"""What a policy's file says besides the model: written, and read back with care."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from largesse.errors import as_number
from largesse.levels import Levels
from largesse.policy.aimed import read_aimed
from largesse.records import Spending


def write_facts(policy: Any) -> dict[str, Any]:
    """Return everything about a policy but its model, as JSON writes it."""
    facts = {"price": policy.price, "explore": policy.at_random, "share": policy.share, "scale": policy.scale}
    spending = None if policy.spending is None else asdict(policy.spending)
    aimed = {} if policy.aimed is None else {"aimed": policy.aimed.as_dict()}
    return {"levels": asdict(policy.levels), **facts, "spending": spending, **aimed}


def read_facts(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what a file says of a policy besides its model, by the names that `Policy` has for it; ValueError if it cannot be."""
    # Files of version 0.1.0 know costs that are listed, or face values, and nothing that corrects them; earlier ones nothing of
    # exploring for a purpose.
    return {
        "levels": Levels(**manifest["levels"]),
        "price": manifest["price"],
        "at_random": manifest["explore"],
        "share": manifest["share"],
        "scale": manifest.get("scale", 1.0),
        "spending": _read_spending(manifest.get("spending")),
        "aimed": read_aimed(manifest.get("aimed")),
    }


def _read_spending(state: Any) -> Spending | None:
    """Return the spending curve of a policy file; ValueError if it is none."""
    if state is None:
        return None
    points: dict[str, Any] = {word: tuple(map(_read_finite, given)) for word, given in state.items() if word != "noise"}
    return Spending(**points, noise=_read_finite(state["noise"]))


def _read_finite(given: Any) -> float:
    number = as_number(given)
    if number is None or not math.isfinite(number):
        raise ValueError(f"the spending curve holds {given!r}")
    return number
