"""The page in a real browser: the budget slider shows at every stop what `largesse plan` makes at that budget."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import PHONE, needs_browser, watch

from largesse.pipeline import plan
from largesse.report.numbers import write_percent

MOVE = """async () => {
  const seen = [], input = document.getElementById("budget");
  for (let k = 0; k < 3; k += 1) await new Promise(requestAnimationFrame);  // it is known by then which bars are in sight
  for (let k = 0; k <= Number(input.max); k += 1) {
    input.value = k;
    input.dispatchEvent(new Event("input"));
    const dot = document.querySelector("#frontier .slide-dot");
    const one = {at: k, text: input.getAttribute("aria-valuetext"), line: dot.getAttribute("cx"), up: dot.getAttribute("cy")};
    document.querySelectorAll(".whatif [data-show]").forEach(cell => { one[cell.dataset.show] = cell.textContent; });
    one.levels = Array.from(document.querySelectorAll("[data-level]"), cell => cell.textContent);
    one.bars = Array.from(document.querySelectorAll("#who svg[data-counts]"), svg => ({
      widths: Array.from(svg.querySelectorAll("rect:not(.empty)"), rect => parseFloat(rect.getAttribute("width"))),
      label: svg.getAttribute("aria-label"), cost: svg.closest(".row").querySelector(".number").textContent,
    }));
    one.again = document.getElementById("budget-again").value + " " + document.querySelector("#who [data-show]").textContent;
    one.explains = Array.from(document.querySelectorAll("#who .explains"), cell => cell.textContent);
    seen.push(one);
  }
  return seen;
}"""
SHOWN = ("budget", "spend", "value", "gain", "model", "price", "how", "levels")


def read_stops(report: Path) -> list[dict[str, Any]]:
    given = re.search(r'data-stops="(.*?)"', report.read_text())
    assert given is not None
    stops: list[dict[str, Any]] = json.loads(unescape(given[1]))
    return stops


def list_groups(who: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the groups of all features by feature and label."""
    return {(one["feature"], group["label"]): group for one in who["features"] for group in one["groups"]}


def test_stops_are_what_plan_makes_at_their_budgets_and_so_is_who_gets_what(run_copy: Path) -> None:
    kept = json.loads((run_copy / "plan.json").read_text())
    stops, groups, compared = kept["frontier"]["stops"], list_groups(kept["who"]), 0
    assert len(stops) > 10  # the shop's customers are much alike: many steps are equally steep
    for k in np.unique(np.linspace(0, len(stops) - 1, 25).astype(int)):
        made = plan(run_copy, budget=stops[k]["budget"])
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
    assert compared > 60


def test_the_plan_itself_is_one_of_the_stops(ran: Path) -> None:
    kept = json.loads((ran / "plan.json").read_text())
    (own,) = [stop for stop in kept["frontier"]["stops"] if stop.get("own")]
    assert own["budget"] == kept["budget"]["average"]
    assert (own["spend"], own["value"], own["price"]) == tuple(
        kept["planned"][key] for key in ("spend", "value", "price")
    )
    assert own["counts"] == [level["customers"] for level in kept["money"]["levels"]]
    budgets = [stop["budget"] for stop in kept["frontier"]["stops"]]
    assert budgets == sorted(budgets)
    place = kept["frontier"]["stops"].index(own)
    for group in list_groups(kept["who"]).values():
        assert [count / group["customers"] for count in group["stop_counts"][place]] == group["shares"]
        assert group["stop_costs"][place] == pytest.approx(group["average_cost"])


@needs_browser
def test_the_slider_shows_the_words_of_every_stop_and_who_gets_what(ran: Path, browser: Any) -> None:
    report = ran / "report.html"
    with watch(browser, report.as_uri()) as watched:
        start = watched.page.evaluate("() => document.getElementById('budget').value")
        watched.page.locator("#who figure").first.scroll_into_view_if_needed()
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


@needs_browser
def test_the_slider_answers_to_keys_and_goes_back_to_the_plan(ran: Path, browser: Any) -> None:
    with watch(browser, (ran / "report.html").as_uri(), **PHONE) as watched:
        page, stops = watched.page, read_stops(ran / "report.html")
        page.focus("#budget")
        first = page.locator(".whatif [data-show=budget]").inner_text()
        assert page.locator(".back").is_hidden()
        page.keyboard.press("ArrowLeft")
        assert page.locator(".whatif [data-show=budget]").inner_text() != first
        page.keyboard.press("End")
        assert page.locator("#budget").get_attribute("aria-valuetext") == stops[-1]["say"]
        assert page.locator("#who [data-show=budget]").inner_text() == stops[-1]["budget"]
        page.click(".back button")
        assert page.locator(".whatif [data-show=budget]").inner_text() == first
        assert watched.find_barriers() == []


@needs_browser
def test_bars_out_of_sight_follow_when_the_slider_rests_and_paper_says_the_budget(ran: Path, browser: Any) -> None:
    with watch(browser, (ran / "report.html").as_uri(), viewport={"width": 1280, "height": 300}) as watched:
        page, stops = watched.page, read_stops(ran / "report.html")
        bar = page.locator("#who svg[data-counts]").last
        before = bar.get_attribute("aria-label")
        page.focus("#budget")
        page.keyboard.press("Home")
        page.wait_for_function(
            "was => [...document.querySelectorAll('#who svg[data-counts]')].pop().ariaLabel !== was", arg=before
        )
        assert "€0 100\u202f%" in (bar.get_attribute("aria-label") or "")
        page.emulate_media(media="print")
        for place in (".whatif", "#who"):
            shown = page.locator(f"{place} [data-show=budget]")
            assert shown.is_visible()
            assert shown.inner_text() == stops[0]["budget"]
        assert not page.locator("#budget").is_visible()


@needs_browser
def test_on_a_phone_long_sections_are_folded_and_links_open_them(ran: Path, browser: Any) -> None:
    with watch(browser, (ran / "report.html").as_uri(), **PHONE) as watched:
        page = watched.page
        text = page.locator("#glossary dl")
        assert page.locator("#glossary h2").is_visible()
        assert not text.is_visible()
        assert page.locator("#who figure").first.is_visible()
        page.click(".contents a[href='#glossary']")
        text.wait_for(state="visible")
        page.locator("#glossary summary").click()
        text.wait_for(state="hidden")
        page.click("#why summary")
        assert page.locator("#why table").is_visible()
        assert watched.find_barriers() == []
    with watch(browser, (ran / "report.html").as_uri()) as watched:
        assert watched.page.locator(".fold").count() == 0
