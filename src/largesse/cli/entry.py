"""The command line as a whole: every command, and what becomes of errors and signals."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

import largesse.cli.campaigns
import largesse.cli.loop  # noqa: F401  both add their commands
from largesse.cli.verbs import app
from largesse.errors import LargesseError
from largesse.report import print_error
from largesse.version import __version__


def main() -> None:
    """Run the command line; a mistake that a person can correct never shows a traceback."""
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
        print_error("stopped; nothing was left half written")
        sys.exit(130)
    except MemoryError:
        print_error("not enough memory\n   → read fewer columns with features=…, or plan in parts")
        sys.exit(2)


def terminate(*_: object) -> None:
    """Stop by an exception, so that half-written folders are cleaned up; objects it leaves half made say nothing."""
    sys.unraisablehook = lambda _: None
    sys.exit(143)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"largesse {__version__}")
        raise typer.Exit
