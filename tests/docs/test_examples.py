"""The code of the documentation prints what its pages say."""

import re
import time
from pathlib import Path

import pytest
from examples import MismatchError, read_blocks, run_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    page.relative_to(DOCS).as_posix()
    for page in sorted([DOCS / "start.md", *DOCS.glob("tutorials/*.md"), *DOCS.glob("howto/*.md")])
    if any(read_blocks(page.read_text(encoding="utf-8")))
]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_says(page: str, tmp_path: Path) -> None:
    assert run_page(DOCS / page, tmp_path) > 0


def test_every_tutorial_is_run() -> None:
    assert {page for page in PAGES if "tutorials" in page} == {
        f"tutorials/{p.name}" for p in DOCS.glob("tutorials/*.md")
    }


def test_background_commands_of_a_page_are_stopped(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "work.sh").write_text(
        "trap 'echo stopped > stopped; exit' TERM; echo up > up; while :; do sleep 0.05; done"
    )
    page.write_text("```console\n$ sh work.sh > log 2>&1 &\n$ while ! test -e up; do sleep 0.05; done\n```\n")
    assert run_page(page, tmp_path) == 1
    deadline = time.monotonic() + 30
    while not (tmp_path / "stopped").exists():
        assert time.monotonic() < deadline, "it is still running"
        time.sleep(0.05)


@pytest.mark.parametrize(("text", "place"), [
    ("```python\n>>> 1 + 1\n3\n\n```\n", "page.md:1"),
    ("```console\n$ echo a\nb\n```\n", "echo a"),
    ("```console\n$ echo a; false\na\n```\n", "ended with 1"),
])  # fmt: skip
def test_a_page_that_prints_something_else_is_refused(text: str, place: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(MismatchError, match=re.escape(place)):
        run_page(page, tmp_path)
    page.write_text("```python\n>>> n = 2\n\n```\n\n```python\n>>> n + 1\n3\n\n```\n\n```console\n$ echo a\na\n```\n")
    assert run_page(page, tmp_path) == 3
