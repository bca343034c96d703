"""Commands after a campaign: check its results, size a test, write the next log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from largesse import pipeline
from largesse.cli.result_output import print_json_or_summary, print_text_or_json
from largesse.cli.shared_options import AsJson, Quiet, select_given_options
from largesse.errors import plural
from largesse.io import to_json
from largesse.monitoring import PowerSettings
from largesse.progress import show_progress
from largesse.report import print_campaign_check, print_test_sizes

POWER_OPTIONS = ("gain", "power", "coverage", "per_day", "share")


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
        result, answer = pipeline.check(run_folder, log, decisions=decisions, out=out, progress=progress)
    warnings = answer["checks"]
    print_json_or_summary(
        answer, lambda: print_campaign_check(answer, out), as_json=as_json, quiet=quiet, warnings=warnings
    )
    raise typer.Exit(result.code)


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
    spec = PowerSettings(**select_given_options(locals(), POWER_OPTIONS))
    with show_progress(as_json or quiet) as progress:
        analysis = pipeline.power(run_folder, incumbent, spec=spec, progress=progress)
    print_json_or_summary(to_json(analysis), lambda: print_test_sizes(analysis), as_json=as_json, quiet=quiet)


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
    answer = pipeline.write_next_log(
        run_folder, out, decisions=_read_decisions(ledger), tables=join or (), missing=missing, campaign_file=campaign
    )
    drawn, others = answer["drawn"], answer["others"]
    lines = [
        f"wrote {out}: {plural(answer['rows'], 'decision')} for {plural(answer['customers'], 'customer')}, "
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
    print_text_or_json(answer, "\n".join(lines), as_json=as_json, quiet=quiet)


def _read_decisions(address: str | None) -> Any:
    """Read the decisions of a ledger as a table; return None without a ledger."""
    if address is None:
        return None
    from largesse.serve import read_decisions

    return read_decisions(address)
