"""One command per verb. Errors are one message and exit code 2; what was there before stays as it was."""

from __future__ import annotations

import functools
import inspect
import json
import signal
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from largesse import runs
from largesse.errors import LargesseError, MissingPartError, Problem, count, fail, make_visible, path_problems, refuse
from largesse.evaluation import ESTIMATORS, Asked
from largesse.report import (
    print_answer,
    print_check,
    print_checkup,
    print_error,
    print_judgement,
    print_pace,
    print_plan,
    print_power,
    print_warnings,
    show_progress,
)
from largesse.response import list_models
from largesse.version import __version__


class Verbs(TyperGroup):
    """The commands; their list shows whole sentences."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List every command with the first sentence of its help, on as many lines as it needs."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        firsts = {name: (command.help or "").split("\n\n")[0] for name, command in known.items() if command is not None}
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in firsts.items()])


app = typer.Typer(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Decide who gets which incentive, under a budget, from the logs you already have.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a summary.")]
Budget = Annotated[float | None, typer.Option("--budget", help="Average cost per customer that may be spent.")]
Total = Annotated[float | None, typer.Option("--total", help="Or the cost of all customers together.")]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        help="Probability, from 0.5, that the true cost is within the budget, where it depends on what customers do.",
    ),
]
Explore = Annotated[
    float | None,
    typer.Option("--explore", help="Explore as much as drawing the levels of this share of customers at random."),
]
ExploreFor = Annotated[
    str | None,
    typer.Option(
        "--explore-for", help="What the next log is to tell: evaluation or learning; random: nothing special."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", help="Where to write.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but warnings and errors.")]
Columns = dict[str, Any]  # role → what the option says, for the roles that are given
Where = dict[str, Any]  # the engine and its master, if they are given
DEMO_OUT = Path("largesse-demo")
_quiet = ContextVar("quiet", default=False)


def verb(command: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command that can be quiet."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def call(*, quiet: bool, **given: Any) -> None:
        before = _quiet.set(quiet)
        try:
            command(**given)
        finally:
            _quiet.reset(before)

    option = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    given = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in signature.parameters.values()]
    call.__signature__ = signature.replace(parameters=[*given, option])  # type: ignore[attr-defined]
    app.command()(call)
    return command


def main() -> None:
    """Run the command line; a mistake that a person can correct never shows a traceback."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except LargesseError as error:
        print_error(str(error))
        sys.exit(2)
    except OSError as error:  # a name that is too long, a device that is gone
        print_error(f"{error.filename or 'a file'}: {error.strerror or error}")
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as stopped:
        if isinstance(stopped, SystemExit) and stopped.code != 130:  # typer turns an interrupt into this
            raise
        print_error("stopped; nothing was left half written")
        sys.exit(130)
    except MemoryError:
        print_error("not enough memory\n   → read fewer columns with features=…, or plan in parts")
        sys.exit(2)


def _terminate(*_: object) -> None:
    """Stop by an exception, so that half-written folders are cleaned up; objects it leaves half made say nothing."""
    sys.unraisablehook = lambda _: None
    sys.exit(143)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"largesse {__version__}")
        raise typer.Exit


@verb
def demo(out: Annotated[Path, typer.Option("--out", help="Run folder.")] = DEMO_OUT, as_json: AsJson = False) -> None:
    """Plan real cash incentives (Thornton 2008) from a log, judge the plan, and leave a report."""
    campaign, table = runs.demo_campaign()
    with show_progress(as_json or _quiet.get()) as progress:
        shown = runs.run(campaign, out, progress, table=table)
    _show_answer(shown, out, as_json)


@verb
def init(
    log: Annotated[str, typer.Argument(help="The log: a Parquet, CSV or Arrow file.")],
    out: Annotated[Path, typer.Option("--out", help="The campaign file to write.")] = Path("campaign.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a campaign file that already exists.")] = False,
) -> None:
    """Look at a table and write a first campaign.toml, with its guesses commented."""
    refuse("init", path_problems(out, "--out"))
    if out.exists() and not force:
        fail("init", Problem(f"{out} already exists", "give another --out, or --force to replace it"))
    runs.check_file(out, log)
    with show_progress(_quiet.get()) as progress:
        progress("looking at the table", 0.0)
        text = runs.guess_campaign(log, out)
    runs.write_text(out, text)
    hint = "Fill in its blank lines and look through those marked CHECK"
    _echo({}, False, f"wrote {out}. {hint}, then: largesse run {out}")


@verb
@runs.with_options("where", runs.engine_options())
def run(
    campaign: Annotated[Path, typer.Argument(help="The campaign file.")],
    where: Where,
    budget: Budget = None,
    total: Total = None,
    confidence: Confidence = None,
    out: Out = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run of the same log and model was stopped.")
    ] = False,
    time: Annotated[
        str | None,
        typer.Option("--time", help="Keep within a time such as 10m; what is left out for it is said."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go the whole way: read, learn, plan, judge, report."""
    given = budget is not None or total is not None
    found = runs.read_campaign(campaign, blank_budget=given)
    found = found.spending(budget=budget, total=total, confidence=confidence)
    folder = out or Path(found.out or campaign.with_suffix("").name + "-run")
    seconds = None if time is None else runs.read_time(time)
    with show_progress(as_json or _quiet.get()) as progress, runs.open_engine(**where, out=folder) as engine:
        shown = runs.run(found, folder, progress, engine=engine, resume=resume, seconds=seconds)
    _show_answer(shown, folder, as_json)


@verb
@runs.with_options("columns", runs.column_options("level", "response"))
@runs.with_options("levels", runs.level_options())
def fit(
    log: Annotated[str, typer.Argument(help="The log: a Parquet, CSV or Arrow file, or a glob in quotes.")],
    out: Annotated[Path, typer.Option("--out", help="Run folder to write.")],
    levels: dict[str, Any],
    columns: Columns,
    model: Annotated[str, typer.Option(help=f"Response model: {', '.join(list_models())}.")] = "auto",
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    most_rows: Annotated[
        int | None, typer.Option(help="Of a larger log, learn from so many random rows. Default: what memory holds.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn the response from a log and leave a run folder."""
    if "costs" not in levels and "cost_column" not in columns:
        hint = "add --costs 0,5,10, or --cost-column with what each row really cost"
        fail("fit", Problem("nothing says what levels cost", hint))
    most = {} if most_rows is None else {"data": {"most_rows": most_rows}}
    found = runs.campaign_from_options(log, columns, levels, model={"name": model, "seed": seed}, **most)
    with show_progress(as_json or _quiet.get()) as progress:
        shown = runs.fit(found, out, progress)
    some = f" ({shown['sample']['rows']:,} of {shown['sample']['of']:,} rows)" if "sample" in shown else ""
    what = f"learnt {shown['response']['name']!r} at {count(len(shown['levels']), 'level')} from {found.log}{some}"
    _echo(shown, as_json, f"{what}; model: {shown['model']['name']}\nnext: largesse plan {out} CUSTOMERS --budget …")


@verb
@runs.with_options("where", runs.engine_options())
def plan(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    where: Where,
    customers: Annotated[str | None, typer.Argument(help="Table of customers; default: those of the campaign.")] = None,
    budget: Budget = None,
    total: Total = None,
    confidence: Confidence = None,
    explore: Explore = None,
    explore_for: ExploreFor = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Plan to write (.parquet, .csv, .feather); default: in the run folder.")
    ] = None,
    raw_ids: Annotated[
        bool, typer.Option("--raw-ids", help="In CSV, write ids such as =1+1 as they are: spreadsheets compute them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Give every customer a level at a budget."""
    spent: runs.Spent = {"budget": budget, "total": total, "confidence": confidence}
    spent |= {"explore": explore, "explore_for": explore_for}
    with show_progress(as_json or _quiet.get()) as progress, runs.open_engine(**where, out=run_folder) as engine:
        made = runs.plan(run_folder, customers, out=out, raw_ids=raw_ids, progress=progress, engine=engine, **spent)
    if as_json:
        typer.echo(_to_json(made))
    elif not _quiet.get():
        print_plan({**runs.describe_run(run_folder), **made}, out or run_folder / "plan.parquet")


@verb
def evaluate(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    log: Annotated[str | None, typer.Argument(help="The log to judge by; default: the campaign's.")] = None,
    budget: Budget = None,
    estimator: Annotated[str, typer.Option(help=f"How to judge: {', '.join(ESTIMATORS)}.")] = "dr",
    as_json: AsJson = False,
) -> None:
    """Estimate from the log what the plan will bring and cost, each with a 95 % interval."""
    with show_progress(as_json or _quiet.get()) as progress:
        found = runs.judge(run_folder, log, budget=budget, estimator=estimator, progress=progress)
    if as_json:
        typer.echo(_to_json(found))
    elif _quiet.get():
        print_warnings(found["warnings"], to_stderr=True)
    else:
        print_judgement({**runs.describe_run(run_folder), **found}, run_folder / "evaluation.json")


@verb
def report(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan and an evaluation.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Page to write; default: report.html in the run folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the HTML report of a run folder."""
    shown = runs.report(run_folder, out)
    _echo(shown, as_json, f"wrote {out or run_folder / 'report.html'}")


@verb
@runs.with_options("how", runs.export_options())
def export(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan.")],
    out: Annotated[Path, typer.Option("--out", help="File to write; to mlflow: a new folder.")],
    how: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Write the policy as SQL, as an ONNX or MLflow model, or as a score card that people can read."""
    with show_progress(as_json or _quiet.get()) as progress:
        shown = runs.export(run_folder, out, progress, **how)
    _echo(shown, as_json, shown["text"])


@verb
@runs.with_options("columns", runs.column_options())
def doctor(
    log: Annotated[str, typer.Argument(help="The log: a table, a campaign file or a run folder.")],
    columns: Columns,
    costs: Annotated[
        str | None, typer.Option(help="Cost of each level, cheapest first; a checkup does not need it.")
    ] = None,
    names: Annotated[str | None, typer.Option(help="How the log writes the levels, in order: none,small,big.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the checkup as an HTML page here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check whether a log can answer the question: overlap, balance, randomisation, suspicious features.

    Each check says fine, careful or no. The columns of a bare table are guessed unless options name them.
    """
    levels = {word: given for word, given in (("costs", costs), ("names", names)) if given is not None}
    found, guessed = runs.find_campaign(log, columns, levels)
    with show_progress(as_json or _quiet.get()) as progress:
        shown = runs.examine(found, guessed=guessed, out=out, progress=progress)
    if as_json:
        typer.echo(_to_json(shown))
    elif _quiet.get():
        print_warnings(shown["support"]["checks"], to_stderr=True)
    else:
        print_checkup(shown, out)


@verb
def check(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with the plan.")],
    log: Annotated[
        str, typer.Argument(help="The log of the campaign that followed: who got what, and what came of it.")
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Write the check as an HTML page here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a campaign with its plan: promise and result, was the plan followed, and what has changed since.

    Each check says fine, careful or no. The exit code is for a scheduler: 0 fine, 10 careful, 20 no; 2 is an error.
    """
    with show_progress(as_json or _quiet.get()) as progress:
        found, shown = runs.check(run_folder, log, out=out, progress=progress)
    if as_json:
        typer.echo(_to_json(shown))
    elif _quiet.get():
        print_warnings(shown["checks"], to_stderr=True)
    else:
        print_check(shown, out)
    raise typer.Exit(found.code)


@verb
@runs.with_options("how", runs.pace_options())
def pace(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    how: dict[str, Any],
    stream: Annotated[str, typer.Option(help="simulated, or a table of customers to replay.")] = runs.SIMULATED,
    budget: Budget = None,
    total: Total = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write price, spend and value as an HTML page here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate how a budget is kept while customers come one by one, before you serve."""
    with show_progress(as_json or _quiet.get()) as progress:
        streaming = runs.read_streaming(stream, how)
        shown = runs.pace(run_folder, streaming, progress, budget=budget, total=total, out=out)
    if as_json:
        typer.echo(_to_json(shown))
    elif not _quiet.get():
        print_pace(shown, out)


@verb
@runs.with_options("asked", runs.power_options())
def power(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan.")],
    asked: dict[str, Any],
    incumbent: Annotated[
        str, typer.Option(help="What the plan is tested against: before (what was done), uniform (a mix), or a level.")
    ] = "before",
    as_json: AsJson = False,
) -> None:
    """Say how many customers a test of the plan needs, among those whose level differs, and how long it takes."""
    with show_progress(as_json or _quiet.get()) as progress:
        found = runs.power(run_folder, incumbent, asked=Asked(**asked), progress=progress)
    if as_json:
        typer.echo(_to_json(runs.describe_power(found)))
    elif not _quiet.get():
        print_power(found)


@app.command()
def studio(
    run_folder: Annotated[Path | None, typer.Argument(help="Run folder to open first.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of this machine; default: one that is free.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where runs are kept; default: beside the run folder, or here.")
    ] = None,
) -> None:
    """Open a page in the browser: from a table to a report, for people who do not write Python."""
    from largesse.studio import open_studio

    open_studio(run_folder, folder=folder, port=port, browser=not no_browser, say=typer.echo)


@app.command()
@runs.with_options("book", runs.ledger_options())
def serve(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan, or its policy file.")],
    book: dict[str, Any],
    host: Annotated[str, typer.Option(help="Where to listen; elsewhere than here, a token is needed.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="Port; default: 8000, or one that is free.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="File with the token that requests must bring.")] = None,
    workers: Annotated[int, typer.Option(help="How many processes decide.")] = 1,
    without_rules: Annotated[
        bool, typer.Option("--without-rules", help="Serve although the plan has rules that a price cannot keep.")
    ] = False,
) -> None:
    """Decide over HTTP, customer by customer, within a budget that a ledger keeps."""
    from largesse.serving import Settings, open_service, read_book

    settings = Settings(run_folder, host, port, token_file, read_book(book), workers, without_rules)
    open_service(settings, typer.echo)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def experiment(context: typer.Context) -> None:
    """Repeat the paper's experiments, or measure models where the truth is known."""
    try:
        from largesse_lab.cli import app as lab
    except ModuleNotFoundError as missing:
        problem = Problem(f"the package {missing.name!r} is not installed", "pip install 'largesse[lab]'")
        raise MissingPartError("experiment", [problem]) from missing
    lab(context.args, prog_name="largesse experiment", standalone_mode=False)


# -- helpers ------------------------------------------------------------------------------------------------------------


def _echo(content: dict[str, Any], as_json: bool, text: str) -> None:
    if as_json or not _quiet.get():
        typer.echo(_to_json(content) if as_json else make_visible(text))


def _to_json(content: dict[str, Any]) -> str:
    """Write JSON in letters that a terminal shows; with escapes where a name holds others."""
    text = json.dumps(content, ensure_ascii=False)
    return text if make_visible(text) == text else json.dumps(content)


def _show_answer(shown: dict[str, Any], folder: Path, as_json: bool) -> None:
    if as_json:
        typer.echo(_to_json({"run": str(folder), **shown}))
    elif _quiet.get():
        print_warnings(shown["answer"]["warnings"], to_stderr=True)
    else:
        print_answer(shown, folder)


if __name__ == "__main__":
    main()
