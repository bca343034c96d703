"""One command per verb. Errors are one message and exit code 2; what was there before stays as it was."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from largesse import runs
from largesse.errors import LargesseError, MissingPartError, Problem, fail, make_visible, path_problems, percent, refuse
from largesse.evaluation import ESTIMATORS
from largesse.report import print_answer, print_bound, print_checkup, print_error, print_warnings, show_progress
from largesse.response import list_models
from largesse.version import __version__

app = typer.Typer(
    add_completion=False,
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
Out = Annotated[Path | None, typer.Option("--out", help="Where to write.")]
Columns = dict[str, Any]  # role → what the option says, for the roles that are given
Where = dict[str, Any]  # the engine and its master, if they are given
DEMO_OUT = Path("largesse-demo")


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


@app.command()
def demo(out: Annotated[Path, typer.Option("--out", help="Run folder.")] = DEMO_OUT, as_json: AsJson = False) -> None:
    """Plan real cash incentives (Thornton 2008) from a log, judge the plan, and leave a report."""
    campaign, table = runs.demo_campaign()
    with show_progress(as_json) as progress:
        shown = runs.run(campaign, out, progress, table=table)
    _show_answer(shown, out, as_json)


@app.command()
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
    with show_progress() as progress:
        progress("looking at the table", 0.0)
        text = runs.guess_campaign(log, out)
    runs.write_text(out, text)
    hint = "Fill in its blank lines and look through those marked CHECK"
    typer.echo(make_visible(f"wrote {out}. {hint}, then: largesse run {out}"))


@app.command()
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
    with show_progress(as_json) as progress, runs.open_engine(**where, out=folder) as engine:
        shown = runs.run(found, folder, progress, engine=engine, resume=resume, seconds=seconds)
    _show_answer(shown, folder, as_json)


@app.command()
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
    with show_progress(as_json) as progress:
        shown = runs.fit(found, out, progress)
    name = shown["model"]["name"]
    some = f" ({shown['sample']['rows']:,} of {shown['sample']['of']:,} rows)" if "sample" in shown else ""
    _echo(shown, as_json, f"learnt {name} from {found.log}{some}; next: largesse plan {out} CUSTOMERS --budget …")


@app.command()
@runs.with_options("where", runs.engine_options())
def plan(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    where: Where,
    customers: Annotated[str | None, typer.Argument(help="Table of customers; default: those of the campaign.")] = None,
    budget: Budget = None,
    total: Total = None,
    confidence: Confidence = None,
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
    with show_progress(as_json) as progress, runs.open_engine(**where, out=run_folder) as engine:
        made = runs.plan(run_folder, customers, out=out, raw_ids=raw_ids, progress=progress, engine=engine, **spent)
    planned = made["planned"]
    text = (
        f"planned {made['customers']:,} customers: spend {planned['spend']:.6g} each, price {planned['price']:.4g}; "
        f"wrote {out or run_folder / 'plan.parquet'}"
    )
    if "confidence" in planned:
        text += f"; it keeps the budget with a probability of {percent(planned['confidence'])}"
    _echo(made, as_json, text)


@app.command()
def evaluate(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    log: Annotated[str | None, typer.Argument(help="The log to judge by; default: the campaign's.")] = None,
    budget: Budget = None,
    estimator: Annotated[str, typer.Option(help=f"How to judge: {', '.join(ESTIMATORS)}.")] = "dr",
    as_json: AsJson = False,
) -> None:
    """Estimate from the log what the plan will bring and cost, each with a 95 % interval."""
    with show_progress(as_json) as progress:
        found = runs.judge(run_folder, log, budget=budget, estimator=estimator, progress=progress)
    value, spend = (
        f"{name} {found[name]['estimate']:.4g} ({found[name]['low']:.4g} to {found[name]['high']:.4g})"
        for name in ("value", "spend")
    )
    _echo(found, as_json, f"{value}, {spend}; wrote {run_folder / 'evaluation.json'}")
    if not as_json:
        print_bound(found["safety"])
        print_warnings(found["warnings"])


@app.command()
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


@app.command()
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
    """Check whether a log can answer the question: overlap, balance, randomisation, leaks.

    Each check says fine, careful or no. The columns of a bare table are guessed unless options name them.
    """
    levels = {word: given for word, given in (("costs", costs), ("names", names)) if given is not None}
    found, guessed = runs.find_campaign(log, columns, levels)
    with show_progress(as_json) as progress:
        shown = runs.examine(found, guessed=guessed, out=out, progress=progress)
    if as_json:
        typer.echo(_to_json(shown))
    else:
        print_checkup(shown, out)


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
    typer.echo(_to_json(content) if as_json else make_visible(text))


def _to_json(content: dict[str, Any]) -> str:
    """Write JSON in letters that a terminal shows; with escapes where a name holds others."""
    text = json.dumps(content, ensure_ascii=False)
    return text if make_visible(text) == text else json.dumps(content)


def _show_answer(shown: dict[str, Any], folder: Path, as_json: bool) -> None:
    if as_json:
        typer.echo(_to_json({"run": str(folder), **shown}))
    else:
        print_answer(shown, folder)


if __name__ == "__main__":
    main()
