"""The picture of the report shows what the demo says today."""

from pathlib import Path
from typing import Any

import pytest
from browsers import needs_browser
from largesse_site import studio
from largesse_site.screenshot import PICTURE, read_headline, read_mark, run_demo


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_picture_shows_the_headline_of_the_demo(tmp_path: Path) -> None:
    said = read_headline(run_demo(tmp_path / "demo"))
    assert said, "the report has no headline"
    assert read_mark(PICTURE.read_bytes()) == said, "the picture is stale: make docs"


@pytest.mark.slow
@needs_browser
def test_the_picture_of_the_studio_shows_its_words(browser: Any) -> None:
    words, _ = studio.show_studio(browser)
    assert read_mark(studio.PICTURE.read_bytes()) == words, "the picture is stale: make docs"


def test_a_headline_is_read_without_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("<h1 class='x'>It <b>pays</b>:\n 5&nbsp;&lt; 6</h1><svg><text>9</text></svg> <p>At least 4.</p>")
    assert read_headline(page) == "It pays: 5 < 6 At least 4."
