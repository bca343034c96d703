"""The documentation's code prints what the page says."""

from pathlib import Path

import pytest
from largesse_site.pages import CONTENTS, ROOT
from largesse_site.tutorials import MismatchError, read_blocks, run_page

PAGES = [
    source
    for chapter in ("Start", "Tutorials", "How to")
    for source in CONTENTS[chapter]
    if any(read_blocks((ROOT / source).read_text(encoding="utf-8")))
]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("source", PAGES)
def test_a_page_prints_what_it_says(source: str, tmp_path: Path) -> None:
    assert run_page(ROOT / source, tmp_path) > 0


def test_three_tutorials_are_run() -> None:
    assert {source for source in PAGES if "tutorials" in source} == set(CONTENTS["Tutorials"])


def test_a_page_that_says_something_else_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> n = 2\n\n```\n\n```python\n>>> n + 1\n3\n\n```\n\n```console\n$ echo a\na\n```\n")
    assert run_page(page, tmp_path) == 3
    page.write_text("```python\n>>> 1 + 1\n3\n\n```\n")
    with pytest.raises(MismatchError, match=r"page.md:1"):
        run_page(page, tmp_path)
    page.write_text("```console\n$ echo a\nb\n```\n")
    with pytest.raises(MismatchError, match="echo a"):
        run_page(page, tmp_path)
    page.write_text("```console\n$ echo a; false\na\n```\n")
    with pytest.raises(MismatchError, match="ended with 1"):
        run_page(page, tmp_path)
