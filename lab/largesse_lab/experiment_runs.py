"""Runs of `largesse experiment`: measure an experiment, and write its records, summary and result page.

In a folder, an experiment leaves NAME.jsonl (its records), NAME.json (its summary with the command, machine and versions that made
it), NAME.md (its result page) and figures. `page` writes the pages of all summaries in a folder again. Parts that are run by several
processes leave records of their own; a run of the whole finds them.
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

from largesse.errors import Problem, fail, refuse, suggest
from largesse.records import Progress
from largesse_lab.experiments import EXPERIMENTS, Experiment
from largesse_lab.pages.method_comparison import Summary
from largesse_lab.runner import experiment_parts
from largesse_lab.runner.experiment_request import Records, Request
from largesse_lab.runner.method_measurement import GRID_REPEATS

EXPERIMENT_NAMES = (*EXPERIMENTS, "page")
PACKAGES = (
    "largesse",
    "numpy",
    "jax",
    "scikit-learn",
    "stochtree",
    "econml",
    "causalml",
    "lightgbm",
    "xgboost",
    "perpetual",
    "tabpfn",
    "obp",
    "skdr-eval",
)  # whose versions are recorded
NOTES_MARK = "<!-- notes: kept when this page is written again -->"


@dataclass(frozen=True)
class ExperimentRunOptions:
    """Options of one run of an experiment: request, output path, processes and command."""

    request: Request
    out: Path | None = None  # a folder for all results, or a .jsonl file for the records alone
    jobs: int | None = None  # processes that share the repeats; None: one per core, or one on a machine with a GPU
    kept: bool = False  # measure nothing: use existing records
    machine: str | None = None  # that made the records, if not this machine
    command: str = ""

    @property
    def folder(self) -> Path | None:
        """Output folder of the results, or None without `out`."""
        return None if self.out is None or self.out.suffix == ".jsonl" else self.out


def run_experiment(name: str, options: ExperimentRunOptions, progress: Progress) -> tuple[Records, str]:
    """Run an experiment by name, write its results to a folder, and return its records and tables."""
    if name == "page":
        return [], _rewrite_result_pages(options.folder)
    if name not in EXPERIMENTS:
        fail("experiment", Problem(f"unknown experiment {name!r}", suggest(name, EXPERIMENT_NAMES)))
    experiment, folder, part = EXPERIMENTS[name], options.folder, options.request.part
    refuse("experiment", _find_option_problems(experiment, options))
    whole = folder is not None and part == (0, 1)
    path = options.out
    if folder is not None:
        path = folder / f"{name}.jsonl" if whole else experiment_parts.make_part_path(folder, name, part)
    if folder is not None and whole:
        processes = _count_processes(experiment, options)
        if processes > 1 and not options.kept:
            run_experiment_in_parallel(experiment, options.request, processes, folder, progress)
        experiment_parts.gather_part_records(folder, name)
    request = replace(options.request, out=path)
    records = _read_records(path) if options.kept else experiment.measure(request, progress)
    summary = experiment.summarise(records)
    if folder is not None and whole:
        made = describe_experiment_run(options, records)
        content = {"experiment": name, "made": made, "summary": summary}
        text = json.dumps(content, ensure_ascii=False) + "\n"
        experiment_parts.write_text(folder / f"{name}.json", text)
        write_result_page(folder, experiment, made, summary)
    return records, experiment.make_result_section(summary).join_paragraphs()


def _find_option_problems(experiment: Experiment, options: ExperimentRunOptions) -> list[Problem]:
    """List options that are out of range or that the experiment does not accept."""
    request = options.request
    counts = {"--repeats": request.repeats, "--chunk": request.chunk, "--jobs": options.jobs}
    problems = [Problem(f"{option} {n}", "1 or more") for option, n in counts.items() if n is not None and n < 1]
    if request.mix is not None and not 0 <= request.mix <= 1:
        problems.append(Problem(f"--mix {request.mix:g}", "a share between 0 and 1"))
    if (options.jobs or 1) > 1 and options.folder is None:
        problems.append(Problem("several --jobs without a shared folder", "name one, as --out results"))
    if not experiment.random_worlds:
        worlds_only = {"a range of --seeds": request.seeds, "a number of --rows": request.sizes}
        hint = "use --repeats for a number and --models for names"
        problems += [
            Problem(f"{experiment.name} does not accept {option}", hint)
            for option, value in worlds_only.items()
            if value is not None
        ]
    return problems


# -- several processes -------------------------------------------------------------------------------------------------


def _count_processes(experiment: Experiment, options: ExperimentRunOptions) -> int:
    """Return the number of parallel processes: the number of CPU cores, or one on a machine with a GPU."""
    from largesse.stats import count_cores

    if options.jobs is not None:
        return options.jobs
    if not experiment.parallel or options.kept:
        return 1
    import jax

    processes = count_cores() if jax.default_backend() == "cpu" else 1
    seeds, repeats = options.request.seeds, options.request.repeats
    worlds = processes if seeds is None else seeds[1] - seeds[0] + 1
    return min(processes, worlds, processes if repeats is None else repeats)


def run_experiment_in_parallel(
    experiment: Experiment, request: Request, processes: int, folder: Path, progress: Progress
) -> None:
    """Measure the parts of an experiment in several processes.

    Methods with grids wait until one process each has searched its grid on the first repeats; other methods run meanwhile.
    """
    if not experiment.parallel:
        fail("experiment", Problem(f"{experiment.name} has no parts", "run it without --jobs"))
    experiment.measure(
        replace(request, repeats=0), progress
    )  # refuses at once a request that every process would refuse
    tuned, others = experiment.separate_tuned_methods(request)
    if not tuned:
        requests = _divide_repeats(request, processes)
        experiment_parts.run_experiment_parts(experiment.name, requests, folder, progress, experiment.one_thread)
        return
    searches = [replace(request, models=[method], repeats=GRID_REPEATS) for method in tuned]
    meanwhile = _divide_repeats(replace(request, models=others), max(processes - len(tuned), 1)) if others else []
    experiment_parts.run_experiment_parts(experiment.name, [*searches, *meanwhile], folder, progress)
    experiment_parts.run_experiment_parts(
        experiment.name, _divide_repeats(replace(request, models=tuned), processes), folder, progress
    )


def _divide_repeats(request: Request, processes: int) -> list[Request]:
    return [replace(request, part=(i, processes)) for i in range(processes)]


# -- results -----------------------------------------------------------------------------------------------------------


def _read_records(path: Path | None) -> Records:
    if path is None or not path.exists():
        hint = "name the folder, or the .jsonl file, of an earlier run by --out"
        fail("experiment", Problem("there are no records" + (f" in {path}" if path else ""), hint))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def describe_experiment_run(options: ExperimentRunOptions, records: Records) -> Mapping[str, Any]:
    """Return facts about an experiment run: command, machine, date, repeats, and package versions."""
    numbers = {record[key] for record in records for key in ("repeat", "seed", "log", "world") if key in record}
    repeats = {number for number in numbers if isinstance(number, int)}  # a log may have a name
    # The versions on another machine are unknown here.
    versions = {} if options.machine else {name: version for name in PACKAGES if (version := _find_version(name))}
    return {
        "command": options.command,
        "machine": options.machine or _name_machine(),
        "date": datetime.date.today().isoformat(),
        "repeats": len(repeats) or None,
        "versions": versions,
    }


def _name_machine() -> str:
    import jax

    device = jax.devices()[0]
    return device.device_kind if device.platform != "cpu" else f"{platform.machine()} CPU"


def _find_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def write_result_page(folder: Path, experiment: Experiment, made: Mapping[str, Any], summary: Summary) -> None:
    """Write the result page of an experiment and its figures.

    The notes at the end of an existing page are kept.
    """
    section = experiment.make_result_section(summary)
    versions = ", ".join(f"{name} {version}" for name, version in (made.get("versions") or {}).items())
    repeats = f"{made['repeats']:,} repeats" if made.get("repeats") else ""
    facts = "; ".join(filter(None, [repeats, made.get("machine"), made.get("date"), versions]))
    command = f"Made by `{made['command']}`" if made.get("command") else "Made"
    paragraphs = [f"# {experiment.title}", f"{command} ({facts})."]
    guide = folder.with_name(f"{folder.name}.md")
    if guide.exists():
        paragraphs[1] += f" See [names and measures](../{guide.name}#how-to-read-these-pages)."
    paragraphs += [experiment.setup, *section.paragraphs]
    if experiment.differences:
        paragraphs.append(f"**Differences from the paper.** {experiment.differences}")
    page = folder / f"{experiment.name}.md"
    _, mark, notes = page.read_text(encoding="utf-8").partition(NOTES_MARK) if page.exists() else ("", "", "")
    if mark:
        paragraphs.append(f"{mark}\n\n{notes.strip()}")
    experiment_parts.write_text(page, "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n")
    for file, draw in section.figures.items():
        experiment_parts.write_text(folder / file, draw() + "\n")


def _rewrite_result_pages(folder: Path | None) -> str:
    """Rewrite the result pages of all experiment summaries in a folder."""
    if folder is None:
        fail("experiment", Problem("no folder with results", "name it by --out, as --out docs/results"))
    contents, problems = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            problems.append(Problem(f"{path.name} is not JSON: {error}", "run its experiment again, or move it away"))
            continue
        valid = isinstance(content, dict) and content.keys() >= {"experiment", "made", "summary"}
        if valid and content["experiment"] in EXPERIMENTS:
            contents.append(content)
        else:
            problems.append(Problem(f"{path.name} is not a summary of an experiment", "move it out of the folder"))
    if not contents and not problems:
        problems.append(Problem(f"{folder} has no results", "run an experiment first, as largesse experiment rates"))
    refuse("results", problems)
    for content in contents:
        write_result_page(folder, EXPERIMENTS[content["experiment"]], content["made"], content["summary"])
    return f"wrote {len(contents)} pages in {folder}"
