"""The report as people read it in a real browser: by eye, by keyboard, by screen reader, on a phone, in the dark and on paper."""

from pathlib import Path
from typing import Any

import pytest
from browsers import PHONE, browser_marks, watch

from largesse.report import render_report

pytestmark = browser_marks()
STOPS = "() => Array.from(document.querySelectorAll('a[href], summary, input, button, [tabindex]'), e => e.checkVisibility())"
FOCUSED = """() => {
  const e = document.activeElement, look = getComputedStyle(e), box = e.getBoundingClientRect();
  return {tag: e.tagName.toLowerCase(), name: (e.getAttribute("href") || e.textContent || "").trim().slice(0, 40),
          outlined: look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 1,
          seen: box.bottom > 0 && box.top < innerHeight};
}"""
WIDE = """() => document.documentElement.scrollWidth > innerWidth ? Array.from(document.querySelectorAll("body *"))
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + "." + e.className) : []"""
OPEN = "() => document.querySelectorAll('details').forEach(e => { e.open = true; })"


@pytest.fixture(scope="module")
def page(ran: Path) -> str:
    return (ran / "report.html").as_uri()


@pytest.fixture
def crowded(ugly: dict[str, Any], tmp_path: Path) -> str:
    """A page of twelve levels with names without end."""
    (tmp_path / "report.html").write_text(render_report(ugly), encoding="utf-8")
    return (tmp_path / "report.html").as_uri()


@pytest.mark.parametrize(
    "way", [{}, {"color_scheme": "dark"}, {**PHONE, "color_scheme": "dark"}], ids=["desk", "dark", "phone"]
)
def test_nothing_is_loaded_nothing_fails_and_nothing_stands_in_the_way(
    way: dict[str, Any], page: str, browser: Any
) -> None:
    with watch(browser, page, **way) as watched:
        watched.page.evaluate(OPEN)
        assert watched.find_barriers() == []
        assert watched.errors == []
        assert watched.requests == [page]


@pytest.mark.parametrize("which", ["page", "crowded"])
def test_nobody_has_to_scroll_sideways(which: str, browser: Any, request: pytest.FixtureRequest) -> None:
    with watch(browser, request.getfixturevalue(which), **PHONE) as watched:
        watched.page.evaluate(OPEN)
        for width in (1280, 800, 390, 320):
            watched.page.set_viewport_size({"width": width, "height": 844})
            assert watched.page.evaluate(WIDE) == []


def test_the_verdict_is_on_the_first_screen_of_a_phone(page: str, browser: Any) -> None:
    with watch(browser, page, **PHONE) as watched:
        for part in ("h1", ".verdict"):
            box = watched.page.locator(part).first.bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 844


def test_the_keyboard_reaches_everything_and_the_focus_is_seen(page: str, browser: Any) -> None:
    with watch(browser, page) as watched:
        reachable = sum(watched.page.evaluate(STOPS))
        stops = []
        for _ in range(reachable):
            watched.page.keyboard.press("Tab")
            stops.append(watched.page.evaluate(FOCUSED))
        assert {stop["tag"] for stop in stops} >= {"a", "summary", "input", "svg"}
        assert [stop for stop in stops if not stop["outlined"] or not stop["seen"]] == []
        assert stops[0]["tag"] in ("summary", "a")


def test_contents_lead_to_sections_details_open_and_figures_are_read_by_keys(page: str, browser: Any) -> None:
    with watch(browser, page) as watched:
        shown = watched.page
        for link in shown.locator(".contents a").all():
            link.focus()
            shown.keyboard.press("Enter")
            name = str(link.get_attribute("href"))[1:]
            assert shown.evaluate("() => location.hash") == f"#{name}"
            top = shown.locator(f"#{name} h2").first.bounding_box()["y"]
            assert -1 <= top < 900
        summary = shown.locator("#frontier summary").first
        summary.focus()
        shown.keyboard.press("Enter")
        assert shown.locator("#frontier details").first.get_attribute("open") is not None
        for section in ("frontier", "targeting"):
            figure = shown.locator(f"#{section} .desk svg")
            figure.focus()
            before = shown.locator(f"#{section} .readout").inner_text()
            shown.keyboard.press("ArrowLeft")
            shown.keyboard.press("ArrowLeft")
            after = shown.locator(f"#{section} .readout").inner_text()
            assert after != before
            assert shown.locator(f"#{section} .desk .tip").inner_text() == after  # beside the point, for the eye
        assert watched.errors == []


def test_paper_has_nothing_to_press_and_hides_no_numbers(page: str, browser: Any) -> None:
    with watch(browser, page, viewport={"width": 700, "height": 990}) as watched:
        watched.page.emulate_media(media="print")
        for part in ("input", "button", ".contents", ".tip", ".hint"):
            assert not any(one.is_visible() for one in watched.page.locator(part).all()), part
        for table in watched.page.locator("details:not(.specialists) table").all():
            assert table.is_visible()
        assert watched.page.evaluate(WIDE) == []
        pages = watched.page.pdf(format="A4").count(b"/Type /Page\n")
        assert 5 <= pages <= 14
