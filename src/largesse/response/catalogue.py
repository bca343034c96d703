"""The one list of response models: what campaign files, the command line, saved policies, tests and the README know.

To add a model, write its file and add one line to `MODELS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from largesse.errors import Problem, refuse, suggest
from largesse.records import Array
from largesse.response.additive import Additive
from largesse.response.base import ResponseModel, fresh
from largesse.response.baselines.bart import BART
from largesse.response.baselines.cfrnet import CFRNet
from largesse.response.baselines.ganite import GANITE
from largesse.response.baselines.tlearner import TLearner
from largesse.response.boosting import Boosting
from largesse.response.choose import Choose
from largesse.response.linear import Linear
from largesse.response.monotone import Pava
from largesse.response.networks.sire import IRE, SIRE
from largesse.response.proportional import Proportional
from largesse.response.stack import Shrunk, Stack
from largesse.response.thresholds import Thresholds
from largesse.response.two_part import TwoPart
from largesse.response.with_costs import WithCosts


@dataclass(frozen=True)
class Entry:
    """A model of the catalogue: its class, what it is made with, and one sentence about it."""

    kind: type[ResponseModel]
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    slow: bool = False  # fitting takes minutes where the others take seconds


MODELS: dict[str, Entry] = {
    "auto": Entry(Stack, "additive and boosting, blended; increments as individual as held-out rows support; the same as stack"),
    "linear": Entry(Linear, "features shift the whole curve, each level adds the same increment for everybody"),
    "additive": Entry(Additive, "as linear, with a bent line for each feature"),
    "thresholds": Entry(Thresholds, "every level has coefficients of its own; for many correlated features"),
    "boosting": Entry(Boosting, "boosted trees that never fall in the level"),
    "two_part": Entry(TwoPart, "whether customers respond, and how much; for zeros and amounts with a long tail"),
    "stack": Entry(Stack, "additive, two sizes of boosting and, for many features, thresholds, blended on held-out rows"),
    "quick": Entry(Stack, "as stack, without the boosting of small trees: fitted in about half the time", {"models": "few"}),
    "shrunk": Entry(Shrunk, "boosting, its increments shrunk towards a common ladder"),
    "choose": Entry(Choose, "linear or boosting, whichever held-out rows prefer"),
    "sire": Entry(SIRE, "the paper's network: never falls in the level, balanced by HSIC", slow=True),
    "ire": Entry(IRE, "the paper's network without the monotone head", slow=True),
    "bart": Entry(Shrunk, "Bayesian trees, shrunk; needs largesse[bart]", {"model": BART()}, slow=True),
    "cfrnet": Entry(CFRNet, "balanced representation with a head for each level", {"way": "shared"}, slow=True),
    "ganite": Entry(GANITE, "counterfactuals filled in by an adversarial network", slow=True),
    "tlearner": Entry(TLearner, "one linear model for each level"),
    "pava": Entry(Pava, "boosting, its curves made non-falling"),
}  # fmt: skip


TREES = "many small decision trees, each correcting the ones before it"
PLAIN = {
    "Stack": f"It is a blend of curves for each feature and of {TREES}; rows that they had not seen decided how much each counts.",
    "Linear": "It adds up what each feature contributes; a level adds the same for everybody.",
    "Additive": "It adds up a curve for each feature; a level adds the same for everybody.",
    "Thresholds": "For each level it adds up what each feature contributes there.",
    "Boosting": f"It is made of {TREES}; a dearer level never brings less.",
    "TwoPart": "One part learnt whether customers respond, another how much those bring who do.",
    "Shrunk": f"It is made of {TREES}; what levels add is drawn towards what they add on average.",
    "Choose": "It is the simpler or the more flexible of two models, whichever predicted rows better that it had not seen.",
    "SIRE": "It is a neural network that describes customers without regard to the levels they got; a dearer level never brings less.",
    "IRE": "It is a neural network that describes customers without regard to the levels they got.",
    "CFRNet": "It is a neural network with a part of its own for each level.",
    "GANITE": "It is a pair of neural networks: one fills in what was not seen, the other tries to find out.",
    "TLearner": "It is one model for each level, learnt from the customers who got it.",
    "Pava": f"It is made of {TREES}; then curves are smoothed so that a dearer level never brings less.",
}  # fmt: skip


def list_models() -> Mapping[str, Entry]:
    """Return all models by the name that campaign files use."""
    return MappingProxyType(MODELS)


def make_model(name: str, seed: int = 0) -> ResponseModel:
    """Return an unfitted model by its name, with its default settings.

    >>> make_model("boosting", seed=3)
    Boosting(seed=3)
    """
    check_model_name(name)
    entry = MODELS[name]
    model: ResponseModel = fresh(entry.kind(**entry.settings))
    seeds = [parameter for parameter in model.get_params() if parameter.split("__")[-1] == "seed"]
    return model.set_params(**dict.fromkeys(seeds, seed))


def describe_model(kind: str) -> str:
    """Return what a model of this class does, for a reader who knows no models; nothing of one that is not listed.

    >>> describe_model("Linear")
    'It adds up what each feature contributes; a level adds the same for everybody.'
    """
    return PLAIN.get(kind, "")


def check_model_name(name: str) -> None:
    """Refuse a name that is not in the catalogue."""
    if name not in MODELS:
        refuse("model", [Problem(f"model {name!r} is not known", suggest(name, MODELS))])


def describe_models() -> str:
    """Return one line for each model, its name and its sentence: for help texts."""
    return "\n".join(f"{name}: {entry.about}" for name, entry in MODELS.items())


def model_classes() -> dict[str, type[ResponseModel]]:
    """Return the classes, by name, of all models that a saved file may hold; any other is refused."""
    listed = {kind.__name__: kind for entry in MODELS.values() for kind in _classes(entry.kind(**entry.settings))}
    return listed | {kind.__name__: kind for kind in (WithCosts, Proportional)}


def _classes(model: ResponseModel) -> Iterator[type[ResponseModel]]:
    yield type(model)
    for value in model.get_params(deep=False).values():
        if isinstance(value, ResponseModel):
            yield from _classes(value)


def model_from_state(state: dict[str, Any], arrays: dict[str, Array]) -> ResponseModel:
    """Return the fitted response model that `state()` described; ValueError if it describes none."""
    known = model_classes()
    kind = str(state["kind"])
    if kind not in known:
        raise ValueError(f"a model of kind {kind!r}: {suggest(kind, known)}")
    return known[kind].from_state(state, arrays, known)
