"""The page of results: files of results in, one Markdown page with its figures out.

A file of results is JSON with ``experiment``, ``made`` (command, machine, date, repeats, versions) and ``summary``. The page has
a section for every file, in the order of the catalogue of experiments; words come from the experiments' chapters.
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
    """Write the page `out` from the results in `folder`, and its figures next to the results."""
    found = read_results(folder, chapters)
    where = Path(os.path.relpath(folder, Path(out).parent)).as_posix()
    sections = [write_section(result, find_chapter(result.experiment, chapters), where) for result in found]
    for section in sections:
        for name, svg in section.figures.items():
            write_text(Path(folder) / name, svg + "\n")
    parts = [OPENING, _write_brief(found, chapters), GUIDE.format(folder=where), _write_runs(found, chapters)]
    parts += ["\n\n".join(section.parts) for section in sections]
    write_text(out, "\n\n".join(part.strip() for part in parts if part) + "\n")


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


def _write_brief(results: Sequence[Result], chapters: Chapters) -> str:
    """Return the page's summary: one item for each experiment that has something to say."""
    lines = []
    for result in results:
        chapter = find_chapter(result.experiment, chapters)
        brief = chapter.brief(result.summary)
        lines += [f"- **[{chapter.title}](#{_make_anchor(chapter.title)}).** {brief}"] if brief else []
    return "## Summary\n\n" + "\n".join(lines) if lines else ""


def _write_runs(results: Sequence[Result], chapters: Chapters) -> str:
    """Return a table of what was run: command, repeats, machine, date and versions."""
    rows = []
    for result in results:
        made, title = result.made, find_chapter(result.experiment, chapters).title
        versions = made.get("versions") or {}
        packages = ", ".join(f"{name} {version}" for name, version in versions.items())
        command = f"`{made['command']}`" if made.get("command") else DASH
        cells = [str(made.get(key) or DASH) for key in ("repeats", "machine", "date")]
        rows.append([f"[{title}](#{_make_anchor(title)})", command, *cells, packages or DASH])
    return write_table(["experiment", "command", "repeats", "machine", "date", "versions"], rows, words=6)


def _make_anchor(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
