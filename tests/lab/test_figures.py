import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.report import Caption, Look, draw_dots, draw_lines
from largesse.report.charts.frame import FONT
from largesse.report.charts.marks import measure
from largesse.report.charts.palette import DARK_PENS, DARK_SHEET, LIGHT_PENS, LIGHT_SHEET, contrast
from largesse.report.charts.pens import DASHES, SHAPES, Pen
from largesse.report.charts.scales import fit_linear_scale, fit_log_scale, thin_ticks

CAPTION = Caption("Error by the strength of balance", "κ", "RMSE of curves", "Bands: ± 1 sd over 20 worlds.")
SVG = "{http://www.w3.org/2000/svg}"
BEYOND = {"panel": "world 1", "label": "method 9", "estimate": 99.0, "low": 98.0, "high": 100.0}
KAPPAS = [0.0, 1e-4, 1e-2, 1.0, 100.0]


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


def differences(panels: int = 3) -> list[dict[str, Any]]:
    return [
        {"panel": f"world {p}", "label": f"method {k}", "estimate": k - 2.0, "low": k - 2.5, "high": k - 1.5}
        for p in range(panels)
        for k in range(6)
    ]


def texts(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Words with the box (left, right, top, bottom) that they fill, after the anchor and a quarter turn."""
    found = []
    for node in ET.fromstring(svg).iter(f"{SVG}text"):
        words, size = node.text or "", float(node.get("font-size", FONT))
        x, y, long = float(node.get("x", 0)), float(node.get("y", 0)), measure(words, size)
        start = {"middle": -0.5, "end": -1.0}.get(node.get("text-anchor", ""), 0.0) * long
        turned = re.match(r"translate\(([\d.-]+),([\d.-]+)\) rotate\(-90\)", node.get("transform", ""))
        if turned:
            x, y = float(turned[1]), float(turned[2])
            found.append((words, x - size, x + size * 0.3, y + start, y + start + long))
        else:
            found.append((words, x + start, x + start + long, y - size * 0.8, y + size * 0.25))
    return found


def every_figure() -> list[Any]:
    rising = [{"panel": "p", "label": "a", "x": [250, 8000], "mean": [0.2, 0.02], "sd": [0.3, 0.001]}]
    return [
        pytest.param(draw_lines(lines(1, 1), CAPTION), id="one line"),
        pytest.param(draw_lines(lines(), CAPTION, Look(log_across=True)), id="three panels"),
        pytest.param(draw_lines(lines(4, 9), CAPTION, Look(log_across=True, bars=True)), id="bars"),
        pytest.param(draw_lines(lines(5, 2), CAPTION, Look(log_across=True, log_up=True, shared=True)), id="five"),
        pytest.param(draw_lines(rising, CAPTION, Look(log_across=True, log_up=True)), id="spread below zero"),
        pytest.param(draw_dots(differences(), CAPTION), id="dots"),
        pytest.param(draw_dots(differences(5), CAPTION), id="dots in two rows"),
        pytest.param(draw_dots([*differences(), BEYOND], CAPTION), id="dots beyond"),
    ]


@pytest.mark.parametrize("svg", every_figure())
def test_every_figure_is_xml_without_holes_and_its_writing_stays_inside_and_apart(svg: str) -> None:
    root = ET.fromstring(svg)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    drawn = re.sub(r"<(style|title)>.*?</\1>|<text.*?</text>", "", svg, flags=re.DOTALL)
    assert not re.search(r"nan|inf|None", drawn, flags=re.IGNORECASE)
    boxes = texts(svg)
    for words, left, right, top, bottom in boxes:
        assert left >= 0, words
        assert right <= width, words
        assert top >= 0, words
        assert bottom <= height, words
    for i, (words, left, right, top, bottom) in enumerate(boxes):
        for other, left2, right2, top2, bottom2 in boxes[:i]:
            across, down = min(right, right2) - max(left, left2), min(bottom, bottom2) - max(top, top2)
            assert across <= 0 or down <= 0, f"{words!r} over {other!r}"


def test_every_label_panel_and_title_is_written() -> None:
    rows = lines()
    written = [words for words, *_ in texts(draw_lines(rows, CAPTION, Look(log_across=True)))]
    for row in rows:
        assert written.count(row["label"]) == 1
        assert written.count(row["panel"]) == 1
    assert {CAPTION.title, CAPTION.across, CAPTION.up, CAPTION.note} <= set(written)
    dotted = [words for words, *_ in texts(draw_dots(differences(), CAPTION))]
    assert {f"method {k}" for k in range(6)} | {"world 0", "world 1", "world 2"} <= set(dotted)


def test_nothing_is_joined_across_a_missing_number_or_to_a_zero_that_stands_apart() -> None:
    row = {"panel": "", "label": "a", "x": [0.0, 1.0, 10.0, 100.0, 1000.0], "sd": [None] * 5}
    whole = draw_lines([{**row, "mean": [1.0, 2.0, 3.0, 4.0, 5.0]}], CAPTION, Look(log_across=True))
    holed = draw_lines([{**row, "mean": [1.0, 2.0, 3.0, math.nan, 5.0]}], CAPTION, Look(log_across=True))

    def paths(svg: str) -> list[int]:
        found = [node.get("d", "") for node in ET.fromstring(svg).iter(f"{SVG}path") if node.get("class") == "line"]
        return [d.count(",") for d in found[1:]]  # the first is the legend's

    assert paths(whole) == [4]
    assert paths(holed) == [2]


def test_a_zero_stands_apart_left_of_a_break() -> None:
    scale = fit_log_scale(KAPPAS)
    assert scale.gap is not None
    assert 0 < scale.place(0.0) < scale.gap < scale.place(1e-4)
    steps = np.diff([scale.place(kappa) for kappa in KAPPAS[1:]])
    assert steps == pytest.approx(steps[0])
    assert [words for _, words in scale.ticks] == ["0", "10⁻⁴", "0.01", "1", "100"]
    assert fit_log_scale(KAPPAS[1:]).gap is None


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


def test_both_colour_schemes_stand_out_and_lines_differ_without_colour() -> None:
    assert min(contrast(colour, LIGHT_SHEET["paper"]) for colour in LIGHT_PENS) >= 3
    assert min(contrast(colour, DARK_SHEET["paper"]) for colour in DARK_PENS) >= 3
    looks = [(k % len(LIGHT_PENS), Pen(k).dash, SHAPES[k % len(SHAPES)]) for k in range(16)]
    assert len(set(looks)) == 16
    assert len({look[2] for look in looks[:8]}) == 8
    assert len(DASHES) > 1
    svg = draw_lines(lines(), CAPTION)
    assert "@media (prefers-color-scheme: dark)" in svg
    used = {int(k) for k in re.findall(r"var\(--pen-(\d+)\)", svg)}
    assert all(svg.count(f"--pen-{k}:") == 2 for k in used)


def test_a_reference_is_a_grey_line_without_marks() -> None:
    svg = draw_lines(lines(1, 2), CAPTION, Look(references=("method <1> & co",)))
    assert svg.count('class="reference"') == 2  # in the legend and in the panel
    assert "var(--pen-1)" not in svg


def test_ticks_are_at_least_three_or_thinned_until_they_do_not_touch() -> None:
    assert len(fit_linear_scale([-0.031, 0.04], 2, snug=True).ticks) >= 3
    assert len(fit_linear_scale([5.0, 5.0], 2).ticks) >= 3
    assert thin_ticks([0, 5, 10, 20, 30], [6] * 5, first=True) == [0, 2, 4]
    assert thin_ticks([0, 1], [50, 50]) == [0]


def test_rows_that_cannot_be_drawn_are_refused_together() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        draw_lines([], CAPTION)
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        draw_lines([{"panel": "p"}, {"panel": "p", "label": "a", "x": [1], "mean": [1, 2], "sd": [1]}], CAPTION)
    assert "row 0 has no label and no x" in str(refused.value)
    with pytest.raises(InputError, match="row 0 has no high"):
        draw_dots([{"panel": "p", "label": "a", "estimate": 1, "low": 0}], CAPTION)
