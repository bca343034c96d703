"""Write the second table of docs/claims.md from docs/results.md and its pages: `python docs/tools/claims.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "claims.md"
RESULTS = ROOT / "docs" / "results.md"
START = "<!-- the rest of this page is written by docs/tools/claims.py -->\n"
FINDING = re.compile(r"^- (\*\*.*?)(?=^- |^\*\*|^#|^$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((results/\w+\.md)\)")
COMMAND = re.compile(r"`([^`]*(?:largesse experiment|python benchmarks/)[^`]*)`")
NUMBER = re.compile(r"(?<![\w.\-])\d[\d,]*(?:\.\d+)*")
ROW = re.compile(r"^\| (.*?) \| (.*?) \| (`.*?`) \| (\d{4}-\d\d-\d\d) \| (.*?) \|$", re.MULTILINE)
# Pages that do not state date and machine: the date of the commit with the numbers, and the machine where it is known.
MADE = {
    "bound": ("2026-11-16", "16 CPU cores"),
    "default": ("2026-11-16", "not recorded"),
    "gains": ("2026-11-16", "one CPU core"),
    "hard_logs": ("2026-11-18", "16 CPU cores"),
    "profit": ("2026-11-18", "not recorded; one process"),
    "scale": ("2026-11-16", "two CPU cores of a Xeon, and 16"),
    "served_log": ("2026-11-18", "not recorded"),
    "serving": ("2026-11-16", "two CPU cores, shared"),
}
REPEATED = {
    "default": "largesse experiment worlds --seeds 0-199 --rows 2000 --out results"
}  # the command of another page


class Claim(NamedTuple):
    """A claim, the page that makes it, and the command, date and machine of its numbers."""

    text: str
    where: str
    command: str
    date: str
    machine: str


def read_claims() -> list[Claim]:
    """Return the rows of both tables of docs/claims.md."""
    return [Claim(*row) for row in ROW.findall(PAGE.read_text(encoding="utf-8"))]


def read_prose(path: Path) -> str:
    """Return a page without code, headings of links, and addresses."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "", text))


def trace_page(name: str) -> tuple[str, str, str]:
    """Return the command, date and machine of a page in docs/results."""
    text = (RESULTS.parent / "results" / f"{name}.md").read_text(encoding="utf-8")
    first = COMMAND.search(text)
    command = REPEATED.get(name) or (first[1] if first else "")
    made = re.search(r"`[^`]*` \((?:[\d,]+ repeats; )?(.*?); (\d{4}-\d\d-\d\d)", text.partition("\n\n")[2])
    date, machine = MADE.get(name) or ((made[2], made[1]) if made else ("", ""))
    if not (command and date and machine):
        raise ValueError(f"docs/results/{name}.md states no command, date or machine: name them there or in {__file__}")
    return command.replace("\n", " "), date, machine.replace("|", r"\|")


def list_findings() -> Iterator[Claim]:
    """Yield the findings of docs/results.md, each with the command of every page that it links to."""
    for match in FINDING.finditer(RESULTS.read_text(encoding="utf-8")):
        text = " ".join(match[1].split())
        for link in dict.fromkeys(LINK.findall(text)):
            command, date, machine = trace_page(Path(link).stem)
            claim = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("|", r"\|")
            yield Claim(claim, f"[{Path(link).stem}]({link})", f"`{command}`", date, machine)


def write_page() -> str:
    """Return the page with its second table as it should be."""
    head = PAGE.read_text(encoding="utf-8").partition(START)[0]
    rows = [f"| {' | '.join(claim)} |" for claim in list_findings()]
    table = ["| claim | page | command | date | machine |", "|---|---|---|---|---|", *rows]
    return "\n".join([head + START, "## Findings on the results page", "", *table, ""])


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
