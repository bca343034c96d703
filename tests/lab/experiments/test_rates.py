"""Errors by the number of levels, against Proposition 3, and by the number of rows."""

import json
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.worlds import simulate
from largesse_lab.experiments import rates
from largesse_lab.experiments.rates import (
    TRUTHS,
    draw_levels,
    draw_sizes,
    make_pieces,
    measure_levels,
    measure_sizes,
    promise_error,
    summarise_levels,
    summarise_sizes,
    tabulate_levels,
    tabulate_sizes,
)
from largesse_lab.runner.request import Request

FAR, CLOSE, FIXED = "gaps of 10 s", "gaps of 0.2 s", "rise of 10 s in all"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return summarise_levels(measure_levels(Request(repeats=10)))


def test_the_free_estimate_is_off_by_one_unit_whatever_the_truth_and_the_number_of_levels(
    found: dict[str, Any],
) -> None:
    for row in found["cells"].values():
        for cell in row.values():
            assert cell["free"]["mean"] == pytest.approx(1.0, abs=5 * cell["free"]["se"])


@pytest.mark.parametrize("truth", ["constant", "2 pieces", "5 pieces", FAR])
def test_errors_of_pieces_far_apart_are_harmonic_numbers_of_their_lengths(found: dict[str, Any], truth: str) -> None:
    for cell in found["cells"][truth].values():
        assert cell["monotone"]["mean"] == pytest.approx(cell["known"], abs=5 * cell["monotone"]["se"])


def test_the_gain_promised_for_all_truths_is_not_there_once_gaps_are_far_above_the_noise(found: dict[str, Any]) -> None:
    cell = found["cells"][FAR]["100"]
    assert cell["monotone"]["mean"] > 20 * promise_error(100)
    assert found["cells"]["constant"]["100"]["monotone"]["mean"] < 1.3 * promise_error(100)


def test_small_gaps_gain_a_share_that_does_not_grow_with_the_levels(found: dict[str, Any]) -> None:
    close = found["cells"][CLOSE]
    assert 0.8 < close["100"]["monotone"]["mean"] / close["50"]["monotone"]["mean"] < 1.0
    assert promise_error(100) / promise_error(50) < 0.6


def test_a_fixed_rise_gains_more_slowly_than_promise_error(found: dict[str, Any]) -> None:
    fixed = {int(K): cell["monotone"]["mean"] for K, cell in found["cells"][FIXED].items()}
    slope = np.log(fixed[100] / fixed[20]) / np.log(5)
    assert slope == pytest.approx(-2 / 3, abs=0.06)
    assert slope > np.log(promise_error(100) / promise_error(20)) / np.log(5) + 0.04


@pytest.fixture
def _few_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "LEVELS", (2, 5))


@pytest.mark.usefixtures("_few_levels")
def test_the_projection_never_hurts_a_truth_that_never_falls() -> None:
    assert all(record["monotone"] <= record["free"] for record in measure_levels(Request(repeats=2)))


def test_truths_never_fall_and_have_the_pieces_they_say() -> None:
    for truth in TRUTHS.values():
        assert (np.diff(truth(20)) >= 0).all()
    assert len(np.unique(make_pieces(20, 5))) == 5
    assert np.array_equal(make_pieces(3, 5), [0.0, 10.0, 20.0])


@pytest.mark.usefixtures("_few_levels")
def test_the_summary_is_json_and_the_table_and_the_lines_show_it() -> None:
    found = summarise_levels(measure_levels(Request(["constant", FAR], repeats=2)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert "| constant | 0." in tabulate_levels(found)
    lines = draw_levels(found)
    assert [(line["panel"], line["label"]) for line in lines[:3]] == [
        ("constant", "free"),
        ("constant", "monotone"),
        ("constant", "promised"),
    ]
    assert lines[2]["mean"] == [promise_error(2), promise_error(5)]


@pytest.mark.usefixtures("_few_levels")
def test_one_repeat_has_no_spread_rather_than_a_false_one() -> None:
    cell = summarise_levels(measure_levels(Request(["constant"], repeats=1)))["cells"]["constant"]["2"]["free"]
    assert cell["sd"] is None
    assert cell["n"] == 1


def test_unknown_truths_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'constant'"):
        measure_levels(Request(["constnt"]))


# -- by the number of rows ---------------------------------------------------------------------------------------------


def test_more_rows_mean_less_error_and_the_slope_says_how_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "ROWS", (250, 1000, 4000))
    found = summarise_sizes(measure_sizes(Request(["averaged"], ["level means", "linear"], 2)))
    errors = [cell["mean"] for cell in found["cells"]["averaged"]["linear"].values()]
    assert errors[0] > errors[1] > errors[2]
    assert -0.8 < found["slopes"]["averaged"]["linear"]["mean"] < -0.25
    assert found["slopes"]["averaged"]["level means"]["mean"] > -0.1  # nothing of the customers to learn
    assert "| linear | 0." in tabulate_sizes(found)
    assert draw_sizes(found)[1]["x"] == [250, 1000, 4000]


def test_level_means_are_the_means_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "ROWS", (500,))
    records = measure_sizes(Request(["confounded"], ["level means"], 1))
    sim = simulate("confounded", n=500, seed=0)
    means = np.array([sim.log.response[sim.log.level == k].mean() for k in range(5)])
    error = means - sim.draw(10_000, seed=99).truth
    assert records[0]["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    slopes = summarise_sizes(records)["slopes"]["confounded"]["level means"]
    assert slopes == {"mean": None, "sd": None, "se": None, "n": 0}  # one size has no slope


def test_unknown_simulations_and_models_are_refused_together() -> None:
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        measure_sizes(Request(["avraged"], ["liner"]))
    assert "did you mean 'linear'?" in str(refused.value)


@pytest.mark.slow
def test_networks_learn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "ROWS", (2000,))
    records = {r["model"]: r["rmse"] for r in measure_sizes(Request(["averaged"], repeats=1))}
    assert max(records[name] for name in ("sire", "sire common", "ire", "linear")) < records["level means"]
