"""What the site holds: which file becomes which page, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CHAPTERS = (  # pages of experiments, as `largesse experiment page` names them
    "table-1-simulated-logs",
    "table-2-nested-labels",
    "choice-of-kernel",
    "how-much-balance-kappa",
    "proposition-3-what-monotonicity-is-worth-as-levels-grow-in-number",
    "error-by-rows",
    "worlds-drawn-at-random",
    "exploring-for-the-next-evaluation",
    "what-a-check-of-a-campaign-finds",
    "tests-of-the-stated-size",
    "pacing-against-the-offline-optimum",
)

# Chapter → files, each relative to the repository. A file that is named here is a page; nothing else is.
CONTENTS: dict[str, tuple[str, ...]] = {
    "Start": ("docs/index.md", "docs/start.md"),
    "Tutorials": (
        "docs/tutorials/thornton.md",
        "docs/tutorials/rand.md",
        "docs/tutorials/awkward.md",
        "docs/tutorials/loop.md",
    ),
    "How to": (
        "docs/howto/studio.md",
        "docs/howto/read-the-report.md",
        "docs/howto/check-a-log.md",
        "docs/howto/set-costs.md",
        "docs/howto/profit.md",
        "docs/howto/keep-rules.md",
        "docs/howto/new-customers.md",
        "docs/howto/export.md",
        "docs/howto/serve.md",
        "docs/howto/explain.md",
        "docs/howto/notebook.md",
        "docs/howto/save-time.md",
        "docs/howto/pace.md",
        "docs/howto/next-campaign.md",
        "docs/howto/large-tables.md",
        "docs/spark.md",
    ),
    "Understand": ("docs/method.md", "docs/choose.md", "docs/comparison.md", "docs/glossary.md"),
    "Look up": (
        "docs/campaign.md",
        "docs/run-folder.md",
        "docs/api.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
    ),
    "Results": (
        "docs/results.md",
        *(f"docs/results/{name}.md" for name in CHAPTERS),
        "docs/results/gains.md",
        "docs/results/default.md",
        "docs/experiments.md",
    ),
}
# What experiments print: pages below have it all.
TABLES = (
    *("kappa", "kernels", "rates", "rates_n", "table1", "table2"),
    *("next_log", "check_campaigns", "power", "pace_streams"),
)


@dataclass(frozen=True)
class Page:
    """A page before it is rendered: where its words come from and where it goes.

    Parameters
    ----------
    source
        The file, relative to the repository; links in the text are relative to it.
    target
        The page, relative to the site.
    text
        Markdown.
    chapter
        The heading of the menu under which it stands.
    """

    source: str
    target: str
    text: str
    chapter: str


def place(source: str) -> str:
    """Return where a file's page goes.

    >>> place("docs/howto/set-costs.md"), place("SECURITY.md")
    ('howto/set-costs.html', 'security.html')
    """
    path = source.removeprefix("docs/") if source.startswith("docs/") else source.lower()
    return path.removesuffix(".md") + ".html"


def list_contents() -> dict[str, list[str]]:
    """Return the files of every chapter; what experiments leave in `docs/results` stands at the end, unless it is a part."""
    contents = {chapter: list(sources) for chapter, sources in CONTENTS.items()}
    left = [f"docs/results/{path.name}" for path in sorted((ROOT / "docs" / "results").glob("*.md"))]
    parts = {f"docs/results/{name}.md" for name in TABLES}
    contents["Results"] += [source for source in left if source not in parts and source not in contents["Results"]]
    return contents


def read_pages(written: dict[str, str]) -> list[Page]:
    """Return all pages in the order of the menu; `written` holds the text of pages that no file has."""
    pages: list[Page] = []
    for chapter, sources in list_contents().items():
        for source in sources:
            text = written.get(source) or (ROOT / source).read_text(encoding="utf-8")
            pages.append(Page(source, place(source), text, chapter))
    return pages
