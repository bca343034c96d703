from typing import Any

import pytest

from largesse.report.numbers import Units
from largesse.report.sections.why import _write_change, view_why

Numbers = dict[str, Any]


@pytest.mark.parametrize(
    ("dearer", "cheaper", "said"),
    [
        ("big {}", None, "would get big {} if the price of budget fell by more than 20\u202f%"),
        (None, "none", "would get none if the price of budget rose by more than 50\u202f%"),
        (
            "big",
            "none",
            "would get big if the price of budget fell by more than 20\u202f%, and none if it rose by more than 50\u202f%",
        ),
        (None, None, "would get it at any price"),
    ],
)
def test_words_say_what_would_change_the_level(dearer: str | None, cheaper: str | None, said: str) -> None:
    row = {"price": 1.0, "dearer": dearer, "below": 0.8, "cheaper": cheaper, "above": 1.5}
    assert _write_change(row) == said


def test_the_section_is_left_out_where_a_run_folder_does_not_know(binary: Numbers) -> None:
    view = view_why(binary, Units("binary", "€"))
    assert view is not None
    assert view["labels"] == ["none", "small", "big"]
    assert all(len(row["curve"]) == 3 for row in view["rows"])
    assert len(view["moves"]) == 4
    many = {**binary, "levels": [{"name": str(k)} for k in range(9)]}
    wide = view_why(many, Units("binary", "€"))
    assert wide is not None
    assert wide["labels"] == wide["rows"][0]["curve"] == []
    binary["why"]["examples"] = []
    assert view_why(binary, Units("binary", "€")) is None


def test_features_that_move_decisions_are_shown_with_what_is_lost_without_them(binary: Numbers) -> None:
    binary["why"]["movers"] = [
        {"feature": "age", "moved": 0.4, "loss": {"estimate": 0.03, "low": 0.01, "high": 0.05}},
        *({"feature": f"f{k}", "moved": 0.1, "loss": {"estimate": 0.0, "low": -0.01, "high": 0.01}} for k in range(9)),
    ]
    view = view_why(binary, Units("binary", "€"))
    assert view is not None
    first, second, *_ = view["movers"].rows
    assert (first.label, first.number, first.sub) == ("age", "40\u202f%", "loses 3.0\u202fpp")
    assert first.mark == "1.0 to 5.0\u202fpp: looking at it pays"
    assert second.mark.endswith("could be nothing")
    assert len(view["movers"].rows) == 8
    assert view["rest"] == "2 more features move fewer customers."
