"""Entry point of the command line: the list of commands, errors and signals."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from largesse.cli import campaign, operate
from largesse.errors import LargesseError
from largesse.report import print_error
from largesse.version import __version__


class Commands(TyperGroup):
    """The group of commands, listed with the first sentence of their help on as many lines as it needs."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        firsts = {name: (command.help or "").split("\n\n")[0] for name, command in known.items() if command is not None}
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in firsts.items()])


app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Decide who gets which incentive, under a budget, from the logs you already have.",
)
for command in (
    *(campaign.demo, campaign.init, campaign.run, campaign.fit, campaign.plan, campaign.evaluate, campaign.report),
    *(campaign.export, campaign.doctor),
    *(operate.check, operate.pace, operate.power, operate.log, operate.ledger, operate.studio, operate.serve),
):
    app.command()(command)
app.command(
    # The lab has options of its own.
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(operate.experiment)


def main() -> None:
    """Run the command line; errors that a person can correct show no traceback."""
    signal.signal(signal.SIGTERM, terminate)
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
        print_error("stopped; nothing was left half-written")
        sys.exit(130)
    except MemoryError:
        print_error("not enough memory\n   → read fewer columns with features=…, or plan in parts")
        sys.exit(2)


def terminate(*_: object) -> None:
    """Stop by an exception, so that temporary folders are removed; hide errors of unfinished objects."""
    sys.unraisablehook = lambda _: None
    sys.exit(143)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"largesse {__version__}")
        raise typer.Exit
