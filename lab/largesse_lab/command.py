"""What `largesse experiment` does: run an experiment by its name, and leave its results where they can be read and resumed.

In a folder, an experiment leaves its records (one line of JSON each), its table as Markdown, its summary as JSON with what made
it, and its figures. `page` makes one page of all summaries in a folder. Parts that are run by several processes leave records of
their own; a run of the whole finds them.
"""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from largesse.errors import InputError, Problem, refuse, suggest
from largesse.records import Progress
from largesse_lab.experiments import CHAPTERS, EXPERIMENTS, Experiment
from largesse_lab.page.page import write_page
from largesse_lab.page.sections import Result, write_section
from largesse_lab.runner import process_pool as jobs
from largesse_lab.runner import repeats
from largesse_lab.runner.request import Records, Request

NAMES = (*EXPERIMENTS, "page")
PARTS = ("largesse", "numpy", "jax", "scikit-learn", "stochtree")  # packages whose versions are recorded


@dataclass(frozen=True)
class Order:
    """A request, where its results go, and how it is run."""

    request: Request
    out: Path | None = None  # a folder for all results, or a .jsonl file for the records alone
    jobs: int | None = None  # processes that share the repeats; None: one per core, or one where there is a GPU
    kept: bool = False  # measure nothing: use the records that are there
    machine: str | None = None  # what the records were made on, if not this machine
    command: str = ""

    @property
    def folder(self) -> Path | None:
        """The folder for results; None where there is none."""
        return None if self.out is None or self.out.suffix == ".jsonl" else self.out


def run(name: str, order: Order, progress: Progress) -> tuple[Records, str]:
    """Run an experiment; return its records and its table. With a folder to write to, leave everything there."""
    if name == "page":
        return [], _make_page(order.folder)
    if name not in EXPERIMENTS:
        raise InputError("experiment", [Problem(f"{name!r} is not known", suggest(name, NAMES))])
    experiment, folder, part = EXPERIMENTS[name], order.folder, order.request.part
    refuse("experiment", _find_problems(order) + _find_unused(experiment, order.request))
    whole = folder is not None and part == (0, 1)
    kept = order.out
    if folder is not None:
        kept = folder / f"{name}.jsonl" if whole else jobs.name_part(folder, name, part)
    if folder is not None and whole:
        processes = _count_processes(experiment, order)
        if processes > 1 and not order.kept:
            share_out(experiment, order.request, processes, folder, progress)
        jobs.gather_parts(folder, name)
    records = _read_records(kept) if order.kept else experiment.measure(replace(order.request, out=kept), progress)
    text = experiment.tabulate(records)
    if folder is not None and whole:
        _leave_results(folder, experiment, records, text, order)
    return records, text


def _find_problems(order: Order) -> list[Problem]:
    """List the options that are out of range, or not for this experiment."""
    request = order.request
    given = {"--repeats": request.repeats, "--chunk": request.chunk, "--jobs": order.jobs}
    wrong = [Problem(f"{word} {n}", "1 or more") for word, n in given.items() if n is not None and n < 1]
    if request.mix is not None and not 0 <= request.mix <= 1:
        wrong.append(Problem(f"--mix {request.mix:g}", "a share between 0 and 1"))
    if (order.jobs or 1) > 1 and order.folder is None:
        wrong.append(Problem("several --jobs, but no folder to share", "name one, as --out results"))
    return wrong


def _find_unused(experiment: Experiment, request: Request) -> list[Problem]:
    """List the options that the experiment does not know."""
    given = {"a range of --seeds": request.seeds, "a number of --rows": request.sizes}
    hint = "worlds knows it; here, --repeats is how many and --models are names"
    return [
        Problem(f"{experiment.name} does not know {word}", hint)
        for word, value in given.items()
        if value is not None and not experiment.drawn
    ]


# -- several processes -------------------------------------------------------------------------------------------------


def _count_processes(experiment: Experiment, order: Order) -> int:
    """Return how many processes share the repeats: several where CPU cores, not a GPU, do the work."""
    from largesse.stats import cores

    if order.jobs is not None:
        return order.jobs
    if not experiment.parts or order.kept:
        return 1
    import jax

    many = cores() if jax.default_backend() == "cpu" else 1
    seeds, repeats = order.request.seeds, order.request.repeats
    worlds = many if seeds is None else seeds[1] - seeds[0] + 1
    return min(many, worlds, many if repeats is None else repeats)


def share_out(experiment: Experiment, request: Request, processes: int, folder: Path, progress: Progress) -> None:
    """Let several processes measure parts of an experiment.

    Rows with grids wait until one process each has searched its grid on the first repeats; other rows run meanwhile.
    """
    if not experiment.parts:
        raise InputError("experiment", [Problem(f"{experiment.name} has no parts", "run it without --jobs")])
    experiment.measure(replace(request, repeats=0), progress)  # refuses at once what every process would refuse
    tuned, others = experiment.split_rows(request)
    if not tuned:
        jobs.run_parts(experiment.name, _divide(request, processes), folder, progress, experiment.one_thread)
        return
    searches = [replace(request, rows=[row], repeats=repeats.TUNED) for row in tuned]
    meanwhile = _divide(replace(request, rows=others), max(processes - len(tuned), 1)) if others else []
    jobs.run_parts(experiment.name, [*searches, *meanwhile], folder, progress)
    jobs.run_parts(experiment.name, _divide(replace(request, rows=tuned), processes), folder, progress)


def _divide(request: Request, many: int) -> list[Request]:
    return [replace(request, part=(i, many)) for i in range(many)]


# -- results -----------------------------------------------------------------------------------------------------------


def _read_records(path: Path | None) -> Records:
    """Return the records that are kept in a file."""
    if path is None or not path.exists():
        hint = "name the folder, or the .jsonl file, of an earlier run by --out"
        raise InputError("experiment", [Problem("no records are kept" + (f" in {path}" if path else ""), hint)])
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _leave_results(folder: Path, experiment: Experiment, records: Records, text: str, order: Order) -> None:
    """Write the table, the summary with what made it, and the figures."""
    name = experiment.name
    jobs.write_text(folder / f"{name}.md", text)
    if experiment.summarise is None:
        return
    made, summary = describe_run(order, records), experiment.summarise(records)
    result = Result(name, made, summary, f"{name}.json")
    content = {"experiment": name, "made": result.made, "summary": result.summary}
    jobs.write_text(folder / result.file, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    for file, svg in write_section(result, experiment.chapter, ".").figures.items():
        jobs.write_text(folder / file, svg + "\n")


def describe_run(order: Order, records: Records) -> Mapping[str, Any]:
    """Return what made some records: command, machine, date, number of repeats, and versions."""
    counted = {record[word] for record in records for word in ("repeat", "seed", "log", "world") if word in record}
    return {
        "command": order.command,
        "machine": order.machine or _name_machine(),
        "date": datetime.date.today().isoformat(),
        "repeats": len(counted) or None,
        # The versions on another machine are not known here.
        "versions": {}
        if order.machine
        else {part: found for part in PARTS if (found := _find_version(part)) is not None},
    }


def _name_machine() -> str:
    import jax

    device = jax.devices()[0]
    return device.device_kind if device.platform != "cpu" else f"{platform.machine()} CPU"


def _find_version(part: str) -> str | None:
    try:
        return metadata.version(part)
    except metadata.PackageNotFoundError:
        return None


def _make_page(folder: Path | None) -> str:
    if folder is None:
        raise InputError("experiment", [Problem("no folder with results", "name it by --out, as --out docs/results")])
    target = folder.parent / f"{folder.name}.md"
    write_page(folder, target, CHAPTERS)
    return f"wrote {target}"
