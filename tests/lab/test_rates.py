import json
from pathlib import Path

import numpy as np
import pytest

from largesse.errors import InputError
from largesse_lab.experiments.rates import TRUTHS, pieces, promised, rates, series, summary, table

FAR, CLOSE, FIXED = "gaps of 10 s", "gaps of 0.2 s", "rise of 10 s in all"


@pytest.fixture(scope="module")
def found() -> dict:
    return summary(rates(repeats=10))


def test_the_free_estimate_is_off_by_one_unit_whatever_the_truth_and_the_number_of_levels(found: dict) -> None:
    for row in found["cells"].values():
        for cell in row.values():
            assert cell["free"]["mean"] == pytest.approx(1.0, abs=5 * cell["free"]["se"])


@pytest.mark.parametrize("truth", ["constant", "2 pieces", "5 pieces", FAR])
def test_errors_of_pieces_far_apart_are_harmonic_numbers_of_their_lengths(found: dict, truth: str) -> None:
    for cell in found["cells"][truth].values():
        assert cell["monotone"]["mean"] == pytest.approx(cell["known"], abs=5 * cell["monotone"]["se"])


def test_the_gain_promised_for_all_truths_is_not_there_once_gaps_are_far_above_the_noise(found: dict) -> None:
    cell = found["cells"][FAR]["100"]
    assert cell["monotone"]["mean"] > 20 * promised(100)
    assert found["cells"]["constant"]["100"]["monotone"]["mean"] < 1.3 * promised(100)


def test_small_gaps_gain_a_share_that_does_not_grow_with_the_levels(found: dict) -> None:
    close = found["cells"][CLOSE]
    assert 0.8 < close["100"]["monotone"]["mean"] / close["50"]["monotone"]["mean"] < 1.0
    assert promised(100) / promised(50) < 0.6


def test_a_fixed_rise_gains_more_slowly_than_promised(found: dict) -> None:
    fixed = {int(K): cell["monotone"]["mean"] for K, cell in found["cells"][FIXED].items()}
    slope = np.log(fixed[100] / fixed[20]) / np.log(5)
    assert slope == pytest.approx(-2 / 3, abs=0.06)
    assert slope > np.log(promised(100) / promised(20)) / np.log(5) + 0.04


def test_the_projection_never_hurts_a_truth_that_never_falls() -> None:
    records = rates(levels=[5, 20], repeats=2)
    assert all(record["monotone"] <= record["free"] for record in records)


def test_truths_never_fall_and_have_the_pieces_they_say() -> None:
    for truth in TRUTHS.values():
        assert (np.diff(truth(20)) >= 0).all()
    assert len(np.unique(pieces(20, 5))) == 5
    assert np.array_equal(pieces(3, 5), [0.0, 10.0, 20.0])


def test_records_are_kept_and_the_same_again(tmp_path: Path) -> None:
    first = rates(["constant"], [2, 5], repeats=2, out=tmp_path / "r.jsonl")
    again = rates(["constant"], [2, 5], repeats=3, out=tmp_path / "r.jsonl")
    assert [r for r in again if r["repeat"] < 2] == first
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 6


def test_the_summary_is_json_and_the_table_and_the_lines_show_it() -> None:
    records = rates(["constant", FAR], [2, 5], repeats=2)
    assert json.loads(json.dumps(summary(records), allow_nan=False)) == summary(records)
    assert "| constant | 0." in table(records)
    lines = series(records)
    assert [(line["panel"], line["label"]) for line in lines[:3]] == [
        ("constant", "free"),
        ("constant", "monotone"),
        ("constant", "promised"),
    ]
    assert lines[2]["mean"] == [promised(2), promised(5)]


def test_one_repeat_has_no_spread_rather_than_a_false_one() -> None:
    cell = summary(rates(["constant"], [2], repeats=1))["cells"]["constant"]["2"]["free"]
    assert cell["sd"] is None
    assert cell["n"] == 1


def test_unknown_truths_and_single_levels_are_refused_together() -> None:
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        rates(["constnt"], [1])
    assert "did you mean 'constant'?" in str(refused.value)
