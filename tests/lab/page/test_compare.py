from typing import Any

import pytest

from largesse.errors import InputError
from largesse_lab.experiments.table2 import PUBLISHED
from largesse_lab.page.compare import BETTER, UNDECIDED, WORSE, Duel, judge_orderings, read_comparison
from largesse_lab.page.words import count_orderings, list_orderings

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


def orderings(found: dict[str, Any]) -> list[Duel]:
    made = read_comparison(found)
    return [] if made is None else judge_orderings(made)


def verdicts(found: list[Duel]) -> dict[tuple[str, str], str]:
    return {(one.first, one.second): one.verdict for one in found}


def test_an_ordering_holds_is_reversed_or_is_undecided_by_its_paired_interval() -> None:
    means = {"CCPOvSIRE": 0.07, "CCPOvIRE": 0.09, "CCPOvSIRE†": 0.05, "CFRNet": 0.071}
    found = orderings(summary(means))
    assert verdicts(found) == {
        ("CCPOvSIRE", "CCPOvIRE"): BETTER,
        ("CCPOvSIRE", "CCPOvSIRE†"): WORSE,
        ("CCPOvSIRE", "CFRNet"): UNDECIDED,
    }
    assert all(one.paired for one in found)
    assert count_orderings(found) == (
        "Of 3 orderings that the paper reports, 1 holds, 1 is reversed and 1 is undecided."
    )
    assert list_orderings(found) == (
        "Hold on every simulation: CCPOvSIRE before CCPOvIRE (RMSE). "
        "Reversed on at least one: CCPOvSIRE before CCPOvSIRE† (RMSE)."
    )


@pytest.mark.parametrize("column", ["reward 3", "Reward (m = 3)"])
def test_rewards_are_better_when_they_are_larger_however_they_are_spelled(column: str) -> None:
    found = orderings(summary({"CCPOvSIRE": 0.65, "CCPOvIRE": 0.6, "BanditNet": 0.7}, column))
    assert verdicts(found) == {("CCPOvSIRE", "CCPOvIRE"): BETTER, ("CCPOvSIRE", "BanditNet"): WORSE}
    assert found[0].gain.estimate == pytest.approx(0.05)
    assert (found[0].gain.low, found[0].gain.high) == pytest.approx((0.04, 0.06))


def test_rows_that_were_not_paired_are_judged_by_their_spreads_and_marked() -> None:
    means = {"CCPOvSIRE": 0.07, "CFRNet": 0.1, "BART": 0.12, "GANITE": 0.105}
    found = {(one.first, one.second): one for one in orderings(summary(means))}
    alone = found["CFRNet", "BART"]
    assert not alone.paired
    half = 2.0639 * 0.02 * (2 / 25) ** 0.5  # Student's, 24 degrees of freedom
    assert (alone.gain.low, alone.gain.high) == pytest.approx((0.02 - half, 0.02 + half), abs=1e-5)
    assert found["CFRNet", "GANITE"].verdict == UNDECIDED


def test_pairs_are_taken_where_the_summary_has_them() -> None:
    pair = {"simulation": "averaged", "first": "CFRNet", "second": "GANITE", "column": "RMSE"}
    means = {"CCPOvSIRE": 0.07, "CFRNet": 0.1, "GANITE": 0.105}
    found = orderings({**summary(means), "pairs": [{**pair, "estimate": 0.005, "low": 0.004, "high": 0.006}]})
    assert verdicts(found)["CFRNet", "GANITE"] == BETTER
    assert all(one.paired for one in found)


def test_differences_written_the_other_way_round_are_refused() -> None:
    turned = summary({"CCPOvSIRE": 0.07, "CCPOvIRE": 0.09})
    against = turned["simulations"]["averaged"]["CCPOvIRE"]["against"]
    against["RMSE"] = {"difference": -0.02, "low": -0.03, "high": -0.01}
    with pytest.raises(InputError, match="row minus CCPOvSIRE"):
        orderings(turned)


def test_columns_the_paper_did_not_print_and_missing_numbers_have_no_ordering() -> None:
    assert orderings(summary({"CCPOvSIRE": 0.07, "CCPOvIRE": 0.09}, "seconds")) == []
    holed = summary({"CCPOvSIRE": 0.07, "CFRNet": 0.1, "BART": 0.1})
    holed["simulations"]["averaged"]["BART"]["cells"]["RMSE"]["sd"] = None
    assert verdicts(orderings(holed)) == {("CCPOvSIRE", "CFRNet"): BETTER}


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
