"""The whole site: render every page, check every link, write the search's index; nothing needs a network."""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader

from largesse.version import __version__
from largesse_site.api import write_api
from largesse_site.pages import ROOT, Page, read_pages
from largesse_site.rendering import Rendered, render, style_code

HERE = Path(__file__).parent
ELSEWHERE = ("http://", "https://", "mailto:")


class BrokenLinkError(Exception):
    """Links that lead nowhere, all of them."""


@dataclass
class Book:
    """All pages, and where the files and anchors of links are.

    Parameters
    ----------
    pages
        In the order of the menu.
    files
        Files that pages show or offer, by their place in the site; filled while pages are rendered.
    broken
        What is wrong with links, as "page: link".
    """

    pages: Sequence[Page]
    files: dict[str, Path] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def link(self, page: Page, address: str) -> str:
        """Return the address in the site of what a page's text links to, and remember files to bring along."""
        if address.startswith(ELSEWHERE):
            return address
        path, _, anchor = unquote(address).partition("#")
        source = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), path)) if path else page.source
        target = self._find(source)
        if target is None:
            self.broken.append(f"{page.source}: {address}")
            return address
        start = posixpath.dirname(page.target) or "."
        return posixpath.relpath(target, start) + (f"#{anchor}" if anchor else "")

    def _find(self, source: str) -> str | None:
        here = [page for page in self.pages if page.source == source]
        if here:
            return here[0].target
        file = ROOT / source
        if file.is_dir():  # on GitHub a list of files; here the page that is made of them
            return self._find(f"{source}.md")
        if not source.startswith("docs/") or not file.is_file() or file.suffix not in (".svg", ".png", ".json"):
            return None
        place = source.removeprefix("docs/")
        self.files[place] = file
        return place


def build_site(out: Path) -> list[str]:
    """Write the site into a folder, which is replaced, and return its pages; broken links are refused, all at once."""
    book = Book(read_pages({"docs/api.md": write_api()}))
    rendered = [render(page.text, lambda address, page=page: book.link(page, address)) for page in book.pages]
    book.broken += find_lost_anchors(book.pages, rendered)
    if book.broken:
        raise BrokenLinkError("links lead nowhere:\n  " + "\n  ".join(book.broken))
    shutil.rmtree(out, ignore_errors=True)
    template = Environment(loader=FileSystemLoader(HERE), autoescape=True).get_template("page.html")
    for i, page in enumerate(book.pages):
        root = posixpath.relpath(".", posixpath.dirname(page.target) or ".") + "/"
        html = template.render(
            page=page, body=rendered[i], menu=_menu(book.pages, rendered), root=root, version=__version__,
            before=_neighbour(book.pages, rendered, i - 1), after=_neighbour(book.pages, rendered, i + 1),
        )  # fmt: skip
        _write(out / page.target, html)
    for place, file in book.files.items():
        (out / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, out / place)
    for name in ("style.css", "search.js"):
        shutil.copyfile(HERE / name, out / name)
    _write(out / "code.css", style_code())
    _write(out / "index.js", "const PAGES = " + json.dumps(_index(book.pages, rendered), ensure_ascii=False) + ";\n")
    return [page.target for page in book.pages]


def find_lost_anchors(pages: Sequence[Page], rendered: Sequence[Rendered]) -> list[str]:
    """Return the links of all pages to anchors that their page does not have."""
    both = list(zip(pages, rendered, strict=True))
    known = {page.target: {heading.anchor for heading in body.headings} for page, body in both}
    lost = []
    for page, body in both:
        for address in re.findall(r'href="([^"]+)"', body.html):
            path, _, anchor = unquote(address).partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page.target), path)) if path else page.target
            if anchor and not address.startswith(ELSEWHERE) and anchor not in known.get(target, {anchor}):
                lost.append(f"{page.target}: {address}")
    return lost


def _menu(pages: Sequence[Page], rendered: Sequence[Rendered]) -> dict[str, list[tuple[str, str, bool]]]:
    menu: dict[str, list[tuple[str, str, bool]]] = {}
    for page, body in zip(pages, rendered, strict=True):
        inner = page.source.startswith("docs/results/")
        short = body.title.removeprefix(f"{page.chapter} ")  # "How to set costs" stands under "How to"
        menu.setdefault(page.chapter, []).append(
            (page.target, short if short == body.title else short[:1].upper() + short[1:], inner)
        )
    return menu


def _neighbour(pages: Sequence[Page], rendered: Sequence[Rendered], i: int) -> tuple[str, str] | None:
    return (pages[i].target, rendered[i].title) if 0 <= i < len(pages) else None


def _index(pages: Sequence[Page], rendered: Sequence[Rendered]) -> list[list[str]]:
    """Return what the search reads: address, page, heading and words of every part."""
    found = []
    for page, body in zip(pages, rendered, strict=True):
        for heading in body.headings:
            words = body.texts.get(heading.anchor, "")
            found.append([f"{page.target}#{heading.anchor}", body.title, heading.words, words[:1200]])
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
