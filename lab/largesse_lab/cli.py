"""The options of `largesse experiment`, which the product's command line finds here."""

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
from largesse_lab.command import NAMES, Order, run
from largesse_lab.runner.request import Request

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@dataclass(frozen=True)
class Options:
    """What `largesse experiment` accepts; None is the experiment's own default."""

    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}; page combines all results into pages.")]
    simulations: Annotated[str | None, typer.Option(help="Names of simulations or data sets, comma-separated.")] = None
    models: Annotated[
        str | None,
        typer.Option(help="Names of models, comma-separated; for worlds with settings, as boosting:rounds=50."),
    ] = None
    rows: Annotated[
        str | None,
        typer.Option(help="worlds: rows of each log, as 2000 or 2000,20000; elsewhere the same as --models."),
    ] = None
    repeats: Annotated[int | None, typer.Option(help="Number of repeats, or of logs.")] = None
    seeds: Annotated[
        str | None, typer.Option(help="worlds: the first and the last seed, as 0-199; elsewhere the same as --repeats.")
    ] = None
    part: Annotated[str, typer.Option(help="Which part of the repeats to run, as 0/4: for several processes.")] = "0/1"
    chunk: Annotated[int | None, typer.Option(help="Number of logs that are fitted together: many on a GPU.")] = None
    mix: Annotated[float | None, typer.Option(help="coverage: share of the log with random levels.")] = None
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that share the repeats of a folder; default: one, or one per core without a GPU."),
    ] = None
    kept: Annotated[
        bool, typer.Option("--kept", help="Measure nothing: make table and figures from the records that are there.")
    ] = False
    machine: Annotated[str | None, typer.Option(help="The machine that made the records, if not this one.")] = None
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for results, table, summary and figures; resumes what it holds."),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False


def experiment(**given: Any) -> None:
    """Repeat the paper's experiments, or measure models where the truth is known."""
    options = Options(**given)
    names, sizes = parse_rows(options.rows)
    many, seeds = parse_seeds(options.seeds)
    models = split_names(options.models)
    request = Request(
        problems=split_names(options.simulations),
        rows=names if models is None else [*models, *(names or [])],
        repeats=options.repeats if many is None else many,
        part=parse_part(options.part),
        chunk=options.chunk,
        mix=options.mix,
        seeds=seeds,
        sizes=sizes,
    )
    command = shlex.join(["largesse", *drop_source(sys.argv[1:])])
    order = Order(request, options.out, options.jobs, options.kept, options.machine, command)
    with show_progress(options.as_json) as progress:
        records, text = run(options.name, order, progress)
    typer.echo(json.dumps(records, ensure_ascii=False) if options.as_json else text)


experiment.__signature__ = inspect.signature(Options)  # type: ignore[attr-defined]  # each field is an option
app.command()(experiment)


def split_names(text: str | None) -> list[str] | None:
    """Return the names in a comma-separated list."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def drop_source(words: list[str]) -> list[str]:
    """Return a command's words without those that say where it ran.

    >>> drop_source(["experiment", "table1", "--kept", "--machine", "a large one", "--out", "docs/results"])
    ['experiment', 'table1', '--out', 'docs/results']
    """
    spare = {i for i, word in enumerate(words) if word == "--kept" or "--machine" in (word, *words[max(i - 1, 0) : i])}
    return [word for i, word in enumerate(words) if i not in spare and not word.startswith("--machine=")]


def parse_part(text: str) -> tuple[int, int]:
    """Return a part (i, n): 1/4 is the second of four."""
    first, _, second = text.partition("/")
    if not (first.isdigit() and second.isdigit() and int(first) < int(second)):
        fail("experiment", Problem(f"part {text!r}", "parts of 4 are 0/4, 1/4, 2/4 and 3/4"))
    return int(first), int(second)


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
        hint = "name the first and the last, as 0-199, or how many, as 20"
        fail("experiment", Problem(f"--seeds {text}", hint))
    return (None, (int(first), int(last))) if dash else (int(first), None)
