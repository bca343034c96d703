"""The report in a real browser: read by eye, keyboard and screen reader, on a phone, in the dark and on paper; and its slider."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.pipeline import plan
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
            assert watched.page.evaluate(WIDE) == []


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
        summary = shown.locator("#budget_frontier summary").first
        summary.focus()
        shown.keyboard.press("Enter")
        assert shown.locator("#budget_frontier details").first.get_attribute("open") is not None
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


def test_on_a_phone_long_sections_are_folded_and_links_open_them(ran: Path, browser: Any) -> None:
    with watch(browser, (ran / "report.html").as_uri(), **PHONE) as watched:
        page = watched.page
        text = page.locator("#glossary dl")
        assert page.locator("#glossary h2").is_visible()
        assert not text.is_visible()
        assert page.locator("#segments figure").first.is_visible()
        page.click(".contents a[href='#glossary']")
        text.wait_for(state="visible")
        page.locator("#glossary summary").click()
        text.wait_for(state="hidden")
        page.click("#decision_explanations summary")
        assert page.locator("#decision_explanations table").is_visible()
        assert watched.find_barriers() == []
    with watch(browser, (ran / "report.html").as_uri()) as watched:
        assert watched.page.locator(".fold").count() == 0
