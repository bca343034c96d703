"""Markdown to HTML: headings with anchors, coloured code, tables that scroll, and the plain text that the search reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape, unescape

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

LEXERS = {"python": "pycon", "console": "console", "toml": "toml"}
FORMAT = HtmlFormatter(nowrap=True)


@dataclass(frozen=True)
class Heading:
    """A heading of a page: how deep, its anchor and its words."""

    depth: int
    anchor: str
    words: str


@dataclass(frozen=True)
class Rendered:
    """A page as HTML, its headings, and its text by anchor for the search."""

    html: str
    headings: tuple[Heading, ...]
    texts: dict[str, str]

    @property
    def title(self) -> str:
        """The first heading of the page."""
        return self.headings[0].words if self.headings else ""


def make_anchor(words: str) -> str:
    """Return the anchor that GitHub gives a heading.

    >>> make_anchor("Table 1: simulated logs")
    'table-1-simulated-logs'
    """
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")


def colour(code: str, language: str, _attributes: str = "") -> str:
    """Return code as coloured HTML; a language that nobody knows stays plain."""
    name = LEXERS.get(language, language)
    if name == "pycon" and ">>>" not in code:
        name = "python"
    try:
        return highlight(code, get_lexer_by_name(name), FORMAT)
    except ClassNotFound:
        return escape(code)


def style_code() -> str:
    """Return the style sheet of coloured code, in light and in dark, with contrasts that all can read; the ground is the page's."""
    light, dark = _colours("xcode"), _colours("github-dark")
    quiet = "pre code .go, pre code .c1, pre code .gp { color: var(--soft); font-style: normal; }"
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{quiet}\n"


def _colours(style: str) -> str:
    rules = HtmlFormatter(style=style).get_style_defs("pre code").splitlines()
    return "\n".join(rule for rule in rules if rule.startswith("pre code ."))


def render(text: str, link: Callable[[str], str]) -> Rendered:
    """Return a page; `link` says where each address of a link or picture leads."""
    parser = MarkdownIt("commonmark", {"highlight": colour, "html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(text)
    headings = _anchor_headings(tokens)
    _move_links(tokens, link)
    html = parser.renderer.render(tokens, parser.options, {})
    html = html.replace("<table>", '<div class="wide" role="region" aria-label="table" tabindex="0"><table>').replace(
        "</table>", "</table></div>"
    )
    html = re.sub(r"<pre>(?=<code)", '<pre tabindex="0">', html)
    return Rendered(html, headings, _split_texts(html))


def _anchor_headings(tokens: list[Token]) -> tuple[Heading, ...]:
    found: list[Heading] = []
    seen: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        words = "".join(part.content for part in tokens[i + 1].children or [] if part.type in ("text", "code_inline"))
        anchor = make_anchor(words)
        seen[anchor] = seen.get(anchor, -1) + 1
        anchor += f"-{seen[anchor]}" if seen[anchor] else ""
        token.attrSet("id", anchor)
        found.append(Heading(int(token.tag[1]), anchor, words))
    return tuple(found)


def _move_links(tokens: list[Token], link: Callable[[str], str]) -> None:
    for token in tokens:
        for part in token.children or []:
            for name in ("href", "src"):
                if (address := part.attrGet(name)) is not None:
                    part.attrSet(name, link(str(address)))


def _split_texts(html: str) -> dict[str, str]:
    """Return the words below each heading."""
    pieces = re.split(r'<h[1-6] id="([^"]*)">', html)
    return {
        unescape(anchor): " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
        for anchor, body in zip(pieces[1::2], pieces[2::2], strict=True)
    }
