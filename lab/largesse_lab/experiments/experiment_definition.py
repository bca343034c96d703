"""Definition of an experiment: functions that measure, summarise and write its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from largesse.records import Progress
from largesse_lab.pages.markdown import Section
from largesse_lab.pages.method_comparison import Summary, add_method_comparison, keep_latest_records, summarise_methods
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress
from largesse_lab.runner.method_measurement import (
    GRID_REPEATS,
    REPEAT_KEY,
    SIMULATED,
    Method,
    RepeatSource,
    measure_methods,
)
from largesse_lab.runner.paper_methods import match_methods

Published = Mapping[str, Mapping[str, tuple[float, float]]]  # method → column → mean, standard deviation
BASE = "CCPOvSIRE"


@dataclass(frozen=True)
class Experiment:
    """Experiment of the command line: its measurement, its summary and its result page."""

    name: str
    title: str
    measure: Callable[[Request, Progress], Records]  # one record per repeat and row
    summarise: Callable[[Records], Summary]
    fill: Callable[[Section, Summary], None]  # adds tables and figures of a summary
    setup: str = ""
    differences: str = ""  # from the paper, and why
    methods: Mapping[str, Method] = field(default_factory=dict)  # of which some may have grids
    parallel: bool = True  # whether several processes can share the repeats
    random_worlds: bool = False  # whether the request may name seeds of worlds and rows of logs
    one_thread: bool = False  # whether each of several processes uses one thread

    def separate_tuned_methods(self, request: Request) -> tuple[list[str], list[str]]:
        """Split the requested methods into those that need a grid search and the others."""
        names = match_methods(self.methods, request.models or list(self.methods))
        enough = request.repeats is None or request.repeats >= GRID_REPEATS
        tuned = [name for name in names if enough and name in self.methods and self.methods[name].grid]
        return tuned, [name for name in names if name not in tuned]

    def make_result_section(self, summary: Summary) -> Section:
        """Return the section of the result page with tables and figures of a summary."""
        section = Section(self.name)
        self.fill(section, summary)
        return section


def table_experiment(
    name: str,
    title: str,
    measure: Callable[[Request, Progress], Records],
    tabulate: Callable[[Records], str],
    **more: Any,
) -> Experiment:
    """Return an experiment whose summary is Markdown tables."""
    return Experiment(
        name,
        title,
        measure,
        lambda records: {"tables": tabulate(records)},
        lambda section, summary: section.add(summary["tables"]),
        **more,
    )


@dataclass(frozen=True)
class PaperTable:
    """Table of the paper: its methods, its simulations or data sets, and its published numbers."""

    problems: Sequence[str]
    methods: Mapping[str, Method]
    columns: Sequence[str]
    published: Published
    repeats: int
    chunk: int
    notes: Callable[[Summary], Sequence[str]]
    all_problems: Sequence[str] = ()  # in their order, if there are more than the default ones
    base: str = BASE
    source: RepeatSource = SIMULATED
    summarise_more: Callable[[Records], dict[str, Any]] = lambda _records: {}

    def measure(self, request: Request, progress: Progress = ignore_progress) -> Records:
        """Return one record of measures per simulation or data set, repeat and method.

        Methods are named one by one or by their group: "networks" (JAX alone; for a GPU), "trees" (BART, boosting and models
        that contain them), "simple".
        """
        names = list(self.methods) if request.models is None else request.models
        full = replace(
            request,
            problems=self.problems if request.problems is None else request.problems,
            models=match_methods(self.methods, names),
            repeats=self.repeats if request.repeats is None else request.repeats,
            chunk=request.chunk or self.chunk,
        )
        return measure_methods(self.methods, full, progress, self.source)

    def summarise(self, records: Records) -> dict[str, Any]:
        """Return means, paired differences from the base method, and the paper's numbers."""
        problems, methods = list(self.all_problems or self.problems), list(self.methods)
        records = sorted(
            (record for record in keep_latest_records(records, REPEAT_KEY) if record["row"] in methods),
            key=lambda r: (problems.index(r["simulation"]), methods.index(r["row"]), r["repeat"]),
        )
        return {
            "base": self.base,
            "simulations": summarise_methods(records, self.columns, self.base),
            "paper": {
                name: {column: list(pair) for column, pair in row.items()} for name, row in self.published.items()
            },
            "small": sum(bool(record.get("small")) for record in records),  # records of networks that had no GPU
            **self.summarise_more(records),
        }

    def fill(self, section: Section, summary: Summary) -> None:
        """Add the tables, figures and notes to the result section."""
        add_method_comparison(section, summary)
        section.add("\n".join(f"- {note}" for note in self.notes(summary)))

    def as_experiment(self, name: str, title: str, setup: str, differences: str, **more: Any) -> Experiment:
        """Return the table as an experiment of the command line."""
        arguments = {"measure": self.measure, "methods": self.methods, **more}
        return Experiment(
            name, title, summarise=self.summarise, fill=self.fill, setup=setup, differences=differences, **arguments
        )
