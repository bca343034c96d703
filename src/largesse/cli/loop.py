"""The commands between campaigns: check what became of a plan, test it, pace it, serve it; the studio, and experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from largesse import pipeline
from largesse.campaign import ledger_options, pace_options, power_options, with_options
from largesse.cli.verbs import (
    AsJson,
    Budget,
    Total,
    app,
    echo,
    is_quiet,
    to_json,
    verb,
)
from largesse.errors import plural, require_part
from largesse.monitoring import PowerSpec
from largesse.report import (
    print_check,
    print_pace,
    print_power,
    print_warnings,
    show_progress,
)


@verb
def check(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with the plan.")],
    log: Annotated[
        str, typer.Argument(help="The log of the campaign that followed: who got what, and what came of it.")
    ],
    ledger: Annotated[
        str | None, typer.Option(help="Where a service booked its decisions: they are the plan then.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the check as an HTML page here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a campaign with its plan: promise and result, was the plan followed, and what has changed since.

    Each check says fine, careful or no. The exit code is for a scheduler: 0 fine, 10 careful, 20 no; 2 is an error.
    """
    with show_progress(as_json or is_quiet()) as progress:
        found, shown = pipeline.check(run_folder, log, decisions=_read_decisions(ledger), out=out, progress=progress)
    if as_json:
        typer.echo(to_json(shown))
    elif is_quiet():
        print_warnings(shown["checks"], to_stderr=True)
    else:
        print_check(shown, out)
    raise typer.Exit(found.code)


@verb
@with_options("how", pace_options())
def pace(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    how: dict[str, Any],
    stream: Annotated[str, typer.Option(help="simulated, or a table of customers to replay.")] = "simulated",
    budget: Budget = None,
    total: Total = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write price, spend and value as an HTML page here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate how a budget is kept while customers come one by one, before you serve."""
    from largesse import serve as service

    with show_progress(as_json or is_quiet()) as progress:
        streaming = service.read_streaming(stream, how)
        shown = service.pace(run_folder, streaming, progress, budget=budget, total=total, out=out)
    if as_json:
        typer.echo(to_json(shown))
    elif not is_quiet():
        print_pace(shown, out)


@verb
@with_options("asked", power_options())
def power(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan.")],
    asked: dict[str, Any],
    incumbent: Annotated[
        str, typer.Option(help="What the plan is tested against: before (what was done), uniform (a mix), or a level.")
    ] = "before",
    as_json: AsJson = False,
) -> None:
    """Say how many customers a test of the plan needs, among those whose level differs, and how long it takes."""
    with show_progress(as_json or is_quiet()) as progress:
        found = pipeline.power(run_folder, incumbent, spec=PowerSpec(**asked), progress=progress)
    if as_json:
        typer.echo(to_json(pipeline.describe_power(found)))
    elif not is_quiet():
        print_power(found)


@verb
def log(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with the plan, or of the policy that was served.")],
    out: Annotated[Path, typer.Option("--out", help="The log to write: .parquet, .csv, .feather.")],
    ledger: Annotated[str | None, typer.Option(help="Where a service booked its decisions; default: the plan.")] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(
            help="A table of customers: features, or responses. Once for each table; the id column joins them."
        ),
    ] = None,
    missing: Annotated[
        float | None, typer.Option(help="The response of customers who are in no table of responses: 0.")
    ] = None,
    campaign: Annotated[
        Path | None, typer.Option("--campaign", help="Write a campaign file for this log here, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the next log: what was decided, with which propensity, and what came of it."""
    wanted = pipeline.Wanted(_read_decisions(ledger), tuple(join or ()), missing)
    shown = pipeline.write_log(run_folder, wanted, out, campaign_file=campaign)
    whom = plural(shown["customers"], "customer")
    text = (
        f"wrote {out}: {plural(shown['rows'], 'decision')} for {whom}, {shown['drawn']:,} with a propensity below 1\n"
    )
    if shown["others"]:
        text += f"{plural(shown['others'], 'response')} of customers who were not decided for: left out\n"
    # The address of a server may hold its password.
    booked = "" if ledger is None else f" --ledger {ledger if ledger.startswith('sqlite:') else '…'}"
    text += f"compare it with the plan: largesse check {run_folder} {out}{booked}"
    if not shown["drawn"]:
        text += "\nno level was drawn at random, so a run cannot learn from this log; plan the next one with --explore-for evaluation"
    elif campaign is not None:
        text += f"\nlearn from it: largesse run {campaign}"
    echo(shown, as_json, text)


@verb
def ledger(
    address: Annotated[str, typer.Argument(help="The ledger: sqlite:///spring.db, or postgresql://….")],
    total: Annotated[
        str | None, typer.Option(help="Change the budget to this; not below what is spent or promised.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write all decisions as a table: .parquet, .csv, .feather.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say where the budget of a ledger stands, and add its decisions up again."""
    from largesse.serve import audit_ledger, describe_standing

    shown = audit_ledger(address, total, out)
    text = describe_standing(shown)
    echo(shown, as_json, text if out is None else f"{text}\nwrote {out}")


@verb
def studio(
    run_folder: Annotated[Path | None, typer.Argument(help="Run folder to open first.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of this machine; default: 8137, or one that is free.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where runs are kept; default: beside the run folder, or here.")
    ] = None,
) -> None:
    """Open a page in the browser: from a table to a report, for people who do not write Python."""
    from largesse.studio import open_studio

    open_studio(run_folder, folder=folder, port=port, browser=not no_browser, say=typer.echo, quiet=is_quiet())


@verb
@with_options("book", ledger_options())
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
    from largesse.serve import Settings, open_service, read_book

    settings = Settings(run_folder, host, port, token_file, read_book(book), workers, without_rules, is_quiet())
    open_service(settings)


def _read_decisions(address: str | None) -> Any:
    """Return the decisions of a ledger as a table, or None without an address."""
    if address is None:
        return None
    from largesse.serve import read_decisions

    return read_decisions(address)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def experiment(context: typer.Context) -> None:
    """Repeat the paper's experiments, or measure models where the truth is known."""
    hint = "install it from a checkout of the repository: pip install -e lab"
    lab = require_part("largesse_lab.cli", "", "experiment", hint=hint).app
    lab(context.args, prog_name="largesse experiment", standalone_mode=False)
