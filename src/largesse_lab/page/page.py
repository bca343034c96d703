"""The page of results: summaries in, one Markdown page with its figures out. Words from `prose`, numbers from files alone.

A file of results is JSON with ``experiment``, ``made`` (command, machine, date, repeats, versions) and ``summary``, what the
experiment's own `summary` returns: methods compared (see `compared`), or ``series`` of lines with panel, label, x, mean and sd.
The page has a section for every file there is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from largesse.errors import Problem, refuse
from largesse.files import atomic_file
from largesse.report import DASH
from largesse_lab.page.markdown import row_of
from largesse_lab.page.prose import OPENING, PROSE, prose
from largesse_lab.page.sections import section

NEEDED = ("experiment", "made", "summary")


def page(folder: Path, out: Path) -> None:
    """Write the page `out` from the results in `folder`, and its figures beside the results."""
    found = read_results(folder)
    where = Path(os.path.relpath(folder, Path(out).parent)).as_posix()
    sections = [section(result, where) for result in found]
    for made in sections:
        for name, svg in made.figures.items():
            _write(Path(folder) / name, svg)
    _write(
        out,
        "\n\n".join([OPENING.format(folder=where).strip(), _runs(found), *("\n\n".join(s.parts) for s in sections)]),
    )


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as part:
        part.write_text(text + "\n", encoding="utf-8")


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Return the results of a folder, the paper's tables first; refuse files that are none."""
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
            results.append({**found, "file": path.name})
    if not results and not problems:
        problems.append(
            Problem(f"{folder} has no results", "run an experiment first, such as largesse experiment rates")
        )
    refuse("results", problems)
    order = list(PROSE)
    return sorted(results, key=lambda r: (order.index(r["experiment"]) if r["experiment"] in order else 99, r["file"]))


def _runs(results: Sequence[Mapping[str, Any]]) -> str:
    """Return what was run, by what, on what and when, as a table that links to the sections."""
    lines = ["| what | made by | repeats | on | when | with |", "|---|---|---:|---|---|---|"]
    for result in results:
        made, title = result["made"], prose(result["experiment"]).title
        versions = made.get("versions") or {}
        told = (
            ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ""
        )
        command = f"`{made['command']}`" if made.get("command") else DASH
        cells = [str(made.get(key) or DASH) for key in ("repeats", "machine", "date")]
        lines.append(row_of([f"[{title}](#{_anchor(title)})", command, *cells, told or DASH]))
    return "\n".join(lines)


def _anchor(title: str) -> str:
    """Return the name under which a page shown by GitHub finds a section."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
