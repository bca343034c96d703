"""Models by their names in a campaign file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from largesse.errors import Problem, fail, nearest
from largesse.records import Choice
from largesse.response import (
    BART,
    GANITE,
    IRE,
    SIRE,
    Additive,
    Boosting,
    CFRNet,
    Choose,
    Linear,
    ResponseModel,
    Shrunk,
    Stack,
    Thresholds,
)

MODELS: dict[str, Callable[[int], ResponseModel]] = {
    "auto": lambda seed: Stack(seed=seed),
    "linear": lambda seed: Linear(seed=seed),
    "boosting": lambda seed: Boosting(seed=seed),
    "sire": lambda seed: SIRE(seed=seed),
    "ire": lambda seed: IRE(seed=seed),
    "stack": lambda seed: Stack(seed=seed),
    "additive": lambda seed: Additive(seed=seed),
    "thresholds": lambda seed: Thresholds(seed=seed),
    "choose": lambda seed: Choose(seed=seed),
    "bart": lambda seed: Shrunk(model=BART(seed=seed), seed=seed),
    "cfrnet": lambda seed: CFRNet(way="shared", seed=seed),
    "ganite": lambda seed: GANITE(seed=seed),
}


def check_model(name: str) -> None:
    """Refuse a name that is not known."""
    if name not in MODELS:
        fail("model", Problem(f"model {name!r} is not known", nearest(name, MODELS)))


def make_model(name: str, seed: int) -> ResponseModel:
    """Return an unfitted model by its name in a campaign file."""
    check_model(name)
    return MODELS[name](seed)


def tried(model: ResponseModel) -> tuple[Choice, ...]:
    """Return what a fitted model chose among, each named so that a reader of the report knows what it is."""
    if isinstance(model, Stack):
        inside = [choice for member in model.members_ for choice in tried(member[0])]
        return (*(replace(c, of="increments of the stack") for c in model.choices_), *inside)
    if isinstance(model, Additive):
        return tuple(replace(c, of="Additive: shapes of features") for c in model.choices_)
    if isinstance(model, Thresholds):
        return tuple(replace(c, of="Thresholds: lines held by") for c in getattr(model, "choices_", ()))
    if isinstance(model, CFRNet | GANITE):
        return tuple(replace(c, of=f"{type(model).__name__}: settings") for c in getattr(model, "choices_", ()))
    if not isinstance(model, SIRE | IRE):
        return getattr(model, "choices_", ())
    kind = type(model).__name__
    held = [replace(c, of=f"{kind}: own increments held by") for c in model.shrinkage_choices_]
    balance = [replace(c, name=f"κ = {c.name}", of=f"{kind}: balance") for c in model.kappa_choices_]
    began = [replace(c, of=f"{kind}: training starts at") for c in model.start_choices_]
    return tuple(choice for group in (began, held, balance) if len(group) > 1 for choice in group)
