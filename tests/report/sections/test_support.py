from typing import Any

from pages import visible

from largesse.report import render_report
from largesse.report.numbers import Units
from largesse.report.sections.support import view_support

Numbers = dict[str, Any]
EURO = Units("binary", "€")


def test_every_check_has_an_answer_and_stands_on_the_page(binary: Numbers) -> None:
    page = visible(render_report(binary))
    checks = binary["support"]["checks"]
    assert checks
    for check in checks:
        assert check["answer"] in ("fine", "note", "careful", "no")
        assert check["topic"] in page


def test_a_difference_above_a_tenth_is_marked(binary: Numbers) -> None:
    row = binary["support"]["balance"][0]
    row |= {"before": 0.3, "after": 0.2, "levels_before": [0.3, 0.0, -0.3], "levels_after": [0.05, 0.0, -0.2]}
    view = view_support(binary, EURO)
    assert view["balance"].rows[0].mark == "above 0.1"
    assert [cell["off"] for cell in view["by_level"][0]["cells"]] == [False, False, True]
    row["after"] = 0.05
    assert view_support(binary, EURO)["balance"].rows[0].mark == ""


def test_propensities_of_every_level_are_drawn_and_counted(binary: Numbers) -> None:
    rows = view_support(binary, EURO)["propensities"].rows
    assert [row.label for row in rows] == ["none", "small", "big"]
    for row, seen in zip(rows, binary["support"]["overlap"], strict=True):
        assert row.number == f"{seen['rows']} rows"


def test_without_overlap_there_is_nothing_to_show(empty: Numbers) -> None:
    empty["support"]["overlap"] = []
    view = view_support(empty, EURO)
    assert not view["propensities"].rows
    assert not view["balance"].rows
    page = render_report(empty)
    assert "There is nothing to show." in page[page.index('id="support"') : page.index('id="method"')]
