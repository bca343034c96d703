"""What an experiment is: one record, which each file of this room fills and `catalogue` lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from largesse.records import Progress
from largesse_lab.page.sections import Chapter
from largesse_lab.page.tables import Layout
from largesse_lab.runner.methods import match_rows
from largesse_lab.runner.repeats import SIMULATED, TUNED, Row, Source, measure_rows
from largesse_lab.runner.request import Records, Request, ignore_progress


@dataclass(frozen=True)
class Experiment:
    """An experiment as the command line and the page of results see it."""

    name: str
    measure: Callable[[Request, Progress], Records]  # one record per repeat and row
    tabulate: Callable[[Records], str]  # the table, as Markdown
    chapter: Chapter
    summarise: Callable[[Records], dict[str, Any]] | None = None  # what the page is made from
    rows: Mapping[str, Row] = field(default_factory=dict)  # needed only where rows have grids
    parts: bool = True  # whether several processes can share the repeats
    drawn: bool = False  # whether its worlds have seeds of their own, and logs of any number of rows
    one_thread: bool = False  # whether each of several processes keeps to one thread

    def split_rows(self, request: Request) -> tuple[list[str], list[str]]:
        """Return the requested rows whose grids are searched on the first repeats, and the other requested rows."""
        rows = match_rows(self.rows, request.rows or list(self.rows))
        many = request.repeats is None or request.repeats >= TUNED
        tuned = [row for row in rows if many and row in self.rows and self.rows[row].tuned]
        return tuned, [row for row in rows if row not in tuned]


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: which rows are measured on which problems by default, and how the records are laid out."""

    layout: Layout
    rows: Mapping[str, Row]
    problems: Sequence[str]
    repeats: int
    chunk: int
    notes: Callable[[Mapping[str, Any]], Sequence[str]]
    source: Source = SIMULATED
    more: Callable[[Records], dict[str, Any]] = lambda _records: {}  # further parts of the summary, from sorted records

    def measure(self, request: Request, progress: Progress = ignore_progress) -> Records:
        """Return one record per problem, repeat and row.

        Rows are named one by one or by their group: "networks" (JAX alone; for a GPU), "trees" (BART, boosting and what
        contains them), "simple".
        """
        full = replace(
            request,
            problems=self.problems if request.problems is None else request.problems,
            rows=match_rows(self.rows, list(self.rows) if request.rows is None else request.rows),
            repeats=self.repeats if request.repeats is None else request.repeats,
            chunk=request.chunk or self.chunk,
        )
        return measure_rows(self.rows, full, progress, self.source)

    def summarise(self, records: Records) -> dict[str, Any]:
        """Return means, standard deviations and paired differences."""
        return self.layout.summarise(records) | self.more(self.layout.sort(records))

    def tabulate(self, records: Records) -> str:
        """Return the table as Markdown, one for each problem, with the paper's numbers."""
        found = self.summarise(records)
        return self.layout.tabulate(found, self.notes(found))

    def as_experiment(self, name: str, chapter: Chapter) -> Experiment:
        """Return the table as an experiment; its notes go onto the page, too."""
        return Experiment(
            name,
            self.measure,
            self.tabulate,
            replace(chapter, notes=self.notes),
            self.summarise,
            self.rows,
        )
