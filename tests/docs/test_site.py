"""The documentation: pages for everything, no link that leads nowhere, nothing from the network, figures that are not stale."""

import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from browsers import PHONE, needs_browser, watch
from largesse_site import pictures
from largesse_site.api import GROUPS, public_names, tidy, write_api
from largesse_site.pages import ROOT, TABLES, Page, list_contents
from largesse_site.rendering import make_anchor, render
from largesse_site.site import BrokenLinkError, build_site

from largesse.campaign.file import SECTIONS, TOP


class Reader(HTMLParser):
    """The addresses, ids and picture texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [str(given[name]) for name in ("href", "src") if given.get(name)]
        self.ids |= {str(given["id"])} if given.get("id") else set()
        self.silent += [str(given["src"])] if tag == "img" and not given.get("alt") else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "docs"
    build_site(out)
    return out


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def test_every_link_of_every_page_leads_somewhere(site: Path) -> None:
    readers = {page.resolve(): read(page) for page in site.rglob("*.html")}
    lost = []
    for page, reader in readers.items():
        for link in reader.links:
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            there = (page.parent / path).resolve() if path else page
            if not there.is_file() or (anchor and unquote(anchor) not in readers[there].ids):
                lost.append(f"{page.relative_to(site)}: {link}")
    assert lost == []


def test_nothing_is_loaded_from_a_network_and_every_picture_has_words(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|img|link)[^>]+(?:src|href)=\"(?:https?:)?//", text), page
        assert read(page).silent == [], page
    for sheet in site.rglob("*.css"):
        assert "http" not in sheet.read_text(encoding="utf-8")


def test_the_search_finds_every_page_without_a_server(site: Path) -> None:
    index = (site / "index.js").read_text(encoding="utf-8")
    entries = json.loads(index.removeprefix("const PAGES = ").rstrip(";\n"))
    found = {entry[0].partition("#")[0] for entry in entries}
    assert found == {page.relative_to(site).as_posix() for page in site.rglob("*.html")}


def test_every_page_below_docs_is_in_the_menu() -> None:
    named = [source for sources in list_contents().values() for source in sources]
    listed = set(named)
    assert len(listed) == len(named)
    parts = {f"docs/results/{name}.md" for name in TABLES}
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert there - listed - parts == set()
    assert listed - there == {"docs/api.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"}


def test_the_page_about_the_campaign_file_lists_its_keys() -> None:
    page = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    listed = {
        part.partition("\n")[0].strip("`[]"): set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE))
        for part in page.split("\n## ")[1:]
    }
    assert listed == {"At the top": set(TOP), **{section: set(keys) for section, keys in SECTIONS.items()}}


def test_every_campaign_on_a_page_has_known_keys() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(r"^```toml\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for section, keys in tomllib.loads(block).items():
                assert section in (*TOP, *SECTIONS), path
                assert not isinstance(keys, dict) or set(keys) <= set(SECTIONS[section]), path


def test_the_reference_has_every_public_name_once() -> None:
    entries = re.findall(r"^### (\w+)$", write_api(), re.MULTILINE)
    assert sorted(entries) == public_names()
    assert {name for names in GROUPS.values() for name in names} <= set(public_names())


def test_a_docstring_becomes_a_list_and_code() -> None:
    text = "Add.\n\nParameters\n----------\na, b\n    Numbers,\n    two.\n\n>>> add(1, 2)\n3"
    code = "```python\n>>> add(1, 2)\n3\n```"
    assert tidy(text) == f"Add.\n\n**Parameters**\n\n- `a, b`: Numbers, two.\n\n{code}"


def test_a_link_that_leads_nowhere_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bad = [Page("docs/a.md", "a.html", "# A\n[x](b.md) [y](#none)\n", "Start")]
    monkeypatch.setattr("largesse_site.site.read_pages", lambda _written: bad)
    with pytest.raises(BrokenLinkError, match=r"docs/a.md: b.md") as caught:
        build_site(tmp_path / "site")
    assert "#none" in str(caught.value)
    assert not (tmp_path / "site").exists()


def test_headings_that_repeat_get_anchors_of_their_own() -> None:
    page = render("# One\n\n## Two\n\n## Two\n", str)
    assert [heading.anchor for heading in page.headings] == ["one", "two", "two-1"]
    assert make_anchor("What's `new`?") == "whats-new"


@pytest.mark.parametrize(("name", "draw"), [
    ("curves.svg", pictures.draw_curves),
    ("hull.svg", pictures.draw_hull),
    ("frontier.svg", pictures.draw_best_values),
    pytest.param("promise.svg", pictures.draw_promise, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_figure_is_what_its_code_draws(name: str, draw: object) -> None:
    assert (pictures.FOLDER / name).read_text(encoding="utf-8") == draw()  # type: ignore[operator]


@needs_browser
@pytest.mark.parametrize(
    ("name", "way"),
    [("start.html", {}), ("campaign.html", PHONE), ("comparison.html", {**PHONE, "color_scheme": "dark"})],
    ids=["desk", "phone", "dark phone"],
)
def test_pages_have_no_barriers_and_fit_a_phone(name: str, way: dict[str, Any], site: Path, browser: Any) -> None:
    with watch(browser, (site / name).as_uri(), **way) as watched:
        assert watched.errors == []
        assert not watched.page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
        assert watched.find_barriers() == []
