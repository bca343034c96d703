"""The report in a real browser: read by eye, keyboard and screen reader, on a phone, in the dark and on paper; and its slider."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.pipeline import plan, report
from largesse.report import render_report
from largesse.report.number_format import write_percent
from support.browsers import PHONE, watch

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
MOVE = """async () => {
  const seen = [], input = document.getElementById("budget");
  for (let k = 0; k < 3; k += 1) await new Promise(requestAnimationFrame);  // it is known by then which bars are in sight
  for (let k = 0; k <= Number(input.max); k += 1) {
    input.value = k;
    input.dispatchEvent(new Event("input"));
    const dot = document.querySelector("#budget_frontier .slide-dot");
    const one = {at: k, text: input.getAttribute("aria-valuetext"), line: dot.getAttribute("cx"), up: dot.getAttribute("cy")};
    document.querySelectorAll(".whatif [data-show]").forEach(cell => { one[cell.dataset.show] = cell.textContent; });
    one.levels = Array.from(document.querySelectorAll("[data-level]"), cell => cell.textContent);
    one.bars = Array.from(document.querySelectorAll("#segments svg[data-counts]"), svg => ({
      widths: Array.from(svg.querySelectorAll("rect:not(.empty)"), rect => parseFloat(rect.getAttribute("width"))),
      label: svg.getAttribute("aria-label"), cost: svg.closest(".row").querySelector(".number").textContent,
    }));
    one.again = document.getElementById("budget-again").value + " " + document.querySelector("#segments [data-show]").textContent;
    one.explains = Array.from(document.querySelectorAll("#segments .explains"), cell => cell.textContent);
    seen.push(one);
  }
  return seen;
}"""
SHOWN = ("budget", "spend", "value", "gain", "model", "price", "how", "levels")


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
def test_nobody_has_to_scroll_sideways_and_a_phone_shows_the_verdict_first(
    which: str, browser: Any, request: pytest.FixtureRequest
) -> None:
    with watch(browser, request.getfixturevalue(which), **PHONE) as watched:
        for part in ("h1", ".verdict") if which == "page" else ():
            box = watched.page.locator(part).first.bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 844
        watched.page.evaluate(OPEN)
        for width in (1280, 800, 390, 320):
            watched.page.set_viewport_size({"width": width, "height": 844})
            assert watched.page.evaluate(WIDE) == [], width


def test_the_keyboard_reaches_everything_and_the_focus_is_seen(page: str, browser: Any) -> None:
    with watch(browser, page) as watched:
        watched.page.evaluate(OPEN)
        reachable = sum(watched.page.evaluate(STOPS))
        stops = []
        for _ in range(reachable):
            watched.page.keyboard.press("Tab")
            stops.append(watched.page.evaluate(FOCUSED))
        assert {stop["tag"] for stop in stops} >= {"summary", "button", "input", "svg"}
        assert [stop for stop in stops if not stop["outlined"] or not stop["seen"]] == []
        assert stops[0]["tag"] in ("summary", "button")


def test_sections_are_folded_open_by_key_and_by_link_and_figures_are_read_by_keys(page: str, browser: Any) -> None:
    with watch(browser, f"{page}#segments") as watched:
        shown = watched.page
        assert [fold.get_attribute("open") is not None for fold in shown.locator(".fold").all()].count(True) == 1
        assert shown.locator("#segments figure").first.is_visible()
        assert not shown.locator("#glossary dl").is_visible()
        for part in ("#budget_frontier > details > summary", "#budget_frontier details details summary"):
            summary = shown.locator(part).first
            summary.focus()
            shown.keyboard.press("Enter")
        assert shown.locator("#budget_frontier table").first.is_visible()
        for name in ("Close all sections", "Open all sections"):
            if not shown.get_by_role("button", name=name).count():
                shown.get_by_role("button", name="Open all sections").click()
            shown.get_by_role("button", name=name).click()
        assert shown.locator(".fold:not([open])").count() == 0
        for section in ("budget_frontier", "qini_curve"):
            figure = shown.locator(f"#{section} .desk svg")
            figure.focus()
            before = shown.locator(f"#{section} .readout").inner_text()
            shown.keyboard.press("ArrowLeft")
            shown.keyboard.press("ArrowLeft")
            after = shown.locator(f"#{section} .readout").inner_text()
            assert after != before
            assert shown.locator(f"#{section} .desk .tip").inner_text() == after  # beside the point, for the eye
        assert watched.errors == []


SMALL_PRINT = """() => Array.from(document.querySelectorAll("body *"), e => {
  if (!e.checkVisibility() || !Array.from(e.childNodes).some(n => n.nodeType === 3 && n.textContent.trim())) return null;
  const svg = e.closest("svg"), own = parseFloat(getComputedStyle(e).fontSize), box = svg && svg.viewBox.baseVal;
  const size = box && box.width ? own * Math.min(svg.clientWidth / box.width, svg.clientHeight / box.height) : own;
  return size * 0.75 < 8 ? `${e.tagName}.${e.getAttribute("class")}: ${size * 0.75}` : null;
}).filter(Boolean)"""
TOUCHING = """() => Array.from(document.querySelectorAll("svg.ticks"), svg => {
  const seen = Array.from(svg.querySelectorAll("text")).filter(e => getComputedStyle(e).visibility !== "hidden");
  const boxes = seen.map(e => e.getBoundingClientRect()).filter(b => b.width > 0).sort((a, b) => a.left - b.left);
  return boxes.some((box, i) => i && box.left < boxes[i - 1].right + 1);
}).filter(Boolean).length"""
BROKEN = """() => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement.checkVisibility() || node.parentElement.closest("script, style, svg")) continue;
    for (const word of node.textContent.matchAll(/[\\p{L}\\p{N}]{2,18}/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const boxes = Array.from(range.getClientRects()).filter(box => box.width > 0);
      if (boxes.length > 1 && boxes[boxes.length - 1].top > boxes[0].top + 4) found.push(word[0]);
    }
  }
  return found;
}"""


@pytest.mark.parametrize("width", [1280, 800, 390])
def test_no_word_is_broken_and_no_ticks_touch(page: str, width: int, browser: Any) -> None:
    with watch(browser, page, viewport={"width": width, "height": 900}) as watched:
        watched.page.evaluate(OPEN)
        assert watched.page.evaluate(BROKEN) == []
        assert watched.page.evaluate(TOUCHING) == 0


def count_pages(page: Any) -> int:
    return int(page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n"))


def test_paper_is_one_page_until_sections_are_opened(ran: Path, browser: Any, tmp_path: Path) -> None:
    short = tmp_path / "short.html"
    report(ran, short, short=True)
    for page in (short, ran / "report.html"):
        with watch(browser, page.as_uri()) as watched:
            assert count_pages(watched.page) == 1
    with watch(browser, (ran / "report.html").as_uri(), viewport={"width": 695, "height": 990}) as watched:
        watched.page.emulate_media(media="print")
        assert not watched.page.locator("#segments").is_visible()
        watched.page.evaluate(OPEN)
        for part in ("input", "button", ".more-below", ".tip", ".hint"):
            assert not any(one.is_visible() for one in watched.page.locator(part).all()), part
        for table in watched.page.locator(".fold table:not(.specialists table)").all():
            assert table.is_visible()
        assert watched.page.evaluate(WIDE) == []
        assert watched.page.evaluate(SMALL_PRINT) == []
        assert 5 <= count_pages(watched.page) <= 14


def read_stops(report: Path) -> list[dict[str, Any]]:
    given = re.search(r'data-stops="(.*?)"', report.read_text())
    assert given is not None
    stops: list[dict[str, Any]] = json.loads(unescape(given[1]))
    return stops


def list_groups(who: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the groups of all features by feature and label."""
    return {(one["feature"], group["label"]): group for one in who["features"] for group in one["groups"]}


def test_stops_are_the_plans_at_their_budgets_and_one_is_the_plan_itself(run_copy: Path) -> None:
    kept = json.loads((run_copy / "plan.json").read_text())
    stops, groups, compared = kept["frontier"]["stops"], list_groups(kept["who"]), 0
    budgets = [stop["budget"] for stop in stops]
    assert budgets == sorted(budgets)
    (own,) = [k for k, stop in enumerate(stops) if stop["own"]]
    assert budgets[own] == kept["budget"]["average"]
    assert all(stops[own][key] == kept["planned"][key] for key in ("spend", "value", "price"))
    for group in groups.values():
        assert [count / group["customers"] for count in group["stop_counts"][own]] == group["shares"]
    assert len(stops) > 10  # the shop's customers are much alike: many steps are equally steep
    for k in {*np.linspace(0, len(stops) - 1, 12).astype(int), own}:
        made = plan(run_copy, budget=budgets[k])
        assert made["planned"]["spend"] == pytest.approx(stops[k]["spend"], rel=1e-9, abs=1e-12)
        assert made["planned"]["value"] == pytest.approx(stops[k]["value"], rel=1e-9)
        assert [level["share"] for level in made["money"]["levels"]] == pytest.approx(stops[k]["shares"])
        assert [level["customers"] for level in made["money"]["levels"]] == stops[k]["counts"]
        before, after = stops[max(k - 1, 0)]["price"] or np.inf, stops[min(k + 1, len(stops) - 1)]["price"]
        assert after <= made["planned"]["price"] <= before
        for name, group in list_groups(made["who"]).items():
            if name in groups:  # another plan may be explained by other features
                counts = [share * group["customers"] for share in group["shares"]]
                assert counts == pytest.approx(groups[name]["stop_counts"][k])
                assert group["average_cost"] == pytest.approx(groups[name]["stop_costs"][k], rel=1e-6, abs=1e-9)
                compared += 1
    assert compared > 30


def test_the_slider_shows_the_words_of_every_stop_and_who_gets_what(ran: Path, browser: Any) -> None:
    report = ran / "report.html"
    with watch(browser, report.as_uri()) as watched:
        start = watched.page.evaluate("() => document.getElementById('budget').value")
        watched.page.evaluate(OPEN)
        watched.page.locator("#segments figure").first.scroll_into_view_if_needed()
        seen = watched.page.evaluate(MOVE)
    assert watched.errors == []
    assert watched.requests == [report.as_uri()]
    stops, kept = read_stops(report), json.loads((ran / "plan.json").read_text())
    assert kept["frontier"]["stops"][int(start)]["own"]
    assert [one["at"] for one in seen] == list(range(len(stops)))
    groups = [group for feature in kept["who"]["features"] for group in feature["groups"]]
    for k, (one, stop) in enumerate(zip(seen, stops, strict=True)):
        assert {key: one[key] for key in SHOWN} == {key: stop[key] for key in SHOWN}
        assert one["text"] == stop["say"]
        assert one["again"] == f"{k} {stop['budget']}"
        for bar, group in zip(one["bars"], groups, strict=True):
            counts = np.array(group["stop_counts"][k])
            assert bar["widths"] == pytest.approx(100 * counts / counts.sum(), abs=0.001)
            assert bar["label"].startswith(group["label"] + ": €0 ")
    places = [float(one["line"]) for one in seen]
    assert places == sorted(places)
    assert float(seen[-1]["up"]) < float(seen[0]["up"])  # more budget brings more
    explains = [write_percent(feature["explains"]) for feature in kept["who"]["features"]]
    assert seen[int(start)]["explains"] == explains


def test_the_slider_answers_to_keys_goes_back_and_paper_says_the_budget(ran: Path, browser: Any) -> None:
    with watch(browser, (ran / "report.html").as_uri(), viewport={"width": 1280, "height": 300}) as watched:
        page, stops = watched.page, read_stops(ran / "report.html")
        bar, budget = page.locator("#segments svg[data-counts]").last, page.locator(".whatif [data-show=budget]")
        page.evaluate(OPEN)
        first, before = budget.inner_text(), bar.get_attribute("aria-label")
        page.focus("#budget")
        assert page.locator(".back").is_hidden()
        page.keyboard.press("ArrowLeft")
        assert budget.inner_text() != first
        page.keyboard.press("End")
        assert page.locator("#budget").get_attribute("aria-valuetext") == stops[-1]["say"]
        assert page.locator("#segments [data-show=budget]").inner_text() == stops[-1]["budget"]
        page.click(".back button")
        assert budget.inner_text() == first
        page.focus("#budget")
        page.keyboard.press("Home")  # bars out of sight follow when the slider rests
        page.wait_for_function(
            "was => [...document.querySelectorAll('#segments svg[data-counts]')].pop().ariaLabel !== was", arg=before
        )
        assert "€0 100\u202f%" in (bar.get_attribute("aria-label") or "")
        page.emulate_media(media="print")
        for place in (".whatif", "#segments"):
            shown = page.locator(f"{place} [data-show=budget]")
            assert shown.is_visible()
            assert shown.inner_text() == stops[0]["budget"]
        assert not page.locator("#budget").is_visible()
