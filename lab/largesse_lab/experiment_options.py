"""The options of `largesse experiment`, which the product's command line imports from here."""

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
from largesse_lab.experiment_runs import EXPERIMENT_NAMES, RunOptions, run
from largesse_lab.runner.experiment_request import Request

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@dataclass(frozen=True)
class ExperimentOptions:
    """The options of `largesse experiment`; None is the experiment's own default."""

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
    names, sizes = parse_rows(options.rows)
    repeats, seeds = parse_seeds(options.seeds)
    models = split_names(options.models)
    request = Request(
        problems=split_names(options.simulations),
        models=names if models is None else [*models, *(names or [])],
        repeats=options.repeats if repeats is None else repeats,
        part=parse_part(options.part),
        chunk=options.chunk,
        mix=options.mix,
        seeds=seeds,
        sizes=sizes,
    )
    command = shlex.join(["largesse", *drop_source(sys.argv[1:])])
    run_options = RunOptions(request, options.out, options.jobs, options.kept, options.machine, command)
    with show_progress(options.as_json) as progress:
        records, text = run(options.name, run_options, progress)
    typer.echo(json.dumps(records, ensure_ascii=False) if options.as_json else text)


experiment.__signature__ = inspect.signature(ExperimentOptions)  # type: ignore[attr-defined]  # each field is an option
app.command()(experiment)


def split_names(text: str | None) -> list[str] | None:
    """Return the names in a comma-separated list."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def drop_source(words: list[str]) -> list[str]:
    """Return a command's words without --kept and --machine.

    >>> drop_source(["experiment", "table1", "--kept", "--machine", "a large one", "--out", "docs/results"])
    ['experiment', 'table1', '--out', 'docs/results']
    """
    dropped = {
        i for i, word in enumerate(words) if word == "--kept" or "--machine" in (word, *words[max(i - 1, 0) : i])
    }
    return [word for i, word in enumerate(words) if i not in dropped and not word.startswith("--machine=")]


def parse_part(text: str) -> tuple[int, int]:
    """Return a part (i, n): 1/4 is the second of four."""
    i, _, n = text.partition("/")
    if not (i.isdecimal() and n.isdecimal() and int(i) < int(n)):
        fail("experiment", Problem(f"part {text!r}", "parts of 4 are 0/4, 1/4, 2/4 and 3/4"))
    return int(i), int(n)


def parse_rows(text: str | None) -> tuple[list[str] | None, list[int] | None]:
    """Return names of rows, or numbers of rows.

    >>> parse_rows("SIRE,BART"), parse_rows("2000,20000"), parse_rows(None)
    ((['SIRE', 'BART'], None), (None, [2000, 20000]), (None, None))
    """
    parts = split_names(text)
    bare = [part.replace("_", "") for part in parts or []]
    return (None, [int(part) for part in bare]) if bare and all(map(str.isdecimal, bare)) else (parts, None)


def parse_seeds(text: str | None) -> tuple[int | None, tuple[int, int] | None]:
    """Return a number of repeats, or the first and the last seed.

    >>> parse_seeds("20"), parse_seeds("0-199"), parse_seeds(None)
    ((20, None), (None, (0, 199)), (None, None))
    """
    if text is None:
        return None, None
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else True)) or (dash and int(first) > int(last)):
        hint = "name the first and the last, as 0-199, or their number, as 20"
        fail("experiment", Problem(f"--seeds {text}", hint))
    return (None, (int(first), int(last))) if dash else (int(first), None)
