"""The page in a real browser: the budget slider shows at every stop what `largesse plan` makes at that budget."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from largesse.runs import plan

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MOVE = """
<script>
var seen = [], input = document.getElementById("budget");
window.onerror = function (words) { seen.push(words); };
for (var k = 0; k <= Number(input.max); k += 1) {
  input.value = k;
  input.dispatchEvent(new Event("input"));
  var one = {at: k, text: input.getAttribute("aria-valuetext"), line: document.querySelector("#frontier .slide").getAttribute("x1")};
  document.querySelectorAll("[data-show]").forEach(function (cell) { one[cell.dataset.show] = cell.textContent; });
  one.levels = Array.from(document.querySelectorAll("[data-level]"), function (cell) { return cell.textContent; });
  seen.push(one);
}
var out = document.createElement("pre");
out.id = "seen";
out.textContent = JSON.stringify(seen);
document.body.appendChild(out);
</script>
"""


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


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
def test_the_slider_shows_the_words_of_every_stop(ran: Path, tmp_path: Path) -> None:
    page = (ran / "report.html").read_text()
    (tmp_path / "page.html").write_text(page.replace("</body>", MOVE + "</body>"))
    command = [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    done = subprocess.run(
        [*command, f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "page.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, flags=re.S)
    assert found is not None, done.stderr[-2000:]
    seen = json.loads(unescape(found[1]))
    given = re.search(r'data-stops="(.*?)"', page)
    assert given is not None
    stops = json.loads(unescape(given[1]))
    assert [one["at"] for one in seen] == list(range(len(stops)))  # nothing else: no error
    for one, stop in zip(seen, stops, strict=True):
        for key in ("budget", "spend", "value", "model", "price", "levels"):
            assert one[key] == stop[key]
        assert one["text"] == stop["budget"]
    places = [float(one["line"]) for one in seen]
    assert places == sorted(places)
