"""Decide who gets which incentive, under a budget, from the logs you already have.

The way through: `read_log` → `Stack().fit` → `predict` → `allocate` → `evaluate` → report. Each step is one call and
returns plain arrays or a frozen record. Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 — a checkout on the path of an older Python; pip refuses to install there
    raise ImportError(f"largesse needs Python 3.11 or newer; this is Python {sys.version.split()[0]}")

from largesse.version import __version__ as __version__

if TYPE_CHECKING:
    from largesse.allocation import Constraints as Constraints
    from largesse.allocation import allocate as allocate
    from largesse.allocation import frontier as frontier
    from largesse.campaign import Campaign as Campaign
    from largesse.campaign import read_campaign as read_campaign
    from largesse.data import log_from_arrays as log_from_arrays
    from largesse.data import read_customers as read_customers
    from largesse.data import read_log as read_log
    from largesse.evaluation import compare as compare
    from largesse.evaluation import doctor as doctor
    from largesse.evaluation import evaluate as evaluate
    from largesse.evaluation import make_study as make_study
    from largesse.levels import Levels as Levels
    from largesse.monitoring import power as power
    from largesse.pipeline.python_api import run as run
    from largesse.pipeline.python_api import show_report as show_report
    from largesse.policy import Policy as Policy
    from largesse.progress import show_progress as show_progress
    from largesse.records import Customers as Customers
    from largesse.records import Estimate as Estimate
    from largesse.records import Evaluation as Evaluation
    from largesse.records import Explanation as Explanation
    from largesse.records import Frontier as Frontier
    from largesse.records import Log as Log
    from largesse.records import Plan as Plan
    from largesse.response import IRE as IRE
    from largesse.response import SIRE as SIRE
    from largesse.response import Additive as Additive
    from largesse.response import Balance as Balance
    from largesse.response import Boosting as Boosting
    from largesse.response import Hurdle as Hurdle
    from largesse.response import Linear as Linear
    from largesse.response import Network as Network
    from largesse.response import Proportional as Proportional
    from largesse.response import Stack as Stack
    from largesse.response import Thresholds as Thresholds
    from largesse.response import Training as Training
    from largesse.response import WithCosts as WithCosts
    from largesse.worlds import simulate as simulate

# The same names by module, for loading them when they are first used.
_PUBLIC_NAMES = {
    "allocation": "Constraints allocate frontier",
    "campaign": "Campaign read_campaign",
    "data": "log_from_arrays read_customers read_log",
    "evaluation": "compare doctor evaluate make_study",
    "levels": "Levels",
    "monitoring": "power",
    "pipeline.python_api": "run show_report",
    "policy": "Policy",
    "progress": "show_progress",
    "records": "Customers Estimate Evaluation Explanation Frontier Log Plan",
    "response": "Additive Balance Boosting Hurdle IRE Linear Network Proportional SIRE Stack Thresholds Training WithCosts",
    "worlds": "simulate",
}
_MODULE_OF = {name: f"largesse.{module}" for module, names in _PUBLIC_NAMES.items() for name in names.split()}
_MOVED = {  # names that are now in the lab, by module
    **dict.fromkeys(["BART", "BanditNet", "CFRNet", "GANITE", "TLearner"], "largesse_lab.baselines"),
    **dict.fromkeys(["DoseLog", "DoseSIRE", "best_doses", "evaluate_doses"], "largesse_lab.doses"),
}


def _load_public_name(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _MODULE_OF:
        value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
        return value
    if name in _MOVED:
        from largesse.errors import import_optional_package

        hint = f"{name} is now {_MOVED[name]}.{name}; install the lab from a checkout of the repository: pip install -e lab"
        return getattr(import_optional_package(_MOVED[name], "", name, hint=hint), name)
    if not name.startswith("_") and importlib.util.find_spec(f"largesse.{name}") is not None:
        return importlib.import_module(f"largesse.{name}")
    raise AttributeError(f"module 'largesse' has no attribute {name!r}")


if not TYPE_CHECKING:  # type checkers go by the imports above, and find misspelt names
    __getattr__ = _load_public_name


def __dir__() -> list[str]:
    return ["__version__", *sorted(_MODULE_OF)]
