"""The pages of results: files of results in; a page with the summary, a page for each experiment and its figures out.

A file of results is JSON with ``experiment``, ``made`` (command, machine, date, repeats, versions) and ``summary``. Pages are
listed in the order of the catalogue of experiments; words come from the experiments' chapters.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from largesse.errors import Problem, refuse
from largesse.report import DASH
from largesse_lab.bench.jobs import write_text
from largesse_lab.page.sections import Chapter, Result, write_section
from largesse_lab.page.tables import write_table
from largesse_lab.page.words import GUIDE, OPENING

NEEDED = ("experiment", "made", "summary")
Chapters = Mapping[str, Chapter]  # by the name of the experiment, in the order of the page


def write_page(folder: Path, out: Path, chapters: Chapters) -> None:
    """Write the page `out`, with the summary, from the results in `folder`; next to the results, their pages and figures."""
    found = read_results(folder, chapters)
    where = Path(os.path.relpath(folder, Path(out).parent)).as_posix()
    back = Path(os.path.relpath(out, folder)).as_posix()
    for result in found:
        chapter = find_chapter(result.experiment, chapters)
        section = write_section(result, chapter, ".")
        for name, svg in section.figures.items():
            write_text(Path(folder) / name, svg + "\n")
        write_text(Path(folder) / name_page(chapter.title), _write_chapter(section.parts, back))
    parts = [OPENING, _write_brief(found, chapters, where), GUIDE.format(folder=where)]
    parts.append(_write_runs(found, chapters, where))
    write_text(out, "\n\n".join(part.strip() for part in parts if part) + "\n")


def name_page(title: str) -> str:
    """Return the file of an experiment's page: its title in plain letters.

    >>> name_page("How much balance: κ")
    'how-much-balance-kappa.md'
    """
    plain = re.sub(r"[^\w\- ]", "", title.lower().replace("κ", "kappa"))
    return plain.replace(" ", "-") + ".md"


def _write_chapter(parts: Sequence[str], back: str) -> str:
    """Return the page of an experiment; headings are a rank higher than in a page that holds several."""
    heading, *rest = "\n\n".join(part.strip() for part in parts if part).split("\n\n")
    guide = (
        f"One of [the experiments]({back}), where [names and measures]({back}#how-to-read-these-pages) are explained."
    )
    return re.sub(r"^#(#+ )", r"\1", "\n\n".join([heading, guide, *rest]), flags=re.MULTILINE) + "\n"


def find_chapter(experiment: str, chapters: Chapters) -> Chapter:
    """Return the chapter of an experiment; an unknown one has its name as title."""
    return chapters.get(experiment, Chapter(experiment))


def read_results(folder: Path, chapters: Chapters) -> list[Result]:
    """Return the results of a folder, in the order of the chapters; refuse files that hold none."""
    results, problems = [], []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            problems.append(Problem(f"{path.name} is not JSON: {error}", "run its experiment again, or move it away"))
            continue
        missing = [key for key in NEEDED if not isinstance(found, dict) or key not in found]
        if missing:
            problems.append(Problem(f"{path.name} has no {' and no '.join(missing)}", "move it out of the folder"))
        else:
            results.append(Result(found["experiment"], found["made"], found["summary"], path.name))
    if not results and not problems:
        hint = "run an experiment first, such as largesse experiment rates"
        problems.append(Problem(f"{folder} has no results", hint))
    refuse("results", problems)
    order = {name: place for place, name in enumerate(chapters)}
    return sorted(results, key=lambda result: (order.get(result.experiment, len(order)), result.file))


def _write_brief(results: Sequence[Result], chapters: Chapters, where: str) -> str:
    """Return the page's summary: one item for each experiment that has something to say."""
    lines = []
    for result in results:
        chapter = find_chapter(result.experiment, chapters)
        brief = chapter.brief(result.summary)
        lines += [f"- **[{chapter.title}]({where}/{name_page(chapter.title)}).** {brief}"] if brief else []
    return "## Summary\n\n" + "\n".join(lines) if lines else ""


def _write_runs(results: Sequence[Result], chapters: Chapters, where: str) -> str:
    """Return a table of what was run: command, repeats, machine, date and versions."""
    rows = []
    for result in results:
        made, title = result.made, find_chapter(result.experiment, chapters).title
        versions = made.get("versions") or {}
        packages = ", ".join(f"{name} {version}" for name, version in versions.items())
        command = f"`{made['command']}`" if made.get("command") else DASH
        cells = [str(made.get(key) or DASH) for key in ("repeats", "machine", "date")]
        rows.append([f"[{title}]({where}/{name_page(title)})", command, *cells, packages or DASH])
    return write_table(["experiment", "command", "repeats", "machine", "date", "versions"], rows, words=6)
