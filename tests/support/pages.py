"""Reading a page as a browser would: tags that close, what it would load, and the words a reader sees."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}
LOADING = {"src", "href", "xlink:href", "srcset", "data"}


class Page(HTMLParser):
    """Collects tags, those that do not close in order, ids, attributes, those that could load something, code and comments."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []  # tag, name, value
        self.code: list[str] = []  # scripts, styles and comments
        self.feed(text)
        self.close()

    @property
    def sound(self) -> bool:
        """Whether every tag closes in order and nothing is loaded from elsewhere."""
        return not (self.open or self.wrong or self.loads)

    @property
    def scripts(self) -> int:
        return self.tags.count("script")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.note(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, attrs)

    def note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [str(given["id"])] if "id" in given else []
        within = str(given.get("href")).startswith("#")  # leads to a place on the same page
        self.loads += [key for key in given if (key in LOADING and not (key == "href" and within)) or key[:2] == "on"]
        self.loads += [tag] if tag in ("img", "link", "iframe", "object", "base") else []

    def handle_data(self, data: str) -> None:
        self.code += [data] if self.cdata_elem else []

    def handle_comment(self, data: str) -> None:
        self.code.append(data)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def visible(page: str) -> str:
    """The words of a page, tooltips and labels included, without style and script."""
    return re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.S)


def figures(text: str) -> list[float]:
    """The numbers of a text, in order and with their signs; a sign may stand before a currency."""
    found = re.findall(r"([+−-]?)[€$\u2060]*(\d[\d,]*(?:\.\d+)?)", text)
    return [float(number.replace(",", "")) * (-1 if sign in ("−", "-") else 1) for sign, number in found]
