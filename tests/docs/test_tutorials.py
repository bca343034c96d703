"""The documentation's code prints what the page says."""

import time
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


def test_every_tutorial_is_run() -> None:
    assert {source for source in PAGES if "tutorials" in source} == set(CONTENTS["Tutorials"])


def test_what_a_page_leaves_running_is_stopped(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    stop = "trap 'echo stopped > told; exit' TERM; echo up > up; while :; do sleep 0.05; done"
    (tmp_path / "work.sh").write_text(stop)
    page.write_text("```console\n$ sh work.sh > log 2>&1 &\n$ while ! test -e up; do sleep 0.05; done\n```\n")
    assert run_page(page, tmp_path) == 1
    deadline = time.monotonic() + 30
    while not (tmp_path / "told").exists():
        assert time.monotonic() < deadline, "it is still running"
        time.sleep(0.05)


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
