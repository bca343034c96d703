"""The search answers in a real browser, from a page opened as a file, without a server."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from largesse_site.screenshot import BROWSERS
from largesse_site.site import build_site

BROWSER = next((path for path in map(shutil.which, BROWSERS) if path), None)
ASK = """<script>addEventListener("load", () => {
  const box = document.getElementById("search"); box.value = "WORDS"; box.dispatchEvent(new Event("input"));
});</script></body>"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize(
    ("words", "first"),
    [("constraints", "api.html#constraints"), ("budget confidence", "howto/set-costs.html"), ("xyzzy plugh", "")],
)
def test_the_search_answers_on_a_page_opened_as_a_file(words: str, first: str, tmp_path: Path) -> None:
    build_site(tmp_path / "site")
    page = tmp_path / "site" / "tutorials" / "thornton.html"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", ASK.replace("WORDS", words)), encoding="utf-8")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
    dom = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    found = dom.partition('<ol id="found"')[2].partition("</ol>")[0]
    links = re.findall(r'href="\.\./([^"]+)"', found)
    assert any(link.startswith(first) for link in links[:4]) if first else "Nothing found." in found
