"""The numbers the paper printed, mean and standard deviation over its hundred repeats, to stand beside ours."""

from __future__ import annotations

import re
from typing import TypeAlias

Printed: TypeAlias = tuple[float, float]  # mean, sd
PRINTED: dict[str, dict[str, dict[str, Printed]]] = {
    "table1": {
        "CCPOvSIRE": {"RMSE": (0.0970, 0.0038), "reward 3": (0.6082, 0.0013)},
        "CCPOvSIRE†": {"RMSE": (0.1115, 0.0135), "reward 3": (0.6069, 0.0020)},
        "CCPOvIRE": {"√PEHE": (0.0385, 0.0011), "RMSE": (0.1059, 0.0165), "reward 3": (0.6074, 0.0011)},
        "CCPOvIRE†": {"√PEHE": (0.0404, 0.0011), "RMSE": (0.1238, 0.0132), "reward 3": (0.6061, 0.0009)},
        "GANITE": {"√PEHE": (0.1077, 0.0086), "RMSE": (0.2263, 0.0394), "reward 3": (0.5964, 0.0054)},
        "BART": {"√PEHE": (0.0674, 0.0026), "RMSE": (0.2057, 0.0027), "reward 3": (0.6002, 0.0001)},
        "CFRNet": {"√PEHE": (0.0447, 0.0004), "RMSE": (0.1069, 0.0060), "reward 3": (0.5958, 0.0010)},
        "BanditNet": {"reward 3": (0.5899, 0.0076)},
    },
    "table2": {
        "CCPOvSIRE": {"RMSE": (0.2408, 0.0183), "reward 1": (0.0934, 0.0225), "reward 2": (0.1408, 0.0154)},
        "CCPOvSIRE†": {"RMSE": (0.2740, 0.0255), "reward 1": (0.0718, 0.0063), "reward 2": (0.1186, 0.0198)},
        "CCPOvIRE": {"RMSE": (0.2712, 0.0341), "reward 1": (0.0839, 0.0137), "reward 2": (0.1304, 0.0112)},
        "CCPOvIRE†": {"RMSE": (0.2943, 0.0345), "reward 1": (0.0674, 0.0112), "reward 2": (0.1157, 0.0127)},
        "GANITE": {"RMSE": (0.3449, 0.0236), "reward 1": (0.0679, 0.0217), "reward 2": (0.0968, 0.0367)},
        "BART": {"RMSE": (0.2867, 0.0302), "reward 1": (0.0492, 0.0217), "reward 2": (0.0927, 0.0362)},
        "CFRNet": {"RMSE": (0.2480, 0.0168), "reward 1": (0.0861, 0.0220), "reward 2": (0.1335, 0.0197)},
        "BanditNet": {"reward 1": (0.0654, 0.0265), "reward 2": (0.0997, 0.0367)},
    },
    "kernels": {
        "CCPOvSIRE, RBF": {"RMSE": (0.1040, 0.0421), "reward 3": (0.6002, 0.0005)},
        "CCPOvIRE, RBF": {"RMSE": (0.1205, 0.1063), "reward 3": (0.6000, 0.0004)},
        "CCPOvSIRE, linear": {"RMSE": (0.0970, 0.0038), "reward 3": (0.6082, 0.0013)},
        "CCPOvIRE, linear": {"RMSE": (0.1059, 0.0165), "reward 3": (0.6074, 0.0011)},
    },
}


def plain(name: str) -> str:
    """Return a name of a method or column without what may be written in several ways.

    >>> plain("Reward (m = 3)") == plain("reward 3") == plain("value 3"), plain("√PEHE"), plain("CCPOvIRE†")
    (True, 'pehe', 'ccpovire†')
    """
    bare = re.sub(r"[^a-z0-9.†]", "", re.sub(r"\bm\s*=", "", name.lower()))
    return re.sub(r"^value", "reward", bare)


def titled(column: str) -> str:
    """Return a column's name for people.

    >>> titled("rmse"), titled("value 1.5"), titled("seconds")
    ('RMSE', 'Reward at a budget of 1.5', 'Seconds')
    """
    if plain(column) in ("rmse", "pehe"):
        return {"rmse": "RMSE", "pehe": "√PEHE"}[plain(column)]
    found = re.fullmatch(r"(reward|skill|spend)([\d.]+)", plain(column))
    return f"{found[1].capitalize()} at a budget of {found[2]}" if found else column[:1].upper() + column[1:]


def printed(experiment: str, row: str, column: str) -> Printed | None:
    """Return what the paper printed there, however row and column are spelled; None where it printed nothing."""
    for method, cells in PRINTED.get(experiment, {}).items():
        for name, cell in cells.items():
            if (plain(method), plain(name)) == (plain(row), plain(column)):
                return cell
    return None
