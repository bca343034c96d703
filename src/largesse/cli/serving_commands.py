"""Commands of servers and ledgers: serve, pace, ledger, studio."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from largesse.cli.result_output import print_json_or_summary, print_text_or_json
from largesse.cli.shared_options import AsJson, Budget, Most, Promises, Quiet, RunFolder, Total, select_given_options
from largesse.progress import show_progress
from largesse.report import print_pacing_results

STREAM_OPTIONS = ("time", "streams", "customers", "days", "valid_days", "promises", "most", "seed")
LEDGER_OPTIONS = ("ledger", "total", "since", "until", "customers", "valid_days", "most", "promises", "late")


def serve(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan, or its policy file.")],
    ledger: Annotated[
        str | None,
        typer.Option(help="Book decisions here: sqlite:///spring.db, or postgresql://… for many machines."),
    ] = None,
    total: Annotated[str | None, typer.Option(help="Budget of a new ledger.")] = None,
    since: Annotated[str | None, typer.Option(help="Start of its period: 2027-01-01; default: now.")] = None,
    until: Annotated[str | None, typer.Option(help="End of its period: 2027-01-31, the last day, or a time.")] = None,
    customers: Annotated[
        float | None,
        typer.Option(
            help="Expected number of customers in it; default: as many as the plan's budget pays for.",
        ),
    ] = None,
    valid_days: Annotated[
        float | None, typer.Option(help="Days that a promise is valid; default: until it is redeemed.")
    ] = None,
    most: Most = None,
    promises: Promises = None,
    late: Annotated[str | None, typer.Option(help="Handling of later redemptions: refuse (default), accept.")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any other than this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="Port; default: 8000, or one that is free.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="File with the token that requests must send.")] = None,
    workers: Annotated[int, typer.Option(help="Number of processes.")] = 1,
    without_rules: Annotated[
        bool, typer.Option("--without-rules", help="Serve a plan with rules that a price cannot keep.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Serve decisions over HTTP, customer by customer, within the budget of a ledger."""
    options = select_given_options(locals(), LEDGER_OPTIONS)
    from largesse.serve import ServiceSettings, open_service, parse_ledger_options

    open_service(
        ServiceSettings(
            run_folder, host, port, token_file, parse_ledger_options(options), workers, without_rules, quiet
        )
    )


def pace(
    run_folder: RunFolder,
    time: Annotated[
        str | None,
        typer.Option(help="Column with the time when each customer came; default: rows come evenly."),
    ] = None,
    streams: Annotated[int | None, typer.Option(help="Number of simulated streams; default: 20.")] = None,
    customers: Annotated[
        int | None, typer.Option(help="Expected number of customers in the period; default: those of the run.")
    ] = None,
    days: Annotated[int | None, typer.Option(help="Length of the period; default: 30.")] = None,
    valid_days: Annotated[
        float | None,
        typer.Option(
            help="Days that a promise is valid, where costs are paid later; default: a quarter of the period.",
        ),
    ] = None,
    promises: Promises = None,
    most: Most = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same streams.")] = None,
    stream: Annotated[str, typer.Option(help="simulated, or a table of customers to replay.")] = "simulated",
    budget: Budget = None,
    total: Total = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write price, spend and value as an HTML page here.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Simulate pacing before serving: customers arrive one by one, and the budget is kept."""
    settings = select_given_options(locals(), STREAM_OPTIONS)
    from largesse import serve as service

    with show_progress(as_json or quiet) as progress:
        pace_settings = service.parse_pace_options(stream, settings)
        answer = service.pace(run_folder, pace_settings, progress, budget=budget, total=total, out=out)
    print_json_or_summary(answer, lambda: print_pacing_results(answer, out), as_json=as_json, quiet=quiet)


def ledger(
    address: Annotated[str, typer.Argument(help="The ledger: sqlite:///spring.db, or postgresql://….")],
    total: Annotated[
        str | None, typer.Option(help="Change the budget to this; not below what is spent or promised.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write all decisions as a table: .parquet, .csv, .feather.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show the balance of a ledger, and check it against the sum of its decisions."""
    from largesse.serve import audit_ledger, describe_standing

    answer = audit_ledger(address, total, out)
    text = describe_standing(answer)
    print_text_or_json(answer, text if out is None else f"{text}\nwrote {out}", as_json=as_json, quiet=quiet)


def studio(
    run_folder: Annotated[Path | None, typer.Argument(help="Run folder to open first.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of this machine; default: 8137, or one that is free.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Folder of the runs; default: next to the run folder, or the current one."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Open a page in the browser that leads from a table to a report, without Python."""
    from largesse.studio import open_studio

    open_studio(run_folder, folder=folder, port=port, browser=not no_browser, say=typer.echo, quiet=quiet)
