import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from drawings import SVG, check_text, texts

from largesse.errors import InputError
from largesse.report import Caption, Look, draw_lines

CAPTION = Caption("Error by the strength of balance", "κ", "RMSE of curves", "Bands: ± 1 sd over 20 worlds.")
KAPPAS = [0.0, 1e-4, 1e-2, 1.0, 100.0]
RISING = [{"panel": "p", "label": "a", "x": [250, 8000], "mean": [0.2, 0.02], "sd": [0.3, 0.001]}]


def lines(panels: int = 3, labels: int = 4) -> list[dict[str, Any]]:
    rng = np.random.default_rng(panels * 10 + labels)
    return [
        {
            "panel": f"world {p}",
            "label": f"method <{k}> & co",
            "x": KAPPAS,
            "mean": list(0.1 * (k + 1) + rng.random(5) / 20),
            "sd": [0.01] * 5,
        }
        for p in range(panels)
        for k in range(labels)
    ]


@pytest.mark.parametrize(
    ("series", "look"),
    [
        pytest.param(lines(1, 1), Look(), id="one line"),
        pytest.param(lines(), Look(log_across=True), id="three panels"),
        pytest.param(lines(4, 9), Look(log_across=True, bars=True), id="bars"),
        pytest.param(lines(5, 2), Look(log_across=True, log_up=True, shared=True), id="five"),
        pytest.param(RISING, Look(log_across=True, log_up=True), id="spread below zero"),
    ],
)
def test_text_stays_inside_and_apart(series: list[dict[str, Any]], look: Look) -> None:
    check_text(draw_lines(series, CAPTION, look))


def test_every_label_panel_and_title_is_written() -> None:
    rows = lines()
    written = [words for words, *_ in texts(draw_lines(rows, CAPTION, Look(log_across=True)))]
    for row in rows:
        assert written.count(row["label"]) == 1
        assert written.count(row["panel"]) == 1
    assert {CAPTION.title, CAPTION.across, CAPTION.up, CAPTION.note} <= set(written)


def test_nothing_is_joined_across_a_missing_number_or_to_a_zero_that_stands_apart() -> None:
    row = {"panel": "", "label": "a", "x": [0.0, 1.0, 10.0, 100.0, 1000.0], "sd": [None] * 5}
    whole = draw_lines([{**row, "mean": [1.0, 2.0, 3.0, 4.0, 5.0]}], CAPTION, Look(log_across=True))
    holed = draw_lines([{**row, "mean": [1.0, 2.0, 3.0, math.nan, 5.0]}], CAPTION, Look(log_across=True))

    def paths(svg: str) -> list[int]:
        found = [node.get("d", "") for node in ET.fromstring(svg).iter(f"{SVG}path") if node.get("class") == "line"]
        return [d.count(",") for d in found[1:]]  # the first is the legend's

    assert paths(whole) == [4]
    assert paths(holed) == [2]


def test_both_colour_schemes_are_in_the_drawing() -> None:
    svg = draw_lines(lines(), CAPTION)
    assert "@media (prefers-color-scheme: dark)" in svg
    used = {int(k) for k in re.findall(r"var\(--pen-(\d+)\)", svg)}
    assert used
    assert all(svg.count(f"--pen-{k}:") == 2 for k in used)


def test_a_reference_is_a_grey_line_without_marks() -> None:
    svg = draw_lines(lines(1, 2), CAPTION, Look(references=("method <1> & co",)))
    assert svg.count('class="reference"') == 2  # in the legend and in the panel
    assert "var(--pen-1)" not in svg


def test_rows_that_cannot_be_drawn_are_refused_together() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        draw_lines([], CAPTION)
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        draw_lines([{"panel": "p"}, {"panel": "p", "label": "a", "x": [1], "mean": [1, 2], "sd": [1]}], CAPTION)
    assert "row 0 has no label and no x" in str(refused.value)
    assert "x, mean and sd of row 1 have 1, 2 and 1 numbers" in str(refused.value)
