"""Sections of the page of results: a summary in, paragraphs of Markdown and figures out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from largesse_lab.page.comparison import Comparison, is_higher_better, read_comparison, title_column
from largesse_lab.page.figures import Caption, Look, draw_dots, draw_lines
from largesse_lab.page.tables import (
    draw_budgets,
    group_budgets,
    tabulate_budgets,
    tabulate_measure,
)
from largesse_lab.runner.request import simplify

Summary = Mapping[str, Any]
DRAWN = ("rmse", "pehe", "reward", "skill")  # columns whose differences are drawn
DEFAULT_NOTE = "† without the HSIC penalty (κ = 0). “–”: the paper has no such number, or the method has none."
SHOWN = (*DRAWN, "increments", "spend", "seconds")  # columns in their order; others appear in the file alone


@dataclass(frozen=True)
class Result:
    """A file of results: the experiment's name, what made the numbers, its summary, and the name of the file."""

    experiment: str
    made: Mapping[str, Any]  # command, machine, date, repeats, versions
    summary: Summary
    file: str


@dataclass
class Section:
    """A section in the making: its paragraphs, and its figures by file name in the folder `where`."""

    where: str
    parts: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)

    def say(self, *paragraphs: str) -> None:
        """Add paragraphs; empty ones are left out."""
        self.parts += [paragraph.strip() for paragraph in paragraphs if paragraph.strip()]

    def show(self, name: str, svg: str, title: str) -> None:
        """Add a figure."""
        self.figures[name] = svg
        self.say(f"![{title}]({self.where}/{name})")


@dataclass(frozen=True)
class Chapter:
    """How an experiment appears on the page: its words, and functions of its results."""

    title: str
    setup: str = ""  # what was run
    differences: str = ""  # from the paper, and why
    notes: Callable[[Summary], Sequence[str]] = lambda _summary: ()
    fill: Callable[[Section, Result, Sequence[str]], None] | None = None  # adds tables, figures and the notes


def write_section(result: Result, chapter: Chapter, where: str) -> Section:
    """Return the section of one file of results."""
    section = Section(where)
    section.say(f"## {chapter.title}", chapter.setup)
    before = len(section.parts)
    if chapter.fill is not None:
        chapter.fill(section, result, chapter.notes(result.summary))
    if len(section.parts) == before:
        section.say(f"The numbers are in [`{result.file}`]({where}/{result.file}).")
    section.say(f"**Differences from the paper.** {chapter.differences}" if chapter.differences else "")
    return section


def make_slug(words: str) -> str:
    """Return words as part of a file name.

    >>> make_slug("value 1.5")
    'value-1-5'
    """
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


# -- methods compared --------------------------------------------------------------------------------------------------


def fill_methods(section: Section, result: Result, notes: Sequence[str]) -> None:
    """Add what a summary of methods has: tables by measure and by budget, and figures of differences."""
    found = read_comparison(result.summary)
    if found is None:
        return
    _add_measures(section, result.experiment, found)
    if section.figures or any(map(_rank, found.columns)):
        section.say("\n".join(f"- {note}" for note in notes) or (DEFAULT_NOTE if found.paper else ""))


def _add_measures(section: Section, experiment: str, found: Comparison) -> None:
    several = group_budgets(found.columns)
    apart = [column for column in found.columns if not any(column in mine for mine in several.values())]
    for column in sorted(filter(_rank, apart), key=_rank):
        section.say(f"### {title_column(column)}", tabulate_measure(found, column))
        if simplify(column).startswith(DRAWN):
            _draw_differences(section, experiment, found, column)
    for measure, columns in sorted(several.items(), key=lambda item: _rank(item[0])):
        _add_budgets(section, experiment, found, measure, columns)


def _add_budgets(section: Section, experiment: str, found: Comparison, measure: str, columns: Sequence[str]) -> None:
    title = f"{measure.capitalize()}, by budget"
    section.say(f"### {title}", *tabulate_budgets(found, columns))
    series = draw_budgets(found, columns)
    if series:
        note = "Means over repeats; standard deviations are in the tables."
        words = Caption(title, "budget m: mean cost per customer", measure, note)
        look = Look(log_across=True, shared=True)
        section.show(f"{experiment}-{measure}.svg", draw_lines(series, words, look), title)


def _rank(column: str) -> int:
    """Return a column's place on the page, from 1; 0 for a column that is not shown."""
    return next((place for place, name in enumerate(SHOWN, 1) if simplify(column).startswith(name)), 0)


def _list_oracles(found: Comparison) -> list[str]:
    return [row for row in found.rows if simplify(row) == "oracle"]


def _draw_differences(section: Section, experiment: str, found: Comparison, column: str) -> None:
    rows = [
        {"panel": simulation, "label": row, "estimate": gap.estimate, "low": gap.low, "high": gap.high}
        for (simulation, row, name), gap in found.differences.items()
        # The oracle has no error; drawing that would squeeze all other rows.
        if name == column and row != found.base and (row not in _list_oracles(found) or is_higher_better(column))
    ]
    if not rows:
        return
    name, worse = title_column(column), "left" if is_higher_better(column) else "right"
    words = Caption(
        f"{name}: difference from {found.base}",
        f"{name} minus that of {found.base}",
        note=f"On the same logs, with 95 % intervals; {worse} of the dashed line is worse. Filled dots: the interval excludes 0.",
    )
    section.show(f"{experiment}-{make_slug(column)}.svg", draw_dots(rows, words), words.title)
    drawn = {row["label"] for row in rows} | {found.base, *_list_oracles(found)}
    apart = [row for row in found.rows if row not in drawn and any(key[1:] == (row, column) for key in found.cells)]
    section.say(f"Not drawn, for want of repeats paired with {found.base}: {'; '.join(apart)}." if apart else "")
