"""The commands of one campaign: from a table to a report, step by step or in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from largesse import pipeline
from largesse.campaign import (
    Spent,
    campaign_from_options,
    column_options,
    engine_options,
    export_options,
    guess_campaign,
    level_options,
    read_campaign,
    with_options,
)
from largesse.cli.verbs import (
    DEMO_OUT,
    AsJson,
    Budget,
    Columns,
    Confidence,
    Explore,
    ExploreFor,
    Out,
    Total,
    Where,
    echo,
    is_quiet,
    to_json,
    verb,
)
from largesse.errors import Problem, fail, path_problems, plural, refuse
from largesse.evaluation import ESTIMATORS
from largesse.report import (
    print_answer,
    print_checkup,
    print_judgement,
    print_plan,
    print_warnings,
    show_progress,
)
from largesse.response import list_models


@verb
def demo(out: Annotated[Path, typer.Option("--out", help="Run folder.")] = DEMO_OUT, as_json: AsJson = False) -> None:
    """Plan real cash incentives (Thornton 2008) from a log, judge the plan, and leave a report."""
    campaign, table = pipeline.demo_campaign()
    with show_progress(as_json or is_quiet()) as progress:
        shown = pipeline.run(campaign, out, progress, table=table)
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
    pipeline.check_file(out, log)
    with show_progress(is_quiet()) as progress:
        progress("looking at the table", 0.0)
        text = guess_campaign(log, out)
    pipeline.write_text(out, text)
    hint = "Fill in its blank lines and look through those marked CHECK"
    echo({}, False, f"wrote {out}. {hint}, then: largesse run {out}")


@verb
@with_options("where", engine_options())
def run(
    campaign: Annotated[Path, typer.Argument(help="The campaign file.")],
    where: Where,
    budget: Budget = None,
    total: Total = None,
    confidence: Confidence = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Go the whole way: read, learn, plan, judge, report."""
    given = budget is not None or total is not None
    found = read_campaign(campaign, blank_budget=given)
    found = found.spending(budget=budget, total=total, confidence=confidence)
    folder = out or Path(found.out or campaign.with_suffix("").name + "-run")
    with show_progress(as_json or is_quiet()) as progress, pipeline.open_engine(**where, out=folder) as engine:
        shown = pipeline.run(found, folder, progress, engine=engine)
    _show_answer(shown, folder, as_json)


@verb
@with_options("columns", column_options("level", "response"))
@with_options("levels", level_options())
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
    found = campaign_from_options(log, columns, levels, model={"name": model, "seed": seed}, **most)
    with show_progress(as_json or is_quiet()) as progress:
        shown = pipeline.fit(found, out, progress)
    some = f" ({shown['sample']['rows']:,} of {shown['sample']['of']:,} rows)" if "sample" in shown else ""
    what = f"learnt {shown['response']['name']!r} at {plural(len(shown['levels']), 'level')} from {found.log}{some}"
    echo(shown, as_json, f"{what}; model: {shown['model']['name']}\nnext: largesse plan {out} CUSTOMERS --budget …")


@verb
@with_options("where", engine_options())
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
    spent: Spent = {"budget": budget, "total": total, "confidence": confidence}
    spent |= {"explore": explore, "explore_for": explore_for}
    about = _describe(run_folder, as_json)
    with show_progress(as_json or is_quiet()) as progress, pipeline.open_engine(**where, out=run_folder) as engine:
        made = pipeline.plan(run_folder, customers, out=out, raw_ids=raw_ids, progress=progress, engine=engine, **spent)
    if as_json:
        typer.echo(to_json(made))
    elif not is_quiet():
        print_plan({**about, **made}, out or run_folder / "plan.parquet", run_folder)


@verb
def evaluate(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    log: Annotated[str | None, typer.Argument(help="The log to judge by; default: the campaign's.")] = None,
    budget: Budget = None,
    estimator: Annotated[str, typer.Option(help=f"How to judge: {', '.join(ESTIMATORS)}.")] = "dr",
    as_json: AsJson = False,
) -> None:
    """Estimate from the log what the plan will bring and cost, each with a 95 % interval."""
    about = _describe(run_folder, as_json)
    with show_progress(as_json or is_quiet()) as progress:
        found = pipeline.judge(run_folder, log, budget=budget, estimator=estimator, progress=progress)
    if as_json:
        typer.echo(to_json(found))
    elif is_quiet():
        print_warnings(found["warnings"], to_stderr=True)
    else:
        print_judgement({**about, **found}, run_folder / "evaluation.json")


@verb
def report(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan and an evaluation.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Page to write; default: report.html in the run folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the HTML report of a run folder."""
    shown = pipeline.report(run_folder, out)
    echo(shown, as_json, f"wrote {out or run_folder / 'report.html'}")


@verb
@with_options("how", export_options())
def export(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan.")],
    out: Annotated[Path, typer.Option("--out", help="File to write; to mlflow: a new folder.")],
    how: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Write the policy as SQL, as an ONNX or MLflow model, or as a score card that people can read."""
    with show_progress(as_json or is_quiet()) as progress:
        shown = pipeline.export(run_folder, out, progress, **how)
    echo(shown, as_json, shown["text"])


@verb
@with_options("columns", column_options())
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
    found, guessed = pipeline.find_campaign(log, columns, levels)
    with show_progress(as_json or is_quiet()) as progress:
        shown = pipeline.examine(found, guessed=guessed, out=out, progress=progress)
    if as_json:
        typer.echo(to_json(shown))
    elif is_quiet():
        print_warnings(shown["support"]["checks"], to_stderr=True)
    else:
        print_checkup(shown, out)


def _describe(folder: Path, as_json: bool) -> dict[str, Any]:
    """Return what a summary says of a run folder. It is read first: what cannot be read is said before anything changes."""
    return {} if as_json or is_quiet() else pipeline.describe_run(folder)


def _show_answer(shown: dict[str, Any], folder: Path, as_json: bool) -> None:
    if as_json:
        typer.echo(to_json({"run": str(folder), **shown}))
    elif is_quiet():
        print_warnings(shown["answer"]["warnings"], to_stderr=True)
    else:
        print_answer(shown, folder)
