"""Entry point of the command line, with commands, error messages, signals and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from largesse.cli import campaign_commands, monitoring_commands, serving_commands
from largesse.errors import LargesseError, import_optional_package
from largesse.report import print_error
from largesse.version import __version__


class CommandGroup(TyperGroup):
    """Command group whose help lists each command with its first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands for the help."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        firsts = {name: (command.help or "").split("\n\n")[0] for name, command in known.items() if command is not None}
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in firsts.items()])


app = typer.Typer(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Decide who gets which incentive, under a budget, from the logs you already have.",
)


def experiment(context: typer.Context) -> None:
    """Repeat the paper's experiments, or measure models where the truth is known."""
    hint = "install it from a checkout of the repository: pip install -e lab"
    lab = import_optional_package("largesse_lab.experiment_options", "", "experiment", hint=hint).app
    lab(context.args, prog_name="largesse experiment", standalone_mode=False)


for command in (
    campaign_commands.demo,
    campaign_commands.init,
    campaign_commands.run,
    campaign_commands.fit,
    campaign_commands.plan,
    campaign_commands.evaluate,
    campaign_commands.report,
    campaign_commands.export,
    campaign_commands.doctor,
    monitoring_commands.check,
    serving_commands.pace,
    monitoring_commands.power,
    monitoring_commands.log,
    serving_commands.ledger,
    serving_commands.studio,
    serving_commands.serve,
):
    app.command()(command)
app.command(
    # The lab has options of its own.
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(experiment)


def main() -> None:
    """Run the command line, with short messages for user errors."""
    signal.signal(signal.SIGTERM, exit_on_signal)
    # Threads of OpenMP that wait must not compute: on a busy machine they take the time of those that work.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        app()
    except LargesseError as error:
        print_error(str(error))
        sys.exit(2)
    except ImportError as error:  # a broken installation, or a platform without a wheel of a compiled package
        package = (error.name or "").partition(".")[0]
        if package in ("", "largesse"):
            raise
        hint = f"pip install --force-reinstall {package}; largesse runs only where this package does"
        print_error(f"the package {package!r} cannot be loaded here: {error}\n   → {hint}")
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


def exit_on_signal(*_: object) -> None:
    """Exit on a signal by an exception, so that temporary folders are removed."""
    sys.unraisablehook = lambda _: None
    sys.exit(143)


@app.callback(invoke_without_command=True)
def _print_version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"largesse {__version__}")
        raise typer.Exit
