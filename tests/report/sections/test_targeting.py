from typing import Any

import pytest

from largesse.report.numbers import Units
from largesse.report.sections.targeting import view_targeting

Numbers = dict[str, Any]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.01, 0.03), "choosing who gets what gains +2.0\u202fpp (+1.0 to +3.0\u202fpp) over treating everyone alike"),
        ((-0.03, -0.01), "choosing who gets what loses"),
        ((-0.01, 0.01), "does not show that choosing who gets what gains anything"),
        ((None, None), "does not show that choosing who gets what gains anything"),
    ],
)
def test_the_area_follows_its_interval(binary: Numbers, ends: tuple[Any, Any], said: str) -> None:
    middle = None if ends[0] is None else sum(ends) / 2
    binary["targeting"]["area"] = {"estimate": middle, "low": ends[0], "high": ends[1]}
    view = view_targeting(binary, Units("binary", "€"))
    assert view is not None
    assert said in view["area"]


def test_the_cost_curve_starts_at_no_gain_and_every_level_is_compared(binary: Numbers) -> None:
    assert binary["targeting"]["points"][0]["gain"]["estimate"] == 0
    view = view_targeting(binary, Units("binary", "€"))
    assert view is not None
    assert [row.label for row in view["gains"].rows] == ["none", "small", "big"]
