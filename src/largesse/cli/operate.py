"""Commands between campaigns: check, pace, power, log, ledger, studio, serve, experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from largesse import pipeline
from largesse.cli.options import AsJson, Budget, Most, Promises, Quiet, RunFolder, Total, echo, pick, present
from largesse.errors import plural, require_part
from largesse.io import to_json
from largesse.monitoring import PowerSpec
from largesse.progress import show_progress
from largesse.report import print_check, print_pace, print_power

STREAM_OPTIONS = ("time", "streams", "customers", "days", "valid_days", "promises", "most", "seed")
POWER_OPTIONS = ("gain", "power", "coverage", "per_day", "share")
LEDGER_OPTIONS = ("ledger", "total", "since", "until", "customers", "valid_days", "most", "promises", "late")


def check(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with the plan.")],
    log: Annotated[str, typer.Argument(help="The log of the campaign that followed: levels and responses.")],
    ledger: Annotated[str | None, typer.Option(help="Ledger of a service: its decisions replace the plan.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the check as an HTML page here.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare the log of a campaign with its plan: predicted and real value, adherence to the plan, drift.

    Each check returns fine, careful or no. The exit code is for a scheduler: 0 fine, 10 careful, 20 no; 2 is an error.
    """
    with show_progress(as_json or quiet) as progress:
        decisions = _read_decisions(ledger)
        result, shown = pipeline.check(run_folder, log, decisions=decisions, out=out, progress=progress)
    warnings = shown["checks"]
    present(shown, lambda: print_check(shown, out), as_json=as_json, quiet=quiet, warnings=warnings)
    raise typer.Exit(result.code)


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
    """Simulate pacing before you serve: customers come one by one, and the budget is kept."""
    settings = pick(locals(), STREAM_OPTIONS)
    from largesse import serve as service

    with show_progress(as_json or quiet) as progress:
        pace_settings = service.parse_pace_options(stream, settings)
        shown = service.pace(run_folder, pace_settings, progress, budget=budget, total=total, out=out)
    present(shown, lambda: print_pace(shown, out), as_json=as_json, quiet=quiet)


def power(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan.")],
    gain: Annotated[
        float | None, typer.Option(help="Gain per customer that the test is to show; default: the log's.")
    ] = None,
    power: Annotated[
        float | None, typer.Option(help="Probability that the test shows a gain that exists; default: 0.8.")
    ] = None,
    coverage: Annotated[float | None, typer.Option(help="Confidence level of the test; default: 0.95.")] = None,
    per_day: Annotated[float | None, typer.Option(help="Customers per day: adds the duration.")] = None,
    share: Annotated[float | None, typer.Option(help="Share of the customers in the plan's arm; default: 0.5.")] = None,
    incumbent: Annotated[
        str,
        typer.Option(help="Policy that the plan is tested against: before (the log's), uniform (a mix), or a level."),
    ] = "before",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the number of customers that a test of the plan needs, and its duration."""
    spec = PowerSpec(**pick(locals(), POWER_OPTIONS))
    with show_progress(as_json or quiet) as progress:
        analysis = pipeline.power(run_folder, incumbent, spec=spec, progress=progress)
    present(to_json(analysis), lambda: print_power(analysis), as_json=as_json, quiet=quiet)


def log(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with the plan, or of the policy that was served.")],
    out: Annotated[Path, typer.Option("--out", help="The log to write: .parquet, .csv, .feather.")],
    ledger: Annotated[
        str | None, typer.Option(help="Ledger of a service with the decisions; default: the plan.")
    ] = None,
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
    quiet: Quiet = False,
) -> None:
    """Write the next log: decisions, propensities and responses."""
    shown = pipeline.write_next_log(
        run_folder, out, decisions=_read_decisions(ledger), tables=join or (), missing=missing, campaign_file=campaign
    )
    drawn, others = shown["drawn"], shown["others"]
    lines = [
        f"wrote {out}: {plural(shown['rows'], 'decision')} for {plural(shown['customers'], 'customer')}, "
        f"{drawn:,} with a propensity below 1"
    ]
    if others:
        lines.append(f"{plural(others, 'response')} of customers who were not decided for: left out")
    # The address of a server may hold its password.
    booked = "" if ledger is None else f" --ledger {ledger if ledger.startswith('sqlite:') else '…'}"
    lines.append(f"compare it with the plan: largesse check {run_folder} {out}{booked}")
    if not drawn:
        hint = "plan the next one with --explore-for evaluation"
        lines.append(f"no level was drawn at random, so a run cannot learn from this log; {hint}")
    elif campaign is not None:
        lines.append(f"learn from it: largesse run {campaign}")
    echo(shown, "\n".join(lines), as_json=as_json, quiet=quiet)


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

    shown = audit_ledger(address, total, out)
    text = describe_standing(shown)
    echo(shown, text if out is None else f"{text}\nwrote {out}", as_json=as_json, quiet=quiet)


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
    """Open a page in the browser that leads from a table to a report, for people who do not write Python."""
    from largesse.studio import open_studio

    open_studio(run_folder, folder=folder, port=port, browser=not no_browser, say=typer.echo, quiet=quiet)


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
    """Decide over HTTP, customer by customer, within the budget of a ledger."""
    options = pick(locals(), LEDGER_OPTIONS)
    from largesse.serve import ServiceSettings, open_service, parse_ledger_options

    open_service(
        ServiceSettings(
            run_folder, host, port, token_file, parse_ledger_options(options), workers, without_rules, quiet
        )
    )


def experiment(context: typer.Context) -> None:
    """Repeat the paper's experiments, or measure models where the truth is known."""
    hint = "install it from a checkout of the repository: pip install -e lab"
    lab = require_part("largesse_lab.cli", "", "experiment", hint=hint).app
    lab(context.args, prog_name="largesse experiment", standalone_mode=False)


def _read_decisions(address: str | None) -> Any:
    """Return the decisions of a ledger as a table, or None without an address."""
    if address is None:
        return None
    from largesse.serve import read_decisions

    return read_decisions(address)
