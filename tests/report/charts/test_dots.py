import xml.etree.ElementTree as ET
from typing import Any

import pytest
from drawings import SVG, check_text, texts

from largesse.errors import InputError
from largesse.report import Caption, draw_dots

CAPTION = Caption("Error against the best", "difference", note="Lines: 95 % intervals over 20 worlds.")
BEYOND = {"panel": "world 1", "label": "method 9", "estimate": 99.0, "low": 98.0, "high": 100.0}


def differences(panels: int = 3) -> list[dict[str, Any]]:
    return [
        {"panel": f"world {p}", "label": f"method {k}", "estimate": k - 2.0, "low": k - 2.5, "high": k - 1.5}
        for p in range(panels)
        for k in range(6)
    ]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(differences(), id="three panels"),
        pytest.param(differences(5), id="two rows of panels"),
        pytest.param([*differences(), BEYOND], id="beyond"),
    ],
)
def test_text_stays_inside_and_apart(rows: list[dict[str, Any]]) -> None:
    check_text(draw_dots(rows, CAPTION))


def test_every_label_and_panel_is_written() -> None:
    written = [words for words, *_ in texts(draw_dots(differences(), CAPTION))]
    assert {f"method {k}" for k in range(6)} | {"world 0", "world 1", "world 2"} <= set(written)


def test_a_dot_is_hollow_when_its_interval_holds_zero_and_missing_when_there_is_none() -> None:
    base = {"panel": "p"}
    rows = [
        {**base, "label": "worse", "estimate": 1.0, "low": 0.5, "high": 1.5},
        {**base, "label": "alike", "estimate": 0.2, "low": -0.5, "high": 0.9},
        {**base, "label": "none", "estimate": None, "low": None, "high": None},
    ]
    svg = draw_dots(rows, CAPTION)
    marks = list(ET.fromstring(svg).iter(f"{SVG}g"))
    hollow = [any(path.get("class") == "hollow" for path in mark) for mark in marks]
    assert hollow == [False, True]
    assert "none" in [words for words, *_ in texts(svg)]
    assert "alike, p: +0.2000 (−0.5000 to +0.9000)" in svg


def test_a_few_rows_far_beyond_all_others_are_arrows_with_their_number() -> None:
    near = [{"panel": "p", "label": f"m{k}", "estimate": 0.01 * k, "low": 0.0, "high": 0.02 * k} for k in range(1, 6)]
    far = [{"panel": "p", "label": "far", "estimate": -1.234, "low": -2.0, "high": -1.0}]
    svg = draw_dots([*near, *far], CAPTION)
    written = [words for words, *_ in texts(svg)]
    assert "−1.2" in written
    assert f"{CAPTION.note} Arrows: beyond the panel." in written
    spread = [{**row, "estimate": row["estimate"] * 10.0**k} for k, row in enumerate(near)]
    assert "Arrows" not in draw_dots(spread[:2], CAPTION)  # two of two: not a few
    assert "far" in written


def test_rows_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(InputError, match="row 0 has no high"):
        draw_dots([{"panel": "p", "label": "a", "estimate": 1, "low": 0}], CAPTION)
