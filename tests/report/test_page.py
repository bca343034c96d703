"""The report page: complete, safe and well-formed, whatever the numbers are."""

import copy
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from largesse.report import render_report
from largesse.report.pages import SECTIONS, clean
from support.pages import Page, visible

Numbers = dict[str, Any]


def test_tags_close_in_order_and_nothing_is_loaded(numbers: Numbers) -> None:
    found = Page(render_report(numbers))
    assert found.sound
    assert found.scripts == 1  # ours; none came in with a name


def test_every_section_stands_once_in_its_order(binary: Numbers, amount: Numbers) -> None:
    every = [section.name for section in SECTIONS]
    assert Page(render_report(amount)).ids == every
    assert Page(render_report(binary)).ids == [
        name for name in every if name != "profit_by_budget"
    ]  # no response has a value


def test_every_figure_is_well_formed_xml_with_words_for_those_who_cannot_see_it(numbers: Numbers) -> None:
    page = render_report(numbers)
    # nested drawings are inside others: cut at the outermost pair
    figures = re.findall(r"<svg class=\"(?:strip|frontier)\".*?</svg>(?!</svg>|<svg|<line|<circle)", page, flags=re.S)
    assert figures
    for figure in figures:
        assert ElementTree.fromstring(figure).get("aria-label")


def test_missing_numbers_are_dashes(numbers: Numbers) -> None:
    page = visible(render_report(numbers))
    assert not re.search(r"\b(nan|inf|None|undefined|null)\b", page)
    assert "–" in page


def test_no_address_is_mentioned(numbers: Numbers) -> None:
    assert not re.search(r"https?:|url\(|@import|xmlns", render_report(numbers))


def test_the_same_numbers_give_the_same_page_and_are_left_as_they_were(numbers: Numbers) -> None:
    before = copy.deepcopy(numbers)
    assert render_report(numbers) == render_report(copy.deepcopy(numbers))
    assert repr(numbers) == repr(before)


def test_hostile_names_are_escaped_everywhere(binary: Numbers) -> None:
    hostile = "</title></svg></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x00\n"
    kept = ("binary", "fine", "note", "careful", "no", "estimated")  # words that the page goes by

    def poison(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inner if inner in kept else poison(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [poison(item) for item in value]
        return hostile if isinstance(value, str) else value

    found = Page(render_report(poison(binary)))
    assert found.sound
    assert found.scripts == 1


@pytest.mark.parametrize("depth", [2, 3, 7, 12])
def test_any_number_of_levels_has_its_colours(ugly: Numbers, depth: int) -> None:
    ugly["levels"], ugly["changes"]["moves"] = ugly["levels"][:depth], []
    page = render_report(ugly)
    assert f"--level-{depth - 1}:" in page
    assert f"--level-{depth}:" not in page


def test_the_page_suits_the_dark_a_phone_and_paper(binary: Numbers) -> None:
    page = render_report(binary)
    assert page.count("prefers-color-scheme: dark") == 2  # the page's colours, and those of the levels
    assert 'name="viewport"' in page
    assert "@media screen and (max-width: 760px)" in page
    assert "@media print" in page
    assert page.count('<div class="desk">') == page.count('<div class="phone">') == 2


def test_a_section_is_left_out_when_it_has_nothing_to_show(binary: Numbers) -> None:
    binary["targeting"]["points"] = []
    assert "qini_curve" in Page(render_report(binary)).ids  # gains over every level are still there
    binary["uniform"] = []
    binary["curve"] = {"levels": [], "features": []}
    assert "qini_curve" not in Page(render_report(binary)).ids


def test_what_a_page_cannot_show_is_cleaned() -> None:
    assert clean({"a": float("inf"), "b": ("x\x00y", 3, True, "5 %")}) == {"a": None, "b": ["x y", 3, True, "5\u202f%"]}


def test_every_curve_has_a_readout_of_its_own(binary: Numbers) -> None:
    figures = re.findall(r"<figure>.*?</figure>", render_report(binary), flags=re.S)
    curves = [figure for figure in figures if 'class="frontier"' in figure]
    assert len(curves) == 2
    assert [figure.count('class="readout"') for figure in curves] == [1, 1]


def test_contents_lead_to_every_section_that_is_there(binary: Numbers) -> None:
    page = render_report(binary)
    ids = Page(page).ids
    assert re.findall(r'href="#(\w+)"', page) == ids[1:]


def test_the_verdict_stands_before_everything_but_the_headline(binary: Numbers) -> None:
    page = render_report(binary)
    assert page.index("<h1>") < page.index('class="verdict"') < page.index('class="cards"')


def test_every_entry_of_the_contents_is_the_heading_of_its_section(binary: dict[str, Any]) -> None:
    page = render_report(binary)
    listed = re.findall(r'<a href="#(\w+)">([^<]+)</a>', page)
    assert len(listed) > 8
    for name, title in listed:
        heading = re.search(rf'<section id="{name}"[^>]*>\s*<h2>([^<]+)</h2>', page)
        assert heading is not None, name
        assert heading[1] == title
