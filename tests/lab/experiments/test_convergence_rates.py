"""Errors by the number of levels, compared with Proposition 3, and by the number of rows."""

from typing import Any

import numpy as np
import pytest

from largesse.worlds import simulate
from largesse_lab.experiments import convergence_rates
from largesse_lab.experiments.convergence_rates import (
    TRUTHS,
    compute_theoretical_error,
    list_error_lines_by_levels,
    list_error_lines_by_rows,
    make_piecewise_constant_curve,
    measure_errors_by_rows,
    measure_level_errors,
    summarise_errors_by_rows,
    summarise_level_errors,
    tabulate_errors_by_rows,
    tabulate_level_errors,
)
from largesse_lab.runner.experiment_request import Records, Request

WIDE, NARROW, FIXED = "gaps of 10 s", "gaps of 0.2 s", "rise of 10 s in all"


@pytest.fixture(scope="module")
def records() -> Records:
    return measure_level_errors(Request(repeats=10))


@pytest.fixture(scope="module")
def cells(records: Records) -> dict[str, Any]:
    found: dict[str, Any] = summarise_level_errors(records)["cells"]
    return found


def test_the_free_error_is_one_and_that_of_pieces_far_apart_the_harmonic_numbers(cells: dict[str, Any]) -> None:
    for row in cells.values():
        for cell in row.values():
            assert cell["free"]["mean"] == pytest.approx(1.0, abs=5 * cell["free"]["se"])
    for truth in ("constant", "2 pieces", "5 pieces", WIDE):
        for cell in cells[truth].values():
            assert cell["monotone"]["mean"] == pytest.approx(cell["known"], abs=5 * cell["monotone"]["se"])


def test_the_promised_gain_is_missing_if_gaps_are_wide_and_slower_if_the_rise_is_fixed(cells: dict[str, Any]) -> None:
    assert cells[WIDE]["100"]["monotone"]["mean"] > 20 * compute_theoretical_error(100)
    assert cells["constant"]["100"]["monotone"]["mean"] < 1.3 * compute_theoretical_error(100)
    narrow = cells[NARROW]
    assert 0.8 < narrow["100"]["monotone"]["mean"] / narrow["50"]["monotone"]["mean"] < 1.0
    assert compute_theoretical_error(100) / compute_theoretical_error(50) < 0.6
    slope = np.log(cells[FIXED]["100"]["monotone"]["mean"] / cells[FIXED]["20"]["monotone"]["mean"]) / np.log(5)
    assert slope == pytest.approx(-2 / 3, abs=0.06)
    assert slope > np.log(compute_theoretical_error(100) / compute_theoretical_error(20)) / np.log(5) + 0.04


def test_truths_never_fall_and_the_projection_never_hurts_them(records: Records) -> None:
    assert all((np.diff(truth(20)) >= 0).all() for truth in TRUTHS.values())
    assert len(np.unique(make_piecewise_constant_curve(20, 5))) == 5
    assert np.array_equal(make_piecewise_constant_curve(3, 5), [0.0, 10.0, 20.0])
    assert all(record["monotone"] <= record["free"] for record in records)


def test_the_table_and_the_lines_show_the_summary(records: Records) -> None:
    some = [r for r in records if r["truth"] in ("constant", WIDE) and r["levels"] in (2, 5)]
    summary = summarise_level_errors(some)
    assert "| constant | 0." in tabulate_level_errors(summary)
    lines = list_error_lines_by_levels(summary)
    panels = [(line["panel"], line["label"]) for line in lines[:3]]
    assert panels == [("constant", name) for name in ("free", "monotone", "promised")]
    assert lines[2]["mean"] == [compute_theoretical_error(2), compute_theoretical_error(5)]
    cell = summarise_level_errors([r for r in some if r["repeat"] == 0])["cells"]["constant"]["2"]["free"]
    assert (cell["sd"], cell["n"]) == (None, 1)  # one repeat has no spread


def test_more_rows_mean_less_error_with_a_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence_rates, "RATE_LOG_ROWS", (250, 1000, 4000))
    summary = summarise_errors_by_rows(measure_errors_by_rows(Request(["averaged"], ["level means", "linear"], 2)))
    errors = [cell["mean"] for cell in summary["cells"]["averaged"]["linear"].values()]
    assert errors[0] > errors[1] > errors[2]
    assert -0.8 < summary["slopes"]["averaged"]["linear"]["mean"] < -0.25
    assert summary["slopes"]["averaged"]["level means"]["mean"] > -0.1  # nothing to learn about the customers
    assert "| linear | 0." in tabulate_errors_by_rows(summary)
    assert list_error_lines_by_rows(summary)[1]["x"] == [250, 1000, 4000]


def test_level_means_are_the_means_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence_rates, "RATE_LOG_ROWS", (500,))
    (record,) = measure_errors_by_rows(Request(["confounded"], ["level means"], 1))
    sim = simulate("confounded", n=500, seed=0)
    means = np.array([sim.log.response[sim.log.level == k].mean() for k in range(5)])
    assert record["rmse"] == pytest.approx(np.sqrt(((means - sim.draw(10_000, seed=99).truth) ** 2).mean()))
    slopes = summarise_errors_by_rows([record])["slopes"]["confounded"]["level means"]
    assert slopes == {"mean": None, "sd": None, "se": None, "n": 0}  # one size has no slope


@pytest.mark.slow
def test_networks_learn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence_rates, "RATE_LOG_ROWS", (2000,))
    errors = {r["model"]: r["rmse"] for r in measure_errors_by_rows(Request(["averaged"], repeats=1))}
    assert max(errors[name] for name in ("sire", "sire common", "ire", "linear")) < errors["level means"]
