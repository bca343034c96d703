from typing import Any

import pytest

from largesse.report.numbers import Units
from largesse.report.sections.next_steps import view_next_steps, write_settled

Numbers = dict[str, Any]
EURO = Units("binary", "€")


def test_the_rows_that_settle_it_grow_with_the_square_of_the_error() -> None:
    gain = {"estimate": 0.02, "low": -0.02, "high": 0.06, "se": 0.02}
    text = write_settled(1000, gain, EURO)  # (2.8 · 0.02 / 0.02)² = 7.84
    assert "gains 2.0\u202fpp, a log of about 7,800 rows, 7.8 times this one" in text
    assert "7.8 times" in write_settled(1000, gain | {"se": 0.01, "estimate": -0.01}, EURO)
    assert "no log of a realistic size" in write_settled(1000, gain | {"estimate": 1e-5}, EURO)
    assert write_settled(1000, gain | {"se": None}, EURO) == ""


@pytest.mark.parametrize(
    ("ends", "judged", "settled"),
    [((0.01, 0.03), "pays", False), ((-0.03, -0.01), "loses", False), ((-0.01, 0.05), "open", True)],
)
def test_more_rows_are_asked_for_only_where_the_log_leaves_it_open(
    binary: Numbers, ends: tuple[float, float], judged: str, settled: bool
) -> None:
    low, high = ends
    binary["versus"][0]["difference"] = {
        "estimate": (low + high) / 2,
        "low": low,
        "high": high,
        "se": (high - low) / 3.92,
    }
    found = view_next_steps(binary, EURO)
    assert found is not None
    assert found["judged"] == judged
    assert bool(found["settled"]) == settled
