"""Titles, names and values that try to become part of a page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from commands import call, judge, own_folder
from harness import FINE, Outcome

MARK = "zqx"  # in every hostile text, and nowhere else
PAYLOADS = (
    f"<script>alert('{MARK}')</script>",
    f"</script><script>alert('{MARK}')</script>",
    f"</title><img src={MARK} onerror=alert(1)>",
    f'"><svg onload=alert("{MARK}")>',
    f"' onmouseover='alert(1)' {MARK}='",
    f'" autofocus onfocus="alert(1)" {MARK}="',
    f"</style><style>*{{background:url({MARK})}}</style>",
    f"<!--{MARK}",
    f"-->{MARK}<b {MARK}>",
    f"]]><{MARK}/>",
    f"{{{{ {MARK} }}}}{{% for x in y %}}",
    f"&lt;script {MARK}&gt;",
    f"javascript:alert('{MARK}')",
    f"\u2028</svg><{MARK}>",
    f"</textarea></noscript></svg></math><{MARK} onclick=alert(1)>",
    f"\\u003c{MARK}\\u003e",
    f"${{{MARK}}}`{MARK}`",
)
HANDLERS = re.compile(r"^on[a-z]+$")
SHOWN = {
    "aria-label",
    "aria-valuetext",
    "title",
    "data-stops",  # JSON whose texts the script puts in place as text
    "data-names",
    "data-costs",
    "data-tip",
    "content",
    "alt",
    "data-readout",
    "data-label",
}  # attributes that hold words


class Elements(HTMLParser):
    """Every element and attribute of a page, and its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.code: list[str] = []
        self.comments: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("script", "style") and self.cdata_elem:
            self.code.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def attack(seed: int) -> Outcome:
    """Run a campaign full of hostile texts, and a checkup of its log; read both pages as a browser does."""
    rng = np.random.default_rng(seed)
    texts = [str(text) for text in rng.permutation(np.array(PAYLOADS, dtype=object))]
    with own_folder() as folder:
        write_campaign(folder, texts, rng)
        for words in (["run", "c.toml", "--out", "r"], ["doctor", "c.toml", "--out", "d.html"]):
            answer = call(*words)
            if answer.code:
                found = judge(answer, *words)
                return found if not found.good else Outcome("wrong", f"{words} refused: {answer.shown[:300]}")
        for page in (folder / "r" / "report.html", folder / "d.html"):
            if found := read_page(page):
                return Outcome("injected", f"{page.name}: {found}")
        if seed % 50 == 0 and (shown := open_page(folder / "r" / "report.html")):
            return Outcome("injected", f"in a browser: {shown}")
    return FINE


def write_campaign(folder: Path, texts: list[str], rng: np.random.Generator) -> None:
    """Write a log whose columns, values, levels, title, unit and file name are hostile."""
    rows, K = 120, 3
    level, response, age, city, log_name = (
        text.replace("/", "∕") if i == 4 else text for i, text in enumerate(texts[:5])
    )
    names, cities = texts[5 : 5 + K], np.array(texts[8:11], dtype=object)
    codes = np.arange(rows) % K
    table = pa.table(
        {
            level: pa.array([names[k] for k in codes]),
            response: (rng.random(rows) < 0.2 + 0.2 * codes).astype(int),
            age: rng.normal(size=rows) + codes,
            city: pa.array(list(cities[rng.integers(0, 3, rows)])),
        }
    )
    pq.write_table(table, folder / f"{log_name}.parquet")

    def q(value: Any) -> str:  # JSON's texts are TOML's
        return json.dumps(value).replace("\\/", "/")

    lines = [f"title = {q(texts[11])}", f"unit = {q(texts[12])}", f"log = {q(log_name + '.parquet')}", "[columns]"]
    lines += [
        f"level = {q(level)}",
        f"response = {q(response)}",
        "[levels]",
        f"names = {q(names)}",
        "costs = [0, 5, 10]",
    ]
    lines += ["[plan]", "budget = 3", "[model]", 'name = "linear"']
    (folder / "c.toml").write_text("\n".join(lines), encoding="utf-8")


def read_page(path: Path) -> str:
    """Return what came in from the data, if anything: an element, an attribute, a script, a style or a comment."""
    page = path.read_text(encoding="utf-8")
    found = Elements(page)
    if MARK not in page:
        return "the page shows none of the texts"
    if odd := [tag for tag in found.tags if MARK in tag or tag in ("img", "iframe", "object", "embed", "base", "link")]:
        return f"elements {odd}"
    if found.tags.count("script") > 1:
        return f"{found.tags.count('script')} scripts"
    for tag, name, value in found.attributes:
        if HANDLERS.match(name) or MARK in name:
            return f"attribute {name} of {tag}"
        if MARK in value and (name in ("href", "src", "style", "id", "class") or name not in SHOWN):
            return f"{name}={value[:80]!r} of {tag}"
    if "innerHTML" in "".join(found.code) or "insertAdjacent" in "".join(found.code):
        return "the page's own script makes elements from text"
    if odd := [code for code in (*found.code, *found.comments) if MARK in code]:
        return f"in code: {odd[0][:200]!r}"
    return ""


def open_page(path: Path) -> str:
    """Open the page in a browser, if there is one; return the hostile elements of what it made of it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        return ""
    asked = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run([*asked, path.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    found = Elements(done.stdout)
    handlers = [name for _, name, _ in found.attributes if HANDLERS.match(name)]
    foreign = [tag for tag in found.tags if MARK in tag or tag == "img"]
    return f"{handlers} {foreign}" if handlers or foreign or found.tags.count("script") > 1 else ""
