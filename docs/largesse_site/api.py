"""The reference: every public name of `largesse`, from its own docstring, grouped by what one does with it."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import largesse

GROUPS: dict[str, tuple[str, ...]] = {
    "Read a log": ("read_log", "read_customers", "log_from_arrays", "Levels", "Log", "Customers"),
    "Check it": ("doctor",),
    "Learn responses": (
        "Stack", "Linear", "Additive", "Boosting", "TwoPart", "Thresholds", "Shrunk", "Choose", "WithCosts", "SIRE", "IRE",
        "Network", "Training", "Balance", "DoseSIRE", "Proportional", "BART", "CFRNet", "GANITE", "TLearner", "Pava",
    ),
    "Plan": ("allocate", "frontier", "Constraints", "Plan", "Frontier", "explore_plan", "best_doses"),
    "Judge": ("evaluate", "compare", "Evaluation", "Estimate", "DoseLog", "evaluate_doses"),
    "Decide for new customers": ("Policy", "BanditNet"),
    "Run a campaign": ("run", "read_campaign", "Campaign", "show_progress"),
    "Simulate": ("simulate",),
}  # fmt: skip
SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)


def public_names() -> list[str]:
    """Return what `import largesse as lg` offers, without rooms, in the order of the alphabet."""
    names = [name for name in vars(largesse) if not name.startswith("_")]
    return sorted(name for name in names if not inspect.ismodule(getattr(largesse, name)))


def write_api() -> str:
    """Return the reference as Markdown; a public name in no group stands under "More"."""
    grouped = {name for names in GROUPS.values() for name in names}
    groups = {title: [name for name in names if hasattr(largesse, name)] for title, names in GROUPS.items()}
    groups["More"] = [name for name in public_names() if name not in grouped]
    parts = [
        "# API reference\n",
        "Everything that `import largesse as lg` offers, from the docstrings. "
        "Models share `fit(log)`, `predict(customers)` and `get_params`, as in scikit-learn.\n",
    ]
    for title, names in groups.items():
        if names:
            parts.append(f"## {title}\n")
            parts += [_write_entry(name, getattr(largesse, name)) for name in names]
    return "\n".join(parts)


def _write_entry(name: str, thing: Any) -> str:
    parts = [f"### {name}\n", f"```python\nlg.{name}{_signature(thing)}\n```\n", tidy(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        parts += [_write_method(member, method) for member, method in _methods(thing)]
    return "\n".join(parts) + "\n"


def _methods(thing: type) -> list[tuple[str, Any]]:
    found = inspect.getmembers(thing, lambda member: inspect.isfunction(member) or isinstance(member, property))
    own = [(name, member) for name, member in found if not name.startswith("_") and inspect.getdoc(member)]
    return [
        (name, member)
        for name, member in own
        if getattr(member, "__module__", None) is None or str(member.__module__).startswith("largesse")
    ]


def _write_method(name: str, method: Any) -> str:
    signature = "" if isinstance(method, property) else _signature(method)
    first = (inspect.getdoc(method) or "").split("\n\n")[0].replace("\n", " ")
    return f"- `.{name}{signature}`: {first}"


def _signature(thing: Any) -> str:
    """Return the arguments without their types, which docstrings explain in words."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_plain_default(parameter.default))
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    return str(inspect.Signature(plain))


class _Shown:
    """A default as it is written in a signature."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __repr__(self) -> str:
        return self.words


def _plain_default(default: Any) -> Any:
    if default is inspect.Parameter.empty or isinstance(default, (int, float, str, bool, type(None))):
        return default
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        return _Shown(f"{type(default).__name__}()")
    return _Shown(repr(default) if len(repr(default)) < 30 and "0x" not in repr(default) else "…")


def tidy(text: str) -> str:
    """Return a numpy-style docstring as Markdown: parameters as a list, examples as code."""
    text = SECTION.sub(r"**\1**\n\n", text)
    blocks = [_tidy_block(block) for block in re.split(r"\n\s*\n", text)]
    return "\n\n".join(blocks)


def _tidy_block(block: str) -> str:
    if block.lstrip().startswith(">>>"):
        return f"```python\n{block}\n```"
    lines = block.splitlines()
    if len(lines) > 1 and not lines[0].startswith((" ", "-", "|")) and lines[1].startswith("    "):
        return _tidy_list(lines)
    return re.sub(r"``([^`]+)``", r"`\1`", block)


def _tidy_list(lines: list[str]) -> str:
    items: list[str] = []
    for line in lines:
        if line.startswith("    ") and items:
            items[-1] += ("" if items[-1].endswith(": ") else " ") + line.strip()
        else:
            items.append(f"- `{line.strip()}`: ")
    return re.sub(r"``([^`]+)``", r"`\1`", "\n".join(items))
