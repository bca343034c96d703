"""Command-line options of `largesse experiment`."""

import inspect
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from largesse.errors import Problem, fail
from largesse.progress import show_progress
from largesse_lab.experiment_runs import EXPERIMENT_NAMES, ExperimentRunOptions, run_experiment
from largesse_lab.runner.experiment_request import Request

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@dataclass(frozen=True)
class ExperimentOptions:
    """Command-line options of `largesse experiment`; None is the default of the experiment."""

    name: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(EXPERIMENT_NAMES)}; page writes the pages of all results in a folder again."
        ),
    ]
    simulations: Annotated[
        str | None,
        typer.Option("--simulations", "--logs", help="Names of simulations, logs or data sets, comma-separated."),
    ] = None
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            "--methods",
            help="Names of models, comma-separated; worlds accepts settings, as boosting:rounds=50.",
        ),
    ] = None
    rows: Annotated[
        str | None,
        typer.Option(help="worlds: rows of each log, as 2000 or 2000,20000; other experiments: same as --models."),
    ] = None
    repeats: Annotated[int | None, typer.Option(help="Number of repeats, or of logs.")] = None
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Random worlds: the first and the last seed, as 0-199; other experiments: same as --repeats."
        ),
    ] = None
    part: Annotated[str, typer.Option(help="The part of the repeats to run, as 0/4: for several processes.")] = "0/1"
    chunk: Annotated[int | None, typer.Option(help="Number of logs that are fitted together: many on a GPU.")] = None
    mix: Annotated[float | None, typer.Option(help="coverage: share of the log with random levels.")] = None
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that share the repeats of a folder; default: one, or one per core without a GPU."),
    ] = None
    kept: Annotated[
        bool, typer.Option("--kept", help="Measure nothing: make tables and figures from existing records.")
    ] = False
    machine: Annotated[str | None, typer.Option(help="The machine that made the records, if not this one.")] = None
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for records, summary, page and figures; a stopped run resumes there."),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False


def experiment(**arguments: Any) -> None:
    """Repeat the paper's experiments, or measure models where the truth is known."""
    options = ExperimentOptions(**arguments)
    names, sizes = parse_names_or_row_counts(options.rows)
    repeats, seeds = parse_repeats_or_seed_range(options.seeds)
    models = split_comma_names(options.models)
    request = Request(
        problems=split_comma_names(options.simulations),
        models=names if models is None else [*models, *(names or [])],
        repeats=options.repeats if repeats is None else repeats,
        part=parse_part_of_repeats(options.part),
        chunk=options.chunk,
        mix=options.mix,
        seeds=seeds,
        sizes=sizes,
    )
    command = shlex.join(["largesse", *drop_existing_record_options(sys.argv[1:])])
    run_options = ExperimentRunOptions(request, options.out, options.jobs, options.kept, options.machine, command)
    with show_progress(options.as_json) as progress:
        records, text = run_experiment(options.name, run_options, progress)
    typer.echo(json.dumps(records, ensure_ascii=False) if options.as_json else text)


experiment.__signature__ = inspect.signature(ExperimentOptions)  # type: ignore[attr-defined]  # each field is an option
app.command()(experiment)


def split_comma_names(text: str | None) -> list[str] | None:
    """Split a comma-separated text into a list of names."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def drop_existing_record_options(words: list[str]) -> list[str]:
    """Return a command line without the options about earlier records (--kept, --machine).

    >>> drop_existing_record_options(["experiment", "table1", "--kept", "--machine", "a large one", "--out", "docs/results"])
    ['experiment', 'table1', '--out', 'docs/results']
    """
    dropped = {
        i for i, word in enumerate(words) if word == "--kept" or "--machine" in (word, *words[max(i - 1, 0) : i])
    }
    return [word for i, word in enumerate(words) if i not in dropped and not word.startswith("--machine=")]


def parse_part_of_repeats(text: str) -> tuple[int, int]:
    """Parse a part of the repeats, numbered from 0: "1/4" is the second of four parts, (1, 4)."""
    i, _, n = text.partition("/")
    if not (i.isdecimal() and n.isdecimal() and int(i) < int(n)):
        fail("experiment", Problem(f"part {text!r}", "parts of 4 are 0/4, 1/4, 2/4 and 3/4"))
    return int(i), int(n)


def parse_names_or_row_counts(text: str | None) -> tuple[list[str] | None, list[int] | None]:
    """Parse the option --rows as names of methods (rows of a table), or as numbers of log rows.

    >>> parse_names_or_row_counts("SIRE,BART"), parse_names_or_row_counts("2000,20000"), parse_names_or_row_counts(None)
    ((['SIRE', 'BART'], None), (None, [2000, 20000]), (None, None))
    """
    parts = split_comma_names(text)
    bare = [part.replace("_", "") for part in parts or []]
    return (None, [int(part) for part in bare]) if bare and all(map(str.isdecimal, bare)) else (parts, None)


def parse_repeats_or_seed_range(text: str | None) -> tuple[int | None, tuple[int, int] | None]:
    """Parse the option --seeds as a number of repeats, or as a first and a last seed.

    >>> parse_repeats_or_seed_range("20"), parse_repeats_or_seed_range("0-199"), parse_repeats_or_seed_range(None)
    ((20, None), (None, (0, 199)), (None, None))
    """
    if text is None:
        return None, None
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else True)) or (dash and int(first) > int(last)):
        hint = "name the first and the last, as 0-199, or their number, as 20"
        fail("experiment", Problem(f"--seeds {text}", hint))
    return (None, (int(first), int(last))) if dash else (int(first), None)
