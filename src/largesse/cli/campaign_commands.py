"""Commands on one campaign: demo, init, run, fit, plan, evaluate, report, export, doctor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from largesse import pipeline
from largesse.campaign import (
    BUDGET_KEYS,
    DraftAnswers,
    SpendingOverrides,
    make_campaign_from_options,
    parse_number_list,
    profile_table,
    read_campaign,
    split_comma_list,
    write_campaign_text,
)
from largesse.cli.draft_questions import ask_draft_questions, print_draft
from largesse.cli.result_output import exit_by_severity, print_json_or_summary, print_text_or_json
from largesse.cli.shared_options import (
    AsJson,
    Budget,
    Cluster,
    Confidence,
    CostColumn,
    Customer,
    Engine,
    Explore,
    ExploreFor,
    Features,
    Logger,
    Master,
    Out,
    PlanTo,
    Propensity,
    PropensityStrata,
    Quiet,
    RunFolder,
    Total,
    Weight,
    make_column_option,
    open_chosen_engine,
    select_given_options,
)
from largesse.errors import Problem, fail, find_path_problems, plural, refuse
from largesse.evaluation import ESTIMATORS
from largesse.policy import DIALECTS
from largesse.progress import show_progress
from largesse.records import ROLES
from largesse.report import (
    print_log_checkup,
    print_plan,
    print_plan_evaluation,
    print_run_result,
)
from largesse.response import list_models

LEVEL_FLAGS = ("costs", "names", "doses", "propensities", "on_redemption", "unit", "response_unit", "response_value")
EXPORT_OPTIONS = ("to", "dialect", "table", "customer", "depth")


def demo(
    out: Annotated[Path, typer.Option("--out", help="Run folder.")] = Path("largesse-demo"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Plan real cash incentives (Thornton 2008) from a log, evaluate the plan, and write a report."""
    campaign, table = pipeline.demo_campaign()
    with show_progress(as_json or quiet) as progress:
        answer = pipeline.run(campaign, out, progress, table=table)
    _print_run_summary(answer, out, as_json, quiet)


def init(
    log: Annotated[str, typer.Argument(help="The log: a table in a file of any usual kind.")],
    level: Annotated[str | None, make_column_option("level")] = None,
    response: Annotated[str | None, make_column_option("response")] = None,
    customer: Customer = None,
    cluster: Cluster = None,
    cost_column: Annotated[
        str | None, typer.Option("--cost-column", "--cost", help=f"Column with {ROLES['cost_column']}.")
    ] = None,
    exclude: Annotated[str | None, typer.Option(help="Comma-separated: columns that are no features.")] = None,
    known_before: Annotated[
        str | None,
        typer.Option(help="Comma-separated: features that look like outcomes, but were known before the level."),
    ] = None,
    protected: Annotated[
        str | None, typer.Option(help="Comma-separated: columns that a plan must not follow, such as sex or religion.")
    ] = None,
    names: Annotated[str | None, typer.Option(help="Names of the levels, the cheapest first: none,small,big.")] = None,
    costs: Annotated[str | None, typer.Option(help="Cost of each level, the cheapest first: 0,5,10.")] = None,
    budget: Budget = None,
    total: Total = None,
    unit: Annotated[str, typer.Option(help="The unit of costs, for the report: €, USD.")] = "",
    response_unit: Annotated[str, typer.Option(help="The unit of the response, where it is an amount: €, USD.")] = "",
    response_value: Annotated[
        float | None, typer.Option(help="The value of one unit of response, in the unit of costs.")
    ] = None,
    query: Annotated[
        str, typer.Option(help="SQL that selects the log from a database, or the sheet of a workbook.")
    ] = "",
    encoding: Annotated[str, typer.Option(help="Encoding of a CSV, such as cp1251. Default: guessed.")] = "",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Take all guesses; ask nothing on a terminal, either.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="The campaign file to write.")] = Path("campaign.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a campaign file that already exists.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a first campaign.toml for a table, with commented guesses where options state nothing.

    On a terminal it asks for what it cannot know; elsewhere such settings are left blank.
    """
    existing = [Problem(f"{out} already exists", "give another --out, or --force to replace it")]
    refuse("init", [*find_path_problems(out, "--out"), *(existing if out.exists() and not force else [])])
    if budget is not None and total is not None:
        fail("init", Problem("both --budget and --total were given", "give the average per customer, or the total"))
    pipeline.check_output_file(out, log)
    roles = {"level": level, "response": response, "customer": customer, "cluster": cluster, "cost_column": cost_column}
    answers = DraftAnswers(
        roles={role: column for role, column in roles.items() if column is not None},
        exclude=split_comma_list(exclude),
        known_before=split_comma_list(known_before),
        protected=split_comma_list(protected),
        names=split_comma_list(names),
        costs=() if costs is None else parse_number_list(costs, "--costs"),
        budget=budget,
        total=total,
        unit=unit,
        response_unit=response_unit,
        response_value=response_value,
        query=query,
        encoding=encoding,
    )
    with show_progress(quiet) as progress:
        progress("profiling the table", 0.0)
        profile = profile_table(log, query, encoding)
        draft = answers.make_draft(profile)
    if sys.stdin.isatty() and sys.stdout.isatty() and not (yes or quiet):
        answers = ask_draft_questions(profile, answers)
        draft = answers.make_draft(profile)
    elif not quiet:
        print_draft(draft)
    pipeline.write_text(out, write_campaign_text(draft, log, out, answers))
    hint = "Fill in its blank lines, if any, and look through those marked CHECK"
    print_text_or_json({}, f"wrote {out}. {hint}, then: largesse doctor {out}", as_json=False, quiet=quiet)


def run(
    campaign: Annotated[Path, typer.Argument(help="The campaign file.")],
    engine: Engine = None,
    master: Master = None,
    plan_to: PlanTo = None,
    budget: Budget = None,
    total: Total = None,
    confidence: Confidence = None,
    out: Out = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to plan from a log that cannot answer: exit code 2, no run folder.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a campaign: read, fit, plan, evaluate, report.

    The exit code is for a scheduler: 0 fine, 10 if a check returned careful, 20 if one returned no or the
    log cannot say; 2 is an error.
    """
    spent = budget is not None or total is not None
    settings = read_campaign(campaign, optional=BUDGET_KEYS if spent else ()).spending(
        budget=budget, total=total, confidence=confidence
    )
    folder = out or Path(settings.out or campaign.with_suffix("").name + "-run")
    with show_progress(as_json or quiet) as progress, open_chosen_engine(engine, master, plan_to) as opened:
        answer = pipeline.run(settings, folder, progress, engine=opened, strict=strict)
    _print_run_summary(answer, folder, as_json, quiet)
    exit_by_severity(answer["answer"]["warnings"], answer["verdict"])


def fit(
    log: Annotated[str, typer.Argument(help="The log: a Parquet, CSV or Arrow file, or a glob in quotes.")],
    level: Annotated[str, make_column_option("level")],
    response: Annotated[str, make_column_option("response")],
    out: Annotated[Path, typer.Option("--out", help="Run folder to write.")],
    costs: Annotated[
        str | None,
        typer.Option(help="Cost of each level, cheapest first: 0,5,10; or K column names; none with --cost-column."),
    ] = None,
    names: Annotated[str | None, typer.Option(help="Names of the levels in the log, in order: none,small,big.")] = None,
    doses: Annotated[str | None, typer.Option(help="The amounts behind the levels, in order: 0,5,10.")] = None,
    propensities: Annotated[
        str | None, typer.Option(help="The levels' probabilities, the same for all customers: 0.2,0.2,0.6.")
    ] = None,
    on_redemption: Annotated[
        bool,
        typer.Option(
            "--on-redemption",
            help="Costs are face values, paid only to customers who respond: cost × response.",
        ),
    ] = False,
    unit: Annotated[str | None, typer.Option(help="The unit of costs, for the report: €, USD.")] = None,
    response_unit: Annotated[
        str | None, typer.Option(help="The unit of the response, where it is an amount: €, USD.")
    ] = None,
    response_value: Annotated[
        float | None,
        typer.Option(
            help="The value of one unit of response, in the unit of costs: a margin, or the value of a yes.",
        ),
    ] = None,
    propensity: Propensity = None,
    propensity_strata: PropensityStrata = None,
    cost_column: CostColumn = None,
    logger: Logger = None,
    cluster: Cluster = None,
    weight: Weight = None,
    customer: Customer = None,
    features: Features = None,
    model: Annotated[str, typer.Option(help=f"Response model: {', '.join(list_models())}.")] = "auto",
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    most_rows: Annotated[
        int | None,
        typer.Option(help="Maximum number of random rows that models learn from. Default: what fits into memory."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a response model to a log and write a run folder."""
    columns, levels = select_given_options(locals(), ROLES), select_given_options(locals(), LEVEL_FLAGS)
    if costs is None and cost_column is None:
        hint = "add --costs 0,5,10, or --cost-column with what each row really cost"
        fail("fit", Problem("nothing says what levels cost", hint))
    more: dict[str, Any] = {} if most_rows is None else {"data": {"most_rows": most_rows}}
    campaign = make_campaign_from_options(log, columns, levels, model={"name": model, "seed": seed}, **more)
    with show_progress(as_json or quiet) as progress:
        answer = pipeline.fit(campaign, out, progress)
    rows = f" ({answer['sample']['rows']:,} of {answer['sample']['of']:,} rows)" if answer["sample"] else ""
    text = (
        f"learnt {answer['response']['name']!r} at {plural(len(answer['levels']), 'level')} from {campaign.log}{rows}"
    )
    text += f"; model: {answer['model']['name']}\nnext: largesse plan {out} CUSTOMERS --budget …"
    print_text_or_json(answer, text, as_json=as_json, quiet=quiet)


def plan(
    run_folder: RunFolder,
    customers: Annotated[str | None, typer.Argument(help="Table of customers; default: those of the campaign.")] = None,
    engine: Engine = None,
    master: Master = None,
    plan_to: PlanTo = None,
    budget: Budget = None,
    total: Total = None,
    confidence: Confidence = None,
    explore: Explore = None,
    explore_for: ExploreFor = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Plan to write (.parquet, .csv, .feather); default: in the run folder.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--as", help="plan (by the policy), or what the evaluation compares it with: rule (simple) or mix."
        ),
    ] = "plan",
    raw_ids: Annotated[
        bool, typer.Option("--raw-ids", help="In CSV, write ids such as =1+1 as they are: spreadsheets compute them.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Give every customer a level at a budget."""
    spent: SpendingOverrides = {"budget": budget, "total": total, "confidence": confidence}
    spent |= {"explore": explore, "explore_for": explore_for}
    about = {} if as_json or quiet else pipeline.describe_run_folder(run_folder)
    with show_progress(as_json or quiet) as progress, open_chosen_engine(engine, master, plan_to) as opened:
        made = pipeline.plan(
            run_folder, customers, kind=kind, out=out, raw_ids=raw_ids, progress=progress, engine=opened, **spent
        )
    path = out or run_folder / "plan.parquet"
    print_json_or_summary(made, lambda: print_plan({**about, **made}, path, run_folder), as_json=as_json, quiet=quiet)


def evaluate(
    run_folder: RunFolder,
    log: Annotated[str | None, typer.Argument(help="Log for the evaluation; default: the campaign's.")] = None,
    budget: Budget = None,
    estimator: Annotated[str, typer.Option(help=f"Estimator: {', '.join(ESTIMATORS)}.")] = "dr",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate value and cost of the plan from the log, each with a 95 % interval."""
    about = {} if as_json or quiet else pipeline.describe_run_folder(run_folder)
    with show_progress(as_json or quiet) as progress:
        judged = pipeline.judge(run_folder, log, budget=budget, estimator=estimator, progress=progress)
    path, warnings = run_folder / "evaluation.json", judged["warnings"]
    print_json_or_summary(
        judged,
        lambda: print_plan_evaluation({**about, **judged}, path),
        as_json=as_json,
        quiet=quiet,
        warnings=warnings,
    )


def report(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan and an evaluation.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Page to write; default: report.html in the run folder.")
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Write the first page alone; default: NAME-short.html, next to the folder.")
    ] = False,
    slides: Annotated[
        Path | None, typer.Option("--slides", help="Write the figures as PNG pictures into this folder instead.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the HTML report of a run folder, its first page alone, or its figures as pictures."""
    if slides is not None:
        if short or out is not None:
            fail("report", Problem("--slides is given with --short or --out", "give --slides alone"))
        paths = pipeline.write_slides(run_folder, slides)
        wrote = [str(path) for path in paths]
        print_text_or_json({"slides": wrote}, f"wrote {', '.join(wrote)}", as_json=as_json, quiet=quiet)
        return
    if short and out is None:
        folder = run_folder.absolute()
        out = folder.parent / f"{folder.name}-short.html"
    answer = pipeline.report(run_folder, out, short=short)
    print_text_or_json(answer, f"wrote {out or run_folder / 'report.html'}", as_json=as_json, quiet=quiet)


def export(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan.")],
    to: Annotated[str, typer.Option(help="sql, onnx or tree (a policy tree: .txt or .sql).")],
    out: Annotated[Path, typer.Option("--out", help="File to write.")],
    dialect: Annotated[str | None, typer.Option(help=f"Of SQL: {', '.join(DIALECTS)}. Default: duckdb.")] = None,
    table: Annotated[
        str | None, typer.Option(help="Table of customers that the query reads. Default: customers.")
    ] = None,
    customer: Annotated[
        str | None, typer.Option(help="Its column with the customer ids. Default: the campaign's.")
    ] = None,
    depth: Annotated[
        str | None, typer.Option(help="Of a policy tree: conditions in a row, 1 to 4. Default: 3.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Export the policy as SQL, as an ONNX model, or as a policy tree."""
    settings = select_given_options(locals(), EXPORT_OPTIONS)
    with show_progress(as_json or quiet) as progress:
        answer = pipeline.export(run_folder, out, progress, **settings)
    print_text_or_json(answer, answer["text"], as_json=as_json, quiet=quiet)


def doctor(
    log: Annotated[str, typer.Argument(help="The log: a table, a campaign file or a run folder.")],
    level: Annotated[str | None, make_column_option("level")] = None,
    response: Annotated[str | None, make_column_option("response")] = None,
    propensity: Propensity = None,
    propensity_strata: PropensityStrata = None,
    cost_column: CostColumn = None,
    logger: Logger = None,
    cluster: Cluster = None,
    weight: Weight = None,
    customer: Customer = None,
    features: Features = None,
    costs: Annotated[
        str | None, typer.Option(help="Cost of each level, cheapest first; a checkup does not need it.")
    ] = None,
    names: Annotated[str | None, typer.Option(help="Names of the levels in the log, in order: none,small,big.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the checkup as an HTML page here.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a log before a run: overlap, balance, randomisation, suspicious features.

    Each check returns fine, careful or no. The columns of a bare table are guessed unless options name them. The exit code
    is 0 if all are fine, 10 if a check returned careful, 20 if one returned no; 2 is an error.
    """
    columns, levels = select_given_options(locals(), ROLES), select_given_options(locals(), ("costs", "names"))
    campaign, guessed = pipeline.find_or_guess_campaign(log, columns, levels)
    with show_progress(as_json or quiet) as progress:
        answer = pipeline.examine(campaign, guessed=guessed, out=out, progress=progress)
    warnings = answer["support"]["checks"]
    print_json_or_summary(
        answer, lambda: print_log_checkup(answer, out), as_json=as_json, quiet=quiet, warnings=warnings
    )
    exit_by_severity(warnings)


def _print_run_summary(answer: dict[str, Any], folder: Path, as_json: bool, quiet: bool) -> None:
    numbers, warnings = {"run": str(folder), **answer}, answer["answer"]["warnings"]
    print_json_or_summary(
        numbers, lambda: print_run_result(answer, folder), as_json=as_json, quiet=quiet, warnings=warnings
    )
