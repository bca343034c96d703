from typing import Any

import pytest

from largesse.errors import InputError
from largesse_lab.experiments.table2 import PUBLISHED
from largesse_lab.page.comparison import read_comparison

PAPER = {
    "CCPOvSIRE": {"rmse": [0.0970, 0.0038], "value 3": [0.6082, 0.0013]},
    "CCPOvSIRE†": {"rmse": [0.1115, 0.0135], "value 3": [0.6069, 0.0020]},
    "CCPOvIRE": {"rmse": [0.1059, 0.0165], "value 3": [0.6074, 0.0011]},
    "GANITE": {"rmse": [0.2263, 0.0394]},
    "BART": {"rmse": [0.2057, 0.0027]},
    "CFRNet": {"rmse": [0.1069, 0.0060]},
    "BanditNet": {"value 3": [0.5899, 0.0076]},
}


def summary(means: dict[str, float], column: str = "RMSE", half: float = 0.01) -> dict[str, Any]:
    """One simulation, one column; differences are from CCPOvSIRE, with intervals of the same width."""
    base = means["CCPOvSIRE"]
    rows = {
        row: {
            "cells": {column: {"mean": mean, "sd": 0.02, "n": 25}},
            "against": {column: {"difference": mean - base, "low": mean - base - half, "high": mean - base + half}},
        }
        for row, mean in means.items()
    }
    return {"simulations": {"averaged": rows}, "paper": PAPER}


def test_differences_written_the_other_way_round_are_refused() -> None:
    turned = summary({"CCPOvSIRE": 0.07, "CCPOvIRE": 0.09})
    against = turned["simulations"]["averaged"]["CCPOvIRE"]["against"]
    against["RMSE"] = {"difference": -0.02, "low": -0.03, "high": -0.01}
    with pytest.raises(InputError, match="row minus CCPOvSIRE"):
        read_comparison(turned)


def test_names_are_found_however_they_are_spelled() -> None:
    cells = {"CCPOvSIRE": {"cells": {"Reward (m = 2)": {"mean": 0.1, "sd": 0.1, "n": 2}}}}
    found = read_comparison({"simulations": {"images": cells}, "paper": PUBLISHED})
    assert found is not None
    assert found.printed("ccpovsire", "Reward (m = 2)") == (0.1408, 0.0154)
    assert found.printed("CCPOvSIRE", "√PEHE") is None
    assert found.best_printed("reward 1") == 0.0934
    assert found.best_printed("rmse") == 0.2408


def test_a_summary_that_compares_no_methods_is_none() -> None:
    for found in ({"series": []}, {"simulations": {"a": [1, 2]}}, {"cells": {"constant": {}}}):
        assert read_comparison(found) is None
