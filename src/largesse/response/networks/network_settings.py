"""Settings of networks, of their training and of the HSIC penalty.

`Network`, `Training` and `Balance` are frozen. A field left at "auto" takes the model's own value: with
``SIRE(training=Training(epochs=20))`` only the number of epochs differs from SIRE's usual training. They speak
scikit-learn's language of parameters, so that `clone` works and ``model.set_params(network__width=32)`` reaches inside.

>>> Network(width=32).set_params(depth=3)
Network(width=32, depth=3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

import numpy as np

from largesse.errors import Problem, suggest

AUTO: Any = "auto"  # the model's own value
ACTIVATIONS = ("elu", "relu")
OPTIMISERS = ("adam", "sgd")
SCHEDULES = ("constant", "cosine")
STARTS = ("guess", "regression")
HSIC_KERNELS = ("linear", "rbf", "rff")
HSIC_ESTIMATORS = ("biased", "unbiased", "variance")
HEAD_KINDS = ("free", "increments", "shrunk", "elastic", "cdf", "concave", "minmax")
MONOTONE = HEAD_KINDS[1:]
CONCAVE_EDGE = 1e-6  # distance of concave probabilities from 0 and 1, where logits are infinite
FIRST_STEP = 0.2  # first increment of a network, on the scale of the score


class _SettingsRecord:
    """Base class of settings records, with scikit-learn's parameter methods and a short repr."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 -- scikit-learn's signature
        """Return all settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Return a copy with some settings changed; the record itself is frozen."""
        return replace(self, **params)  # type: ignore[type-var]

    def __repr__(self) -> str:
        arguments = [f"{name}={value!r}" for name, value in self.get_params().items() if not _is_auto(value)]
        return f"{type(self).__name__}({', '.join(arguments)})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Network(_SettingsRecord):
    """Settings of a network's layers: width, depth and activation.

    Parameters
    ----------
    width, depth
        Units of a hidden layer, and hidden layers.
    activation
        "elu" or "relu".
    skip
        True for a linear bypass of the hidden layers (SIRE, IRE, BanditNet).
    head_width, head_depth
        Units and number of the hidden layers of each level's own head (CFRNet).
    initial_scale
        Initial weights are normal with standard deviation initial_scale/√fan-in (CFRNet).
    """

    width: int = AUTO
    depth: int = AUTO
    activation: str = AUTO
    skip: bool = AUTO
    head_width: int = AUTO
    head_depth: int = AUTO
    initial_scale: float = AUTO


@dataclass(frozen=True, kw_only=True, repr=False)
class Training(_SettingsRecord):
    """Settings of a network's training: optimiser, learning rate, batches and epochs.

    Parameters
    ----------
    rate, schedule
        The optimiser's learning rate and its schedule: "constant" or "cosine" (to zero at the last epoch).
    rate_decay
        Factor of the rate every 100 steps (CFRNet).
    decay
        Weight decay: decoupled (SIRE, IRE, BanditNet), or an L2 penalty on the heads (CFRNet).
    optimiser
        "adam" or "sgd".
    batch
        Rows per step.
    epochs, steps
        Maximum length: SIRE and IRE count epochs, the others gradient steps.
    patience
        Evaluations of the held-out loss without gain after which a model stops; one per epoch, or per some steps.
    start
        Start of SIRE's common curve: a "guess" (small equal increments around the mean response), a linear
        "regression", "zero", or "auto" (the one with the lower held-out loss at the end).
    """

    rate: float = AUTO
    schedule: str = AUTO
    rate_decay: float = AUTO
    decay: float = AUTO
    optimiser: str = AUTO
    batch: int = AUTO
    epochs: int = AUTO
    steps: int = AUTO
    patience: int = AUTO
    start: str = AUTO


@dataclass(frozen=True, kw_only=True, repr=False)
class Balance(_SettingsRecord):
    """Settings of the HSIC penalty on the dependence between representation and level.

    Parameters
    ----------
    kernel
        Kernel of the representation: "linear", "rbf", or "rff" (random Fourier features).
    estimator
        "biased" (the paper's), "unbiased", or "variance" (the bias alone, blind to dependence).
    normalise
        True to scale the representation to unit mean square first: κ then means the same at every scale, and the
        penalty cannot be lowered by shrinking the representation. False is the paper's penalty: it also shrinks.
    """

    kernel: str = AUTO
    estimator: str = AUTO
    normalise: bool = AUTO


@dataclass(frozen=True)
class NetworkShape:
    """Sizes and kinds of a network's layers, for which training is compiled once."""

    features: int
    levels: int
    head: str = "shrunk"
    width: int = 128
    depth: int = 2
    activation: str = "elu"
    skip: bool = True
    bounded: bool = True  # responses in [0, 1]: scores are logits


# -- settling ---------------------------------------------------------------------------------------------------------

SettingT = TypeVar("SettingT", bound=_SettingsRecord)

SETTING_OPTIONS = {
    "activation": ACTIVATIONS,
    "optimiser": OPTIMISERS,
    "schedule": SCHEDULES,
    "start": ("auto", "zero", *STARTS),
    "kernel": HSIC_KERNELS,
    "estimator": HSIC_ESTIMATORS,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))


_COUNT = (lambda value: _is_number(value) and value >= 1, "a whole number, 1 or more")
_POSITIVE = (lambda value: _is_number(value) and value > 0, "a number above zero")
_SWITCH = (lambda value: isinstance(value, bool | np.bool_), "True or False")
# Valid values of the fields that are not in SETTING_OPTIONS.
SETTING_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("width", "depth", "head_width", "head_depth", "batch", "epochs", "steps", "patience"), _COUNT),
    **dict.fromkeys(("rate", "initial_scale", "rate_decay"), _POSITIVE),
    **dict.fromkeys(("skip", "normalise"), _SWITCH),
    "decay": (lambda value: _is_number(value) and value >= 0, "a number, zero or more"),
}


def replace_auto_settings(setting: SettingT, default: SettingT) -> SettingT:
    """Replace settings with the value "auto" by the model's default values.

    >>> replace_auto_settings(Network(width=8), Network(width=64, depth=2))
    Network(width=8, depth=2)
    """
    known = default.get_params()
    fixed = {name: value for name, value in setting.get_params().items() if not _is_auto(value) and name in known}
    return replace(default, **fixed)  # type: ignore[type-var]


def find_setting_problems(name: str, settings: Any, default: _SettingsRecord) -> list[Problem]:
    """Return the problems of a model's settings record, such as unknown or invalid fields.

    Fields that are "auto" in `default` do not belong to the model.
    """
    kind = type(default)
    if not isinstance(settings, kind):
        example = f"{kind.__name__}({fields(kind)[0].name}=…)"  # type: ignore[arg-type]
        return [Problem(f"{name}={settings!r}", f"give a {kind.__name__}, as {example}")]
    known = {field for field, value in default.get_params().items() if not _is_auto(value)} | _find_auto_fields(default)
    problems = []
    for field, value in settings.get_params().items():
        if _is_auto(value):
            continue
        setting = f"{name}.{field}={value!r}"
        if field not in known:
            problems.append(
                Problem(f"{setting} is not a setting of this model", f"use one of {', '.join(sorted(known))}")
            )
        elif field in SETTING_OPTIONS and value not in SETTING_OPTIONS[field]:
            problems.append(Problem(setting, suggest(str(value), SETTING_OPTIONS[field])))
        elif field in SETTING_RULES and not SETTING_RULES[field][0](value):
            problems.append(Problem(setting, SETTING_RULES[field][1]))
    return problems


def _find_auto_fields(default: _SettingsRecord) -> set[str]:
    """Return the fields that may stay "auto" because the model chooses their value.

    This is the start of networks that count epochs.
    """
    return {"start"} if isinstance(default, Training) and not _is_auto(default.epochs) else set()


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def find_positive_integer_problems(model: Any, names: Iterable[str]) -> list[Problem]:
    """Return the problems of a model's integer arguments that are below 1."""
    return [
        Problem(f"{name}={getattr(model, name)!r}", "a whole number, 1 or more")
        for name in names
        if getattr(model, name) < 1
    ]
