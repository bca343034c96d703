"""Catalogue of response models, by the names in campaign files and on the command line.

To add a model, write its file and add one line to `MODEL_CATALOGUE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from largesse.errors import Problem, refuse, suggest
from largesse.response.additive import Additive
from largesse.response.boosting import Boosting
from largesse.response.hurdle import Hurdle
from largesse.response.linear import Linear
from largesse.response.networks.sire import IRE, SIRE
from largesse.response.observed_cost_model import Proportional, WithCosts
from largesse.response.response_model import ResponseModel
from largesse.response.stacking import Stack
from largesse.response.threshold_model import Thresholds


@dataclass(frozen=True)
class CatalogueEntry:
    """Catalogue entry of a response model: its class, its settings and a description."""

    kind: type[ResponseModel]
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    slow: bool = False  # fits take minutes, not seconds


MODEL_CATALOGUE: dict[str, CatalogueEntry] = {
    "auto": CatalogueEntry(Stack, "additive, two sizes of boosting and, for many features, thresholds, blended on held-out rows"),
    "quick": CatalogueEntry(Stack, "as auto, without the boosting of small trees: fitted in about half the time", {"models": "few"}),
    "linear": CatalogueEntry(Linear, "features shift the whole curve, each level adds the same increment for everybody"),
    "additive": CatalogueEntry(Additive, "as linear, with a bent line for each feature"),
    "boosting": CatalogueEntry(Boosting, "boosted trees that never fall in the level"),
    "thresholds": CatalogueEntry(Thresholds, "every level has coefficients of its own; for many correlated features"),
    "hurdle": CatalogueEntry(Hurdle, "whether customers respond, and how much; for zeros and amounts with a long tail"),
    "sire": CatalogueEntry(SIRE, "the paper's network: never falls in the level, balanced by HSIC; needs largesse[networks]", slow=True),
    "ire": CatalogueEntry(IRE, "the paper's network without the monotone head; needs largesse[networks]", slow=True),
}  # fmt: skip

# Names of earlier versions, and the model to use instead.
REPLACED_MODEL_NAMES = {"stack": "auto", "shrunk": "auto", "choose": "auto", "two_part": "hurdle", "pava": "boosting"}
LAB = ("bart", "cfrnet", "ganite", "tlearner")  # baselines that the lab compares with

TREES = "many small decision trees, each correcting the ones before it"
MODEL_DESCRIPTIONS = {
    "Stack": f"It is a blend of curves for each feature and of {TREES}; held-out rows decided how much each counts.",
    "Linear": "It adds up the contributions of the features; a level adds the same for all customers.",
    "Additive": "It adds up a curve for each feature; a level adds the same for everybody.",
    "Thresholds": "For each level it adds up what each feature contributes there.",
    "Boosting": f"It is made of {TREES}; a dearer level never brings less.",
    "Hurdle": "One part learnt whether customers respond, another how much those bring who do.",
    "SIRE": "It is a neural network that describes customers without regard to the levels they got; a dearer level never brings less.",
    "IRE": "It is a neural network that describes customers without regard to the levels they got.",
}  # fmt: skip


def list_models() -> Mapping[str, CatalogueEntry]:
    """Return the catalogue of response models by name."""
    return MappingProxyType(MODEL_CATALOGUE)


def make_model(name: str, seed: int = 0) -> ResponseModel:
    """Make an unfitted response model from its catalogue name.

    >>> make_model("boosting", seed=3)
    Boosting(seed=3)
    """
    check_model_name(name)
    entry = MODEL_CATALOGUE[name]
    return entry.kind(**entry.settings).set_params(seed=seed)


def describe_model(kind: str) -> str:
    """Return a sentence that describes a class of response models, empty for an unknown class.

    >>> describe_model("Linear")
    'It adds up the contributions of the features; a level adds the same for all customers.'
    """
    return MODEL_DESCRIPTIONS.get(kind, "")


def check_model_name(name: str) -> None:
    """Raise an error for a model name that is not in the catalogue."""
    if name in MODEL_CATALOGUE:
        return
    if name in LAB:
        hint = f"`largesse experiment worlds --models {name}` measures it; for a campaign use 'auto'"
        refuse("model", [Problem(f"model {name!r} is a baseline of the lab, for comparison only", hint)])
    hint = f"use {REPLACED_MODEL_NAMES[name]!r}" if name in REPLACED_MODEL_NAMES else suggest(name, MODEL_CATALOGUE)
    refuse("model", [Problem(f"model {name!r} is not known", hint)])


def list_model_classes() -> dict[str, type[ResponseModel]]:
    """Return the model classes that a saved file may contain, by class name."""
    listed = {entry.kind.__name__: entry.kind for entry in MODEL_CATALOGUE.values()}
    return {**listed, "WithCosts": WithCosts, "Proportional": Proportional}
