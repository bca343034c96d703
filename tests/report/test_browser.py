"""The page in a real browser: the budget slider shows at every stop what `largesse plan` makes at that budget."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import needs_browser, watch

from largesse.runs import plan

MOVE = """() => {
  const seen = [], input = document.getElementById("budget");
  for (let k = 0; k <= Number(input.max); k += 1) {
    input.value = k;
    input.dispatchEvent(new Event("input"));
    const one = {at: k, text: input.getAttribute("aria-valuetext"), line: document.querySelector("#frontier .slide").getAttribute("x1")};
    document.querySelectorAll("[data-show]").forEach(cell => { one[cell.dataset.show] = cell.textContent; });
    one.levels = Array.from(document.querySelectorAll("[data-level]"), cell => cell.textContent);
    seen.push(one);
  }
  return seen;
}"""


def test_stops_are_what_plan_makes_at_their_budgets(run_copy: Path) -> None:
    stops = json.loads((run_copy / "plan.json").read_text())["frontier"]["stops"]
    assert len(stops) > 10  # the shop's customers are much alike: many steps are equally steep
    for k in np.unique(np.linspace(0, len(stops) - 1, 20).astype(int)):
        made = plan(run_copy, budget=stops[k]["budget"])
        assert made["planned"]["spend"] == pytest.approx(stops[k]["spend"], rel=1e-9, abs=1e-12)
        assert made["planned"]["value"] == pytest.approx(stops[k]["value"], rel=1e-9)
        assert [level["share"] for level in made["money"]["levels"]] == pytest.approx(stops[k]["shares"])
        before, after = stops[max(k - 1, 0)]["price"] or np.inf, stops[min(k + 1, len(stops) - 1)]["price"]
        assert after <= made["planned"]["price"] <= before


@needs_browser
def test_the_slider_shows_the_words_of_every_stop(ran: Path, browser: Any) -> None:
    report = ran / "report.html"
    with watch(browser, report.as_uri()) as watched:
        seen = watched.page.evaluate(MOVE)
    assert watched.errors == []
    assert watched.requests == [report.as_uri()]
    page = report.read_text()
    given = re.search(r'data-stops="(.*?)"', page)
    assert given is not None
    stops = json.loads(unescape(given[1]))
    assert [one["at"] for one in seen] == list(range(len(stops)))
    for one, stop in zip(seen, stops, strict=True):
        for key in ("budget", "spend", "value", "model", "price", "levels"):
            assert one[key] == stop[key]
        assert one["text"] == stop["budget"]
    places = [float(one["line"]) for one in seen]
    assert places == sorted(places)
